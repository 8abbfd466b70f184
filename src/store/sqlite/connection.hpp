#pragma once
#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "store/sqlite/failure.hpp"

namespace holdfast::store {

/// A prepared statement. Bound text is not copied: it must live until reset().
class Statement {
 public:
  Statement() = default;
  explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}

  void bind(int index, std::string_view text) {
    sqlite3_bind_text64(get(), index, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
  }
  void bind(int index, std::int64_t number) { sqlite3_bind_int64(get(), index, number); }
  template <class T>
  void bind(int index, const std::optional<T>& value) {
    if (value) return bind(index, *value);
    sqlite3_bind_null(get(), index);
  }
  [[nodiscard]] int step() { return sqlite3_step(get()); }  ///< SQLITE_ROW, SQLITE_DONE or an error
  void reset() { sqlite3_reset(get()); }

  /// Valid until the next step or reset.
  [[nodiscard]] std::string_view text(int column) {
    const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(get(), column));
    return bytes == nullptr ? std::string_view()
                            : std::string_view(bytes, static_cast<std::size_t>(sqlite3_column_bytes(get(), column)));
  }
  [[nodiscard]] bool is_null(int column) { return sqlite3_column_type(get(), column) == SQLITE_NULL; }
  [[nodiscard]] std::int64_t number(int column) { return sqlite3_column_int64(get(), column); }

 private:
  struct Finalizer {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  [[nodiscard]] sqlite3_stmt* get() const { return statement_.get(); }
  std::unique_ptr<sqlite3_stmt, Finalizer> statement_;
};

/// Resets a statement at the end of its use: an open one holds its snapshot.
class InUse {
 public:
  explicit InUse(Statement& statement) : statement_(statement) {}
  ~InUse() { statement_.reset(); }
  InUse(const InUse&) = delete;
  InUse& operator=(const InUse&) = delete;

 private:
  Statement& statement_;
};

/// One SQLite connection, used by one thread at a time. Never waits for a lock: busy is told at once.
class Connection {
 public:
  [[nodiscard]] static Sql<Connection> open(const std::string& path, bool create);

  [[nodiscard]] Sql<Statement> prepare(std::string_view sql) const;
  /// One statement whose rows, if any, are of no interest.
  [[nodiscard]] Sql<void> run(const char* sql) const;
  /// One statement with one number for an answer.
  [[nodiscard]] Sql<std::int64_t> number(const char* sql) const;
  [[nodiscard]] Sql<std::string> text(const char* sql) const;
  [[nodiscard]] bool in_transaction() const { return sqlite3_get_autocommit(get()) == 0; }
  /// Notes which log the connection writes to, once it has one: after the first read.
  void know_log();
  /// Whether the file that was opened, or its log, is no longer the one at its path.
  enum class Moved { no, file, log };
  [[nodiscard]] Moved moved() const;
  /// Says that closing must not touch the files at the path, neither to write the log into the database nor to remove
  /// it.
  void leave_log();
  [[nodiscard]] std::int64_t log_bytes() const;
  [[nodiscard]] Failure failure(int code, const char* doing) const { return failure_from(code, get(), path_, doing); }
  [[nodiscard]] sqlite3* get() const { return connection_.get(); }

 private:
  struct Closer {
    void operator()(sqlite3* connection) const { sqlite3_close_v2(connection); }
  };
  Connection(std::string path, sqlite3* connection) : path_(std::move(path)), connection_(connection) {}

  struct FileId {
    std::uint64_t device = 0, inode = 0;
    bool operator==(const FileId&) const = default;
  };
  [[nodiscard]] std::optional<FileId> log_at_path() const;

  std::string path_;
  std::optional<FileId> log_;
  std::unique_ptr<sqlite3, Closer> connection_;
};

}  // namespace holdfast::store
