// The HTTP face on a table in memory, in virtual time.
#include "support/service_test.hpp"

#include <gmock/gmock.h>

#include <optional>

#include "core/coord/names.hpp"

namespace holdfast::serve {
namespace {

using namespace std::chrono_literals;
using test::Asked;
using Fault = test::FaultyStore::Fault;
using testing::HasSubstr;
using testing::Not;

// ---- Tasks and guards ----

TEST_F(ServiceTest, a_task_is_held_and_given_back_once) {
  Server& one = start();
  Server& two = start();
  const Asked mine = post(one, "/v1/tasks/report/acquire");
  ASSERT_EQ(mine.status(), 201) << mine.answer().body;
  EXPECT_EQ(*mine.answer().header("location"), "/v1/guards/" + mine.text("guard"));
  EXPECT_EQ(mine.json().at("epoch"), 1);
  EXPECT_EQ(get(one, "/v1/guards/" + mine.text("guard")).status(), 200);
  const Asked other = post(two, "/v1/tasks/report/acquire");
  EXPECT_EQ(other.status(), 409);
  EXPECT_EQ(other.text("code"), "busy");
  const Asked released = post(one, "/v1/guards/" + mine.text("guard") + "/release");
  EXPECT_EQ(released.status(), 200) << released.answer().body;
  EXPECT_EQ(released.json().at("was_repeat"), false);
  const Asked again = post(one, "/v1/guards/" + mine.text("guard") + "/release");
  EXPECT_EQ(again.status(), 200) << "its answer may have been lost";
  EXPECT_EQ(again.json().at("was_repeat"), true);
  const Asked shown = get(one, "/v1/guards/" + mine.text("guard"));
  EXPECT_EQ(shown.status(), 410);
  EXPECT_EQ(shown.text("code"), "released");
  EXPECT_TRUE(is_free(two, "report"));
}

TEST_F(ServiceTest, it_is_kept_alive_until_the_callers_own_deadline_and_then_let_go) {
  Server& one = start();
  Server& two = start();
  const Asked mine = post(one, "/v1/tasks/t/acquire", R"({"ttl":"2s","hold_for":"60s"})");
  ASSERT_EQ(mine.status(), 201);
  loop_.advance(59s);
  EXPECT_EQ(get(one, "/v1/guards/" + mine.text("guard")).status(), 200);
  EXPECT_FALSE(is_free(two, "t"));
  loop_.advance(1100ms);
  EXPECT_EQ(get(one, "/v1/guards/" + mine.text("guard")).text("code"), "let_go");
  EXPECT_TRUE(is_free(two, "t")) << "at once, not when the lease has run out";
}

TEST_F(ServiceTest, the_deadline_can_be_moved) {
  Server& one = start();
  const Asked mine = post(one, "/v1/tasks/t/acquire", R"({"ttl":"2s","hold_for":"10s"})");
  const std::string guard = "/v1/guards/" + mine.text("guard");
  loop_.advance(9s);
  const Asked extended = post(one, guard + "/extend", R"({"hold_for":"10s"})");
  ASSERT_EQ(extended.status(), 200);
  EXPECT_GT(extended.json().at("deadline_ms").as_int64(), mine.json().at("deadline_ms").as_int64());
  loop_.advance(9s);
  EXPECT_EQ(get(one, guard).status(), 200);
  loop_.advance(2s);
  EXPECT_EQ(post(one, guard + "/extend", R"({"hold_for":"10s"})").status(), 410);
}

TEST_F(ServiceTest, one_that_is_not_renewed_lasts_as_long_as_its_lease) {
  Server& one = start();
  const Asked mine = post(one, "/v1/tasks/t/acquire", R"({"ttl":"2s","hold_for":"1h","renew":false})");
  EXPECT_TRUE(until([&] { return get(one, "/v1/guards/" + mine.text("guard")).status() == 410; }, 3s));
}

TEST_F(ServiceTest, who_hangs_up_while_waiting_does_not_get_it) {
  Server& one = start();
  Server& two = start();
  const Asked held = post(one, "/v1/tasks/t/acquire", R"({"hold_for":"10s"})");
  Asked waiting = begin(two, "/v1/tasks/t/acquire", R"({"wait":"5m"})");
  loop_.advance(1s);
  waiting.hang_up();
  EXPECT_TRUE(waiting.is_answered()) << "at once: it takes no place among the requests any more";
  EXPECT_EQ(waiting.status(), 410);
  EXPECT_TRUE(is_free(one, "t", "20s"));
  EXPECT_TRUE(two.store.updates.empty()) << "nor has he taken it for a moment";
}

TEST_F(ServiceTest, who_hangs_up_while_waiting_leaves_his_place_to_others_and_asks_the_store_no_more) {
  Server& one = start();
  Server& two = start({.id = "here", .version = "1", .guards_most = 1});
  post(one, "/v1/tasks/t/acquire", R"({"hold_for":"1h"})");
  post(one, "/v1/once/k", R"({"hold_for":"1h"})");
  for (const char* what : {"/v1/tasks/t/acquire", "/v1/once/k"}) {
    SCOPED_TRACE(what);
    Asked waiting = begin(two, what, R"({"wait":"5m"})");
    loop_.advance(10s);
    EXPECT_EQ(post(two, "/v1/tasks/other/acquire").status(), 503) << "he has the only place";
    waiting.hang_up();
    const int asked = two.store.asked["get"];
    loop_.advance(1min);
    EXPECT_EQ(two.store.asked["get"], asked);
    const Asked other = post(two, "/v1/tasks/other/acquire");
    EXPECT_EQ(other.status(), 201) << other.answer().body;
    post(two, "/v1/guards/" + other.text("guard") + "/release");
  }
}

TEST_F(ServiceTest, those_who_wait_leave_places_to_those_who_do_not) {
  Server& one = start({.id = "here", .version = "1", .waiting_most = 2});
  const Asked mine = post(one, "/v1/tasks/t/acquire", R"({"hold_for":"1h"})");
  const std::string guard = "/v1/guards/" + mine.text("guard");
  Asked first = begin(one, "/v1/tasks/t/acquire", R"({"wait":"5m"})");
  Asked second = begin(one, "/v1/queues/q/receive", R"({"wait":"5m"})");
  for (const Asked& third :
       {post(one, "/v1/tasks/t/acquire", R"({"wait":"1s"})"), post(one, "/v1/once/k", R"({"wait":"1s"})"),
        post(one, "/v1/queues/q/receive", R"({"wait":"1s"})"), get(one, guard + "?wait=1s")}) {
    EXPECT_EQ(third.status(), 503);
    EXPECT_EQ(third.text("code"), "overloaded");
  }
  EXPECT_EQ(get(one, guard).status(), 200);
  EXPECT_EQ(post(one, "/v1/tasks/u/acquire").status(), 201);
  first.hang_up();
  EXPECT_EQ(get(one, guard + "?wait=1s").status(), 200) << "his place is free";
  EXPECT_EQ(get(one, guard + "?wait=1s").status(), 200) << "and so is this one's";
  EXPECT_FALSE(second.is_answered());
}

TEST_F(ServiceTest, who_hangs_up_while_the_store_is_away_asks_it_no_more) {
  Server& one = start();
  one.store.judge = [](const Update*) { return Fault::throttled; };
  Asked waiting = begin(one, "/v1/tasks/t/acquire", R"({"wait":"5m"})");
  loop_.advance(10s);
  EXPECT_FALSE(waiting.is_answered());
  waiting.hang_up();
  const int asked = one.store.asked["get"];
  loop_.advance(1min);
  EXPECT_EQ(one.store.asked["get"], asked);
}

TEST_F(ServiceTest, who_hangs_up_while_it_is_claimed_for_him_keeps_it_from_nobody) {
  Server& one = start();
  Server& two = start({.id = "here", .version = "1", .guards_most = 1});
  two.store.latency = 1s;
  Asked waiting = begin(two, "/v1/tasks/t/acquire", R"({"ttl":"1h","hold_for":"1h"})");
  ASSERT_TRUE(until([&] { return !two.store.updates.empty(); }));
  waiting.hang_up();
  EXPECT_EQ(waiting.status(), 410);
  two.store.latency = {};
  EXPECT_TRUE(is_free(one, "t", "1m")) << "given back as soon as it came";
  EXPECT_EQ(post(two, "/v1/tasks/other/acquire").status(), 201);
}

TEST_F(ServiceTest, who_hangs_up_while_waiting_for_a_loss_waits_no_more) {
  Server& one = start();
  const Asked mine = post(one, "/v1/tasks/t/acquire", R"({"hold_for":"1h"})");
  Asked waiting(request("GET", "/v1/guards/" + mine.text("guard") + "?wait=5m"));
  one.service->serve(waiting.exchange());
  loop_.advance(1s);
  EXPECT_FALSE(waiting.is_answered());
  waiting.hang_up();
  EXPECT_EQ(waiting.status(), 200) << "he may have closed his half only: it is his";
}

TEST_F(ServiceTest, what_could_not_be_told_is_given_back) {
  Server& one = start();
  Server& two = start();
  Asked lost(request("POST", "/v1/tasks/t/acquire", "{}"));
  lost.set_sent(false);
  one.service->serve(lost.exchange());
  ASSERT_TRUE(until([&] { return lost.is_answered(); }));
  EXPECT_TRUE(is_free(two, "t", "1s"));
}

TEST_F(ServiceTest, a_loss_is_told_to_who_asks_and_to_who_waits_for_it) {
  Server& one = start();
  Server& two = start();
  const Asked mine = post(one, "/v1/tasks/t/acquire", R"({"ttl":"2s","hold_for":"1h"})");
  Asked waiting(request("GET", "/v1/guards/" + mine.text("guard") + "?wait=5m"));
  one.service->serve(waiting.exchange());
  loop_.advance(10s);
  EXPECT_FALSE(waiting.is_answered());
  one.store.judge = [](const Update*) { return Fault::request_lost; };
  ASSERT_TRUE(until([&] { return waiting.is_answered(); }, 3s)) << "before the lease's end";
  EXPECT_EQ(waiting.status(), 410);
  EXPECT_EQ(waiting.text("code"), "lost");
  one.store.judge = {};
  EXPECT_TRUE(is_free(two, "t", "3s"));
  EXPECT_EQ(post(one, "/v1/guards/" + mine.text("guard") + "/release").status(), 410);
}

TEST_F(ServiceTest, a_store_that_is_away_is_told_within_the_patience) {
  Server& one = start({.id = "here", .version = "1", .patience = 2s});
  one.store.judge = [](const Update*) { return Fault::throttled; };
  const Instant begin = loop_.instant();
  const Asked asked = post(one, "/v1/tasks/t/acquire");
  EXPECT_EQ(asked.status(), 503);
  EXPECT_EQ(asked.text("code"), "unavailable");
  EXPECT_EQ(*asked.answer().header("retry-after"), "1");
  EXPECT_LE(loop_.instant() - begin, 3s);
}

TEST_F(ServiceTest, there_are_no_more_guards_than_it_may_hold) {
  Server& one = start({.id = "here", .version = "1", .guards_most = 1});
  const Asked first = post(one, "/v1/tasks/a/acquire");
  ASSERT_EQ(first.status(), 201);
  const Asked second = post(one, "/v1/tasks/b/acquire");
  EXPECT_EQ(second.status(), 503);
  EXPECT_EQ(second.text("code"), "overloaded");
  post(one, "/v1/guards/" + first.text("guard") + "/release");
  EXPECT_EQ(post(one, "/v1/tasks/b/acquire").status(), 201);
}

// ---- Once ----

TEST_F(ServiceTest, the_first_runs_it_and_the_others_are_given_its_result) {
  Server& one = start();
  Server& two = start();
  const Asked run = post(one, "/v1/once/invoice-17", R"({"input":{"a":1,"b":2}})");
  ASSERT_EQ(run.status(), 201) << run.answer().body;
  EXPECT_EQ(run.text("turn"), "run");
  EXPECT_EQ(post(two, "/v1/once/invoice-17", R"({"input":{"b":2,"a":1}})").text("code"), "busy");
  Asked waiting = begin(two, "/v1/once/invoice-17", R"({"input":{"b":2,"a":1},"wait":"1m"})");
  const std::string result = R"({"guard":")" + run.text("guard") + R"(","content":"paid"})";
  const Asked finished = post(one, "/v1/once/invoice-17/finish", result);
  ASSERT_EQ(finished.status(), 200) << finished.answer().body;
  EXPECT_EQ(post(one, "/v1/once/invoice-17/finish", result).json().at("was_repeat"), true);
  ASSERT_TRUE(until([&] { return waiting.is_answered(); }));
  EXPECT_EQ(waiting.status(), 200);
  EXPECT_EQ(waiting.text("turn"), "replay");
  EXPECT_EQ(waiting.json().at("result").at("content"), "paid");
  const Asked other = post(two, "/v1/once/invoice-17", R"({"input":{"a":1,"b":3}})");
  EXPECT_EQ(other.status(), 422);
  EXPECT_EQ(other.text("code"), "mismatch");
  EXPECT_EQ(post(one, "/v1/once/invoice-17/finish", R"({"guard":")" + run.text("guard") + R"(","content":"other"})")
                .status(),
            410);
}

TEST_F(ServiceTest, f22_what_was_abandoned_is_rerun_held_or_reconciled_as_the_next_caller_says) {
  Server& one = start();
  Server& two = start();
  ASSERT_EQ(post(one, "/v1/once/k", R"({"ttl":"2s","hold_for":"3s"})").status(), 201);
  loop_.advance(4s);
  const Asked held = post(two, "/v1/once/k", R"({"abandoned":"hold"})");
  EXPECT_EQ(held.status(), 409);
  EXPECT_THAT(held.text("detail"), HasSubstr("left no result"));
  const Asked reconcile = post(two, "/v1/once/k", R"({"abandoned":"reconcile","hold_for":"1s"})");
  EXPECT_EQ(reconcile.text("turn"), "reconcile");
  loop_.advance(2s);
  const Asked rerun = post(two, "/v1/once/k");
  EXPECT_EQ(rerun.text("turn"), "run");
  EXPECT_EQ(rerun.json().at("was_abandoned"), true);
}

TEST_F(ServiceTest, f23_a_result_after_the_right_was_lost_is_refused) {
  Server& one = start();
  Server& two = start();
  const Asked run = post(one, "/v1/once/k", R"({"ttl":"2s","hold_for":"1h"})");
  one.store.judge = [](const Update*) { return Fault::request_lost; };
  loop_.advance(5s);
  one.store.judge = {};
  const Asked next = post(two, "/v1/once/k");
  ASSERT_EQ(next.status(), 201);
  const std::string zombie = R"({"guard":")" + run.text("guard") + R"(","content":"zombie"})";
  EXPECT_EQ(post(one, "/v1/once/k/finish", zombie).status(), 410);
  post(two, "/v1/once/k/finish", R"({"guard":")" + next.text("guard") + R"(","content":"good"})");
  EXPECT_EQ(get(two, "/healthz").status(), 200);
  EXPECT_EQ(post(one, "/v1/once/k").json().at("result").at("content"), "good");
}

// ---- Decisions, counters, queues ----

TEST_F(ServiceTest, the_first_proposal_stays_whatever_it_is) {
  Server& one = start();
  EXPECT_EQ(get(one, "/v1/decide/x%2Fy").status(), 404);
  const Asked first = post(one, "/v1/decide/x%2Fy", R"({"value":{"order":17,"of":[1,2.5,null,true]}})");
  ASSERT_EQ(first.status(), 200) << first.answer().body;
  EXPECT_EQ(first.json().at("was_ours"), true);
  EXPECT_EQ(first.text("key"), "x/y");
  const Asked second = post(one, "/v1/decide/x%2Fy", R"({"value":"mine"})");
  EXPECT_EQ(second.json().at("value"), first.json().at("value"));
  EXPECT_EQ(second.json().at("was_ours"), false);
  EXPECT_EQ(get(one, "/v1/decide/x%2Fy").json().at("value"), first.json().at("value"));
}

TEST_F(ServiceTest, f29_an_addition_counts_once_however_often_it_is_sent) {
  Server& one = start();
  EXPECT_EQ(get(one, "/v1/counters/c").json().at("value"), 0);
  EXPECT_EQ(post(one, "/v1/counters/c/add", R"({"delta":5,"op_id":"a"})").json().at("value"), 5);
  EXPECT_EQ(post(one, "/v1/counters/c/add", R"({"delta":5,"op_id":"a"})").json().at("was_repeat"), true);
  EXPECT_EQ(post(one, "/v1/counters/c/add", R"({"delta":6,"op_id":"a"})").status(), 422);
  EXPECT_EQ(post(one, "/v1/counters/c/add", R"({"delta":-6,"op_id":"b","floor":0})").text("code"), "refused");
  EXPECT_EQ(get(one, "/v1/counters/c").json().at("value"), 5);
}

TEST_F(ServiceTest, goods_come_back_by_themselves_when_nobody_confirms_in_time) {
  Server& one = start();
  EXPECT_EQ(post(one, "/v1/stock/apple/add", R"({"delta":3,"op_id":"a"})").json().at("available"), 3);
  EXPECT_EQ(post(one, "/v1/stock/apple/add", R"({"delta":-4,"op_id":"b"})").text("code"), "refused");
  EXPECT_EQ(post(one, "/v1/reservations/r", R"({"items":{"apple":2},"ttl":"10s"})").status(), 201);
  EXPECT_EQ(post(one, "/v1/reservations/s", R"({"items":{"apple":1,"pear":1}})").text("code"), "refused");
  EXPECT_EQ(get(one, "/v1/stock/apple").json().at("available"), 1);
  loop_.advance(30s);
  EXPECT_EQ(get(one, "/v1/stock/apple").json().at("available"), 3);
  EXPECT_EQ(get(one, "/v1/reservations/r").text("state"), "expired");
  EXPECT_EQ(post(one, "/v1/reservations/r/confirm").status(), 409);
}

TEST_F(ServiceTest, f31_a_group_goes_to_one_consumer_at_a_time_in_its_order) {
  Server& one = start();
  Server& two = start();
  for (const char* body : {"1", "2", "3"}) {
    EXPECT_EQ(post(one, "/v1/queues/q/send", R"({"group":"g","body":")" + std::string(body) + "\"}").status(), 200);
  }
  loop_.advance(1ms);  // what is due now is found a moment later
  const Asked first = post(one, "/v1/queues/q/receive", R"({"max":2,"visibility":"10s"})");
  ASSERT_EQ(first.status(), 200) << first.answer().body;
  const auto batch = first.json().at("batch").as_object();
  ASSERT_EQ(batch.at("messages").as_array().size(), 2U);
  EXPECT_EQ(batch.at("messages").at(0).at("body"), "1");
  EXPECT_TRUE(post(two, "/v1/queues/q/receive").json().at("batch").is_null());
  const std::string receipt = batch.at("receipt").as_string().c_str();
  EXPECT_EQ(post(one, "/v1/queues/other/ack", R"({"receipt":")" + receipt + "\"}").status(), 400);
  const Asked acked = post(one, "/v1/queues/q/ack", R"({"receipt":")" + receipt + R"(","count":1})");
  EXPECT_EQ(acked.json().at("left"), 2);
  EXPECT_EQ(post(one, "/v1/queues/q/nack", R"({"receipt":")" + receipt + "\"}").status(), 200);
  loop_.advance(1ms);
  const Asked late = post(one, "/v1/queues/q/ack", R"({"receipt":")" + receipt + "\"}");
  EXPECT_EQ(late.status(), 409);
  EXPECT_EQ(late.text("code"), "refused");
  const Asked second = post(two, "/v1/queues/q/receive", R"({"max":100})");
  EXPECT_EQ(second.json().at("batch").at("messages").at(0).at("body"), "2");
  EXPECT_EQ(get(two, "/v1/queues/q/peek?group=g").json().at("size"), 2);
  EXPECT_EQ(get(two, "/v1/queues/q/stats").json().at("leased_groups"), 1);
  EXPECT_EQ(get(two, "/v1/queues/q/peek?group=none").status(), 404);
}

