// When and how often a request is answered, and what several stores on one table see of each other.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>

#include "runtime/thread.hpp"
#include "store_contract.hpp"

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using testing::UnorderedElementsAre;

// Handlers and time

TEST_P(StoreContract, handlers_never_run_inside_the_call) {
  int ran = 0;
  const Instant deadline = store_.deadline();
  const auto count = [&](auto) { ++ran; };
  store_->initialize(deadline, count);
  store_->get("k", deadline, count);
  store_->get("", deadline, count);  // rejected at once, and still not inside
  store_->get("k", loop_.instant() - 1s, count);
  store_->batch_get({"k"}, deadline, count);
  store_->update({"k", {}, {}}, deadline, count);
  store_->transact({{"k", {}, {}}}, "", deadline, count);
  store_->query_due({"STARTED", WallTime::max(), 9, ""}, deadline, count);
  store_->query_owned("w", deadline, count);
  EXPECT_EQ(ran, 0);
  EXPECT_TRUE(run_until(loop_, [&] { return ran == 9; }));
}

TEST_P(StoreContract, each_of_many_handlers_runs_exactly_once) {
  std::vector<int> ran(500, 0);
  for (std::size_t i = 0; i < ran.size(); ++i) {
    const std::string key = "row-" + std::to_string(i % 7);
    // Some deadlines pass while they wait: those too are answered once.
    const Instant deadline = loop_.instant() + (i % 5 == 0 ? 1ms : 20000ms);
    store_->update({key, {Change::add("x", 1)}, {}}, deadline, [&ran, i](auto) { ++ran[i]; });
  }
  ASSERT_TRUE(run_until(loop_, [&] { return std::ranges::none_of(ran, [](int times) { return times == 0; }); }));
  run_for(loop_, 20ms);
  EXPECT_TRUE(std::ranges::all_of(ran, [](int times) { return times == 1; }));
}

TEST_P(StoreContract, a_deadline_in_the_past_means_that_surely_nothing_happened) {
  std::optional<RowReply> reply;
  store_->update({"k", {Change::set("x", 1)}, {}}, loop_.instant() - 1ms, [&](RowReply given) { reply = given; });
  ASSERT_TRUE(run_until(loop_, [&] { return reply.has_value(); }));
  EXPECT_EQ(reply->outcome, Outcome::throttled);
  EXPECT_FALSE(reply->error.detail.empty());
  EXPECT_FALSE(exists("k"));
}

TEST_P(StoreContract, a_handler_may_call_the_store_again) {
  std::optional<RowReply> last;
  store_->update({"k", {Change::set("x", 1)}, {}}, store_.deadline(), [&](RowReply) {
    store_->update({"k", {Change::add("x", 1)}, {}}, store_.deadline(), [&](RowReply) {
      store_->get("k", store_.deadline(), [&](RowReply reply) { last = std::move(reply); });
    });
  });
  ASSERT_TRUE(run_until(loop_, [&] { return last.has_value(); }));
  EXPECT_EQ(last->value->number("x"), 2);
}

TEST_P(StoreContract, a_read_sees_the_answered_and_the_earlier_writes_of_the_same_store) {
  // By read: answers may overtake each other, on connections of their own.
  std::map<int, std::int64_t> seen;
  for (int i = 1; i <= 50; ++i) {
    store_->update({"k", {Change::set("x", i)}, {}}, store_.deadline(), [](auto) {});
    store_->get("k", store_.deadline(),
                [&seen, i](RowReply reply) { seen[i] = reply.value ? reply.value->number("x") : 0; });
  }
  ASSERT_TRUE(run_until(loop_, [&] { return seen.size() == 50; }));
  for (const auto& [i, value] : seen) EXPECT_GE(value, i) << "or a later one";
}

TEST_P(StoreContract, initializing_again_does_no_harm) {
  store_.put("k", {{"x", 1}});
  const Reply<std::string> reply = store_.initialize();
  EXPECT_EQ(reply.outcome, Outcome::applied);
  EXPECT_FALSE(reply.value.empty());
  EXPECT_TRUE(exists("k"));
}

