#include "store/sqlite/sqlite_diagnose.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

#include "store/json.hpp"
#include "store/rows.hpp"
#include "store/sqlite/connection.hpp"

namespace holdfast::store {

namespace {

constexpr std::int64_t page_rows = 500;

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

Finding permissions_of(const std::string& path) {
  Finding finding{.check = "permissions", .health = Health::failed, .detail = {}, .advice = {}};
  const std::string folder = folder_of(path);
  if (::access(path.c_str(), R_OK) != 0) {
    finding.detail = "this user may not read " + path;
    finding.advice = "let the user of the workers read and write it (chown, chmod)";
  } else if (::access(path.c_str(), W_OK) != 0) {
    finding.detail = "this user may not write " + path + ": nothing can be claimed or renewed";
    finding.advice = "let the user of the workers write it (chown, chmod), on a file system that can be written";
  } else if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    finding.detail = "this user may not write the folder " + folder + ", where SQLite keeps its log";
    finding.advice = "let the user of the workers write the folder too";
  } else {
    finding.health = Health::ok;
    finding.detail = "the file and its folder can be read and written";
  }
  return finding;
}

Finding log_of(const Sql<Connection>& connection) {
  const auto mode = connection->text("PRAGMA journal_mode");
  if (mode && *mode == "wal") return {"log", Health::ok, "writes go through a write-ahead log", ""};
  return {"log", Health::failed,
          mode ? "the journal is " + *mode + " instead of a write-ahead log" : mode.error().error.detail,
          "put the file on a local disk that several processes may map into memory, not on a network's"};
}

Finding shape_of(const Sql<Connection>& connection) {
  const auto parts =
      connection->number("SELECT count(*) FROM sqlite_schema WHERE name IN ('rows', 'rows_due', 'rows_owned')");
  if (parts && *parts == 3) return {"table", Health::ok, "the table and its two indexes are there", ""};
  return {"table", Health::failed, parts ? "the table or one of its indexes is missing" : parts.error().error.detail,
          "take another file, made by 'holdfast init', and add the connections to it ('conn import')"};
}

/// Whether the columns beside the item, which the indexes are made of, say the same as it.
bool is_indexed_as_it_is(const Row& row, Statement& statement) {
  const auto key = index_key(row);
  const bool has_state = !statement.is_null(2);
  const bool has_expiry = !statement.is_null(3);
  if (!key) return !(has_state && has_expiry);
  return has_state && has_expiry && statement.text(2) == key->state && statement.number(3) == key->expires_at;
}

void take_row(const std::string& path, Statement& statement, Walked& walked) {
  std::string key(statement.text(0));
  auto attributes = attributes_from_json(statement.text(1));
  if (!attributes) {
    walked.damaged.push_back({key, Health::failed,
                              "cannot be read, and nobody can claim it: " + attributes.error().detail,
                              "put its item right, or delete the row, with the sqlite3 program in " + path});
    return;
  }
  Row row{std::move(key), std::move(*attributes)};
  if (!is_indexed_as_it_is(row, statement)) {
    walked.damaged.push_back(
        {row.key, Health::failed,
         "its columns desired_state and lease_expires_at_ms are not what its item says: workers do not find it",
         "set the two columns to what the item says with the sqlite3 program in " + path});
  }
  walked.rows.push_back(std::move(row));
}

}  // namespace

Diagnosis examine_sqlite(const std::string& path, bool sync_full) {
  Diagnosis result;
  result.no_clock = "leases are written by the clocks of this machine's processes alone, which is one";
  const auto note = [&](Finding finding) { result.findings.push_back(std::move(finding)); };
  note({"credentials", Health::not_applicable, "a file has none", ""});
  const auto connection = Connection::open(path, false);
  struct stat status {};
  if (!connection || ::stat(path.c_str(), &status) != 0) {
    note({"reachable", Health::failed, connection ? "there is no file " + path : connection.error().error.detail,
          "make it with 'holdfast init --store sqlite:" + path + "', or name another with --store"});
    return result;
  }
  note({"reachable", Health::ok, path + ", " + std::to_string(status.st_size / 1024) + " KiB", ""});
  note(permissions_of(path));
  const bool may_write = result.findings.back().health == Health::ok;
  note(shape_of(connection));
  result.can_walk = result.findings.back().health == Health::ok;
  note(log_of(connection));
  result.can_race = may_write && result.can_walk;
  if (sync_full) {
    note({"durability", Health::ok, "each commit is on the disk before it is told", ""});
  } else {
    note({"durability", Health::warning, "?sync=normal: a power cut may take back claims, and epochs with them",
          "leave ?sync=normal out where that matters"});
  }
  note({"stream", Health::not_applicable, "processes on one file see its changes", ""});
  return result;
}

Reply<Walked> walk_sqlite(const std::string& path, const std::string& from) {
  const auto failed = [](const Failure& failure) { return Reply<Walked>{failure.outcome, {}, failure.error}; };
  const auto connection = Connection::open(path, false);
  if (!connection) return failed(connection.error());
  auto statement = connection->prepare(
      "SELECT pk, item, desired_state, lease_expires_at_ms FROM rows WHERE pk > ?1 ORDER BY pk LIMIT ?2");
  if (!statement) return failed(statement.error());
  statement->bind(1, std::string_view(from));
  statement->bind(2, page_rows);
  Reply<Walked> reply{Outcome::applied, {}, {}};
  std::int64_t count = 0;
  int code = statement->step();
  std::string last;
  for (; code == SQLITE_ROW; code = statement->step(), ++count) {
    last = statement->text(0);
    take_row(path, *statement, reply.value);
  }
  if (code != SQLITE_DONE) return failed(connection->failure(code, "read"));
  if (count == page_rows) reply.value.next = std::move(last);
  return reply;
}

}  // namespace holdfast::store