TEST_F(ServiceTest, a_receipt_that_was_altered_acknowledges_nothing_beyond_its_batch) {
  Server& one = start();
  for (const char* body : {"1", "2", "3"}) {
    post(one, "/v1/queues/q/send", R"({"group":"g","body":")" + std::string(body) + "\"}");
  }
  loop_.advance(1ms);
  const Asked received = post(one, "/v1/queues/q/receive", R"({"max":1})");
  const std::string receipt = received.json().at("batch").at("receipt").as_string().c_str();
  ASSERT_THAT(receipt, testing::StartsWith("1.1.1/"));
  for (const char* numbers : {"1.1.3", "1.1.4", "1.2.2", "1.1.9223372036854775807"}) {
    const std::string altered = numbers + receipt.substr(5);
    const Asked acked = post(one, "/v1/queues/q/ack", R"({"receipt":")" + altered + "\"}");
    EXPECT_EQ(acked.status(), 422) << numbers;
    EXPECT_EQ(acked.text("code"), "rejected");
  }
  EXPECT_EQ(get(one, "/v1/queues/q/peek?group=g").json().at("size"), 3);
  EXPECT_EQ(post(one, "/v1/queues/q/ack", R"({"receipt":")" + receipt + "\"}").json().at("left"), 2);
}