TEST_P(StoreContract, says_what_it_is_and_can_do) {
  const Capabilities capabilities = store_->capabilities();
  EXPECT_FALSE(capabilities.name.empty());
  EXPECT_TRUE(capabilities.returns_row_on_conflict);
}

// Closing

TEST_P(StoreContract, closing_answers_what_is_owed_before_it_calls_back) {
  int answered = 0;
  bool closed = false;
  for (int i = 0; i < 200; ++i) {
    store_->update({"k", {Change::add("x", 1)}, {}}, store_.deadline(), [&](RowReply reply) {
      EXPECT_FALSE(closed);
      EXPECT_NE(reply.outcome, Outcome::conflict);
      ++answered;
    });
  }
  store_->close([&] { closed = true; });
  EXPECT_FALSE(closed) << "not inside the call";
  EXPECT_EQ(answered, 0) << "not inside the call";
  ASSERT_TRUE(run_until(loop_, [&] { return closed; }));
  EXPECT_EQ(answered, 200);
}

TEST_P(StoreContract, what_was_answered_as_applied_before_closing_is_there_afterwards_and_what_was_throttled_is_not) {
  int applied = 0;
  int unknown = 0;
  for (int i = 0; i < 200; ++i) {
    store_->update({"k", {Change::add("x", 1)}, {}}, store_.deadline(), [&](RowReply reply) {
      if (reply.outcome == Outcome::applied) ++applied;
      if (reply.outcome == Outcome::unknown) ++unknown;
    });
  }
  store_.close();
  Asking again(table_->open(loop_), loop_);
  const RowReply row = again.get("k");
  const std::int64_t count = row.value ? row.value->number("x") : 0;
  EXPECT_GE(count, applied);
  EXPECT_LE(count, applied + unknown);
}

TEST_P(StoreContract, a_call_after_closing_is_rejected_and_a_second_closing_calls_back) {
  bool first = false;
  bool second = false;
  std::optional<RowReply> reply;
  store_->close([&] { first = true; });
  store_->close([&] { second = true; });
  store_->get("k", store_.deadline(), [&](RowReply given) { reply = std::move(given); });
  ASSERT_TRUE(run_until(loop_, [&] { return first && second && reply; }));
  EXPECT_EQ(reply->outcome, Outcome::rejected);
}

// Several stores on one table

TEST_P(StoreContract, two_stores_on_one_table_see_each_others_writes) {
  Asking other(table_->open(loop_), loop_);
  store_.put("k", {{"x", 1}});
  EXPECT_EQ(other.get("k").value, (Row{"k", {{"x", 1}}}));
  EXPECT_EQ(other.update({"k", {Change::add("x", 1)}, Condition::equals("x", 1)}).outcome, Outcome::applied);
  EXPECT_EQ(store_.update({"k", {Change::add("x", 1)}, Condition::equals("x", 1)}).outcome, Outcome::conflict);
  EXPECT_EQ(attributes_of("k").at("x"), Value(2));
}

TEST_P(StoreContract, rows_are_still_there_when_a_store_is_opened_again) {
  store_.put("k", {{"x", 1}});
  store_.close();
  Asking again(table_->open(loop_), loop_);
  EXPECT_EQ(again.get("k").value, (Row{"k", {{"x", 1}}}));
}

TEST_P(StoreContract, changes_tells_of_own_and_of_others_writes_where_it_can) {
  Asking other(table_->open(loop_), loop_);
  const bool can = store_->capabilities().changes;
  int told = 0;
  store_->changes([&](const Changed&) { ++told; });
  store_.put("mine", {{"x", 1}});
  if (!can) {
    run_for(loop_, 300ms);
    EXPECT_EQ(told, 0) << "what says that it cannot tell does not";
    store_->changes(nullptr);
    return;
  }
  ASSERT_TRUE(run_until(loop_, [&] { return told > 0; }));
  run_for(loop_, 300ms);  // whatever is still due from the first
  told = 0;
  other.put("theirs", {{"x", 1}});
  EXPECT_TRUE(run_until(loop_, [&] { return told > 0; }));
  store_->changes(nullptr);
}

