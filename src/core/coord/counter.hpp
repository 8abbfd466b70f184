#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "core/coord/row_procedure.hpp"
#include "holdfast/coordination.hpp"

namespace holdfast {

/// Adds to a counter or a stock, once for each operation id: a transaction over the counter and a row for the
/// operation, so it needs a store with transactions. A refused one (below the floor) leaves no trace, and may be
/// tried again.
class Add final : public RowProcedure<Added> {
 public:
  Add(AddOptions options, Instant deadline, Random& random);

  [[nodiscard]] static std::string row_key(AddOptions::To to, std::string_view key);
  /// In which attribute of that row the number is.
  [[nodiscard]] static std::string_view number_in(AddOptions::To to);

 private:
  [[nodiscard]] Plan plan(Now now) override;
  [[nodiscard]] std::string name() const;  // for people

  const AddOptions options_;
  std::int64_t sum_ = 0;  // as the latest write has it, if nobody else adds
};

/// A counter or a stock as it is; 0 where there is none yet. Reads only.
class ReadNumber final : public RowProcedure<std::int64_t> {
 public:
  ReadNumber(AddOptions::To to, std::string_view key, Instant deadline, Random& random);

 private:
  [[nodiscard]] Plan plan(Now now) override;

  const AddOptions::To to_;
};

/// Whether it was seen to that what has this row to remember it never happens (Preclude), and what who asks for it
/// all the same is told.
[[nodiscard]] bool was_precluded(const Row& operation);
[[nodiscard]] Failure given_up(std::string_view id);

/// The row in which an operation id is kept, for everything that is to happen once.
[[nodiscard]] std::string operation_key(std::string_view scope, std::string_view op_id);

}  // namespace holdfast
