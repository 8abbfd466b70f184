#pragma once
#include <optional>
#include <string>

#include "core/coord/row_procedure.hpp"
#include "holdfast/coordination.hpp"

namespace holdfast {

/// The first proposal wins, and stays. One write at most, none where it is decided already. Linearizable: who is told
/// a value is told what everybody is told.
class Decide final : public RowProcedure<Decided> {
 public:
  /// `ticket` names the proposal: under the same one it is known again. Empty: it has no name.
  Decide(std::string_view key, Value proposal, std::string proposer, Instant deadline, Random& random,
         std::string_view ticket = {});

  /// The row that a decision is kept in. It is never removed.
  [[nodiscard]] static std::string row_key(std::string_view key);

 private:
  [[nodiscard]] Plan plan(Now now) override;

  const Value proposal_;
  const std::string proposer_, ticket_;
};

/// Who proposes, as it stands in the decision, and whether that was under this ticket, the name of the proposal: it
/// tells one's own proposal, whichever of its tries it was and whoever asked for it then.
[[nodiscard]] std::string proposer_of(std::string name, std::string_view ticket);
[[nodiscard]] bool is_proposed_under(std::string_view proposer, std::string_view ticket);

/// What is decided, or nothing. Reads only.
class ReadDecision final : public RowProcedure<std::optional<Decided>> {
 public:
  ReadDecision(std::string_view key, Instant deadline, Random& random);

 private:
  [[nodiscard]] Plan plan(Now now) override;
};

/// What is decided in this row; nothing where it is damaged.
[[nodiscard]] std::optional<Decided> decided_in(const Row& row);

}  // namespace holdfast
