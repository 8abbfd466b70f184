// A server beside a function whose invocations come one after the other, on a table in memory, in virtual time.
#include "serve/invocations.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "serve/service.hpp"
#include "store/memory/memory_store.hpp"
#include "support/asked.hpp"
#include "support/faulty_store.hpp"
#include "support/virtual_loop.hpp"

namespace holdfast::serve {
namespace {

using namespace std::chrono_literals;
using test::Asked;
using Fault = test::FaultyStore::Fault;

class InvocationsTest : public testing::Test {
 protected:
  struct Server {
    Server(const std::shared_ptr<store::MemoryTable>& table, Loop& loop, bool has_invocations)
        : store(store::make_memory_store(table, loop), loop),
          service(store, loop, {.id = "here", .version = "1", .has_invocations = has_invocations}) {}
    test::FaultyStore store;
    Service service;
  };

  void begin(const std::string& id, std::chrono::milliseconds time = 15min) {
    extension_.service.invocation_begun(id, loop_.wall() + time);
    loop_.settle();
  }
  static Asked request(const std::string& invocation, const std::string& method, const std::string& target,
                       const std::string& body = {}) {
    runtime::HttpIncoming request;
    request.method = method;
    request.target = target;
    request.body = body;
    request.headers = {{"Host", "localhost:7420"}, {"Content-Type", "application/json"}};
    if (!invocation.empty()) request.headers.push_back({"Lambda-Runtime-Aws-Request-Id", invocation});
    return Asked(std::move(request));
  }
  Asked ask(const std::string& invocation, const std::string& target, const std::string& body = "{}") {
    Asked asked = request(invocation, "POST", target, body);
    extension_.service.serve(asked.exchange());
    return asked;
  }
  Asked post(const std::string& invocation, const std::string& target, const std::string& body = "{}") {
    Asked asked = ask(invocation, target, body);
    EXPECT_TRUE(until([&] { return asked.is_answered(); })) << target;
    return asked;
  }
  /// The path of its guard.
  std::string hold(const std::string& invocation, const std::string& task, const std::string& ttl = "10s") {
    const Asked asked =
        post(invocation, "/v1/tasks/" + task + "/acquire", R"({"hold_for":"1h","ttl":")" + ttl + "\"}");
    EXPECT_EQ(asked.status(), 201) << asked.answer().body;
    return "/v1/guards/" + asked.text("guard");
  }
  Asked show(const std::string& guard) {
    Asked asked = request("", "GET", guard);
    extension_.service.serve(asked.exchange());
    EXPECT_TRUE(until([&] { return asked.is_answered(); }));
    return asked;
  }
  /// Whether somebody else, on another machine, can have it now.
  bool is_free(const std::string& task) {
    Asked asked = request("", "POST", "/v1/tasks/" + task + "/acquire", "{}");
    other_.service.serve(asked.exchange());
    EXPECT_TRUE(until([&] { return asked.is_answered(); }));
    return asked.status() == 201;
  }
  bool until(const std::function<bool()>& condition, Duration limit = 10min) {
    return loop_.advance_until(condition, limit);
  }

