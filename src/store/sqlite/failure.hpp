#pragma once
#include <string>
#include <tl/expected.hpp>

#include "holdfast/store.hpp"

struct sqlite3;

namespace holdfast::store {

/// What SQLite said, as an outcome of S5, for a step after which nothing has been committed.
struct Failure {
  Outcome outcome = Outcome::throttled;
  Error error;
  bool busy = false;      ///< somebody else holds a lock: the same step can work in a moment
  bool only_row = false;  ///< one row cannot be read; the transaction is as good as before
  bool reopen = false;    ///< this connection is of no use any more
};

/// Why a table counts as away whose file is not there, for who knows that it was.
[[nodiscard]] std::string missing_file(const std::string& path);
/// What makes the table that is missing, as a person would type it.
[[nodiscard]] std::string init_command(const std::string& path);

template <class T>
using Sql = tl::expected<T, Failure>;

/// From the (extended) result code and the connection's message. `doing` completes "cannot … PATH".
[[nodiscard]] Failure failure_from(int code, sqlite3* connection, const std::string& path, const char* doing);

[[nodiscard]] Failure damaged_row(const std::string& path, const std::string& key, const std::string& why);

}  // namespace holdfast::store