TEST_F(ServiceTest, f30_poison_parks_its_group_or_goes_elsewhere_and_the_others_go_on) {
  Server& one = start();
  post(one, "/v1/queues/q/send", R"({"group":"bad","body":"poison"})");
  post(one, "/v1/queues/q/send", R"({"group":"bad","body":"good"})");
  loop_.advance(1ms);
  const std::string asks = R"({"receives_most":1,"visibility":"1s","dead_letter_queue":"dead","wait":"1s"})";
  ASSERT_TRUE(post(one, "/v1/queues/q/receive", asks).json().at("batch").is_object());
  loop_.advance(3s);
  const Asked next = post(one, "/v1/queues/q/receive", asks);
  ASSERT_TRUE(next.json().at("batch").is_object()) << next.answer().body;
  EXPECT_EQ(next.json().at("batch").at("messages").at(0).at("body"), "good");
  EXPECT_EQ(get(one, "/v1/queues/dead/peek?group=bad").json().at("messages").at(0).at("body"), "poison");
  loop_.advance(3s);
  EXPECT_TRUE(post(one, "/v1/queues/q/receive", R"({"receives_most":1})").json().at("batch").is_null());
  EXPECT_EQ(get(one, "/v1/queues/q/stats").json().at("parked_groups"), 1);
  EXPECT_EQ(post(one, "/v1/queues/q/redrive", R"({"group":"bad"})").status(), 200);
  loop_.advance(1ms);
  EXPECT_TRUE(post(one, "/v1/queues/q/receive").json().at("batch").is_object());
}

