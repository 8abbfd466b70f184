#include "store/sqlite/failure.hpp"

#include <sqlite3.h>

namespace holdfast::store {

namespace {

Failure rejected(Code code, std::string detail) {
  return {Outcome::rejected, {code, std::move(detail)}};
}

}  // namespace

std::string missing_file(const std::string& path) {
  return "there is no file " + path + ": is the disk that it is on there?";
}

std::string init_command(const std::string& path) {
  return "'holdfast init --store sqlite:" + path + "'";
}

Failure failure_from(int code, sqlite3* connection, const std::string& path, const char* doing) {
  const std::string message = connection == nullptr ? sqlite3_errstr(code) : sqlite3_errmsg(connection);
  const std::string what = "cannot " + std::string(doing) + " " + path;
  Failure failure;
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      failure.error = {Code::unavailable, what + ": another process holds its write lock"};
      failure.busy = true;
      break;
    case SQLITE_FULL:
      failure.error = {Code::exhausted, what + ": " + message + "; free some space"};
      break;
    case SQLITE_NOMEM:
      failure.error = {Code::exhausted, what + ": " + message};
      break;
    case SQLITE_READONLY:
      failure =
          rejected(Code::denied, what + ": " + message + "; give this user the right to write the file, its folder" +
                                     " and its -wal and -shm files");
      failure.reopen = true;
      break;
    case SQLITE_CANTOPEN:
      failure =
          rejected(Code::denied, what + ": " + message + "; see whether this user may use the file and its folder");
      failure.reopen = true;
      break;
    case SQLITE_PERM:
    case SQLITE_AUTH:
      failure = rejected(Code::denied, what + ": " + message);
      failure.reopen = true;
      break;
    case SQLITE_NOTADB:
      failure = rejected(Code::corrupt, what + ": it is no SQLite database; give another path");
      failure.reopen = true;
      break;
    case SQLITE_CORRUPT:
      failure = rejected(Code::corrupt, what + ": " + message + "; restore it from a copy");
      failure.reopen = true;
      break;
    case SQLITE_TOOBIG:
      failure = rejected(Code::usage, what + ": " + message);
      break;
    case SQLITE_ERROR:
    case SQLITE_SCHEMA:
      failure = message.find("no such table") == std::string::npos
                    ? rejected(Code::internal, what + ": " + message)
                    : rejected(Code::not_found, "the database " + path + " has no table: run " + init_command(path));
      failure.reopen = true;
      break;
    default:  // SQLITE_IOERR, SQLITE_PROTOCOL, SQLITE_INTERRUPT and what may come
      failure.error = {Code::unavailable, what + ": " + message};
      failure.reopen = true;
      break;
  }
  return failure;
}

Failure damaged_row(const std::string& path, const std::string& key, const std::string& why) {
  Failure failure = rejected(Code::corrupt, "the row " + key + " in " + path + " is damaged (" + why +
                                                "): put its item right or delete it with the sqlite3 program");
  failure.only_row = true;
  return failure;
}

}  // namespace holdfast::store
