// Conditional updates per second through the SQLite store, against the same with bare SQLite statements.
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "harness.hpp"
#include "holdfast/store.hpp"
#include "runtime/asio_loop.hpp"
#include "runtime/clock.hpp"
#include "servers.hpp"
#include "store/json.hpp"

namespace holdfast::bench {
namespace {

using namespace std::chrono_literals;

constexpr int rows_count = 1000;

std::string key_of(std::uint64_t number) {
  return "CONN#stream-" + std::to_string(number % rows_count);
}

Attributes connection_row() {
  return {
      {"desired_state", "STARTED"},
      {"lease_expires_at_ms", std::int64_t{1'700'000'000'000}},
      {"lease_owner", "worker-7f3a@host-12"},
      {"lease_epoch", 7},
      {"lease_attempt", "0123456789abcdef0123456789abcdef"},
      {"ws_url", "wss://feed.example.com/stream/btc-usdt"},
      {"last_seq", std::int64_t{123'456'789}},
      {"options", Value::Map{{"resume", Value::Map{{"query", "since"}}}, {"seq", Value::Map{{"pointer", "/seq"}}}}}};
}

/// What a renewal is: mine, this epoch; a new expiry, a new attempt.
Update renewal(std::uint64_t number) {
  return {key_of(number),
          {Change::set(attribute::expires_at, static_cast<std::int64_t>(1'700'000'000'001 + number)),
           Change::set(attribute::attempt, "fedcba9876543210fedcba9876543210")},
          Condition::equals(attribute::owner, "worker-7f3a@host-12") && Condition::equals(attribute::epoch, 7)};
}

/// A database with rows in it, gone afterwards.
class Database {
 public:
  explicit Database(bool sync_full) : sync_full_(sync_full) {
    runtime::AsioLoop loop(1);
    const auto store = open(loop);
    int left = rows_count + 1;
    const auto one_less = [&](const auto& reply) {
      if (!reply.ok()) throw std::runtime_error("cannot prepare the table: " + reply.error.detail);
      if (--left == 0) loop.stop();
    };
    store->initialize(loop.instant() + 60s, one_less);
    std::vector<Change> changes;
    for (const auto& [attribute, value] : connection_row()) changes.push_back(Change::set(attribute, value));
    for (std::uint64_t i = 0; i < rows_count; ++i) {
      store->update({key_of(i), changes, Condition::row_missing()}, loop.instant() + 60s, one_less);
    }
    loop.run();
  }
  ~Database() = default;
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  [[nodiscard]] std::string path() const { return folder_.path() + "/bench.db"; }
  [[nodiscard]] bool sync_full() const { return sync_full_; }
  [[nodiscard]] std::unique_ptr<Store> open(Loop& loop) const {
    auto store = open_store("sqlite:" + path() + (sync_full_ ? "?sync=full" : "?sync=normal"), loop);
    if (!store) throw std::runtime_error(store.error().detail);
    return std::move(*store);
  }

 private:
  bool sync_full_;
  TemporaryFolder folder_;
};

/// Through the store, so many in flight, for so long: how many were applied. Each process has rows of its own.
double through_store(const Database& database, std::uint64_t process, int window, Duration time) {
  runtime::AsioLoop loop(process + 1);
  const auto store = database.open(loop);
  const Instant end = loop.instant() + time;
  std::uint64_t number = process * 331;
  double applied = 0;
  int in_flight = 0;
  std::function<void()> one = [&] {
    ++in_flight;
    store->update(renewal(number++), loop.instant() + 10s, [&](const RowReply& reply) {
      --in_flight;
      if (reply.ok()) ++applied;
      if (reply.outcome == Outcome::conflict || reply.outcome == Outcome::rejected) {
        throw std::runtime_error("a renewal failed: " + reply.error.detail);
      }
      if (loop.instant() < end) return one();
      if (in_flight == 0) loop.stop();
    });
  };
  for (int i = 0; i < window; ++i) one();
  loop.run();
  return applied;
}

class Raw {
 public:
  explicit Raw(const Database& database) : connection_(open(database)) {}
  ~Raw() {
    for (sqlite3_stmt* statement : {begin_, find_, update_, commit_}) sqlite3_finalize(statement);
    sqlite3_close(connection_);
  }
  Raw(const Raw&) = delete;
  Raw& operator=(const Raw&) = delete;

  void renew(std::uint64_t number) {
    const std::string key = key_of(number);
    step(begin_, SQLITE_DONE);
    bind(find_, 1, key);
    step(find_, SQLITE_ROW);
    bind(update_, 1, key);
    bind(update_, 2, item_);
    sqlite3_bind_int64(update_, 3, static_cast<std::int64_t>(1'700'000'000'001 + number));
    step(update_, SQLITE_DONE);
    step(commit_, SQLITE_DONE);
  }

