#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/coord/procedure.hpp"
#include "core/coord/tries.hpp"
#include "holdfast/coordination.hpp"

namespace holdfast {

/// A group as it is, with the first of its messages; nothing: there is no such group. Reads only: what it tells may
/// have changed since, and between its two reads.
class PeekGroup final : public Procedure {
 public:
  /// `most`: messages, 1 to 100.
  PeekGroup(std::string queue, std::string group, std::size_t most, Instant deadline, Random& random);

  [[nodiscard]] std::optional<Ask> next(Now now) override;
  void on(Answer answer, Now now) override;
  [[nodiscard]] Instant deadline() const override { return tries_.deadline(); }
  [[nodiscard]] const std::optional<Ended<std::optional<GroupView>>>& result() const { return result_; }

 private:
  void saw_group(const Row* row);

  const std::string queue_, group_;
  const std::size_t most_;
  Tries tries_;
  std::optional<GroupView> view_;  // once the group was read
  bool pausing_ = false;
  std::optional<Ended<std::optional<GroupView>>> result_;
};

/// The groups of a queue that have messages, are leased or parked. As the index tells them: it may be late.
class ListGroups final : public Procedure {
 public:
  /// `most`: groups; what is ready is looked through first.
  ListGroups(std::string_view queue, std::size_t most, Instant deadline, Random& random);

  [[nodiscard]] std::optional<Ask> next(Now now) override;
  void on(Answer answer, Now now) override;
  [[nodiscard]] Instant deadline() const override { return tries_.deadline(); }
  [[nodiscard]] const std::optional<Ended<GroupList>>& result() const { return result_; }

 private:
  const std::size_t most_;
  std::vector<std::string> states_;  // still to be looked through, the next one last
  std::string page_;
  Tries tries_;
  GroupList list_;
  bool pausing_ = false;
  std::optional<Ended<GroupList>> result_;
};

}  // namespace holdfast
