#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "holdfast/row.hpp"
#include "holdfast/store.hpp"

namespace holdfast::store {

/// Rows by key, and the index on (desired_state, lease_expires_at_ms) over them. Not thread-safe.
class IndexedRows {
 public:
  /// Null: there is none. Valid until that row is put, edited or erased.
  [[nodiscard]] const Row* find(std::string_view key) const;
  void put(Row row);
  /// `edit`: bool(Row&, bool exists), false where it has changed nothing. Where there is no such row it is given one
  /// with its key alone, which is then put in.
  template <class Edit>
  void edit(const std::string& key, Edit edit) {
    if (const auto found = rows_.find(key); found != rows_.end()) {
      if (edit(found->second.row, true)) index(found->second);
    } else if (Row row{key, {}}; edit(row, false)) {
      put(std::move(row));
    }
  }
  /// No effect where there is none.
  void erase(std::string_view key);

  [[nodiscard]] PageReply query(const QueryDue& query) const;

  /// Calls with each row, by key.
  template <class Visitor>
  void visit(Visitor visitor) const {
    for (const auto& [key, kept] : rows_) visitor(kept.row);
  }

 private:
  using Due = std::set<std::pair<std::int64_t, std::string>>;  // expiry, key
  using DueByState = std::map<std::string, Due, std::less<>>;
  struct Kept {
    Row row;
    DueByState::iterator state;  // end(): it stands in no index
    Due::iterator due;
  };

  /// Moves it in the index to where it belongs now.
  void index(Kept& kept);

  std::map<std::string, Kept, std::less<>> rows_;
  DueByState due_;
};

}  // namespace holdfast::store