TEST_F(ServiceTest, who_hangs_up_while_waiting_for_messages_keeps_nobody_from_them) {
  Server& one = start();
  Server& two = start();
  Asked waiting = begin(one, "/v1/queues/q/receive", R"({"wait":"5m","visibility":"1h"})");
  loop_.advance(1s);
  waiting.hang_up();
  EXPECT_TRUE(waiting.is_answered()) << "at once";
  EXPECT_EQ(waiting.status(), 410);
  post(two, "/v1/queues/q/send", R"({"group":"g","body":"x"})");
  EXPECT_TRUE(one.store.updates.empty()) << "nor are they leased for a moment";
  loop_.advance(5s);
  const int asked = one.store.asked["query_due"];
  loop_.advance(1min);
  EXPECT_LE(one.store.asked["query_due"] - asked, 12) << "those that look for expired reservations";
  EXPECT_TRUE(post(two, "/v1/queues/q/receive", R"({"wait":"1m"})").json().at("batch").is_object());
}

TEST_F(ServiceTest, what_nobody_was_given_does_not_count_as_received) {
  Server& one = start();
  post(one, "/v1/queues/q/send", R"({"group":"g","body":"x"})");
  for (int i = 0; i < 3; ++i) {
    Asked untold = begin(one, "/v1/queues/q/receive", R"({"receives_most":2,"dead_letter_queue":"dead"})");
    untold.set_sent(false);
    ASSERT_TRUE(until([&] { return untold.is_answered(); }));
    EXPECT_TRUE(until([&] { return get(one, "/v1/queues/q/peek?group=g").text("owner").empty(); }));
  }
  const Asked told = post(one, "/v1/queues/q/receive", R"({"receives_most":2,"dead_letter_queue":"dead"})");
  ASSERT_TRUE(told.json().at("batch").is_object()) << told.answer().body;
  EXPECT_EQ(told.json().at("batch").at("receives"), 1);
}

