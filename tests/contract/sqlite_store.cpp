// What is particular to SQLite: the file and what can happen to it, its lock, the thread, the transactions.
#include "store/sqlite/sqlite_store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "asking.hpp"
#include "runtime/thread.hpp"
#include "store/sqlite/sqlite_table.hpp"
#include "support/eventually.hpp"
#include "support/temporary_folder.hpp"

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using store::make_sqlite_store;
using store::SqliteOptions;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::UnorderedElementsAre;
using Moment = SqliteOptions::Moment;

/// A connection of somebody else's, for what a store would not do.
class Raw {
 public:
  explicit Raw(const std::string& path) { EXPECT_EQ(sqlite3_open(path.c_str(), &connection_), SQLITE_OK); }
  ~Raw() { sqlite3_close(connection_); }
  Raw(const Raw&) = delete;
  Raw& operator=(const Raw&) = delete;
  void run(const std::string& sql) {
    sqlite3_busy_timeout(connection_, 10'000);
    EXPECT_EQ(sqlite3_exec(connection_, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(connection_);
  }

 private:
  sqlite3* connection_ = nullptr;
};

/// Holds the store's thread at a moment until it is let go.
class Gate {
 public:
  explicit Gate(Moment where) : where_(where) {}
  std::function<void(Moment)> hook() {
    return [this](Moment moment) {
      if (moment != where_ || open_) return;
      reached_ = true;
      std::vector<int> key;
      keys_.take(key, 1, 1min);
    };
  }
  [[nodiscard]] bool reached() const { return reached_; }
  void open() {
    open_ = true;
    keys_.close();
  }

 private:
  const Moment where_;
  std::atomic<bool> open_ = false;
  std::atomic<bool> reached_ = false;
  runtime::Mailbox<int> keys_;
};

class SqliteStore : public testing::Test {
 protected:
  std::unique_ptr<Store> open(SqliteOptions options = {}) {
    options.path = path_;
    auto store = make_sqlite_store(std::move(options), loop_);
    if (!store) throw std::runtime_error(store.error().detail);
    return std::move(*store);
  }
  std::unique_ptr<Store> open_initialized(SqliteOptions options = {}) {
    Asking store(open(), loop_);
    EXPECT_EQ(store.initialize().outcome, Outcome::applied);
    store.close();
    return open(std::move(options));
  }
  Error refusal_of(const std::string& url) {
    auto store = open_store(url, loop_);
    EXPECT_FALSE(store.has_value()) << url;
    return store ? Error() : store.error();
  }
  void remove_database() {
    for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(path_ + suffix);
  }

  TemporaryFolder folder_;
  const std::string path_ = folder_.file("table.db");
  runtime::AsioLoop loop_{1};
};

// Opening

TEST_F(SqliteStore, a_url_that_makes_no_sense_is_a_usage_error_that_tells_what_to_give) {
  for (const char* url : {"", "sqlite", "sqlite:", "sqlite::memory:", "redis:x", "memory:x", "sqlite:x?sync=off",
                          "sqlite:x?", "/tmp/holdfast.db"}) {
    const Error error = refusal_of(url);
    EXPECT_EQ(error.code, Code::usage) << url;
    EXPECT_THAT(error.detail, AnyOf(HasSubstr("sqlite:PATH"), HasSubstr("?sync="))) << url;
  }
}

TEST_F(SqliteStore, a_missing_folder_is_told_at_opening) {
  const Error error = refusal_of("sqlite:" + folder_.file("missing/table.db"));
  EXPECT_EQ(error.code, Code::not_found);
  EXPECT_THAT(error.detail, HasSubstr("there is no folder"));
}

TEST_F(SqliteStore, a_folder_in_the_files_place_is_told_at_opening) {
  std::filesystem::create_directory(path_);
  EXPECT_EQ(refusal_of("sqlite:" + path_).code, Code::denied);
}

TEST_F(SqliteStore, a_file_that_is_no_database_is_told_at_opening_and_left_alone) {
  const std::string text(5000, 'x');
  std::ofstream(path_) << text;
  const Error error = refusal_of("sqlite:" + path_);
  EXPECT_EQ(error.code, Code::corrupt);
  EXPECT_THAT(error.detail, HasSubstr("no SQLite database"));
  EXPECT_EQ(std::filesystem::file_size(path_), text.size());
}

TEST_F(SqliteStore, a_database_of_another_program_is_refused_and_left_alone) {
  Raw(path_).run("CREATE TABLE bookmarks(url TEXT)");
  const Error error = refusal_of("sqlite:" + path_);
  EXPECT_EQ(error.code, Code::usage);
  EXPECT_THAT(error.detail, HasSubstr("another program"));
}

TEST_F(SqliteStore, a_database_of_a_newer_version_is_refused) {
  { Asking(open_initialized(), loop_).close(); }
  Raw(path_).run("PRAGMA user_version = 2");
  EXPECT_THAT(refusal_of("sqlite:" + path_).detail, HasSubstr("newer holdfast"));
}

TEST_F(SqliteStore, without_a_file_every_request_is_rejected_with_what_to_do_and_no_file_is_made) {
  Asking store(open(), loop_);
  for (const RowReply& reply : {store.get("k"), store.put("k", {{"x", 1}})}) {
    EXPECT_EQ(reply.outcome, Outcome::rejected);
    EXPECT_EQ(reply.error.code, Code::not_found);
    EXPECT_THAT(reply.error.detail, HasSubstr("run 'holdfast init --store sqlite:"));
  }
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(SqliteStore, an_empty_file_has_no_table_until_it_is_initialized) {
  std::ofstream(path_).close();
  Asking store(open(), loop_);
  EXPECT_THAT(store.get("k").error.detail, HasSubstr("made by 'holdfast init --store sqlite:"));
  EXPECT_THAT(store.initialize().value, HasSubstr("made the table"));
  EXPECT_THAT(store.initialize().value, HasSubstr("was there already"));
  EXPECT_TRUE(store.put("k", {{"x", 1}}).ok());
}

TEST_F(SqliteStore, a_store_that_waits_for_its_table_works_once_another_one_has_made_it) {
  Asking store(open(), loop_);
  EXPECT_EQ(store.get("k").outcome, Outcome::rejected);
  Asking other(open_initialized(), loop_);
  EXPECT_TRUE(other.put("k", {{"x", 1}}).ok());
  EXPECT_EQ(store.get("k").value, (Row{"k", {{"x", 1}}}));
}

TEST_F(SqliteStore, a_row_into_whose_expiry_somebody_has_put_a_text_is_found_after_the_others) {
  Asking store(open_initialized(), loop_);
  for (const char* key : {"a", "b"}) store.put(key, {{"desired_state", "TASK"}, {"lease_expires_at_ms", 5}});
  Raw(path_).run("UPDATE rows SET lease_expires_at_ms = 'soon' WHERE pk = 'a'");
  const auto rows = store.query_due({.state = "TASK", .before = WallTime(6ms)}).value.rows;
  EXPECT_EQ(rows.at(1).key, "a");
}

TEST_F(SqliteStore, tombstones_are_purged_at_opening_too) {
  {
    Asking store(open_initialized(), loop_);
    store.put("dead", {{"desired_state", "REMOVED"}, {"lease_expires_at_ms", 0}, {"tombstone_expires_at", 1}});
    store.put("live", {{"desired_state", "STARTED"}, {"lease_expires_at_ms", 0}, {"tombstone_expires_at", 1}});
  }
  Asking store(open(), loop_);
  EXPECT_TRUE(store.get("live").value.has_value());
  EXPECT_FALSE(store.get("dead").value.has_value());
}

TEST_F(SqliteStore, s03_a_row_that_came_back_to_life_while_a_purge_waited_for_the_lock_stays) {
  bool armed = false;
  store::SqliteTable table({.path = path_, .at_moment = [&](Moment moment) {
                              if (moment != Moment::to_begin || !std::exchange(armed, false)) return;
                              Raw(path_).run(
                                  "UPDATE rows SET desired_state = 'STARTED', item = '{\"desired_state\":\"STARTED\","
                                  "\"lease_expires_at_ms\":0,\"lease_epoch\":7}'");
                            }});
  ASSERT_TRUE(table.initialize());
  Raw(path_).run(
      "INSERT INTO rows VALUES('CONN#a', '{\"desired_state\":\"REMOVED\",\"lease_expires_at_ms\":0,"
      "\"lease_epoch\":7,\"tombstone_expires_at\":1}', 'REMOVED', 0, NULL)");
  armed = true;
  EXPECT_EQ(table.purge(loop_.wall()), 0U);
  EXPECT_FALSE(armed) << "it was about to delete the row";
  const auto found = table.execute(store::Get{"CONN#a"});
  ASSERT_TRUE(found);
  EXPECT_TRUE(std::get<RowReply>(*found).value.has_value());
}

TEST_F(SqliteStore, s10_a_purge_of_many_rows_is_done_in_parts_and_ends) {
  store::SqliteTable table({.path = path_});
  ASSERT_TRUE(table.initialize());
  {
    Raw raw(path_);
    raw.run("BEGIN");
    for (int i = 0; i < 1'200; ++i) {
      raw.run("INSERT INTO rows VALUES('WORKER#" + std::to_string(i) +
              "', '{\"desired_state\":\"WORKER\",\"lease_expires_at_ms\":5}', 'WORKER', 5, NULL)");
    }
    raw.run("COMMIT");
  }
  std::size_t left = 1'200;
  for (int call = 0; call < 3 && left > 0; ++call) {
    const auto purged = table.purge(loop_.wall());
    ASSERT_TRUE(purged);
    EXPECT_LE(*purged, 500U);
    left -= *purged;
  }
  EXPECT_EQ(left, 0U);
}

// The lock

TEST_F(SqliteStore, a_lock_held_for_a_while_only_delays_a_write) {
  Asking store(open_initialized(), loop_);
  Raw other(path_);
  other.run("BEGIN IMMEDIATE");
  std::optional<RowReply> reply;
  store->update({"k", {Change::set("x", 1)}, {}}, store.deadline(), [&](RowReply given) { reply = given; });
  run_for(loop_, 100ms);
  EXPECT_FALSE(reply.has_value());
  other.run("COMMIT");
  ASSERT_TRUE(run_until(loop_, [&] { return reply.has_value(); }));
  EXPECT_EQ(reply->outcome, Outcome::applied);
}

TEST_F(SqliteStore, a_lock_held_past_the_deadline_is_throttled_and_the_write_does_not_happen_later) {
  Asking store(open_initialized(), loop_);
  Raw other(path_);
  other.run("BEGIN IMMEDIATE");
  const RowReply reply = store.update({"k", {Change::set("x", 1)}, {}}, 1s);
  EXPECT_EQ(reply.outcome, Outcome::throttled);
  EXPECT_EQ(reply.error.code, Code::unavailable);
  EXPECT_THAT(reply.error.detail, HasSubstr("write lock"));
  other.run("COMMIT");
  EXPECT_TRUE(store.put("other", {{"x", 1}}).ok());
  EXPECT_FALSE(store.get("k").value.has_value());
}

TEST_F(SqliteStore, why_a_write_was_given_up_is_told_whether_the_loop_or_the_thread_noticed_first) {
  Asking store(open_initialized(), loop_);
  Raw other(path_);
  other.run("BEGIN IMMEDIATE");
  std::optional<RowReply> reply;
  const Instant deadline = store.deadline(2s);  // the thread meets the lock before, also on a busy machine
  store->update({"k", {Change::set("x", 1)}, {}}, deadline, [&](RowReply given) { reply = given; });
  run_for(loop_, 100ms);
  ASSERT_TRUE(eventually([&] { return loop_.instant() > deadline + 500ms; }));  // the loop is late
  ASSERT_TRUE(run_until(loop_, [&] { return reply.has_value(); }));
  EXPECT_EQ(reply->outcome, Outcome::throttled);
  EXPECT_THAT(reply->error.detail, HasSubstr("write lock"));
}

TEST_F(SqliteStore, reads_go_on_while_somebody_holds_the_lock_and_writes_wait) {
  Asking store(open_initialized(), loop_);
  store.put("k", {{"x", 1}});
  Raw other(path_);
  other.run("BEGIN IMMEDIATE");
  bool written = false;
  store->update({"k", {Change::set("x", 2)}, {}}, store.deadline(), [&](auto) { written = true; });
  EXPECT_EQ(store.get("k").value, (Row{"k", {{"x", 1}}}));
  EXPECT_FALSE(written);
  other.run("COMMIT");
  EXPECT_TRUE(run_until(loop_, [&] { return written; }));
}

TEST_F(SqliteStore, a_locked_database_delays_initializing) {
  { Asking(open_initialized(), loop_).close(); }
  Raw other(path_);
  other.run("BEGIN IMMEDIATE");
  Asking store(open(), loop_);
  EXPECT_EQ(store.initialize().outcome, Outcome::applied) << "there is nothing to make, so nothing to wait for";
}

// The thread and its transactions

TEST_F(SqliteStore, a_stuck_thread_is_unknown_at_the_deadline_and_what_was_never_begun_is_throttled) {
  Gate gate(Moment::before_commit);
  Asking store(open_initialized({.at_moment = gate.hook()}), loop_);
  std::optional<RowReply> begun;
  std::optional<RowReply> behind;
  store->update({"k", {Change::set("x", 1)}, {}}, store.deadline(2s), [&](RowReply given) { begun = given; });
  ASSERT_TRUE(run_until(loop_, [&] { return gate.reached(); }));
  store->update({"other", {}, {}}, store.deadline(50ms), [&](RowReply given) { behind = given; });
  ASSERT_TRUE(run_until(loop_, [&] { return begun && behind; }));
  EXPECT_EQ(begun->outcome, Outcome::unknown);
  EXPECT_EQ(behind->outcome, Outcome::throttled);
  gate.open();
  EXPECT_EQ(store.get("k").value, (Row{"k", {{"x", 1}}})) << "unknown: here it did happen";
  EXPECT_FALSE(store.get("other").value.has_value());
}

TEST_F(SqliteStore, a_write_whose_deadline_has_passed_is_not_begun_even_where_its_loop_is_late) {
  Gate gate(Moment::before_commit);
  std::atomic<int> commits = 0;
  const auto hook = [&, hold = gate.hook()](Moment moment) {
    if (moment == Moment::after_commit) ++commits;
    hold(moment);
  };
  Asking store(open_initialized({.at_moment = hook}), loop_);
  std::optional<RowReply> late;
  store->update({"k", {Change::set("x", 1)}, {}}, store.deadline(), [](auto) {});
  ASSERT_TRUE(run_until(loop_, [&] { return gate.reached(); }));
  const Instant deadline = store.deadline(200ms);
  store->update({"late", {Change::set("x", 1)}, {}}, deadline, [&](RowReply given) { late = given; });
  store->update({"behind", {Change::set("x", 1)}, {}}, store.deadline(), [](auto) {});
  loop_.context().restart();
  loop_.context()
      .poll();  // hands them to the thread; then the loop stands still, so that no timer of its takes them back
  ASSERT_TRUE(eventually([&] { return loop_.instant() > deadline; }));
  gate.open();
  ASSERT_TRUE(eventually([&] { return commits == 2; }));
  ASSERT_TRUE(run_until(loop_, [&] { return late.has_value(); }));
  EXPECT_EQ(late->outcome, Outcome::throttled);
  EXPECT_FALSE(store.get("late").value.has_value());
  EXPECT_TRUE(store.get("behind").value.has_value());
}

TEST_F(SqliteStore, nothing_is_told_before_it_is_committed) {
  Gate gate(Moment::before_commit);
  Asking store(open_initialized({.at_moment = gate.hook()}), loop_);
  int told = 0;
  store->update({"k", {Change::set("x", 1)}, {}}, store.deadline(), [&](auto) { ++told; });
  store->get("k", store.deadline(), [&](auto) { ++told; });
  ASSERT_TRUE(run_until(loop_, [&] { return gate.reached(); }));
  run_for(loop_, 50ms);
  EXPECT_EQ(told, 0);
  gate.open();
  EXPECT_TRUE(run_until(loop_, [&] { return told == 2; }));
}

TEST_F(SqliteStore, what_queued_up_shares_one_transaction) {
  Gate gate(Moment::before_commit);
  std::atomic<int> commits = 0;
  const auto hook = [&, hold = gate.hook()](Moment moment) {
    if (moment == Moment::after_commit) ++commits;
    hold(moment);
  };
  Asking store(open_initialized({.at_moment = hook}), loop_);
  int applied = 0;
  const auto add = [&] {
    store->update({"k", {Change::add("x", 1)}, {}}, store.deadline(), [&](RowReply reply) { applied += reply.ok(); });
  };
  add();
  ASSERT_TRUE(run_until(loop_, [&] { return gate.reached(); }));
  for (int i = 0; i < 100; ++i) add();
  gate.open();
  ASSERT_TRUE(run_until(loop_, [&] { return applied == 101; }));
  EXPECT_EQ(store.get("k").value->number("x"), 101);
  EXPECT_LE(commits, 5) << "100 waiting writes were not committed one by one";
}

TEST_F(SqliteStore, too_many_waiting_requests_are_throttled_and_all_are_answered) {
  constexpr int too_many = 70'000;
  Gate gate(Moment::before_commit);
  Asking store(open_initialized({.at_moment = gate.hook()}), loop_);
  int throttled = 0;
  int answered = 0;
  const auto count = [&](RowReply reply) {
    ++answered;
    if (reply.outcome == Outcome::throttled) ++throttled;
  };
  store->update({"k", {}, {}}, store.deadline(), count);
  ASSERT_TRUE(run_until(loop_, [&] { return gate.reached(); }));
  for (int i = 1; i < too_many; ++i) store->get("k", store.deadline(3 * Asking::patience), count);
  EXPECT_TRUE(run_until(loop_, [&] { return throttled > 0; }));
  gate.open();
  EXPECT_TRUE(run_until(
      loop_, [&] { return answered == too_many; }, 3 * Asking::patience));
  EXPECT_LT(throttled, too_many / 2);
}

TEST_F(SqliteStore, closing_while_the_thread_is_busy_finishes_what_was_begun_and_throttles_the_rest) {
  Gate gate(Moment::before_commit);
  Asking store(open_initialized({.at_moment = gate.hook()}), loop_);
  std::vector<Outcome> outcomes;
  bool closed = false;
  const auto note = [&](RowReply reply) { outcomes.push_back(reply.outcome); };
  store->update({"begun", {}, {}}, store.deadline(), note);
  ASSERT_TRUE(run_until(loop_, [&] { return gate.reached(); }));
  store->update({"waiting", {}, {}}, store.deadline(), note);
  store->close([&] { closed = true; });
  ASSERT_TRUE(run_until(loop_, [&] { return outcomes.size() == 1; }));
  EXPECT_EQ(outcomes.front(), Outcome::throttled);
  gate.open();
  ASSERT_TRUE(run_until(loop_, [&] { return closed; }));
  EXPECT_EQ(outcomes, (std::vector<Outcome>{Outcome::throttled, Outcome::applied}));
}

TEST_F(SqliteStore, a_store_destroyed_without_closing_calls_nobody) {
  int told = 0;
  {
    const auto store = open_initialized();
    store->update({"k", {}, {}}, loop_.instant() + 10s, [&](auto) { ++told; });
  }
  run_for(loop_, 50ms);
  EXPECT_EQ(told, 0);
}

TEST_F(SqliteStore, a_handler_may_destroy_the_store) {
  auto store = open_initialized();
  bool told = false;
  store->get("k", loop_.instant() + 10s, [&](auto) {
    store.reset();
    told = true;
  });
  store->get("k", loop_.instant() + 10s, [&](auto) { ADD_FAILURE() << "the store is gone"; });
  EXPECT_TRUE(run_until(loop_, [&] { return told; }));
  run_for(loop_, 50ms);
}

// The file disappears

TEST_F(SqliteStore, a_file_that_was_moved_away_is_a_store_that_is_away_until_it_is_back) {
  Asking store(open_initialized(), loop_);
  store.put("k", {{"x", 1}});
  const auto move = [&](const std::string& from, const std::string& to) {
    std::filesystem::create_directory(std::filesystem::path(to).parent_path());
    for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::rename(from + suffix, to + suffix);
  };
  const std::string elsewhere = folder_.file("away/table.db");
  for (int i = 2; i < 4; ++i) {
    move(path_, elsewhere);
    const RowReply written = store.put("k", {{"x", i}});
    EXPECT_EQ(written.outcome, Outcome::throttled) << "nothing happened, and it can be tried again";
    EXPECT_EQ(written.error.code, Code::unavailable);
    EXPECT_THAT(written.error.detail, HasSubstr("put it back at " + path_));
    EXPECT_EQ(store.get("k").outcome, Outcome::throttled);
    EXPECT_FALSE(std::filesystem::exists(path_));
    move(elsewhere, path_);
    EXPECT_EQ(store.get("k").value->number("x"), i - 1) << "nothing is lost";
    EXPECT_TRUE(store.put("k", {{"x", i}}).ok());
  }
}

TEST_F(SqliteStore, a_deleted_file_takes_no_writes_makes_no_new_file_and_works_again_after_init) {
  Asking store(open_initialized(), loop_);
  store.put("k", {{"x", 1}});
  remove_database();
  const RowReply reply = store.put("k", {{"x", 2}});
  EXPECT_EQ(reply.outcome, Outcome::throttled);
  EXPECT_THAT(reply.error.detail, HasSubstr("deleted while it was in use"));
  EXPECT_THAT(reply.error.detail, HasSubstr("a new one would be empty"));
  EXPECT_EQ(store.get("k").outcome, Outcome::throttled);
  EXPECT_FALSE(std::filesystem::exists(path_));
  EXPECT_TRUE(store.initialize().ok());
  EXPECT_TRUE(store.put("k", {{"x", 3}}).ok());
  EXPECT_EQ(Asking(open(), loop_).get("k").value, (Row{"k", {{"x", 3}}}));
}

TEST_F(SqliteStore, a_replaced_file_is_the_one_that_is_used_from_then_on) {
  Asking store(open_initialized(), loop_);
  store.put("old", {{"x", 1}});
  remove_database();
  Asking other(open_initialized(), loop_);
  other.put("new", {{"x", 1}});
  EXPECT_TRUE(store.put("k", {{"x", 1}}).ok());
  EXPECT_TRUE(other.get("k").value.has_value());
  EXPECT_TRUE(store.get("new").value.has_value());
  EXPECT_FALSE(store.get("old").value.has_value());
  EXPECT_TRUE(other.put("k2", {{"x", 1}}).ok()) << "letting go of the old file left the new one's log alone";
  EXPECT_TRUE(store.get("k2").value.has_value());
}

TEST_F(SqliteStore, a_short_log_is_left_to_the_next_and_a_long_one_is_not) {
  {
    Asking store(open_initialized(), loop_);
    store.put("k", {{"x", 1}});
  }
  EXPECT_TRUE(std::filesystem::exists(path_ + "-wal"));
  {
    Asking store(open_initialized(), loop_);
    EXPECT_TRUE(store.get("k").value.has_value());
    for (int i = 0; i < 100; ++i) store.put("k", {{"x", std::string(3000, i % 2 == 0 ? 'a' : 'b')}});
  }
  EXPECT_FALSE(std::filesystem::exists(path_ + "-wal"));
  Asking store(open_initialized(), loop_);
  EXPECT_TRUE(store.get("k").value.has_value());
}

TEST_F(SqliteStore, a_log_that_was_removed_is_noticed_and_nothing_is_called_written_into_it) {
  Asking store(open_initialized(), loop_);
  store.put("k", {{"x", 1}});
  ASSERT_TRUE(std::filesystem::remove(path_ + "-wal"));
  const RowReply reply = store.put("k", {{"x", 2}});
  EXPECT_EQ(reply.outcome, Outcome::rejected);
  EXPECT_THAT(reply.error.detail, AllOf(HasSubstr("-wal was removed"), HasSubstr("start them again")));
}

TEST_F(SqliteStore, a_log_removed_during_a_write_makes_its_outcome_unknown) {
  bool removed = false;
  Asking store(open_initialized({.at_moment =
                                     [&](Moment moment) {
                                       if (moment != Moment::before_commit || std::exchange(removed, true)) return;
                                       std::filesystem::remove(path_ + "-wal");
                                     }}),
               loop_);
  EXPECT_EQ(store.put("k", {{"x", 1}}).outcome, Outcome::unknown);
}

TEST_F(SqliteStore, a_file_deleted_during_a_write_makes_its_outcome_unknown) {
  Asking store(open_initialized({.at_moment =
                                     [&](Moment moment) {
                                       if (moment == Moment::before_commit) remove_database();
                                     }}),
               loop_);
  const RowReply reply = store.put("k", {{"x", 1}});
  EXPECT_EQ(reply.outcome, Outcome::unknown);
  EXPECT_FALSE(reply.error.detail.empty());
}

TEST_F(SqliteStore, a_read_among_writes_of_unknown_outcome_did_surely_not_happen) {
  Gate gate(Moment::before_commit);
  std::atomic<int> commits = 0;
  const auto hook = [&, hold = gate.hook()](Moment moment) {
    hold(moment);
    if (moment == Moment::before_commit && ++commits == 2) std::filesystem::remove(path_ + "-wal");
  };
  Asking store(open_initialized({.at_moment = hook}), loop_);
  std::optional<Outcome> write;
  std::optional<Outcome> read;
  store->update({"k", {Change::set("x", 1)}, {}}, store.deadline(), [](auto) {});
  ASSERT_TRUE(run_until(loop_, [&] { return gate.reached(); }));
  store->update({"k", {Change::set("x", 2)}, {}}, store.deadline(), [&](RowReply given) { write = given.outcome; });
  store->get("k", store.deadline(), [&](RowReply given) { read = given.outcome; });
  gate.open();
  ASSERT_TRUE(run_until(loop_, [&] { return write && read; }));
  EXPECT_EQ(write, Outcome::unknown);
  EXPECT_EQ(read, Outcome::throttled);
}

// Damage and limits

TEST_F(SqliteStore, a_damaged_cell_spoils_its_own_row_only) {
  Asking store(open_initialized(), loop_);
  store.put("good", {{"desired_state", "STARTED"}, {"lease_expires_at_ms", 1}, {"lease_owner", "w"}});
  Raw(path_).run("INSERT INTO rows VALUES('bad', '{\"x\":', 'STARTED', 0, 'w')");

  const RowReply read = store.get("bad");
  EXPECT_EQ(read.outcome, Outcome::rejected);
  EXPECT_EQ(read.error.code, Code::corrupt);
  EXPECT_THAT(read.error.detail, AllOf(HasSubstr("row bad"), HasSubstr("not valid JSON")));

  std::vector<Outcome> outcomes;
  for (const char* key : {"good", "bad", "good"}) {
    store->update({key, {Change::add("n", 1)}, {}}, store.deadline(),
                  [&](RowReply reply) { outcomes.push_back(reply.outcome); });
  }
  ASSERT_TRUE(run_until(loop_, [&] { return outcomes.size() == 3; }));
  EXPECT_EQ(outcomes, (std::vector<Outcome>{Outcome::applied, Outcome::rejected, Outcome::applied}));
  EXPECT_EQ(store.get("good").value->number("n"), 2);

  const RowsReply batch = store.batch_get({"good", "bad"});
  EXPECT_EQ(batch.outcome, Outcome::applied);
  EXPECT_EQ(batch.value.size(), 1U);
  EXPECT_THAT(batch.error.detail, HasSubstr("row bad"));
  const PageReply page = store.query_due({"STARTED", WallTime::max(), 1, ""});
  EXPECT_EQ(page.outcome, Outcome::applied);
  EXPECT_THAT(page.error.detail, HasSubstr("row bad"));
  EXPECT_EQ(store.query_due({"STARTED", WallTime::max(), 1, page.value.next}).value.rows.size(), 1U);
  EXPECT_EQ(store.query_owned("w").value.size(), 1U);
  EXPECT_EQ(store.transact({{"good", {Change::add("n", 1)}, {}}, {"bad", {}, {}}}).outcome, Outcome::rejected);
  EXPECT_EQ(store.get("good").value->number("n"), 2);
}

TEST_F(SqliteStore, a_full_database_is_throttled_with_words_and_what_fits_still_works) {
  Asking store(open_initialized({.pages_max = 40}), loop_);
  store.put("k", {{"x", 1}});
  RowReply reply;
  for (int i = 0; i < 100 && (i == 0 || reply.ok()); ++i) {
    reply = store.put("row-" + std::to_string(i), {{"x", std::string(10'000, 'x')}});
  }
  EXPECT_EQ(reply.outcome, Outcome::throttled);
  EXPECT_EQ(reply.error.code, Code::exhausted);
  EXPECT_THAT(reply.error.detail, HasSubstr("free some space"));
  EXPECT_TRUE(store.put("k", {{"x", 2}}).ok());
}

}  // namespace
}  // namespace holdfast::test