 private:
  static void check(int code) {
    if (code != SQLITE_OK) throw std::runtime_error(sqlite3_errstr(code));
  }
  static sqlite3* open(const Database& database) {
    sqlite3* connection = nullptr;
    check(
        sqlite3_open_v2(database.path().c_str(), &connection, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr));
    sqlite3_busy_timeout(connection, 60'000);
    const char* sync = database.sync_full() ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL";
    check(sqlite3_exec(connection, sync, nullptr, nullptr, nullptr));
    check(sqlite3_exec(connection, "PRAGMA cache_size = -16384", nullptr, nullptr, nullptr));
    return connection;
  }
  sqlite3_stmt* prepare(const char* sql) const {
    sqlite3_stmt* statement = nullptr;
    check(sqlite3_prepare_v3(connection_, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr));
    return statement;
  }
  static void bind(sqlite3_stmt* statement, int index, const std::string& text) {
    sqlite3_bind_text64(statement, index, text.data(), text.size(), SQLITE_STATIC, SQLITE_UTF8);
  }
  void step(sqlite3_stmt* statement, int expected) {
    if (sqlite3_step(statement) != expected) throw std::runtime_error(sqlite3_errmsg(connection_));
    sqlite3_reset(statement);
  }

  const std::string item_ = store::to_json(connection_row());
  sqlite3* const connection_;
  sqlite3_stmt* const begin_ = prepare("BEGIN IMMEDIATE");
  sqlite3_stmt* const find_ = prepare("SELECT item FROM rows WHERE pk = ?1");
  sqlite3_stmt* const update_ = prepare("UPDATE rows SET item = ?2, lease_expires_at_ms = ?3 WHERE pk = ?1");
  sqlite3_stmt* const commit_ = prepare("COMMIT");
};

/// One transaction for each update: BEGIN IMMEDIATE, SELECT, UPDATE, COMMIT; the cell is neither parsed nor made.
double with_statements(const Database& database, std::uint64_t process, Duration time) {
  Raw raw(database);
  const Instant end = runtime::boot_now() + time;
  std::uint64_t number = process * 331;
  double done = 0;
  for (; runtime::boot_now() < end; ++done) raw.renew(number++);
  return done;
}

using Body = std::function<double(const Database&, std::uint64_t process)>;

/// The same at once in so many processes on one database.
Figures in_processes(int processes, bool sync_full, Duration time, const Body& body) {
  const Database database(sync_full);
  std::vector<std::pair<pid_t, int>> children;
  for (int i = 0; i < processes; ++i) {
    int ends[2];
    if (::pipe(ends) != 0) throw NotHere("no pipe");
    const pid_t pid = ::fork();
    if (pid == 0) {
      double done = -1;
      try {
        done = body(database, static_cast<std::uint64_t>(i));
      } catch (const std::exception& error) {
        std::fprintf(stderr, "store bench: %s\n", error.what());
      }
      const bool told = ::write(ends[1], &done, sizeof done) == sizeof done;
      ::_exit(told ? 0 : 1);
    }
    ::close(ends[1]);
    children.emplace_back(pid, ends[0]);
  }
  double total = 0;
  bool all = true;
  for (const auto& [pid, output] : children) {
    double done = 0;
    all = ::read(output, &done, sizeof done) == sizeof done && done >= 0 && all;
    ::close(output);
    ::waitpid(pid, nullptr, 0);
    total += done;
  }
  if (!all) throw std::runtime_error("a process failed");
  return {{"per_second", total / std::chrono::duration<double>(time).count()}, {"count", total}};
}

void updates(Run& run) {
  run.version("SQLite", sqlite3_libversion());
  const Duration time = run.quick() ? 100ms : 1s;
  for (const bool sync_full : {true, false}) {
    for (const int processes : {1, 3}) {
      const auto store = [=](int window) {
        return [=] {
          return in_processes(processes, sync_full, time, [=](const Database& database, std::uint64_t process) {
            return through_store(database, process, window, time);
          });
        };
      };
      const auto raw = [=] {
        return in_processes(processes, sync_full, time, [=](const Database& database, std::uint64_t process) {
          return with_statements(database, process, time);
        });
      };
      const std::string where = processes == 1 ? "one process" : "three processes";
      run.compare(
          {.name = where + (sync_full ? ", synchronous=FULL" : ", synchronous=NORMAL"),
           .subjects = {{"store, 256 in flight", store(256)}, {"store, 1 in flight", store(1)}, {"statements", raw}},
           .ratios = {{"store, 256 in flight", "statements", "per_second", at_least(0.6)},
                      {"store, 1 in flight", "statements", "per_second", std::nullopt}},
           .rounds = 5});
    }
  }
}

const Register registered_updates{
    "store", "conditional updates a second: the SQLite store against bare statements",
    "Renewals of 1,000 connection rows of about 400 bytes. The store parses the row, evaluates condition and "
    "changes, "
    "writes it anew, and puts what is in flight into one transaction. The statements are prepared, one transaction "
    "for each update (BEGIN IMMEDIATE, SELECT, UPDATE, COMMIT), and leave the cell as text. Same schema and pragmas, "
    "wall time, each process with its own connection.",
    updates};

}  // namespace
}  // namespace holdfast::bench