// ---- The edges ----

TEST_F(ServiceTest, paths_and_methods_that_are_not_there_are_told_with_those_that_are) {
  Server& one = start();
  EXPECT_EQ(get(one, "/v2/nothing").status(), 404);
  EXPECT_EQ(get(one, "/v1/tasks/a%2/b").status(), 404);
  EXPECT_EQ(get(one, "/v1/counters/a%2").status(), 400);
  EXPECT_EQ(get(one, "/v1/counters/%00").status(), 400);
  EXPECT_EQ(get(one, "/v1/counters/").status(), 400);
  EXPECT_EQ(get(one, "/v1/queues/a%23b/stats").status(), 400);
  const Asked wrong = get(one, "/v1/tasks/t/acquire");
  EXPECT_EQ(wrong.status(), 405);
  EXPECT_EQ(*wrong.answer().header("allow"), "POST, OPTIONS");
  Asked options(request("OPTIONS", "/v1/decide/k"));
  one.service->serve(options.exchange());
  EXPECT_EQ(options.status(), 204);
  EXPECT_EQ(*options.answer().header("allow"), "POST, GET, HEAD, OPTIONS");
  auto form = request("POST", "/v1/tasks/t/acquire", "a=b");
  form.headers[1].value = "application/x-www-form-urlencoded";
  Asked posted(form);
  one.service->serve(posted.exchange());
  EXPECT_EQ(posted.status(), 415);
  const Asked member = post(one, "/v1/tasks/t/acquire", R"({"ttl":"10 s"})");
  EXPECT_EQ(member.status(), 400);
  EXPECT_EQ(member.text("member"), "/ttl");
}