TEST_P(StoreContract, changes_comes_at_most_every_100_ms_and_always_after_the_last_write) {
  if (!store_->capabilities().changes) return;  // never: the test before
  std::vector<Instant> calls;
  std::int64_t seen = -1;
  std::size_t answered = 0;
  store_->changes([&](const Changed&) {
    calls.push_back(loop_.instant());
    store_->get("k", store_.deadline(), [&](RowReply reply) {
      seen = reply.value ? reply.value->number("x") : 0;
      ++answered;
    });
  });
  for (int i = 0; i < 300; ++i) store_->update({"k", {Change::add("x", 1)}, {}}, store_.deadline(), [](auto) {});
  ASSERT_TRUE(run_until(loop_, [&] { return seen == 300; }));
  store_->changes(nullptr);
  ASSERT_TRUE(run_until(loop_, [&] { return answered == calls.size(); }));
  for (std::size_t i = 1; i < calls.size(); ++i) EXPECT_GE(calls[i] - calls[i - 1], 99ms);
}

TEST_P(StoreContract, changes_ends_when_it_is_told_to) {
  int told = 0;
  store_->changes([&](const Changed&) { ++told; });
  store_.put("k", {{"x", 1}});
  store_->changes(nullptr);
  run_for(loop_, 250ms);
  const int before = told;
  store_.put("k", {{"x", 2}});
  run_for(loop_, 250ms);
  EXPECT_EQ(told, before);
}

// Tombstones

TEST_P(StoreContract, f18_only_tombstones_whose_seconds_have_passed_are_purged_and_never_a_live_row) {
  const std::int64_t now_s = loop_.wall().time_since_epoch().count() / 1000;
  const auto row = [&](const char* key, const char* state, std::int64_t lease_ms, Value tombstone) {
    Attributes attributes = due(state, lease_ms);
    attributes.emplace("tombstone_expires_at", std::move(tombstone));
    store_.put(key, attributes);
  };
  row("dead", "REMOVED", 0, now_s - 1);
  row("not-yet", "REMOVED", 0, now_s + 3600);
  row("in-milliseconds", "REMOVED", 0, (now_s - 3600) * 1000);
  row("as-text", "REMOVED", 0, "1");
  row("still-held", "REMOVED", (now_s + 3600) * 1000, now_s - 1);
  row("live", "STARTED", 0, now_s - 1);
  row("stopped", "STOPPED", 0, now_s - 1);
  store_.put("no-tombstone", due("REMOVED", 0));
  store_.close();

  Asking again(table_->open(loop_), loop_);
  ASSERT_EQ(again.initialize().outcome, Outcome::applied);
  EXPECT_THAT(
      keys_of(again
                  .batch_get({"dead", "not-yet", "in-milliseconds", "as-text", "still-held", "live", "stopped",
                              "no-tombstone"})
                  .value),
      UnorderedElementsAre("not-yet", "in-milliseconds", "as-text", "still-held", "live", "stopped", "no-tombstone"));
}

