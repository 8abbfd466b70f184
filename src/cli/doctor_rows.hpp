#pragma once
#include <cstddef>
#include <string>

#include "holdfast/row.hpp"
#include "holdfast/types.hpp"
#include "store/diagnosis.hpp"

namespace holdfast::cli {

/// What is wrong with a table's rows, as findings: those that the index cannot see (F21), and those that no claim or
/// no reader can make sense of. No I/O.
class RowsExamined {
 public:
  void take(const store::Walked& page, WallTime now);
  [[nodiscard]] std::size_t count() const { return rows_; }
  /// `stopped_by` says why not all rows were looked at; empty: they were. A finding for each row, up to a number of
  /// them, or one that all is well.
  [[nodiscard]] store::Findings findings(const std::string& stopped_by) const;

 private:
  void take(const Row& row, WallTime now);
  void note(store::Finding finding);

  store::Findings wrong_;  // the first of them
  std::size_t wrong_count_ = 0, rows_ = 0, connections_ = 0;
};

}  // namespace holdfast::cli
