// A thread of connections that does not come back, and words for people that a store does not take.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/worker_town.hpp"

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using Fault = FaultyStore::Fault;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(WorkerEnd, what_was_cut_while_its_loop_is_blocked_can_still_be_lost_and_the_worker_ends) {
  Town town(3s);
  town.add_many(2);
  VirtualLoop& home = town.nodes.add();
  Town::Citizen& worker = town.join(
      "w", 10, [](auto& options) { options.drain_timeout = 2s; }, &home);
  ASSERT_TRUE(town.all_flow(2, 10s));
  town.nodes.pause(home);  // as by a handler that does not return
  town.edit("c0", attribute::desired_state, state::stopped);
  ASSERT_TRUE(town.nodes.advance_until([&] { return worker.said("did not stop in time") == 1; }, 5s));
  town.edit("c0", attribute::owner, "somebody");
  town.nodes.advance(1500ms);
  worker.worker->drain();
  ASSERT_TRUE(town.nodes.advance_until([&] { return worker.ended; }, 5s));
  EXPECT_EQ(worker.worker->report().end, Report::End::cut);
  town.nodes.resume(home);
  town.nodes.advance(1s);
  EXPECT_THAT(town.world.wrong(), IsEmpty());
}

TEST(Faults, f14_a_thread_that_does_not_come_back_is_told_and_its_leases_are_not_kept_for_ever) {
  Town town(4s);
  town.add_many(3);
  VirtualLoop& home = town.nodes.add();
  Town::Citizen& worker = town.join("w", 10, {}, &home);
  ASSERT_TRUE(town.all_flow(3, 10s));
  town.nodes.pause(home);
  ASSERT_TRUE(town.nodes.advance_until([&] { return town.row("c0").text(attribute::status) == "blocked"; }, 4s));
  EXPECT_THAT(std::string(town.row("c0").text(attribute::status_reason)), HasSubstr("does not come back"));
  EXPECT_EQ(worker.said("has done nothing for"), 1U);
  town.join("other");
  ASSERT_TRUE(town.all_flow(3, 12s, "other")) << "within two leases, and the time to find them";
  EXPECT_EQ(worker.said("has done nothing for"), 2U) << "when it is noticed, and when it is given up";
  town.add("late");
  town.nodes.advance(2s);
  EXPECT_THAT(std::string(town.row("late").text(attribute::owner)), HasSubstr("other"))
      << "w could do nothing with it";
  town.nodes.resume(home);
  town.nodes.advance(3s);
  EXPECT_THAT(town.world.wrong(), IsEmpty()) << "what woke up found its leases over";
  EXPECT_EQ(worker.said("goes on after"), 1U);
  worker.worker->drain();
  EXPECT_TRUE(town.nodes.advance_until([&] { return worker.ended; }, 5s));
}

TEST(Faults, f08_what_waited_for_its_thread_while_its_lease_was_lost_is_never_started) {
  Town town(20s);
  VirtualLoop& home = town.nodes.add();
  town.join("w", 10, {}, &home);
  town.nodes.advance(1s);
  town.nodes.pause(home);
  town.add("c0");
  ASSERT_TRUE(town.nodes.advance_until([&] { return town.owned_by("w", 1) == 1; }, 10s));
  town.edit("c0", attribute::owner, "thief");
  town.edit("c0", attribute::epoch, 2);
  town.nodes.advance(6s);  // a renewal has met the thief
  town.nodes.resume(home);
  town.nodes.advance(1s);
  EXPECT_EQ(town.world.starts, 0U);
}

TEST(Worker, a_process_that_stood_still_as_a_whole_is_not_called_blocked) {
  Town town(3s);
  town.add_many(1);
  VirtualLoop& home = town.nodes.add();
  Town::Citizen& worker = town.join("w", 10, {}, &home);
  ASSERT_TRUE(town.all_flow(1, 10s));
  worker.pause();
  town.nodes.pause(home);
  town.nodes.advance(60s);
  worker.resume();
  town.nodes.resume(home);
  ASSERT_TRUE(town.all_flow(1, 10s));
  EXPECT_EQ(worker.said("has done nothing"), 0U);
  EXPECT_NE(town.row("c0").text(attribute::status), "blocked");
}

