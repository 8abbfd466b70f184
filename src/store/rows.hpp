#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/store.hpp"

namespace holdfast::store {

// What rows mean, the same for every store that evaluates in C++.

/// What an update comes to on the row as it is (nothing: there is none). Applied: the row to write.
[[nodiscard]] RowReply decide(const Update& update, std::optional<Row> current);

/// The same on the row where it stands: changed where it is applied, else untouched. `exists`: false where there is
/// no such row; then it has its key alone. The reply has no row in it.
[[nodiscard]] RowReply decide_in_place(const Update& update, Row& row, bool exists);

/// The same for a transaction; `current` holds the rows in the order of the updates. Applied: the rows to write, in
/// that order. Conflict: the rows as they were whose condition failed, where they exist.
[[nodiscard]] RowsReply decide_all(const std::vector<Update>& updates, std::vector<std::optional<Row>> current);

/// Where a row stands in the index on (desired_state, lease_expires_at_ms); nothing where it lacks either.
struct IndexKey {
  std::string_view state;  ///< valid while the row lives and is unchanged
  std::int64_t expires_at = 0;
};
[[nodiscard]] std::optional<IndexKey> index_key(const Row& row);

/// The largest expiry that `QueryDue::before` lets in; nothing where no row can be before it.
[[nodiscard]] std::optional<std::int64_t> last_expiry(WallTime before);

/// A place in the order of a query: after this row. Rows that are inserted or moved while somebody pages may be
/// missed or met twice; those that stay are met once.
struct Position {
  std::int64_t expires_at = INT64_MIN;
  std::string key;
};
[[nodiscard]] std::string to_token(std::int64_t expires_at, std::string_view key);
[[nodiscard]] std::optional<Position> position_from(std::string_view token);

/// Whether nothing depends on the row any more (S3, F18):
/// - a removed connection's: REMOVED, not held by anyone, and its tombstone_expires_at, in seconds, has passed;
/// - a worker's, which has no epoch to keep: its session ended and its tombstone's time has passed; or, where it died
///   without leaving one, a day after its session ended. One that lives after all writes its row anew.
/// A live row never is one, whatever its attributes.
[[nodiscard]] bool may_be_forgotten(const Row& row, WallTime now);

}  // namespace holdfast::store
