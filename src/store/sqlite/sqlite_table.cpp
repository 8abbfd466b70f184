#include "store/sqlite/sqlite_table.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <set>
#include <utility>

#include "holdfast/assert.hpp"
#include "store/json.hpp"
#include "store/rows.hpp"

namespace holdfast::store {

namespace {

constexpr std::int64_t schema_version = 1;
constexpr std::int64_t application_id = 0x48465354;  // "HFST"

// An item is much smaller than a page, so that the row lives in the key's own tree (docs/adr/0003).
constexpr const char* schema_sql = R"(
  CREATE TABLE IF NOT EXISTS rows(
    pk TEXT NOT NULL PRIMARY KEY,
    item TEXT NOT NULL,
    desired_state TEXT,
    lease_expires_at_ms INTEGER,
    lease_owner TEXT
  ) WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS rows_due ON rows(desired_state, lease_expires_at_ms, pk)
    WHERE desired_state IS NOT NULL AND lease_expires_at_ms IS NOT NULL;
  CREATE INDEX IF NOT EXISTS rows_owned ON rows(lease_owner, pk) WHERE lease_owner IS NOT NULL;
  PRAGMA application_id = 1212568404;
  PRAGMA user_version = 1;
)";
static_assert(schema_version == 1 && application_id == 1212568404, "as written above");

constexpr std::int64_t log_left_bytes_max = 256 << 10;

// A purge takes the lock for as long as it takes to delete so many rows of each state.
constexpr std::int64_t purge_looks_at_max = 500;

tl::unexpected<Failure> rejected(Code code, std::string detail) {
  return tl::unexpected(Failure{Outcome::rejected, {code, std::move(detail)}});
}

/// The columns beside the cell: copies of what the indexes need.
struct Columns {
  std::optional<std::string_view> state;
  std::optional<std::int64_t> expires_at;
  std::optional<std::string_view> owner;
  bool operator==(const Columns&) const = default;

  explicit Columns(const Row& row) : owner(text_of(row, attribute::owner)) {
    if (const auto index = index_key(row)) {
      state = index->state;
      expires_at = index->expires_at;
    }
  }

 private:
  static std::optional<std::string_view> text_of(const Row& row, std::string_view name) {
    const Value* value = row.find(name);
    if (value == nullptr || value->as_string() == nullptr) return std::nullopt;
    return *value->as_string();
  }
};

Sql<Row> to_row(const std::string& path, std::string key, std::string_view cell) {
  auto attributes = attributes_from_json(cell);
  if (!attributes) return tl::unexpected(damaged_row(path, key, attributes.error().detail));
  return Row{std::move(key), std::move(*attributes)};
}

}  // namespace

Sql<void> SqliteTable::open() {
  if (moved()) {
    const bool log_only = connection_->moved() == Connection::Moved::log;
    connection_->leave_log();  // no longer ours
    close();
    // Told once; the next call opens what is there.
    if (log_only) {
      return rejected(Code::corrupt, "the log " + options_.path +
                                         "-wal was removed while it was in use: what was written last is lost, and"
                                         " epochs with it; end all that use the database and start them again");
    }
  }
  if (connection_) return {};
  struct stat status {};
  if (::stat(options_.path.c_str(), &status) != 0) {
    const int error = errno;
    const bool is_missing = error == ENOENT || error == ENOTDIR;
    if (is_missing && options_.is_expected && !was_open_) {
      return tl::unexpected(Failure{Outcome::throttled, {Code::unavailable, missing_file(options_.path)}});
    }
    if (is_missing && was_open_) {
      return tl::unexpected(
          Failure{Outcome::throttled,
                  {Code::unavailable, "the database was moved away or deleted while it was in use: put it back at " +
                                          options_.path + " (a new one would be empty)"}});
    }
    if (error == ENOENT) {
      return rejected(Code::not_found,
                      "there is no database at " + options_.path + ": run " + init_command(options_.path));
    }
    return rejected(error == EACCES ? Code::denied : Code::not_found,
                    "cannot open " + options_.path + ": " + std::strerror(error));
  }
  if (!S_ISREG(status.st_mode))
    return rejected(Code::denied, "cannot open " + options_.path + ": it is no file: name one");
  return connect(false);
}