TEST_P(StoreContract,
       s03_a_workers_row_is_purged_after_its_tombstone_or_a_day_after_its_end_and_no_other_live_row_is) {
  const std::int64_t now_ms = loop_.wall().time_since_epoch().count();
  constexpr std::int64_t day_ms = 86'400'000;
  const auto worker = [&](const char* key, std::int64_t session_end_ms, Value tombstone) {
    Attributes attributes = due("WORKER", session_end_ms);
    if (tombstone != Value()) attributes.emplace("tombstone_expires_at", std::move(tombstone));
    store_.put(key, attributes);
  };
  worker("WORKER#crashed-long-ago", now_ms - day_ms - 60'000, {});
  worker("WORKER#crashed-today", now_ms - day_ms + 60'000, {});
  worker("WORKER#alive", now_ms + 20'000, {});
  worker("WORKER#alive-after-all", now_ms + 20'000, now_ms / 1000 - 1);
  worker("WORKER#ended-yesterday", 0, now_ms / 1000 - 1);
  worker("WORKER#ended-just-now", 0, now_ms / 1000 + 80'000);
  worker("CONN#strange", now_ms - 2 * day_ms, {});
  store_.put("CONN#orphan", due("STARTED", now_ms - 2 * day_ms));
  store_.put("CONN#stopped", due("STOPPED", now_ms - 2 * day_ms));
  store_.put("CONN#removed", due("REMOVED", now_ms - 2 * day_ms));
  store_.close();

  Asking again(table_->open(loop_), loop_);
  ASSERT_EQ(again.initialize().outcome, Outcome::applied);
  EXPECT_THAT(
      keys_of(again
                  .batch_get({"WORKER#crashed-long-ago", "WORKER#crashed-today", "WORKER#alive",
                              "WORKER#alive-after-all", "WORKER#ended-yesterday", "WORKER#ended-just-now",
                              "CONN#strange", "CONN#orphan", "CONN#stopped", "CONN#removed"})
                  .value),
      UnorderedElementsAre("WORKER#crashed-today", "WORKER#alive", "WORKER#alive-after-all", "WORKER#ended-just-now",
                           "CONN#strange", "CONN#orphan", "CONN#stopped", "CONN#removed"));
}

// Races

TEST_P(StoreContract, of_sixteen_writers_with_one_condition_one_wins) {
  std::vector<std::unique_ptr<Asking>> stores;
  for (int i = 0; i < 4; ++i) stores.push_back(std::make_unique<Asking>(table_->open(loop_), loop_));
  store_.put("k", {{"epoch", 0}});
  for (int round = 0; round < 10; ++round) {
    std::vector<std::string> winners;
    int answered = 0;
    for (int writer = 0; writer < 16; ++writer) {
      const std::string name = "w" + std::to_string(writer);
      Asking& store = *stores[static_cast<std::size_t>(writer % 4)];
      store->update({"k", {Change::add("epoch", 1), Change::set("owner", name)}, Condition::equals("epoch", round)},
                    store.deadline(), [&, name](RowReply reply) {
                      ++answered;
                      if (reply.ok())
                        winners.push_back(name);
                      else
                        EXPECT_EQ(reply.outcome, Outcome::conflict) << reply.error.detail;
                    });
    }
    ASSERT_TRUE(run_until(loop_, [&] { return answered == 16; }));
    ASSERT_EQ(winners.size(), 1U);
    EXPECT_EQ(attributes_of("k"), (Attributes{{"epoch", round + 1}, {"owner", winners.front()}}));
  }
}

/// Adds 1 to a counter so many times, a window of them at once, from a thread with a loop and a store of its own.
std::int64_t count_on_own_thread(Table& table, int times) {
  runtime::AsioLoop loop(1);
  Asking store(table.open(loop), loop);
  std::int64_t applied = 0;
  int answered = 0;
  for (int i = 0; i < times; ++i) {
    store->update({"counter", {Change::add("x", 1)}, {}}, store.deadline(Asking::patience * 3), [&](RowReply reply) {
      ++answered;
      if (reply.ok()) ++applied;
    });
  }
  EXPECT_TRUE(run_until(
      loop, [&] { return answered == times; }, Asking::patience * 3));
  return applied;
}

TEST_P(StoreContract, counters_added_to_from_several_threads_sum_up) {
  constexpr int threads = 4;
  constexpr int times = 250;
  std::vector<std::int64_t> applied(threads, 0);
  {
    std::vector<runtime::Thread> running;
    for (std::size_t i = 0; i < threads; ++i) {
      running.emplace_back("counter", [&, i] { applied[i] = count_on_own_thread(*table_, times); });
    }
  }
  EXPECT_EQ(applied, std::vector<std::int64_t>(threads, times)) << "contention is waited out within the deadline";
  EXPECT_EQ(attributes_of("counter").at("x"), Value(threads * times));
}

}  // namespace
}  // namespace holdfast::test
