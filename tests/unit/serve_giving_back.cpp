// Giving rights back over HTTP: what callers are told, where the store is away too.
#include <gmock/gmock.h>

#include <optional>

#include "support/service_test.hpp"

namespace holdfast::serve {
namespace {

using namespace std::chrono_literals;
using test::Asked;
using Fault = test::FaultyStore::Fault;
using testing::HasSubstr;

class GivingBackOverHttp : public ServiceTest {
 protected:
  /// Its guard's path.
  std::string hold(Server& at, const std::string& what, const std::string& how = R"({"ttl":"1h","hold_for":"10h"})") {
    const Asked asked = post(at, what, how);
    EXPECT_EQ(asked.status(), 201) << asked.answer().body;
    guard_ = asked.text("guard");
    return "/v1/guards/" + guard_;
  }
  std::string guard_;
};

TEST_F(GivingBackOverHttp, s10_who_gives_back_is_told_within_the_patience_that_it_is_not_known) {
  for (const char* what : {"/v1/tasks/t/acquire", "/v1/once/k"}) {
    SCOPED_TRACE(what);
    Server& one = start({.id = "here", .version = "1", .patience = 2s});
    const std::string guard = hold(one, what);
    one.store.judge = [](const Update*) { return Fault::request_lost; };
    const Instant begin = loop_.instant();
    const Asked released = post(one, guard + "/release");
    EXPECT_EQ(released.status(), 503);
    EXPECT_EQ(released.text("code"), "unknown");
    EXPECT_LE(loop_.instant() - begin, 4s);
    EXPECT_EQ(post(one, guard + "/release").text("code"), "unknown") << "asked again, it is not known any better";
    EXPECT_EQ(get(one, guard).text("code"), "unknown");
    one.store.judge = {};
    const Asked again = post(one, guard + "/release");
    EXPECT_EQ(again.status(), 200) << "the store was asked again: " << again.answer().body;
    EXPECT_TRUE(again.json().at("was_repeat").as_bool());
    EXPECT_EQ(get(one, guard).text("code"), "released");
  }
}

TEST_F(GivingBackOverHttp, s10_who_finishes_is_told_within_twice_the_patience_that_it_is_not_known) {
  Server& one = start({.id = "here", .version = "1", .patience = 2s});
  hold(one, "/v1/once/k");
  one.store.judge = [](const Update*) { return Fault::request_lost; };
  const Instant begin = loop_.instant();
  const Asked finished = post(one, "/v1/once/k/finish", R"({"content":"paid","guard":")" + guard_ + "\"}");
  EXPECT_EQ(finished.status(), 503);
  EXPECT_EQ(finished.text("code"), "unknown");
  EXPECT_LE(loop_.instant() - begin, 4s);
}

TEST_F(GivingBackOverHttp, s05_who_finishes_again_has_the_store_asked_again) {
  Server& one = start({.id = "here", .version = "1", .patience = 2s});
  const std::string guard = hold(one, "/v1/once/k", R"({"ttl":"3s","hold_for":"10h","abandoned":"hold"})");
  const std::string finish = R"({"content":"paid","guard":")" + guard_ + "\"}";
  one.store.judge = [](const Update*) { return Fault::request_lost; };
  EXPECT_EQ(post(one, "/v1/once/k/finish", finish).text("code"), "unknown");
  EXPECT_EQ(get(one, guard).text("code"), "unknown") << "nobody knows that it was given back";
  EXPECT_EQ(post(one, "/v1/once/k/finish", finish).text("code"), "unknown");
  loop_.advance(10s);  // by now the lease has run out, and nobody tries any more
  one.store.judge = {};
  const Asked again = post(one, "/v1/once/k/finish", finish);
  EXPECT_EQ(again.status(), 200) << again.answer().body;
  EXPECT_TRUE(again.json().at("was_repeat").as_bool());
  EXPECT_EQ(get(one, guard).text("code"), "released");
  EXPECT_EQ(post(one, "/v1/once/k").text("turn"), "replay");
}

