// Waiting for a task, and what a lease on one is.
#include <gmock/gmock.h>

#include "core/coord/task.hpp"
#include "core/keeper.hpp"
#include "support/procedure_run.hpp"

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class TaskTest : public testing::Test {
 protected:
  /// The row of a task that somebody holds for so long from now on.
  Row& held_for(std::chrono::milliseconds time) {
    Row& row = table_.add("TASK#t");
    row.attributes = {{std::string(attribute::desired_state), Value(state::task)},
                      {std::string(attribute::owner), Value("other#1")},
                      {std::string(attribute::epoch), Value(4)},
                      {std::string(attribute::expires_at), Value((run_.now.wall + time).time_since_epoch().count())}};
    return row;
  }
  AwaitTask await(Duration wait) {
    return {AwaitTask::row_key("t"), skew_, run_.now.instant + wait, run_.now.instant + wait + 5s, random_};
  }

  const Duration skew_ = 500ms;
  test::LeaseTable table_;
  test::ProcedureRun run_{table_};
  Random random_{7};
};

TEST_F(TaskTest, one_that_nobody_ever_held_can_be_claimed_at_once) {
  AwaitTask looking = await(0s);
  run_.run(looking);
  ASSERT_TRUE(*looking.result());
  EXPECT_FALSE((*looking.result())->row_exists);
  EXPECT_EQ((*looking.result())->key, "TASK#t");
  EXPECT_EQ(run_.requests, 1);
}

TEST_F(TaskTest, one_that_is_held_is_busy_for_who_does_not_wait_and_nothing_is_written) {
  held_for(10s);
  AwaitTask looking = await(0s);
  run_.run(looking);
  ASSERT_FALSE(*looking.result());
  EXPECT_EQ(looking.result()->error().kind, Failure::Kind::busy);
  EXPECT_THAT(looking.result()->error().error.detail,
              HasSubstr("other#1. Its lease ends in 10.5 s unless it is renewed."));
  EXPECT_EQ(run_.requests, 1);
  EXPECT_EQ(run_.writes, 0);
}

TEST_F(TaskTest, it_can_be_claimed_only_after_its_expiry_and_the_skew) {
  held_for(2s);
  AwaitTask looking = await(1min);
  const WallTime begin = run_.now.wall;
  run_.run(looking);
  ASSERT_TRUE(*looking.result());
  EXPECT_GE(run_.now.wall, begin + 2500ms) << "S1";
  EXPECT_LE(run_.now.wall, begin + 2600ms) << "and then soon";
  EXPECT_EQ((*looking.result())->epoch, Epoch{4});
  EXPECT_LE(run_.requests, 40);
}

TEST_F(TaskTest, a_long_wait_asks_rarely) {
  held_for(1h);
  AwaitTask looking = await(10min);
  run_.run(looking);
  ASSERT_FALSE(*looking.result());
  EXPECT_EQ(looking.result()->error().kind, Failure::Kind::busy);
  EXPECT_LE(run_.requests, 601) << "not more often than once in a second";
}

TEST_F(TaskTest, an_early_release_is_noticed) {
  held_for(1min);
  AwaitTask looking = await(10min);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(run_.step(looking));
  table_.row("TASK#t").attributes.insert_or_assign(std::string(attribute::expires_at), Value(0));
  const WallTime released = run_.now.wall;
  run_.run(looking);
  ASSERT_TRUE(*looking.result());
  EXPECT_LE(run_.now.wall, released + 3s);
}

TEST_F(TaskTest, an_expiry_beyond_all_reason_is_waited_for_no_longer_than_asked) {
  held_for(0ms).attributes.insert_or_assign(std::string(attribute::expires_at), Value(INT64_MAX));
  AwaitTask looking = await(5s);
  run_.run(looking);
  ASSERT_FALSE(*looking.result());
  EXPECT_EQ(looking.result()->error().kind, Failure::Kind::busy);
  EXPECT_THAT(looking.result()->error().error.detail, HasSubstr("has no end"));
}

TEST_F(TaskTest, a_damaged_lease_is_told_and_left_alone) {
  held_for(0ms).attributes.insert_or_assign(std::string(attribute::epoch), Value("four"));
  AwaitTask looking = await(0s);
  run_.run(looking);
  ASSERT_FALSE(*looking.result());
  EXPECT_EQ(looking.result()->error().kind, Failure::Kind::rejected);
  EXPECT_THAT(looking.result()->error().error.detail, HasSubstr("four"));
}