Sql<std::string> SqliteTable::initialize() {
  if (auto opened = open(); opened) return "the table in " + options_.path + " was there already";
  close();
  if (auto connected = connect(true); !connected) return tl::unexpected(std::move(connected.error()));
  return "made the table in " + options_.path;
}

void SqliteTable::close() {
  statements_ = {};
  // To end the log costs five syncs, of ours and of the next to open it; to read a short one costs none.
  if (connection_ && connection_->log_bytes() <= log_left_bytes_max) connection_->leave_log();
  connection_.reset();
}

/// Whatever fails leaves the table closed.
Sql<void> SqliteTable::connect(bool create) {
  auto connection = Connection::open(options_.path, create);
  if (!connection) return tl::unexpected(std::move(connection.error()));
  connection_ = std::move(*connection);
  const auto done = [this](Sql<void> result) {
    if (!result) close();
    was_open_ = was_open_ || result;
    return result;
  };
  const auto version = connection_->number("PRAGMA user_version");
  if (!version) return done(tl::unexpected(version.error()));
  const auto tables = connection_->number("SELECT count(*) FROM sqlite_schema WHERE type = 'table'");
  if (!tables) return done(tl::unexpected(tables.error()));
  const auto application = connection_->number("PRAGMA application_id");
  if (!application) return done(tl::unexpected(application.error()));

  if (*application != application_id && *tables > 0) {
    return done(rejected(Code::usage, options_.path + " is a database of another program: give another path"));
  }
  if (*version > schema_version) {
    return done(rejected(Code::usage, options_.path + " was made by a newer holdfast (its tables are version " +
                                          std::to_string(*version) + ", this one knows " +
                                          std::to_string(schema_version) + "): use that one"));
  }
  if (*version == 0 && !create) {
    return done(rejected(Code::not_found, "the database " + options_.path +
                                              " has no table: is it another disk's? One is made by " +
                                              init_command(options_.path)));
  }
  if (auto result = set_up(*connection_); !result) return done(std::move(result));
  if (*version == 0) {
    if (auto result = connection_->run("BEGIN IMMEDIATE"); !result) return done(std::move(result));
    if (auto result = connection_->run(schema_sql); !result) return done(std::move(result));
    if (auto result = connection_->run("COMMIT"); !result) return done(std::move(result));
  }
  connection_->know_log();
  return done(prepare());
}

Sql<void> SqliteTable::set_up(Connection& connection) const {
  const bool read_only = sqlite3_db_readonly(connection.get(), "main") == 1;
  const auto mode = connection.text(read_only ? "PRAGMA journal_mode" : "PRAGMA journal_mode = WAL");
  if (!mode) return tl::unexpected(mode.error());
  if (*mode != "wal" && !read_only) {
    return rejected(Code::usage, "cannot use " + options_.path + ": its file system has no shared memory for a" +
                                     " write-ahead log; put it on a local disk");
  }
  const std::string pages = "PRAGMA max_page_count = " + std::to_string(options_.pages_max);
  const std::string settings =
      std::string("PRAGMA synchronous = ") + (options_.sync_full ? "FULL" : "NORMAL") +
      "; PRAGMA temp_store = MEMORY; PRAGMA cache_size = -16384; PRAGMA trusted_schema = OFF;" +
      (options_.pages_max > 0 ? pages : std::string());
  return connection.run(settings.c_str());
}

