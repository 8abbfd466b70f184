#include "store/sqlite/connection.hpp"

#include <sys/stat.h>

#include <utility>

namespace holdfast::store {

Sql<Connection> Connection::open(const std::string& path, bool create) {
  sqlite3* raw = nullptr;
  const int flags =
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE | (create ? SQLITE_OPEN_CREATE : 0);
  const int code = sqlite3_open_v2(path.c_str(), &raw, flags, nullptr);
  Connection connection(path, raw);
  if (code != SQLITE_OK) return tl::unexpected(connection.failure(code, "open"));
  sqlite3_busy_timeout(raw, 0);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  return connection;
}

Sql<Statement> Connection::prepare(std::string_view sql) const {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(get(), sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT,
                                      &statement, nullptr);
  if (code != SQLITE_OK) return tl::unexpected(failure(code, "use"));
  return Statement(statement);
}

Sql<void> Connection::run(const char* sql) const {
  const int code = sqlite3_exec(get(), sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return tl::unexpected(failure(code, "use"));
  return {};
}

Sql<std::int64_t> Connection::number(const char* sql) const {
  auto statement = prepare(sql);
  if (!statement) return tl::unexpected(std::move(statement.error()));
  const int code = statement->step();
  if (code != SQLITE_ROW) return tl::unexpected(failure(code, "read"));
  return statement->number(0);
}

Sql<std::string> Connection::text(const char* sql) const {
  auto statement = prepare(sql);
  if (!statement) return tl::unexpected(std::move(statement.error()));
  const int code = statement->step();
  if (code != SQLITE_ROW) return tl::unexpected(failure(code, "read"));
  return std::string(statement->text(0));
}

Connection::Moved Connection::moved() const {
  int moved = 0;
  const int code = sqlite3_file_control(get(), "main", SQLITE_FCNTL_HAS_MOVED, &moved);
  if (code == SQLITE_OK && moved != 0) return Moved::file;
  // SQLite looks at the main file only. While it is open nobody who uses it rightly removes or replaces its log.
  return log_ && log_at_path() != log_ ? Moved::log : Moved::no;
}

void Connection::know_log() {
  log_ = log_at_path();
}

std::optional<Connection::FileId> Connection::log_at_path() const {
  struct stat status {};
  const char* const path = sqlite3_filename_wal(sqlite3_db_filename(get(), "main"));  // links resolved
  if (path == nullptr || ::stat(path, &status) != 0) return std::nullopt;
  return FileId{status.st_dev, status.st_ino};
}

void Connection::leave_log() {
  sqlite3_db_config(get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
}

std::int64_t Connection::log_bytes() const {
  struct stat status {};
  const char* const path = sqlite3_filename_wal(sqlite3_db_filename(get(), "main"));
  return path == nullptr || ::stat(path, &status) != 0 ? 0 : status.st_size;
}

}  // namespace holdfast::store
