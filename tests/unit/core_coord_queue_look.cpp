// Looking at queues.
#include <gmock/gmock.h>

#include "core/coord/queue.hpp"
#include "core/coord/queue_look.hpp"
#include "support/procedure_run.hpp"

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using test::every_mishap;
using test::Mishap;
using testing::ElementsAre;
using testing::IsEmpty;

class QueueLookTest : public testing::Test {
 protected:
  void send(const std::string& queue, const std::string& group, int count) {
    for (int i = 1; i <= count; ++i) {
      Send sending({queue, group, std::to_string(i)}, run_.now.instant + 10s, random_);
      run_.run(sending);
      ASSERT_TRUE(*sending.result());
    }
  }
  Ended<std::optional<GroupView>> peek(const std::string& group, std::size_t most) {
    PeekGroup peeking("q", group, most, run_.now.instant + 10s, random_);
    run_.run(peeking);
    return *peeking.result();
  }
  Ended<std::vector<std::string>> list(std::size_t most = 100) {
    ListGroups listing("q", most, run_.now.instant + 10s, random_);
    run_.run(listing);
    return listing.result()->map([](const GroupList& list) {
      std::vector<std::string> names;
      for (const Group& each : list.groups) names.push_back(each.group);
      if (list.is_partial) names.emplace_back("and more");
      return names;
    });
  }

  test::LeaseTable table_;
  test::ProcedureRun run_{table_};
  Random random_{1};
};

std::vector<std::string> bodies(const GroupView& view) {
  std::vector<std::string> all;
  for (const Message& each : view.messages) all.push_back(each.body);
  return all;
}

TEST_F(QueueLookTest, a_group_shows_its_first_messages_and_how_many_there_are) {
  send("q", "g", 5);
  const auto view = peek("g", 3);
  ASSERT_TRUE(view && *view);
  EXPECT_THAT(bodies(**view), ElementsAre("1", "2", "3"));
  EXPECT_EQ((*view)->group.size(), 5);
  EXPECT_EQ((*view)->group.receives, 0) << "it is not received by that";
  EXPECT_EQ((*peek("g", 100))->messages.size(), 5U);
  EXPECT_FALSE(*peek("none", 3));
}

TEST_F(QueueLookTest, a_message_past_its_retention_is_missing_and_a_damaged_group_is_told) {
  send("q", "g", 2);
  table_.erase(message_key("q", "g", 1));
  EXPECT_THAT(bodies(**peek("g", 10)), ElementsAre("2"));
  (void)apply({Change::set("head", "x")}, table_.row(group_key("q", "g")));
  const auto damaged = peek("g", 10);
  ASSERT_FALSE(damaged);
  EXPECT_EQ(damaged.error().kind, Failure::Kind::rejected);
}

TEST_F(QueueLookTest, all_groups_are_listed_by_name) {
  EXPECT_THAT(*list(), IsEmpty());
  for (const char* group : {"c", "a", "b"}) send("q", group, 1);
  send("another", "x", 1);
  EXPECT_THAT(*list(), ElementsAre("a", "b", "c"));
  EXPECT_THAT(*list(3), ElementsAre("a", "b", "c"));
  EXPECT_EQ(list(2)->size(), 3U);
  EXPECT_EQ(list(2)->back(), "and more");
}

TEST_F(QueueLookTest, pages_are_followed_and_a_group_that_was_parked_in_between_is_told_once) {
  send("q", "g", 1);
  const Row ready = table_.row(group_key("q", "g"));
  Row parked = ready;
  ASSERT_TRUE(apply({Change::set(attribute::desired_state, parked_state("q"))}, parked));
  ListGroups listing("q", 100, run_.now.instant + 10s, random_);
  const auto asked = [&] {
    const auto ask = listing.next(run_.now);
    const auto* look = ask ? std::get_if<LookDue>(&*ask) : nullptr;
    return look == nullptr ? "nothing" : look->query.state + " " + look->query.page;
  };
  const auto answer = [&](const Row& row, std::string next) {
    Answer rows;
    rows.outcome = Outcome::applied;
    rows.rows = {row};
    rows.next = std::move(next);
    listing.on(std::move(rows), run_.now);
  };
  EXPECT_EQ(asked(), ready_state("q") + " ");
  answer(ready, "p2");
  EXPECT_EQ(asked(), ready_state("q") + " p2");
  answer(ready, "");
  EXPECT_EQ(asked(), parked_state("q") + " ");
  answer(parked, "");
  EXPECT_EQ(asked(), "nothing");
  ASSERT_TRUE(*listing.result());
  ASSERT_EQ((*listing.result())->groups.size(), 1U);
  EXPECT_EQ((*listing.result())->groups.front().state, Group::State::parked) << "as it was seen later";
}

TEST_F(QueueLookTest, whatever_becomes_of_a_request_the_next_one_is_made) {
  send("q", "g", 2);
  for (const Mishap mishap : every_mishap) {
    for (int nth = 0; nth < 3; ++nth) {
      SCOPED_TRACE(testing::Message() << "mishap " << static_cast<int>(mishap) << " at request " << nth);
      int first = run_.requests;
      run_.mishap = [&](int request, bool) { return request == first + nth ? mishap : Mishap::none; };
      const auto view = peek("g", 10);
      ASSERT_TRUE(view && *view);
      EXPECT_THAT(bodies(**view), ElementsAre("1", "2"));
      first = run_.requests;
      const auto groups = list();
      ASSERT_TRUE(groups);
      EXPECT_THAT(*groups, ElementsAre("g"));
    }
  }
  run_.mishap = [](int, bool) { return Mishap::throttled; };
  EXPECT_EQ(peek("g", 1).error().kind, Failure::Kind::unavailable) << "it ends by its deadline";
  EXPECT_EQ(list().error().kind, Failure::Kind::unavailable);
}

}  // namespace
}  // namespace holdfast