  test::VirtualLoop loop_;
  std::shared_ptr<store::MemoryTable> table_ = std::make_shared<store::MemoryTable>();
  Server extension_{table_, loop_, true}, other_{table_, loop_, false};
};

TEST_F(InvocationsTest, what_one_holds_is_given_back_at_once_when_the_next_begins) {
  begin("1");
  const std::string guard = hold("1", "t");
  loop_.advance(5min);
  EXPECT_EQ(show(guard).status(), 200);
  begin("2");
  EXPECT_EQ(show(guard).text("code"), "let_go");
  EXPECT_TRUE(is_free("t"));
}

TEST_F(InvocationsTest, what_one_holds_is_given_back_at_its_deadline) {
  begin("1", 3s);
  const std::string guard = hold("1", "t");
  loop_.advance(2900ms);
  EXPECT_EQ(show(guard).status(), 200);
  EXPECT_FALSE(is_free("t"));
  loop_.advance(200ms);
  EXPECT_EQ(show(guard).status(), 410);
  EXPECT_TRUE(is_free("t"));
  EXPECT_EQ(post("1", "/v1/tasks/t/acquire").text("code"), "lost");
}

TEST_F(InvocationsTest, what_the_next_one_was_given_before_it_was_told_of_is_not_taken_from_it) {
  begin("1");
  const Asked early = ask("2", "/v1/tasks/t/acquire");
  loop_.advance(100ms);
  EXPECT_FALSE(early.is_answered());
  begin("2");
  ASSERT_TRUE(until([&] { return early.is_answered(); }));
  ASSERT_EQ(early.status(), 201);
  loop_.advance(10s);
  EXPECT_EQ(show("/v1/guards/" + early.text("guard")).status(), 200);
}

TEST_F(InvocationsTest, one_that_is_never_told_of_is_refused_within_the_patience) {
  const Instant begun = loop_.instant();
  EXPECT_EQ(post("1", "/v1/tasks/t/acquire").text("code"), "unavailable");
  EXPECT_LE(loop_.instant() - begun, 5s);
}

TEST_F(InvocationsTest, s1_of_who_does_not_say_which_one_asks_the_lease_is_kept_as_long_as_it_was_told) {
  begin("1");
  const std::string guard = hold("", "t");
  loop_.advance(1min);
  const std::int64_t believed_until = show(guard).json().at("believed_until_ms").as_int64();
  begin("2");
  EXPECT_EQ(show(guard).text("code"), "let_go");
  while (loop_.wall().time_since_epoch().count() < believed_until) {
    EXPECT_FALSE(is_free("t"));
    loop_.advance(500ms);
  }
  loop_.advance(1s);
  EXPECT_TRUE(is_free("t")) << "and no longer";
}

TEST_F(InvocationsTest, s1_the_same_event_that_comes_again_may_have_asked_before_it_was_told_of) {
  begin("1");
  const std::string guard = hold("1", "t");
  begin("1");
  EXPECT_EQ(show(guard).status(), 410);
  EXPECT_FALSE(is_free("t"));
  EXPECT_EQ(post("1", "/v1/tasks/u/acquire").status(), 201);
}

TEST_F(InvocationsTest, draining_waits_for_nobody_who_only_runs_out) {
  begin("1");
  hold("", "t", "1h");
  hold("1", "u", "1h");
  begin("2");
  hold("2", "w", "1h");
  loop_.shift_wall(1s);
  hold("2", "v", "1h");
  std::optional<Instant> drained_at;
  const Instant begun = loop_.instant();
  extension_.service.drain(0s, [&] { drained_at = loop_.instant(); });
  ASSERT_TRUE(until([&] { return drained_at.has_value(); }));
  EXPECT_LT(*drained_at - begun, 1s);
  for (const char* task : {"t", "u", "v", "w"}) EXPECT_TRUE(is_free(task)) << task;
}

TEST_F(InvocationsTest, f31_messages_that_were_left_behind_are_given_out_again_and_those_of_others_are_not) {
  begin("1");
  for (const char* group : {"a", "b", "c"}) {
    post("1", "/v1/queues/q/send", R"({"body":"m","group":")" + std::string(group) + "\"}");
  }
  const auto receive = [&](const std::string& invocation) {
    const Asked asked = post(invocation, "/v1/queues/q/receive", R"({"visibility":"10m"})");
    return std::string(asked.json().at("batch").as_object().at("receipt").as_string());
  };
  const std::string done = receive("1");
  receive("1");
  receive("");
  EXPECT_EQ(post("1", "/v1/queues/q/ack", R"({"receipt":")" + done + "\"}").status(), 200);
  begin("2");
  loop_.advance(1s);
  const Asked again = post("2", "/v1/queues/q/receive");
  EXPECT_EQ(again.json().at("batch").as_object().at("receives"), 2);
  EXPECT_TRUE(post("2", "/v1/queues/q/receive").json().at("batch").is_null()) << "who did not say keeps its own";
}

TEST_F(InvocationsTest, f22_what_one_began_and_did_not_finish_is_left_as_abandoned) {
  begin("1");
  ASSERT_EQ(post("1", "/v1/once/k").status(), 201);
  begin("2");
  EXPECT_EQ(post("2", "/v1/once/k", R"({"abandoned":"hold"})").text("code"), "held");
  EXPECT_EQ(post("2", "/v1/once/k").json().at("was_abandoned"), true);
}

TEST_F(InvocationsTest, what_was_only_waited_for_was_not_begun) {
  begin("1");
  Asked other = request("", "POST", "/v1/once/k", R"({"hold_for":"1m"})");
  other_.service.serve(other.exchange());
  const Asked waiting = ask("1", "/v1/once/k", R"({"wait":"5m"})");
  loop_.advance(10s);
  begin("2");
  EXPECT_EQ(waiting.text("code"), "lost");
  loop_.advance(3min);
  const Asked next = post("2", "/v1/once/k", R"({"abandoned":"reconcile"})");
  EXPECT_EQ(next.status(), 201);
}

