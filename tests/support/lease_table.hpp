#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "holdfast/row.hpp"
#include "holdfast/store.hpp"
#include "holdfast/types.hpp"
#include "holdfast/update.hpp"

namespace holdfast::test {

/// A table in memory that carries conditional writes out at once, for tests of rules that need no store.
class LeaseTable {
 public:
  struct Answer {
    Outcome outcome = Outcome::applied;
    std::optional<Row> row;  ///< after the write, or as it was on conflict
    [[nodiscard]] const Row* get() const { return row ? &*row : nullptr; }
  };

  Answer carry_out(const Update& update) {
    const auto found = rows_.find(update.key);
    const Row* before = found == rows_.end() ? nullptr : &found->second;
    if (!holds(update.condition, before)) {
      return {Outcome::conflict, before == nullptr ? std::nullopt : std::optional(*before)};
    }
    Row row = before == nullptr ? Row{update.key, {}} : *before;
    if (!apply(update.changes, row)) return {Outcome::rejected, std::nullopt};
    rows_.insert_or_assign(update.key, row);
    return {Outcome::applied, std::move(row)};
  }

  [[nodiscard]] const Row* find(std::string_view key) const {
    const auto found = rows_.find(key);
    return found == rows_.end() ? nullptr : &found->second;
  }
  [[nodiscard]] const std::map<std::string, Row, std::less<>>& rows() const { return rows_; }
  [[nodiscard]] Row& row(std::string_view key) { return rows_.find(key)->second; }
  void erase(std::string_view key) { rows_.erase(rows_.find(key)); }

  /// A connection that shall run and that nobody has had yet.
  Row& add(std::string key) {
    Row& row = rows_[key];
    row.key = std::move(key);
    row.attributes = {{std::string(attribute::desired_state), Value(state::started)},
                      {std::string(attribute::expires_at), Value(std::int64_t{0})}};
    return row;
  }

 private:
  std::map<std::string, Row, std::less<>> rows_;
};

}  // namespace holdfast::test
