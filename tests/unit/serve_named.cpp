// Callers who name the guard that they ask for, so that they may ask again when they were not answered.
#include <gmock/gmock.h>

#include "support/service_test.hpp"

namespace holdfast::serve {
namespace {

using namespace std::chrono_literals;
using test::Asked;

class ServeNamed : public ServiceTest {
 protected:
  static constexpr const char* named = R"({"guard":"caller-7_attempt-1","hold_for":"1h","ttl":"1h"})";
  Server& one_ = start();
};

TEST_F(ServeNamed, asked_again_while_it_is_held_it_is_the_same_right) {
  for (const char* what : {"/v1/tasks/t/acquire", "/v1/once/k"}) {
    SCOPED_TRACE(what);
    const std::string body = R"({"hold_for":"1h","guard":"0123456789-)" + std::string(what).substr(4, 4) + "_\"}";
    const Asked first = post(one_, what, body);
    ASSERT_EQ(first.status(), 201) << first.answer().body;
    EXPECT_EQ(first.json().at("was_repeat"), false);
    const std::size_t writes = one_.store.updates.size();
    const Asked again = post(one_, what, body);
    EXPECT_EQ(again.status(), 201) << again.answer().body;
    EXPECT_EQ(again.json().at("was_repeat"), true);
    for (const char* member : {"guard", "epoch", "attempt"})
      EXPECT_EQ(again.json().at(member), first.json().at(member));
    EXPECT_EQ(again.json().contains("turn"), first.json().contains("turn"));
    EXPECT_EQ(*again.answer().header("location"), "/v1/guards/" + first.text("guard"));
    EXPECT_EQ(one_.store.updates.size(), writes);
  }
  EXPECT_EQ(get(one_, "/v1/guards/0123456789-task_").status(), 200) << "it has the id that was asked for";
}

TEST_F(ServeNamed, asked_again_while_it_is_waited_for_it_is_one_right_for_both) {
  Server& two = start();
  const Asked held = post(two, "/v1/tasks/t/acquire", R"({"hold_for":"10s"})");
  const std::string asks = R"({"guard":"0123456789abcdef","wait":"1m"})";
  Asked first = begin(one_, "/v1/tasks/t/acquire", asks);
  loop_.advance(1s);
  Asked second = begin(one_, "/v1/tasks/t/acquire", asks);
  loop_.advance(1s);
  first.hang_up();
  EXPECT_EQ(first.status(), 410);
  Asked third = begin(one_, "/v1/tasks/t/acquire", asks);
  ASSERT_TRUE(until([&] { return second.is_answered() && third.is_answered(); }, 1min));
  EXPECT_EQ(second.status(), 201) << second.answer().body;
  EXPECT_EQ(second.json().at("was_repeat"), false);
  EXPECT_EQ(third.status(), 201);
  EXPECT_EQ(third.json().at("was_repeat"), true);
  EXPECT_EQ(third.json().at("epoch"), second.json().at("epoch"));
}

TEST_F(ServeNamed, when_all_of_them_have_hung_up_it_is_asked_for_no_more) {
  Server& two = start();
  post(two, "/v1/tasks/t/acquire", R"({"hold_for":"10s"})");
  const std::string asks = R"({"guard":"0123456789abcdef","wait":"5m","ttl":"1h","hold_for":"1h"})";
  Asked first = begin(one_, "/v1/tasks/t/acquire", asks);
  Asked second = begin(one_, "/v1/tasks/t/acquire", asks);
  loop_.advance(1s);
  first.hang_up();
  second.hang_up();
  EXPECT_TRUE(is_free(two, "t", "20s"));
  EXPECT_TRUE(one_.store.updates.empty());
}

TEST_F(ServeNamed, who_was_not_told_asks_again_and_has_it) {
  for (int i = 0; i < 2; ++i) {
    Asked untold = begin(one_, "/v1/tasks/t/acquire", named);
    untold.set_sent(false);
    ASSERT_TRUE(until([&] { return untold.is_answered(); }));
  }
  const Asked told = post(one_, "/v1/tasks/t/acquire", named);
  EXPECT_EQ(told.status(), 201) << told.answer().body;
  EXPECT_EQ(told.json().at("was_repeat"), false);
}

TEST_F(ServeNamed, a_repeat_that_could_not_be_told_takes_nothing_away) {
  ASSERT_EQ(post(one_, "/v1/tasks/t/acquire", named).status(), 201);
  Asked untold = begin(one_, "/v1/tasks/t/acquire", named);
  untold.set_sent(false);
  ASSERT_TRUE(until([&] { return untold.is_answered(); }));
  EXPECT_EQ(get(one_, "/v1/guards/caller-7_attempt-1").status(), 200);
}

TEST_F(ServeNamed, what_was_not_told_to_one_of_two_is_the_others) {
  Asked lost = begin(one_, "/v1/tasks/t/acquire", named);
  lost.set_sent(false);
  Asked told = begin(one_, "/v1/tasks/t/acquire", named);
  ASSERT_TRUE(until([&] { return lost.is_answered() && told.is_answered(); }));
  EXPECT_EQ(get(one_, "/v1/guards/caller-7_attempt-1").status(), 200);
}

TEST_F(ServeNamed, one_id_is_for_one_right) {
  ASSERT_EQ(post(one_, "/v1/tasks/t/acquire", named).status(), 201);
  for (const char* other : {"/v1/tasks/u/acquire", "/v1/once/t"}) {
    const Asked refused = post(one_, other, named);
    EXPECT_EQ(refused.status(), 422) << other;
    EXPECT_EQ(refused.text("code"), "mismatch");
  }
  post(one_, "/v1/guards/caller-7_attempt-1/release");
  const Asked over = post(one_, "/v1/tasks/t/acquire", named);
  EXPECT_EQ(over.status(), 410) << "it is over: another try has another id";
  EXPECT_EQ(over.text("code"), "released");
  EXPECT_TRUE(is_free(one_, "t"));
}

TEST_F(ServeNamed, a_run_that_was_finished_is_told_with_its_result) {
  ASSERT_EQ(post(one_, "/v1/once/k", named).text("turn"), "run");
  EXPECT_EQ(post(one_, "/v1/once/k", named).text("turn"), "run") << "and with abandoned=hold too, nobody is held up";
  post(one_, "/v1/once/k/finish", R"({"guard":"caller-7_attempt-1","content":"paid"})");
  const Asked again = post(one_, "/v1/once/k", named);
  EXPECT_EQ(again.status(), 200) << again.answer().body;
  EXPECT_EQ(again.json().at("result").at("content"), "paid");
}

TEST_F(ServeNamed, an_id_is_long_enough_not_to_be_guessed_and_can_stand_in_a_path) {
  for (const char* bad : {"short", "0123456789/abcdef", "0123456789 abcdef", "0123456789abcdef.."}) {
    const Asked refused = post(one_, "/v1/tasks/t/acquire", R"({"guard":")" + std::string(bad) + "\"}");
    EXPECT_EQ(refused.status(), 400) << bad;
    EXPECT_EQ(refused.text("member"), "/guard");
  }
}

}  // namespace
}  // namespace holdfast::serve