TEST_F(InvocationsTest, s7_after_a_freeze_nobody_is_told_that_he_still_holds_it) {
  begin("1");
  const std::string guard = hold("1", "t", "2s");
  loop_.freeze(1h);
  Asked asked = request("1", "GET", guard);
  extension_.service.serve(asked.exchange());  // before any timer
  loop_.settle();
  EXPECT_EQ(asked.status(), 410);
}

TEST_F(InvocationsTest, s7_a_freeze_that_only_the_wall_clock_shows_ends_every_belief) {
  begin("1");
  const std::string guard = hold("1", "t", "10s");
  loop_.shift_wall(1h);  // the monotonic clock stood still with the machine
  Asked asked = request("1", "GET", guard);
  extension_.service.serve(asked.exchange());
  loop_.settle();
  EXPECT_EQ(asked.status(), 410);
  EXPECT_EQ(asked.text("code"), "lost");
}

/// A short freeze, or a clock that is put right: that alone tells no caller anything.
TEST_F(InvocationsTest, s1_what_was_told_before_a_jump_of_the_wall_clock_is_kept_as_long_as_it_was_told) {
  begin("1");
  const std::string guard = hold("1", "t");
  loop_.advance(1min);
  const auto told = std::chrono::milliseconds(show(guard).json().at("believed_until_ms").as_int64());
  const Instant told_until = loop_.instant() + (told - loop_.wall().time_since_epoch());
  loop_.shift_wall(600ms);
  EXPECT_EQ(show(guard).text("code"), "lost");
  while (loop_.instant() < told_until) {
    EXPECT_FALSE(is_free("t"));
    loop_.advance(500ms);
  }
  loop_.advance(1s);
  EXPECT_TRUE(is_free("t")) << "and no longer";
}

TEST_F(InvocationsTest, what_was_held_before_a_freeze_is_given_back_at_once_when_the_next_invocation_begins) {
  begin("1");
  const std::string guard = hold("1", "t");
  loop_.shift_wall(1s);
  EXPECT_EQ(show(guard).text("code"), "lost");
  EXPECT_FALSE(is_free("t"));
  begin("2");
  EXPECT_TRUE(is_free("t"));
  EXPECT_EQ(show(guard).text("code"), "lost");
}

TEST_F(InvocationsTest, f22_what_was_begun_before_a_jump_of_the_wall_clock_is_left_as_abandoned) {
  begin("1");
  ASSERT_EQ(post("1", "/v1/once/charge", R"({"ttl":"10s"})").status(), 201);
  loop_.advance(1s);
  loop_.shift_wall(1s);
  EXPECT_EQ(post("1", "/v1/once/charge", R"({"abandoned":"hold"})").text("code"), "busy") << "he may be at it";
  loop_.advance(10s);
  EXPECT_EQ(post("1", "/v1/once/charge", R"({"abandoned":"hold"})").text("code"), "held");
}

TEST_F(InvocationsTest, s7_a_claim_that_was_frozen_on_its_way_is_given_back) {
  begin("1");
  const Asked asked = ask("1", "/v1/tasks/t/acquire", R"({"ttl":"1h"})");
  ASSERT_FALSE(asked.is_answered());
  loop_.shift_wall(2h);
  ASSERT_TRUE(until([&] { return asked.is_answered(); }));
  EXPECT_EQ(asked.text("code"), "lost");
  EXPECT_TRUE(is_free("t"));
}

TEST_F(InvocationsTest, a_clock_that_is_put_right_by_a_little_is_no_freeze) {
  begin("1");
  const std::string guard = hold("1", "t");
  loop_.shift_wall(100ms);
  EXPECT_EQ(show(guard).status(), 200);
  loop_.shift_wall(-1h);
  EXPECT_EQ(show(guard).status(), 200);
}

TEST_F(InvocationsTest, elsewhere_the_header_means_nothing) {
  Asked asked = request("1", "POST", "/v1/tasks/t/acquire", "{}");
  other_.service.serve(asked.exchange());
  EXPECT_TRUE(until([&] { return asked.is_answered(); }, 1s));
  EXPECT_EQ(asked.status(), 201);
}

}  // namespace
}  // namespace holdfast::serve