TEST_F(GivingBackOverHttp, f23_and_is_told_that_it_was_lost_where_somebody_else_has_had_the_key_since) {
  for (const char* what : {"/v1/tasks/t/acquire", "/v1/once/k"}) {
    SCOPED_TRACE(what);
    Server& one = start({.id = "here", .version = "1", .patience = 2s});
    Server& two = start();
    const std::string guard = hold(one, what, R"({"ttl":"3s","hold_for":"10h"})");
    const bool is_once = std::string(what) == "/v1/once/k";
    const std::string path = is_once ? "/v1/once/k/finish" : guard + "/release";
    const std::string body = is_once ? R"({"content":"paid","guard":")" + guard_ + "\"}" : "{}";
    one.store.judge = [](const Update*) { return Fault::request_lost; };
    EXPECT_EQ(post(one, path, body).text("code"), "unknown");
    loop_.advance(10s);
    EXPECT_EQ(post(two, what).status(), 201);
    one.store.judge = {};
    EXPECT_EQ(post(one, path, body).text("code"), "lost");
    EXPECT_EQ(get(one, guard).text("code"), "lost");
    EXPECT_EQ(post(one, path, body).text("code"), "lost");
  }
}

TEST_F(GivingBackOverHttp, f23_a_result_that_comes_after_its_lease_is_recorded_while_nobody_else_has_had_the_key) {
  Server& one = start({.id = "here", .version = "1", .patience = 2s});
  const std::string guard = hold(one, "/v1/once/k", R"({"ttl":"3s","hold_for":"10h","abandoned":"hold"})");
  one.store.judge = [](const Update*) { return Fault::request_lost; };
  loop_.advance(10s);
  EXPECT_EQ(get(one, guard).text("code"), "lost");
  const std::string finish = R"({"content":"paid","guard":")" + guard_ + "\"}";
  EXPECT_EQ(post(one, "/v1/once/k/finish", finish).text("code"), "unknown");
  one.store.judge = {};
  EXPECT_EQ(post(one, "/v1/once/k/finish", finish).status(), 200);
  EXPECT_EQ(post(one, "/v1/once/k/finish", R"({"content":"other","guard":")" + guard_ + "\"}").text("code"),
            "released");
  EXPECT_EQ(get(one, guard).text("code"), "released");
}

TEST_F(GivingBackOverHttp, s11_draining_ends_though_the_store_is_away) {
  Server& one = start({.id = "here", .version = "1", .patience = 2s});
  hold(one, "/v1/tasks/t/acquire");
  hold(one, "/v1/once/k");
  one.store.judge = [](const Update*) { return Fault::request_lost; };
  std::optional<Instant> drained_at;
  const Instant begin = loop_.instant();
  one.service->drain(1s, [&] { drained_at = loop_.instant(); });
  ASSERT_TRUE(until([&] { return drained_at.has_value(); }));
  EXPECT_LE(*drained_at - begin, 3s);
}

TEST_F(GivingBackOverHttp, who_gives_back_what_another_has_is_told_that_it_was_lost) {
  for (const auto& [what, key] : {std::pair("/v1/tasks/t/acquire", "TASK#t"), {"/v1/once/k", "ONCE#k"}}) {
    SCOPED_TRACE(what);
    Server& one = start();
    const std::string guard = hold(one, what);
    (void)table_->execute(Update{key, {Change::set(attribute::owner, "thief"), Change::add(attribute::epoch, 1)}, {}},
                          loop_.wall());
    const Asked released = post(one, guard + "/release");
    EXPECT_EQ(released.status(), 410);
    EXPECT_EQ(released.text("code"), "lost");
    EXPECT_THAT(released.text("detail"), HasSubstr("was lost"));
  }
}

TEST_F(GivingBackOverHttp, f22_a_key_that_was_abandoned_and_came_to_nobody_is_abandoned_still) {
  Server& one = start();
  Server& two = start();
  ASSERT_EQ(post(one, "/v1/once/k", R"({"ttl":"2s","hold_for":"3s"})").status(), 201);
  loop_.advance(4s);
  Asked lost(request("POST", "/v1/once/k", "{}"));
  lost.set_sent(false);
  one.service->serve(lost.exchange());
  ASSERT_TRUE(until([&] { return lost.is_answered(); }));
  loop_.advance(1s);
  EXPECT_EQ(post(two, "/v1/once/k", R"({"abandoned":"hold"})").text("code"), "held");
}

}  // namespace
}  // namespace holdfast::serve