Sql<void> SqliteTable::prepare() {
  const std::pair<Statement&, const char*> all[] = {
      {statements_.begin_write, "BEGIN IMMEDIATE"},
      {statements_.begin_read, "BEGIN"},
      {statements_.commit, "COMMIT"},
      {statements_.find, "SELECT item FROM rows WHERE pk = ?1"},
      {statements_.insert,
       "INSERT INTO rows(pk, item, desired_state, lease_expires_at_ms, lease_owner)"
       " VALUES(?1, ?2, ?3, ?4, ?5)"},
      // A statement that names a column rewrites its indexes, changed or not: so there are three.
      {statements_.update_item, "UPDATE rows SET item = ?2 WHERE pk = ?1"},
      {statements_.update_expiry, "UPDATE rows SET item = ?2, lease_expires_at_ms = ?4 WHERE pk = ?1"},
      {statements_.update_all,
       "UPDATE rows SET item = ?2, desired_state = ?3, lease_expires_at_ms = ?4,"
       " lease_owner = ?5 WHERE pk = ?1"},
      {statements_.remove, "DELETE FROM rows WHERE pk = ?1"},
      {statements_.due,
       "SELECT pk, item, lease_expires_at_ms FROM rows WHERE desired_state = ?1"
       " AND lease_expires_at_ms <= ?2 AND (lease_expires_at_ms, pk) > (?3, ?4)"
       " ORDER BY lease_expires_at_ms, pk LIMIT ?5"},
      {statements_.timeless,  // all that is no number is above the empty text
       "SELECT pk, item FROM rows WHERE desired_state = ?1 AND lease_expires_at_ms >= '' LIMIT ?2"},
      {statements_.owned, "SELECT pk, item FROM rows WHERE lease_owner = ?1 ORDER BY pk"},
      {statements_.data_version, "PRAGMA data_version"},
  };
  for (const auto& [statement, sql] : all) {
    auto prepared = connection_->prepare(sql);
    if (!prepared) return tl::unexpected(std::move(prepared.error()));
    statement = std::move(*prepared);
  }
  return {};
}

Sql<void> SqliteTable::step(Statement& statement, const char* doing) {
  const InUse in_use(statement);
  const int code = statement.step();
  if (code == SQLITE_DONE) return {};
  return tl::unexpected(connection_->failure(code, doing));
}

Sql<void> SqliteTable::begin_write() {
  if (options_.at_moment) options_.at_moment(SqliteOptions::Moment::to_begin);
  auto begun = step(statements_.begin_write, "write to");
  if (begun && options_.at_moment) options_.at_moment(SqliteOptions::Moment::begun);
  return begun;
}

Sql<void> SqliteTable::begin_read() {
  return step(statements_.begin_read, "read");
}

Sql<void> SqliteTable::commit() {
  if (options_.at_moment) options_.at_moment(SqliteOptions::Moment::before_commit);
  auto result = step(statements_.commit, "commit to");
  if (options_.at_moment) options_.at_moment(SqliteOptions::Moment::after_commit);
  if (result) return result;
  // The commit's last frame may already stand in the log although syncing it, or what follows it, failed; a
  // recovery after a crash would then find it. Only where SQLite has not begun to write is it sure that
  // nothing happened.
  if (!result.error().busy) result.error().outcome = Outcome::unknown;
  return result;
}

void SqliteTable::rollback() {
  if (!connection_ || !connection_->in_transaction()) return;  // SQLite has done it already
  if (!connection_->run("ROLLBACK")) close();
}

Sql<Answer> SqliteTable::execute(const Request& request) {
  return std::visit([this](const auto& of_its_kind) { return run(of_its_kind); }, request);
}

Sql<std::optional<Row>> SqliteTable::find(const std::string& key) {
  const InUse in_use(statements_.find);
  statements_.find.bind(1, std::string_view(key));
  const int code = statements_.find.step();
  if (code == SQLITE_DONE) return std::nullopt;
  if (code != SQLITE_ROW) return tl::unexpected(connection_->failure(code, "read"));
  auto row = to_row(options_.path, key, statements_.find.text(0));
  if (!row) return tl::unexpected(std::move(row.error()));
  return std::move(*row);
}