TEST(Worker, puts_what_it_takes_on_a_thread_that_moves) {
  Town town(20s);
  VirtualLoop& stuck = town.nodes.add();
  VirtualLoop& moves = town.nodes.add();
  Town::Citizen& worker = town.join("w", 10, {}, &stuck, &moves);
  town.nodes.pause(stuck);
  ASSERT_TRUE(town.nodes.advance_until([&] { return worker.said("has done nothing for") == 1; }, 10s));
  town.add_many(4);
  EXPECT_TRUE(town.all_flow(4, 20s));
  town.nodes.resume(stuck);
  town.nodes.advance(1s);
}

TEST(Faults, f42_whatever_a_resource_says_of_itself_is_fit_for_the_row) {
  Town town(3s);
  town.add("c0");
  Town::Citizen& worker = town.join("w", 10);
  worker.manners["c0"].reason = "\xFF\n" + std::string(298, 'a') + "é";
  ASSERT_TRUE(town.all_flow(1, 10s));
  town.nodes.advance(2s);
  EXPECT_EQ(town.row("c0").text(attribute::status_reason), "\xEF\xBF\xBD " + std::string(296, 'a'));
}

TEST(Faults, f42_words_that_the_store_does_not_take_cost_no_lease) {
  Town town(3s);
  town.add("c0");
  Town::Citizen& worker = town.join("w", 10);
  worker.store.judge = [](const Update* update) {
    if (update == nullptr) return Fault::none;
    for (const Change& change : update->changes)
      if (change.kind == Change::Kind::set && change.attribute == attribute::status) return Fault::rejected;
    return Fault::none;
  };
  ASSERT_TRUE(town.all_flow(1, 10s));
  town.nodes.advance(20s);
  EXPECT_EQ(town.row("c0").number(attribute::epoch), 1);
  EXPECT_THAT(town.world.endings, IsEmpty());
  EXPECT_GE(town.row("c0").number(attribute::last_seq) + 60, town.world.seq("c0")) << "checkpoints go on";
  EXPECT_EQ(worker.said("its status cannot be written"), 1U);
}

TEST(Worker, an_edit_that_came_with_a_conflict_of_its_own_reaches_the_resource) {
  Town town(3s);
  town.add("c0");
  town.join("w");
  ASSERT_TRUE(town.all_flow(1, 10s));
  town.edit("c0", attribute::url, "ws://elsewhere/");
  // Somebody wrote a number of renewals, too: the next one meets a conflict that shows the lease still its own.
  town.edit("c0", attribute::renewal, 1'000'000);
  town.nodes.advance(3s);
  EXPECT_THAT(town.world.edits, testing::ElementsAre(std::pair<std::string, std::string>("c0", "ws://elsewhere/")));
  EXPECT_EQ(town.row("c0").number(attribute::epoch), 1);
}

TEST(Worker, a_first_checkpoint_is_written_at_once_and_not_at_the_next_renewal) {
  Town town(20s);  // renewed every 5 s
  town.add_many(10);
  Town::Citizen& worker = town.join("w");
  for (int i = 0; i < 10; ++i) worker.manners["c" + std::to_string(i)].tells_of_first = true;
  ASSERT_TRUE(town.all_flow(10, 10s));
  town.nodes.advance(300ms);
  for (int i = 0; i < 10; ++i) {
    const Row row = town.row("c" + std::to_string(i));
    EXPECT_GT(row.number(attribute::last_seq), 0) << row.key;
  }
}

TEST(WorkerSink, one_that_fails_for_good_has_everything_given_back_and_ends_the_worker) {
  Town town(3s);
  town.add_many(3);
  Town::Citizen* self = nullptr;
  Town::Citizen& worker = town.join("w", 10, [&](auto& options) {
    options.sink_failure = [&] { return self == nullptr ? std::nullopt : self->sink_failure; };
    options.sink_failed_for_good = [] { return true; };
  });
  self = &worker;
  ASSERT_TRUE(town.all_flow(3, 10s));
  worker.sink_failure = Error(Code::unavailable, "whoever read it is gone");
  ASSERT_TRUE(town.nodes.advance_until([&] { return worker.ended; }, 4s));
  EXPECT_EQ(town.owned_by("w", 3), 0U);
  EXPECT_EQ(worker.worker->report().end, Report::End::failed);
  EXPECT_THAT(worker.worker->report().failure, HasSubstr("whoever read it is gone"));
  EXPECT_EQ(worker.said("failed for good"), 1U);
}

}  // namespace
}  // namespace holdfast::test
