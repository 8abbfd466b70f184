#pragma once
#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/request.hpp"
#include "store/rows.hpp"
#include "store/sqlite/connection.hpp"
#include "store/sqlite/failure.hpp"

namespace holdfast::store {

struct SqliteOptions {
  std::string path = "holdfast.db";
  /// Every commit reaches the disk before it is told (docs/adr/0004): an epoch given out survives a power cut.
  bool is_expected = false;  // a file that is not there is on a disk that is away: it may come back
  bool sync_full = true;
  std::int64_t pages_max = 0;  ///< the file's size limit in pages of 4 KiB; 0: SQLite's own

  /// For tests of what happens in between: called on the store's thread.
  enum class Moment { to_begin, begun, before_commit, after_commit };
  std::function<void(Moment)> at_moment;
};

/// The table in a SQLite file: one row of SQL per row of ours, its attributes as one JSON cell, the index's
/// attributes as columns beside it (docs/adr/0003). One thread at a time. Never waits for a lock.
///
/// States: closed, open. open() and initialize() lead to open; a failure with `reopen`, or the file's
/// disappearance, back to closed.
class SqliteTable {
 public:
  explicit SqliteTable(SqliteOptions options) : options_(std::move(options)) {}

  [[nodiscard]] const std::string& path() const { return options_.path; }  ///< any thread
  [[nodiscard]] bool is_open() const { return connection_.has_value(); }
  /// Whether what is open is no longer the file at the path, with its log.
  [[nodiscard]] bool moved() const { return connection_ && connection_->moved() != Connection::Moved::no; }
  /// Opens what is there, and notices when what was open is no longer there: a file that was moved away may come
  /// back, so that is `throttled`, as for a server that cannot be reached. One that never was there is `rejected`.
  [[nodiscard]] Sql<void> open();
  /// Makes file, table and index where they are missing. What was done, in words.
  [[nodiscard]] Sql<std::string> initialize();
  void close();

  [[nodiscard]] Sql<void> begin_write();
  [[nodiscard]] Sql<void> begin_read();
  /// An outcome of `unknown` says that it may have been committed.
  [[nodiscard]] Sql<void> commit();
  void rollback();

  // Inside a transaction. A failure that is not `only_row` leaves nothing but rollback().
  [[nodiscard]] Sql<Answer> execute(const Request& request);
  /// How many rows were deleted because nothing depends on them any more (S3, F18). Begins and commits by itself.
  /// Looks at some rows of each kind, the next call at the next ones.
  [[nodiscard]] Sql<std::size_t> purge(WallTime now);

  /// Rises when another connection has committed.
  [[nodiscard]] std::optional<std::int64_t> data_version();

 private:
  struct Statements {
    Statement begin_write, begin_read, commit, find, insert, update_item, update_expiry, update_all, remove, due,
        timeless, owned, data_version;
  };

  [[nodiscard]] Sql<void> connect(bool create);
  [[nodiscard]] Sql<void> set_up(Connection& connection) const;
  [[nodiscard]] Sql<void> prepare();
  [[nodiscard]] Sql<void> step(Statement& statement, const char* doing);
  [[nodiscard]] Sql<std::optional<Row>> find(const std::string& key);
  [[nodiscard]] Sql<void> write(const std::optional<Row>& before, const Row& after);
  [[nodiscard]] Sql<std::vector<std::string>> find_forgettable(std::string_view state, Position& after, WallTime now);

  void take(Statement& found, PageReply& reply) const;
  [[nodiscard]] Sql<void> add_timeless(std::string_view state, std::size_t most, PageReply& reply);

  [[nodiscard]] Sql<Answer> run(const Initialize& request);
  [[nodiscard]] Sql<Answer> run(const Get& request);
  [[nodiscard]] Sql<Answer> run(const BatchGet& request);
  [[nodiscard]] Sql<Answer> run(const Update& request);
  [[nodiscard]] Sql<Answer> run(const Transact& request);
  [[nodiscard]] Sql<Answer> run(const QueryDue& request);
  [[nodiscard]] Sql<Answer> run(const QueryOwned& request);

  const SqliteOptions options_;
  std::optional<Connection> connection_;
  Statements statements_;                 // destroyed before the connection
  std::string cell_;                      // kept for its memory
  std::array<Position, 2> purged_up_to_;  // removed ones, workers
  bool was_open_ = false;                 // since when a file that is not there is away: it may come back
};

}  // namespace holdfast::store
