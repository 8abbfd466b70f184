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
  Decide(std::string_view key, Value proposal, std::string proposer, Instant deadline, Random& random);

  /// The row that a decision is kept in. It is never removed.
  [[nodiscard]] static std::string row_key(std::string_view key);

 private:
  [[nodiscard]] Plan plan(Now now) override;

  const Value proposal_;
  const std::string proposer_;
};

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