Sql<void> SqliteTable::write(const std::optional<Row>& before, const Row& after) {
  const Columns now(after);
  Statement* statement = &statements_.insert;
  if (before) {
    const Columns then(*before);
    const bool only_expiry = then.state == now.state && then.owner == now.owner;
    statement = then == now   ? &statements_.update_item
                : only_expiry ? &statements_.update_expiry
                              : &statements_.update_all;
  }
  cell_.clear();
  write_json(after.attributes, cell_);
  statement->bind(1, std::string_view(after.key));
  statement->bind(2, std::string_view(cell_));
  if (statement == &statements_.insert || statement == &statements_.update_all) {
    statement->bind(3, now.state);
    statement->bind(5, now.owner);
  }
  if (statement != &statements_.update_item) statement->bind(4, now.expires_at);
  return step(*statement, "write to");
}

Sql<Answer> SqliteTable::run(const Initialize& /*request*/) {
  HOLDFAST_ASSERT(false, "initialize() is no part of a transaction");
  return RowReply{};
}

Sql<Answer> SqliteTable::run(const Get& request) {
  auto row = find(request.key);
  if (!row) return tl::unexpected(std::move(row.error()));
  return RowReply{Outcome::applied, std::move(*row), {}};
}

Sql<Answer> SqliteTable::run(const BatchGet& request) {
  RowsReply reply{Outcome::applied, {}, {}};
  for (const std::string& key : std::set<std::string>(request.keys.begin(), request.keys.end())) {
    auto row = find(key);
    if (!row && !row.error().only_row) return tl::unexpected(std::move(row.error()));
    if (!row) {
      reply.error = std::move(row.error().error);
    } else if (*row) {
      reply.value.push_back(std::move(**row));
    }
  }
  return reply;
}

Sql<Answer> SqliteTable::run(const Update& request) {
  auto before = find(request.key);
  if (!before) return tl::unexpected(std::move(before.error()));
  RowReply reply = decide(request, *before);
  if (reply.ok()) {
    if (auto written = write(*before, *reply.value); !written) return tl::unexpected(std::move(written.error()));
  }
  return reply;
}

Sql<Answer> SqliteTable::run(const Transact& request) {
  std::vector<std::optional<Row>> before;
  for (const Update& update : request.updates) {
    auto row = find(update.key);
    if (!row) return tl::unexpected(std::move(row.error()));
    before.push_back(std::move(*row));
  }
  RowsReply reply = decide_all(request.updates, before);
  if (!reply.ok()) return reply;
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (auto written = write(before[i], reply.value[i]); !written) return tl::unexpected(std::move(written.error()));
  }
  return reply;
}

Sql<Answer> SqliteTable::run(const QueryDue& request) {
  PageReply reply{Outcome::applied, {}, {}};
  const auto last = last_expiry(request.before);
  if (!last) return reply;
  const Position first{request.from.time_since_epoch().count(), ""};  // every key is above the empty one
  const Position after = request.page.empty() ? first : position_from(request.page).value_or(first);
  const std::size_t limit = std::min(request.limit, page_rows_max);
  Statement& due = statements_.due;
  const InUse in_use(due);
  due.bind(1, std::string_view(request.state));
  due.bind(2, *last);
  due.bind(3, after.expires_at);
  due.bind(4, std::string_view(after.key));
  due.bind(5, static_cast<std::int64_t>(limit) + 1);  // one more tells whether there is another page
  std::string position;
  for (std::size_t seen = 0;; ++seen) {
    const int code = due.step();
    if (code == SQLITE_DONE) break;
    if (code != SQLITE_ROW) return tl::unexpected(connection_->failure(code, "read"));
    if (seen == limit) {
      reply.value.next = std::move(position);
      return reply;
    }
    position = to_token(due.number(2), due.text(0));
    take(due, reply);
  }
  if (request.from != WallTime::min()) return reply;
  if (auto added = add_timeless(request.state, limit, reply); !added) return tl::unexpected(std::move(added.error()));
  return reply;
}