TEST_F(ServiceTest, a_parameter_that_is_missing_is_named) {
  Server& one = start();
  const Asked missing = get(one, "/v1/queues/q/peek");
  EXPECT_EQ(missing.status(), 400);
  EXPECT_THAT(missing.text("detail"), HasSubstr("The parameter 'group' is missing"));
  EXPECT_EQ(missing.text("member"), "/group");
  EXPECT_THAT(get(one, "/v1/queues/q/peek?group=").text("detail"), HasSubstr("The parameter 'group' has 0 bytes"));
  EXPECT_THAT(get(one, "/v1/queues/q/peek?gruop=g").text("detail"), HasSubstr("The parameter 'gruop' is not known"));
}

TEST_F(ServiceTest, names_have_one_limit_wherever_they_stand) {
  Server& one = start();
  const std::string longest(coord::name_bytes_most, 'x');
  const auto send = [&](const std::string& group, const std::string& id) {
    return post(one, "/v1/queues/" + longest + "/send",
                R"({"body":"b","group":")" + group + R"(","dedup_id":")" + id + "\"}");
  };
  const auto reserve = [&](const std::string& id, const std::string& sku) {
    return post(one, "/v1/reservations/" + id, R"({"items":{")" + sku + R"(":1}})");
  };
  EXPECT_EQ(send(longest, longest).status(), 200);
  EXPECT_EQ(get(one, "/v1/queues/" + longest + "/peek?group=" + longest).json().at("size"), 1);
  EXPECT_EQ(post(one, "/v1/counters/" + longest + "/add", R"({"delta":1,"op_id":")" + longest + "\"}").status(), 200);
  EXPECT_EQ(reserve(longest, longest).text("code"), "refused") << "there is none of it";
  const std::string more = longest + "x";
  for (const Asked& refused :
       {send(more, "i"), send("g", more), get(one, "/v1/counters/" + more),
        get(one, "/v1/queues/q/peek?group=" + more),
        post(one, "/v1/counters/c/add", R"({"delta":1,"op_id":")" + more + "\"}"), reserve(more, "hat"),
        reserve("r", more), post(one, "/v1/queues/q/receive", R"({"receives_most":1,"dead_letter_queue":"a#b"})"),
        post(one, "/v1/queues/q/receive", R"({"receives_most":1,"dead_letter_queue":")" + more + "\"}")}) {
    EXPECT_EQ(refused.status(), 400) << refused.answer().body;
  }
  EXPECT_THAT(get(one, "/openapi.json").answer().body, Not(HasSubstr(R"("maxLength":512)")));
}