TEST_F(TaskTest, an_expiry_that_is_no_whole_number_is_damage_and_not_long_ago) {
  for (const Value& expiry : {Value("2026-12-01T00:00:00Z"), Value(1.5), Value(true)}) {
    held_for(10s).attributes.insert_or_assign(std::string(attribute::expires_at), expiry);
    AwaitTask looking = await(0s);
    run_.run(looking);
    ASSERT_FALSE(*looking.result());
    EXPECT_EQ(looking.result()->error().error.code, Code::corrupt);
    EXPECT_THAT(looking.result()->error().error.detail, HasSubstr("lease_expires_at_ms is"));
  }
}

TEST_F(TaskTest, a_row_of_a_program_that_knows_no_epochs_is_a_task_too) {
  Row& row = table_.add("TASK#t");
  row.attributes = {{std::string(attribute::owner), Value("plain")},
                    {std::string(attribute::expires_at), Value(1000)}};
  AwaitTask looking = await(0s);
  run_.run(looking);
  ASSERT_TRUE(*looking.result());
  EXPECT_EQ((*looking.result())->owner, "plain");
}

/// A Keeper whose writes are carried out at once.
class TaskLeaseTest : public TaskTest {
 protected:
  std::optional<Action> next(Keeper& keeper) {
    while (auto action = keeper.poll(run_.now)) {
      if (action->kind != Action::Kind::write) return action;
      const auto answer = table_.carry_out(render(action->write, keeper.owner()));
      keeper.on_write(action->slot, action->write_id, answer.outcome, answer.get(), run_.now);
    }
    return std::nullopt;
  }
  const LeaseTerms terms_ = *make_terms({.lease = 10s});
  Keeper me_{WorkerId("me"), terms_, {4, 4}, random_, ""};
  Keeper other_{WorkerId("other"), terms_, {4, 4}, random_, ""};
};

TEST_F(TaskLeaseTest, the_first_claim_makes_the_row) {
  ASSERT_TRUE(me_.claim(*task_from("TASK#t", nullptr), run_.now));
  const auto action = next(me_);
  ASSERT_TRUE(action);
  EXPECT_EQ(action->kind, Action::Kind::start);
  EXPECT_EQ(action->epoch, Epoch{1});
  EXPECT_EQ(action->until, run_.now.instant + 9s) << "S4: the lease less its margin, from before the request";
  EXPECT_EQ(table_.find("TASK#t")->text(attribute::owner), "me");
  EXPECT_EQ(table_.find("TASK#t")->text(attribute::desired_state), "TASK");
}

TEST_F(TaskLeaseTest, of_two_that_saw_no_row_one_makes_it) {
  ASSERT_TRUE(me_.claim(*task_from("TASK#t", nullptr), run_.now));
  ASSERT_TRUE(other_.claim(*task_from("TASK#t", nullptr), run_.now));
  EXPECT_EQ(next(me_)->kind, Action::Kind::start);
  const auto beaten = next(other_);
  ASSERT_TRUE(beaten);
  EXPECT_EQ(beaten->kind, Action::Kind::gone);
  EXPECT_EQ(beaten->ending, Ending::claim_conflict);
}

TEST_F(TaskLeaseTest, it_is_kept_and_given_back_like_any_other_and_its_epoch_stays) {
  ASSERT_TRUE(me_.claim(*task_from("TASK#t", nullptr), run_.now));
  const Slot slot = next(me_)->slot;
  run_.pass(5s);
  const auto renewed = next(me_);
  ASSERT_TRUE(renewed);
  EXPECT_EQ(renewed->kind, Action::Kind::extend);
  me_.stopped(slot, 0, run_.now);
  EXPECT_EQ(next(me_)->ending, Ending::released);
  EXPECT_EQ(table_.find("TASK#t")->number(attribute::epoch), 1);
  ASSERT_TRUE(other_.claim(*task_from("TASK#t", table_.find("TASK#t")), run_.now));
  EXPECT_EQ(next(other_)->epoch, Epoch{2});
}

TEST_F(TaskLeaseTest, one_that_was_claimed_meanwhile_is_not_taken) {
  ASSERT_TRUE(me_.claim(*task_from("TASK#t", nullptr), run_.now));
  EXPECT_EQ(next(me_)->kind, Action::Kind::start);
  run_.pass(11s);  // expired, and past the skew
  const Row seen = *table_.find("TASK#t");
  ASSERT_TRUE(other_.claim(*task_from("TASK#t", &seen), run_.now));
  Keeper third(WorkerId("third"), terms_, {4, 4}, random_, "");
  ASSERT_TRUE(third.claim(*task_from("TASK#t", &seen), run_.now));
  EXPECT_EQ(next(other_)->kind, Action::Kind::start);
  EXPECT_EQ(next(third)->ending, Ending::claim_conflict);
}

}  // namespace
}  // namespace holdfast
