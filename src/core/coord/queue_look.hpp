#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/coord/damage.hpp"
#include "core/coord/read_procedure.hpp"
#include "holdfast/coordination.hpp"

namespace holdfast {

/// A group as it is, with the first of its messages; nothing: there is no such group. A damaged one is told, instead
/// of all. Reads only: what it tells may have changed since, and between its two reads.
class PeekGroup final : public ReadProcedure<std::optional<GroupView>> {
 public:
  /// `most`: messages, 1 to 100.
  PeekGroup(std::string queue, std::string group, std::size_t most, Instant deadline, Random& random);

 private:
  [[nodiscard]] Ask read(Now now) override;
  void took(Answer answer, Now now) override;
  void saw_group(const Row* row);

  const std::string queue_, group_;
  const std::size_t most_;
  std::optional<GroupView> view_;  // once the group was read
};

/// The groups of a queue that have messages, are leased or parked. As the index tells them: it may be late.
class ListGroups final : public ReadProcedure<GroupList> {
 public:
  /// `most`: groups; what is ready is looked through first.
  ListGroups(std::string_view queue, std::size_t most, Instant deadline, Random& random);

 private:
  [[nodiscard]] Ask read(Now now) override;
  void took(Answer answer, Now now) override;
  void finish();

  const std::size_t most_;
  std::vector<std::string> states_;  // still to be looked through, the next one last
  std::string page_;
  LeftOut left_out_;
  GroupList list_;
};

}  // namespace holdfast