void SqliteTable::take(Statement& found, PageReply& reply) const {
  auto row = to_row(options_.path, std::string(found.text(0)), found.text(1));
  if (row) {
    reply.value.rows.push_back(std::move(*row));
  } else {
    reply.error = std::move(row.error().error);
  }
}

/// Rows into whose expiry somebody has put something that is no number: nobody would ever find them.
Sql<void> SqliteTable::add_timeless(std::string_view state, std::size_t most, PageReply& reply) {
  Statement& timeless = statements_.timeless;
  const InUse in_use(timeless);
  timeless.bind(1, state);
  timeless.bind(2, static_cast<std::int64_t>(most));
  while (true) {
    const int code = timeless.step();
    if (code == SQLITE_DONE) return {};
    if (code != SQLITE_ROW) return tl::unexpected(connection_->failure(code, "read"));
    take(timeless, reply);
  }
}

Sql<Answer> SqliteTable::run(const QueryOwned& request) {
  RowsReply reply{Outcome::applied, {}, {}};
  Statement& owned = statements_.owned;
  const InUse in_use(owned);
  owned.bind(1, std::string_view(request.owner));
  while (true) {
    const int code = owned.step();
    if (code == SQLITE_DONE) return reply;
    if (code != SQLITE_ROW) return tl::unexpected(connection_->failure(code, "read"));
    auto row = to_row(options_.path, std::string(owned.text(0)), owned.text(1));
    if (row) {
      reply.value.push_back(std::move(*row));
    } else {
      reply.error = std::move(row.error().error);
    }
  }
}

/// Those among the next rows of this state, in the index's order.
Sql<std::vector<std::string>> SqliteTable::find_forgettable(std::string_view state, Position& after, WallTime now) {
  std::vector<std::string> found;
  Statement& due = statements_.due;
  const InUse in_use(due);
  const Position from = std::exchange(after, Position{});
  due.bind(1, state);
  due.bind(2, std::int64_t{now.time_since_epoch().count()});
  due.bind(3, from.expires_at);
  due.bind(4, std::string_view(from.key));
  due.bind(5, purge_looks_at_max);
  for (std::int64_t seen = 1;; ++seen) {
    const int code = due.step();
    if (code == SQLITE_DONE) return found;
    if (code != SQLITE_ROW) return tl::unexpected(connection_->failure(code, "read"));
    if (seen == purge_looks_at_max) after = {due.number(2), std::string(due.text(0))};  // there may be more
    const auto row = to_row(options_.path, std::string(due.text(0)), due.text(1));
    if (row && may_be_forgotten(*row, now)) found.push_back(row->key);
  }
}

Sql<std::size_t> SqliteTable::purge(WallTime now) {
  std::vector<std::string> dead;
  // Without a lock: mostly there is nothing to do.
  for (std::size_t i = 0; i < purged_up_to_.size(); ++i) {
    auto found = find_forgettable(i == 0 ? state::removed : state::worker, purged_up_to_[i], now);
    if (!found) return tl::unexpected(std::move(found.error()));
    std::move(found->begin(), found->end(), std::back_inserter(dead));
  }
  if (dead.empty()) return 0U;
  if (auto begun = begin_write(); !begun) return tl::unexpected(std::move(begun.error()));
  std::size_t count = 0;
  Sql<void> result;
  for (auto key = dead.begin(); result && key != dead.end(); ++key) {
    const auto row = find(*key);  // again, now that nobody else writes
    if (!row || !*row || !may_be_forgotten(**row, now)) continue;
    statements_.remove.bind(1, std::string_view(*key));
    result = step(statements_.remove, "write to");
    ++count;
  }
  if (result) result = commit();
  if (!result) {
    rollback();
    return tl::unexpected(std::move(result.error()));
  }
  return count;
}

std::optional<std::int64_t> SqliteTable::data_version() {
  if (!connection_) return std::nullopt;
  const InUse in_use(statements_.data_version);
  if (statements_.data_version.step() != SQLITE_ROW) return std::nullopt;
  return statements_.data_version.number(0);
}

}  // namespace holdfast::store
