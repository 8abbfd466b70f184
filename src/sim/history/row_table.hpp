#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "holdfast/row.hpp"

namespace holdfast::sim {

/// Gives equal rows (and "no row") the same small number. Compares for real: two rows that hash alike stay two.
class RowTable {
 public:
  using Id = std::uint32_t;
  Id intern(const std::optional<Row>& row);
  [[nodiscard]] const std::optional<Row>& row(Id id) const { return rows_[id]; }
  [[nodiscard]] std::size_t size() const { return rows_.size(); }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }  ///< estimated

 private:
  std::vector<std::optional<Row>> rows_;
  std::unordered_multimap<std::uint64_t, Id> by_hash_;  // looked up only, never walked
  std::size_t bytes_ = 0;
};

}  // namespace holdfast::sim