TEST_F(ServiceTest, what_is_damaged_is_told_and_not_taken_for_nothing) {
  Server& one = start();
  for (const char* key : {"COUNTER#c", "STOCK#hat", "DECISION#k", "RESERVATION#r"}) {
    const bool is_stock = std::string_view(key).starts_with("STOCK");
    Update damage{key, {Change::set(is_stock ? coord::available : "value", "many")}, Condition::always()};
    if (std::string_view(key).starts_with("DECISION")) damage.changes = {Change::set("other", 1)};
    bool done = false;
    one.store.update(damage, loop_.instant() + 1s, [&](const RowReply& reply) { done = reply.ok(); });
    ASSERT_TRUE(until([&] { return done; }));
  }
  for (const char* path : {"/v1/counters/c", "/v1/stock/hat", "/v1/decide/k", "/v1/reservations/r"}) {
    const Asked shown = get(one, path);
    EXPECT_EQ(shown.status(), 500) << path << shown.answer().body;
    EXPECT_EQ(shown.text("code"), "rejected");
  }
}

TEST_F(ServiceTest, a_look_is_repeated_where_the_store_was_away_for_a_moment) {
  Server& one = start();
  for (const char* path : {"/v1/counters/c", "/v1/stock/hat"}) {
    bool was_away = false;
    one.store.judge = [&](const Update*) { return std::exchange(was_away, true) ? Fault::none : Fault::throttled; };
    EXPECT_EQ(get(one, path).status(), 200) << path;
  }
}

