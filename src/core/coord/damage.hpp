#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/coord/procedure.hpp"
#include "holdfast/row.hpp"

namespace holdfast {

/// Which attribute of a coordinator's row is there with another type than the rules know it by, in words; nothing
/// where all are as they should be. Such a one is neither missing nor zero: nothing is decided by that row. An
/// attempt is no such attribute, since one of another type is not ours.
[[nodiscard]] std::optional<std::string> damage_in(const Row& row);
/// With the reason, where that is known.
[[nodiscard]] Failure damaged_row(const Row& row);

/// Rows that a look leaves out: the first few of them, each once.
class LeftOut {
 public:
  void add(const Row& row);
  /// Of a look: the store could not read one.
  void add(const Answer& look);
  /// Keys, or what the store says of one that it cannot read.
  [[nodiscard]] const std::vector<std::string>& rows() const { return rows_; }

 private:
  void add(const std::string& which);

  std::vector<std::string> rows_;
};

}  // namespace holdfast
