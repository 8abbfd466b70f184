// Looking at tasks and keys over HTTP, and taking a lease away by hand.
#include <gmock/gmock.h>

#include "core/coord/names.hpp"
#include "core/hexadecimal.hpp"
#include "support/service_test.hpp"

namespace holdfast::serve {
namespace {

using namespace std::chrono_literals;
using test::Asked;
using testing::ElementsAre;
using testing::HasSubstr;

class ServeLooks : public ServiceTest {
 protected:
  /// As somebody might who writes to the table by hand.
  void spoil(Server& at, std::string_view key, std::string_view attribute) {
    bool is_done = false;
    at.store.update({std::string(key), {Change::set(attribute, "spoilt")}, Condition::row_exists()},
                    loop_.instant() + 1s, [&](const RowReply& reply) { is_done = reply.ok(); });
    ASSERT_TRUE(until([&] { return is_done; }));
  }
  /// Kinds, names and states, in the order in which they are told.
  static std::vector<std::string> told(const Asked& listed) {
    std::vector<std::string> all;
    const auto body = listed.json();
    for (const auto& each : body.at("tasks").as_array()) {
      std::string line;
      for (const char* member : {"kind", "name", "state"}) line += std::string(each.at(member).as_string()) + " ";
      all.push_back(line.substr(0, line.size() - 1));
    }
    return all;
  }
};

TEST_F(ServeLooks, a_task_is_shown_with_who_has_it_under_which_epoch) {
  Server& one = start();
  EXPECT_EQ(get(one, "/v1/tasks/report").text("code"), "not_found");
  const Asked mine = post(one, "/v1/tasks/report/acquire", R"({"ttl":"20s","hold_for":"1m"})");
  Asked shown = get(one, "/v1/tasks/report");
  ASSERT_EQ(shown.status(), 200) << shown.answer().body;
  EXPECT_EQ(shown.text("kind"), "task");
  EXPECT_EQ(shown.text("state"), "held");
  EXPECT_EQ(shown.text("owner"), mine.text("owner"));
  EXPECT_EQ(shown.json().at("epoch"), 1);
  EXPECT_GT(shown.json().at("expires_at_ms").as_int64(), loop_.wall().time_since_epoch().count());
  post(one, "/v1/guards/" + mine.text("guard") + "/release");
  shown = get(one, "/v1/tasks/report");
  EXPECT_EQ(shown.text("state"), "free");
  EXPECT_EQ(shown.text("owner"), "");
  EXPECT_EQ(shown.json().at("epoch"), 1) << "the latest there was";
}

TEST_F(ServeLooks, a_key_is_shown_with_its_result) {
  Server& one = start();
  const Asked run = post(one, "/v1/once/k");
  EXPECT_EQ(get(one, "/v1/once/k").text("state"), "held");
  EXPECT_EQ(get(one, "/v1/tasks/k").status(), 404) << "a task of that name is another thing";
  post(one, "/v1/once/k/finish", R"({"guard":")" + run.text("guard") + R"(","content":"paid","retention":"1h"})");
  const Asked done = get(one, "/v1/once/k");
  EXPECT_EQ(done.text("state"), "done");
  EXPECT_EQ(done.json().at("result").at("content"), "paid");
  loop_.advance(2h);
  EXPECT_EQ(get(one, "/v1/once/k").text("state"), "free") << "it is to be run again";
}

TEST_F(ServeLooks, both_kinds_are_listed_page_by_page) {
  Server& one = start();
  post(one, "/v1/tasks/b/acquire", R"({"ttl":"30s","renew":false})");
  post(one, "/v1/once/a", R"({"ttl":"20s","renew":false})");
  post(one, "/v1/tasks/c/acquire", R"({"ttl":"40s","renew":false})");
  Asked page = get(one, "/v1/tasks?max=2");
  ASSERT_EQ(page.status(), 200) << page.answer().body;
  EXPECT_THAT(told(page), ElementsAre("once a held", "task b held"));
  page = get(one, "/v1/tasks?max=2&page=" + percent_encoded(page.text("next")));
  EXPECT_THAT(told(page), ElementsAre("task c held"));
  EXPECT_TRUE(page.json().at("next").is_null());
  EXPECT_EQ(told(get(one, "/v1/tasks")).size(), 3U);
  const Asked wrong = get(one, "/v1/tasks?page=nonsense");
  EXPECT_EQ(wrong.status(), 400);
  EXPECT_EQ(wrong.text("member"), "/page");
  EXPECT_EQ(get(one, "/v1/tasks?max=0").status(), 400);
  EXPECT_EQ(get(one, "/v1/tasks?max=501").status(), 400);
}

TEST_F(ServeLooks, a_lease_is_taken_away_from_who_has_it_under_this_epoch_and_no_other) {
  Server& one = start();
  Server& two = start();
  const Asked mine = post(one, "/v1/tasks/t/acquire", R"({"ttl":"1h","hold_for":"1h"})");
  for (const char* epoch : {"2", "7"}) {
    const Asked refused = post(two, "/v1/tasks/t/release", R"({"epoch":)" + std::string(epoch) + "}");
    EXPECT_EQ(refused.status(), 409);
    EXPECT_EQ(refused.text("code"), "refused");
    EXPECT_THAT(refused.text("detail"), HasSubstr("epoch 1"));
  }
  EXPECT_FALSE(is_free(two, "t"));
  const Asked released = post(two, "/v1/tasks/t/release", R"({"epoch":1})");
  ASSERT_EQ(released.status(), 200) << released.answer().body;
  EXPECT_EQ(released.text("state"), "free");
  EXPECT_EQ(released.json().at("was_repeat"), false);
  EXPECT_EQ(post(two, "/v1/tasks/t/release", R"({"epoch":1})").json().at("was_repeat"), true);
  EXPECT_TRUE(is_free(two, "t")) << "an hour before its lease ends";
  EXPECT_EQ(post(two, "/v1/tasks/t/release", R"({"epoch":1})").status(), 409) << "there has been a second";
  EXPECT_EQ(post(two, "/v1/tasks/none/release", R"({"epoch":1})").status(), 404);
  EXPECT_EQ(post(two, "/v1/tasks/t/release").status(), 400);
  ASSERT_TRUE(until([&] { return get(one, "/v1/guards/" + mine.text("guard")).status() == 410; }, 1h))
      << "who had it hears of it by his next renewal";
}

TEST_F(ServeLooks, what_was_abandoned_and_is_held_for_a_person_is_run_again_once_he_has_released_it) {
  Server& one = start();
  post(one, "/v1/once/k", R"({"ttl":"2s","hold_for":"3s"})");
  loop_.advance(10s);
  ASSERT_EQ(post(one, "/v1/once/k", R"({"abandoned":"hold"})").text("code"), "held");
  const Asked shown = get(one, "/v1/once/k");
  EXPECT_EQ(shown.text("state"), "ended");
  EXPECT_EQ(post(one, "/v1/once/k/release", R"({"epoch":1})").status(), 200);
  EXPECT_EQ(post(one, "/v1/once/k", R"({"abandoned":"hold"})").text("turn"), "run");
}

TEST_F(ServeLooks, what_is_damaged_is_named_where_it_is_left_out_and_holds_up_nothing_else) {
  Server& one = start();
  for (const char* group : {"a", "b"}) {
    const std::string body = R"({"group":")" + std::string(group) + R"(","body":"hello"})";
    ASSERT_EQ(post(one, "/v1/queues/q/send", body).status(), 200);
  }
  post(one, "/v1/tasks/t/acquire");
  spoil(one, "QUEUE#q#a", coord::head);
  spoil(one, "TASK#t", attribute::epoch);
  const auto stats = get(one, "/v1/queues/q/stats").json();
  EXPECT_EQ(stats.at("ready_groups"), 1);
  EXPECT_EQ(stats.at("damaged"), boost::json::array({"QUEUE#q#a"}));
  EXPECT_EQ(get(one, "/v1/tasks").json().at("damaged"), boost::json::array({"TASK#t"}));
  EXPECT_EQ(post(one, "/v1/queues/q/receive").json().at("batch").at("group"), "b");
  const Asked nothing = post(one, "/v1/queues/q/receive", R"({"wait":"2s"})");
  EXPECT_EQ(nothing.status(), 500) << nothing.answer().body;
  EXPECT_EQ(nothing.text("code"), "rejected");
  EXPECT_THAT(nothing.text("detail"), HasSubstr("QUEUE#q#a"));
}

}  // namespace
}  // namespace holdfast::serve