TEST_F(ServiceTest, with_a_token_only_who_shows_it_may_ask) {
  Server& one = start({.id = "here", .version = "1", .token = "0123456789abcdef"});
  auto asks = request("POST", "/v1/tasks/t/acquire", "{}");
  const auto admitted = [&](const std::string& authorization) {
    auto with = asks;
    if (!authorization.empty()) with.headers.push_back({"Authorization", authorization});
    const auto refused = one.service->admit(with);
    EXPECT_EQ(refused ? refused->status : 401, 401);
    return !refused;
  };
  EXPECT_TRUE(admitted("Bearer 0123456789abcdef"));
  EXPECT_TRUE(admitted("bearer 0123456789abcdef"));
  for (const char* wrong : {"", "Bearer", "Bearer ", "Bearer 0123456789abcdeF", "Bearer 0123456789abcde",
                            "Bearer 0123456789abcdef0", "Basic 0123456789abcdef", "0123456789abcdef"}) {
    EXPECT_FALSE(admitted(wrong)) << wrong;
  }
  EXPECT_FALSE(one.service->admit(request("GET", "/healthz")));
  EXPECT_FALSE(one.service->admit(request("GET", "/openapi.json?x")));
  EXPECT_TRUE(one.service->admit(request("GET", "/healthz/../v1/counters/c")));
}

TEST_F(ServiceTest, without_a_token_only_who_means_this_machine_may_ask) {
  Server& one = start();
  const auto admitted = [&](const std::string& host) {
    auto asks = request("POST", "/v1/tasks/t/acquire", "{}");
    asks.headers[0].value = host;
    const auto refused = one.service->admit(asks);
    EXPECT_EQ(refused ? refused->status : 421, 421);
    return !refused;
  };
  for (const char* here : {"localhost", "LOCALHOST:1", "127.0.0.1:7420", "127.1.2.3", "[::1]:7420", "[::1]"}) {
    EXPECT_TRUE(admitted(here)) << here;
  }
  for (const char* there :
       {"evil.example", "evil.example:7420", "127.0.0.1.evil.example", "localhost.evil", "10.0.0.1", ""}) {
    EXPECT_FALSE(admitted(there)) << there;
  }
}

TEST_F(ServiceTest, draining_ends_waits_lets_callers_finish_and_then_gives_all_back) {
  Server& one = start();
  Server& two = start();
  const Asked first = post(one, "/v1/tasks/a/acquire", R"({"hold_for":"1h"})");
  const Asked second = post(one, "/v1/tasks/b/acquire", R"({"hold_for":"1h"})");
  post(two, "/v1/tasks/c/acquire", R"({"hold_for":"1h"})");
  Asked waiting = begin(one, "/v1/tasks/c/acquire", R"({"wait":"5m"})");
  Asked receiving = begin(one, "/v1/queues/q/receive", R"({"wait":"5m"})");
  loop_.advance(1s);
  bool done = false;
  one.service->drain(10s, [&] { done = true; });
  EXPECT_EQ(waiting.text("code"), "draining");
  EXPECT_EQ(receiving.text("code"), "draining");
  const int asked = one.store.asked["get"];
  EXPECT_EQ(post(one, "/v1/tasks/d/acquire").text("code"), "draining");
  EXPECT_EQ(get(one, "/healthz").text("status"), "draining");
  EXPECT_EQ(post(one, "/v1/guards/" + first.text("guard") + "/release").status(), 200);
  EXPECT_EQ(get(one, "/v1/guards/" + second.text("guard")).status(), 200) << "it is held on";
  EXPECT_FALSE(done);
  ASSERT_TRUE(until([&] { return done; }, 12s));
  EXPECT_EQ(one.store.asked["get"], asked) << "nobody waits for the third any more";
  EXPECT_TRUE(is_free(two, "b"));
  EXPECT_EQ(get(one, "/v1/guards/" + second.text("guard")).text("code"), "drained");
}

TEST_F(ServiceTest, draining_with_nothing_held_is_done_at_once) {
  Server& one = start();
  bool done = false;
  const Instant begin = loop_.instant();
  one.service->drain(1h, [&] { done = true; });
  EXPECT_TRUE(until([&] { return done; }));
  EXPECT_LE(loop_.instant() - begin, 1ms);
}

}  // namespace
}  // namespace holdfast::serve
