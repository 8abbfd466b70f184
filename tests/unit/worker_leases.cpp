// The shell around Keeper and Planner, several workers at once, in virtual time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "support/worker_town.hpp"

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using Fault = FaultyStore::Fault;
using testing::ElementsAre;
using testing::IsEmpty;

std::vector<LossReason> reasons(const World& world) {
  std::vector<LossReason> result;
  for (const World::Ending& ending : world.endings) result.push_back(ending.reason);
  return result;
}

TEST(Worker, takes_every_orphan_and_goes_on_after_its_last_seq) {
  Town town;
  town.add("a", 41);
  town.add("b");
  town.join("w");
  ASSERT_TRUE(town.nodes.advance_until([&] { return town.world.seq("a") > 41 && town.world.seq("b") > 0; }, 5s));
  EXPECT_EQ(town.row("a").text(attribute::owner), "w#00000001");
  EXPECT_EQ(town.row("a").number(attribute::epoch), 1);
}

TEST(Worker, takes_over_only_when_the_skew_has_passed_after_the_expiry) {
  Town town(10s);
  Town::Citizen& worker = town.join("w");
  const WallTime expiry = worker.loop.wall() + 4s;
  town.add("a");
  town.edit("a", attribute::owner, "other#1");
  town.edit("a", attribute::expires_at, std::int64_t{expiry.time_since_epoch().count()});
  ASSERT_TRUE(town.nodes.advance_until([&] { return town.row("a").text(attribute::owner) != "other#1"; }, 20s));
  EXPECT_EQ(town.row("a").text(attribute::owner), "w#00000001");
  EXPECT_GT(town.terms.skew, 0s);
  EXPECT_GE(worker.loop.wall(), expiry + town.terms.skew);
}

TEST(Worker, fills_at_the_pace_of_its_claims_and_not_a_page_of_rows_at_each_look) {
  Town town(20s);
  town.add_many(5'000);
  Town::Citizen& worker = town.join("w", 5'000);
  const Instant begun = town.nodes.now();
  ASSERT_TRUE(town.nodes.advance_until([&] { return worker.worker->held() == 5'000; }, 60s));
  EXPECT_LT(town.nodes.now() - begun, 3s) << "256 claims in 100 ms take 2 s; looks are 5 s apart";
}

TEST(Worker, those_with_equal_room_that_begin_together_share_what_is_there) {
  Town town(20s);
  town.add_many(5'000);
  std::vector<Town::Citizen*> workers;
  for (int i = 0; i < 5; ++i) workers.push_back(&town.join("w" + std::to_string(i), 5'000));
  const auto held = [&] {
    std::size_t sum = 0;
    for (const Town::Citizen* each : workers) sum += each->worker->held();
    return sum;
  };
  ASSERT_TRUE(town.nodes.advance_until([&] { return held() == 5'000; }, 60s));
  for (const Town::Citizen* each : workers) EXPECT_GT(each->worker->held(), 250U) << each->name;
}

TEST(Worker, a_renewal_carries_the_checkpoint_and_the_status) {
  Town town;
  town.add("a");
  town.join("w");
  ASSERT_TRUE(town.nodes.advance_until([&] { return town.row("a").number(attribute::last_seq) > 50; }, 10s));
  EXPECT_EQ(town.row("a").text(attribute::status), "flowing");
  // At most what happened since the last renewal is missing.
  EXPECT_GE(town.row("a").number(attribute::last_seq) + town.terms.renew_every / 20ms + 5, town.world.seq("a"));
}

TEST(Worker, connections_of_a_crashed_worker_flow_again_within_a_lease_and_a_half_second_and_no_two_act_at_once) {
  Town town(3s);
  town.add_many(60);
  Town::Citizen& victim = town.join("victim", 30);
  ASSERT_TRUE(town.nodes.advance_until([&] { return town.owned_by("victim", 60) == 30; }, 20s));
  town.join("b");
  town.join("c");
  ASSERT_TRUE(town.all_flow(60, 20s));
  victim.crash();
  town.nodes.advance(100ms);
  EXPECT_TRUE(town.all_flow(60, 4500ms - 100ms));
  EXPECT_THAT(town.world.wrong(), IsEmpty());
  EXPECT_EQ(town.owned_by("victim", 60), 0U);
}

TEST(Faults, f01_a_paused_owner_does_nothing_after_its_lease_even_before_its_timers_run) {
  Town town(3s);
  town.add_many(20);
  Town::Citizen& sleeper = town.join("sleeper");
  ASSERT_TRUE(town.all_flow(20, 10s));
  town.join("other");
  town.nodes.advance(2s);
  sleeper.pause();
  ASSERT_TRUE(town.all_flow(20, 10s, "other"));
  sleeper.resume();
  town.nodes.advance(10s);
  EXPECT_THAT(town.world.wrong(), IsEmpty());
  EXPECT_EQ(town.owned_by("other", 20), 20U);
  EXPECT_THAT(reasons(town.world), testing::Each(LossReason::belief_expired));
  EXPECT_EQ(town.world.endings.size(), 20U) << "each loss is told once";
}

TEST(Faults, f01_a_lease_that_was_found_ended_is_given_back_though_a_renewal_of_it_was_confirmed) {
  Town town(3s);
  town.add("a");
  town.join("w").manners["a"].revokes_at = 10;
  ASSERT_TRUE(town.nodes.advance_until([&] { return !town.world.endings.empty(); }, 10s));
  EXPECT_THAT(reasons(town.world), ElementsAre(LossReason::belief_expired));
  EXPECT_EQ(town.world.effects.size(), 9U);
  ASSERT_TRUE(town.nodes.advance_until([&] { return town.world.effects.size() > 9; }, 10s));
  EXPECT_GE(town.world.effects.back().epoch, Epoch{2});
  EXPECT_THAT(town.world.wrong(), IsEmpty());
}

TEST(Faults, f02_a_renewal_that_was_applied_though_its_answer_was_lost_keeps_the_lease) {
  Town town(3s);
  town.add("a");
  Town::Citizen& worker = town.join("w");
  ASSERT_TRUE(town.nodes.advance_until([&] { return town.world.seq("a") > 10; }, 5s));
  int lost = 0;
  worker.store.judge = [&](const Update* update) {
    if (update == nullptr || !update->key.starts_with(key_prefix::connection)) return Fault::none;
    return ++lost % 2 == 1 ? Fault::reply_lost : Fault::none;
  };
  town.nodes.advance(30s);
  EXPECT_GT(lost, 10);
  EXPECT_THAT(town.world.endings, IsEmpty());
  EXPECT_EQ(town.row("a").number(attribute::epoch), 1);
}

TEST(Faults, f03_throttling_for_less_than_a_lease_loses_nothing) {
  Town town(3s);
  town.add_many(10);
  Town::Citizen& worker = town.join("w");
  ASSERT_TRUE(town.all_flow(10, 10s));
  worker.store.judge = [](const Update*) { return Fault::throttled; };
  town.nodes.advance(1500ms);
  worker.store.judge = nullptr;
  town.nodes.advance(10s);
  EXPECT_THAT(town.world.endings, IsEmpty());
  EXPECT_EQ(worker.worker->report().losses.size(), 0U);
}

TEST(Faults, f04_a_release_does_not_touch_the_lease_of_a_successor) {
  Town town(3s);
  town.add("c0");
  Town::Citizen& sleeper = town.join("sleeper");
  ASSERT_TRUE(town.all_flow(1, 10s));
  town.join("other");
  town.nodes.advance(1s);
  sleeper.worker->drain();  // its writes have not left yet when it stops
  sleeper.pause();
  ASSERT_TRUE(town.all_flow(1, 10s, "other"));
  sleeper.resume();
  town.nodes.advance(5s);
  EXPECT_EQ(town.owned_by("other", 1), 1U);
  EXPECT_THAT(town.world.wrong(), IsEmpty());
}

TEST(Faults, f05_a_renewal_in_flight_at_the_release_does_not_bring_the_lease_back) {
  Town town(3s);
  town.add_many(10);
  Town::Citizen& worker = town.join("w");
  worker.store.latency = 300ms;  // so that renewals are always under way
  ASSERT_TRUE(town.all_flow(10, 20s));
  worker.worker->drain();
  ASSERT_TRUE(town.nodes.advance_until([&] { return worker.ended; }, 20s));
  town.nodes.advance(5s);
  for (int i = 0; i < 10; ++i) {
    const Row row = town.row("c" + std::to_string(i));
    EXPECT_EQ(row.text(attribute::owner), "") << row.key;
    EXPECT_EQ(row.number(attribute::expires_at), 0) << row.key;
  }
}

TEST(Faults, f06_the_loser_hears_of_its_loss_once_and_why) {
  Town town(3s);
  town.add("a");
  town.join("w");
  ASSERT_TRUE(town.nodes.advance_until([&] { return town.world.seq("a") > 10; }, 5s));
  town.edit("a", attribute::owner, "thief");
  town.edit("a", attribute::epoch, 2);
  town.nodes.advance(2s);
  EXPECT_THAT(reasons(town.world), ElementsAre(LossReason::taken_over));
}

TEST(Faults, f06_from_the_moment_of_its_loss_the_loser_does_nothing_more_however_long_it_takes_to_stop) {
  Town town(20s);
  town.add("c0");
  town.join("w").manners["c0"].stops_after = 800ms;
  ASSERT_TRUE(town.all_flow(1, 10s));
  town.edit("c0", attribute::owner, "thief");
  town.edit("c0", attribute::epoch, 2);
  ASSERT_TRUE(town.nodes.advance_until([&] { return !town.world.endings.empty(); }, 6s));
  const std::size_t done = town.world.effects.size();
  town.nodes.advance(700ms);
  EXPECT_EQ(town.world.effects.size(), done) << "its belief would have lasted for seconds more";
}

TEST(Faults, f07_what_does_not_stop_is_cut_off_before_others_may_begin) {
  Town town(3s);
  town.add("c0");
  Town::Citizen& stubborn = town.join("stubborn");
  stubborn.manners["c0"].never_stops = true;
  ASSERT_TRUE(town.all_flow(1, 10s));
  stubborn.store.judge = [](const Update*) { return Fault::request_lost; };
  town.join("other");
  ASSERT_TRUE(town.all_flow(1, 10s, "other"));
  town.nodes.advance(5s);
  EXPECT_THAT(town.world.wrong(), IsEmpty());
  EXPECT_EQ(stubborn.worker->held(), 0U);
}

TEST(Faults, f08_a_grant_that_arrives_after_its_own_end_starts_nothing) {
  Town town(3s);
  town.add("a");
  Town::Citizen& slow = town.join("slow");
  slow.store.judge = [](const Update* update) {
    return update != nullptr && update->key == "CONN#a" ? Fault::reply_lost : Fault::none;
  };
  ASSERT_TRUE(town.nodes.advance_until([&] { return town.row("a").number(attribute::epoch) == 1; }, 10s));
  slow.pause();  // longer than the lease: the answer waits in the dark
  town.nodes.advance(5s);
  slow.resume();
  town.nodes.advance(1ms);
  EXPECT_THAT(town.world.effects, IsEmpty());
}

TEST(Faults, f09_orphans_are_taken_by_whoever_has_room_whatever_they_hold_already) {
  Town town(3s);
  town.add_many(30);
  Town::Citizen& a = town.join("a", 20);
  Town::Citizen& b = town.join("b", 20);
  town.join("c", 20);
  ASSERT_TRUE(town.all_flow(30, 20s));
  a.crash();
  b.worker->drain();
  ASSERT_TRUE(town.nodes.advance_until([&] { return town.owned_by("c", 30) == 20; }, 20s));
}

TEST(Faults, f10_a_full_worker_says_so_when_connections_are_left_over) {
  Town town(3s);
  town.add_many(5);
  Town::Citizen& small = town.join("small", 3);
  ASSERT_TRUE(town.nodes.advance_until([&] { return small.said("2 connections belong to nobody") == 1; }, 30s));
  town.nodes.advance(30s);
  EXPECT_EQ(small.said("belong to nobody"), 1U) << "said once";
}

TEST(Faults, f12_a_loss_is_normal_and_the_worker_takes_the_connection_again_when_it_may) {
  Town town(3s);
  town.add("a");
  town.join("w");
  ASSERT_TRUE(town.nodes.advance_until([&] { return town.world.seq("a") > 10; }, 5s));
  town.edit("a", attribute::owner, "thief");
  town.edit("a", attribute::epoch, 2);
  ASSERT_TRUE(town.nodes.advance_until([&] { return town.row("a").number(attribute::epoch) == 3; }, 15s));
  EXPECT_EQ(town.row("a").text(attribute::owner), "w#00000001");
}

TEST(Faults, f12_two_workers_of_one_name_both_work_and_neither_renews_the_others_leases) {
  Town town(3s);
  town.add_many(20);
  Town::Citizen& first = town.join("twin", 10);
  ASSERT_TRUE(town.nodes.advance_until([&] { return first.worker->held() == 10; }, 10s));
  Town::Citizen& second = town.join("twin", 10);
  ASSERT_TRUE(town.all_flow(20, 10s));
  town.nodes.advance(20s);
  EXPECT_EQ(first.worker->held(), 10U);
  EXPECT_EQ(second.worker->held(), 10U);
  EXPECT_THAT(town.world.endings, IsEmpty());
  EXPECT_EQ(second.said("another worker called 'twin'"), 1U);
  EXPECT_EQ(first.said("another worker"), 0U);
  EXPECT_EQ(town.row_at("WORKER#twin").text(attribute::incarnation), "00000001");
  EXPECT_EQ(town.row_at("WORKER#twin#00000002").text(attribute::incarnation), "00000002");
}

TEST(Faults, f15_after_an_outage_the_fleet_comes_back_by_itself_and_does_not_claim_all_at_once) {
  Town town(3s);
  town.add_many(200);
  std::vector<Town::Citizen*> fleet{&town.join("a"), &town.join("b"), &town.join("c")};
  ASSERT_TRUE(town.all_flow(200, 20s));
  for (Town::Citizen* one : fleet) one->store.judge = [](const Update*) { return Fault::request_lost; };
  town.nodes.advance(20s);
  for (Town::Citizen* one : fleet) {
    EXPECT_EQ(one->worker->held(), 0U);
    one->store.judge = nullptr;
    one->store.updates.clear();
  }
  const Instant back = town.nodes.now();
  ASSERT_TRUE(town.all_flow(200, 20s));
  EXPECT_THAT(town.world.wrong(), IsEmpty());
  // Nobody asks for everything in its first instant.
  for (const Town::Citizen* one : fleet) {
    const auto early = std::count_if(one->store.updates.begin(), one->store.updates.end(), [&](const auto& entry) {
      return entry.first < back + 20ms && entry.second.key.starts_with(key_prefix::connection);
    });
    EXPECT_LT(early, 200);
  }
}

TEST(Faults, f16_renewals_of_leases_that_began_together_are_spread_over_the_interval) {
  Town town(4s);  // renewed every second
  town.add_many(100);
  Town::Citizen& worker = town.join("w");
  ASSERT_TRUE(town.all_flow(100, 20s));
  town.nodes.advance(10s);
  worker.store.updates.clear();
  const Instant start = town.nodes.now();
  town.nodes.advance(1s);
  std::vector<int> tenths(10);
  for (const auto& [at, update] : worker.store.updates)
    ++tenths[std::min<std::size_t>(9, static_cast<std::size_t>((at - start) / 100ms))];
  EXPECT_LT(*std::max_element(tenths.begin(), tenths.end()), 35);
}

TEST(Faults, f17_a_slow_store_is_asked_for_many_leases_at_once) {
  Town town(3s);
  town.add_many(150);
  Town::Citizen& worker = town.join("w");
  worker.store.latency = 200ms;  // one at a time would take 30 s a round
  ASSERT_TRUE(town.all_flow(150, 30s));
  town.nodes.advance(20s);
  EXPECT_THAT(town.world.endings, IsEmpty());
  EXPECT_EQ(worker.worker->held(), 150U);
}

TEST(Faults, f20_an_outage_is_told_once_and_its_end_once) {
  Town town(3s);
  town.add_many(20);
  Town::Citizen& worker = town.join("w");
  ASSERT_TRUE(town.all_flow(20, 20s));
  worker.store.judge = [](const Update*) { return Fault::request_lost; };
  town.nodes.advance(60s);
  worker.store.judge = nullptr;
  ASSERT_TRUE(town.all_flow(20, 20s));
  EXPECT_EQ(worker.said("store: timed out"), 1U);
  EXPECT_EQ(worker.said("store: answers again"), 1U);
  EXPECT_LT(worker.log.size(), 15U);
}

TEST(Worker, keeps_its_leases_through_a_short_outage_and_drops_them_at_the_beliefs_end_in_a_long_one) {
  Town town(3s);
  town.add("c0");
  Town::Citizen& worker = town.join("w");
  ASSERT_TRUE(town.all_flow(1, 10s));
  const Instant away = town.nodes.now();
  worker.store.judge = [](const Update*) { return Fault::request_lost; };
  town.nodes.advance(1s);
  EXPECT_EQ(worker.worker->held(), 1U);
  town.nodes.advance(9s);
  EXPECT_EQ(worker.worker->held(), 0U);
  EXPECT_LT(town.world.last_seen("c0") - away, 3s);
  worker.store.judge = nullptr;
  EXPECT_TRUE(town.all_flow(1, 10s));
  EXPECT_THAT(reasons(town.world), ElementsAre(LossReason::belief_expired));
}

TEST(Worker, learns_from_a_renewal_that_a_connection_is_to_stop_without_any_read) {
  Town town(3s);
  town.add("c0");
  Town::Citizen& worker = town.join("w");
  ASSERT_TRUE(town.all_flow(1, 10s));
  town.edit("c0", attribute::desired_state, state::stopped);
  ASSERT_TRUE(town.nodes.advance_until([&] { return town.row("c0").text(attribute::owner).empty(); },
                                       town.terms.renew_every + 100ms));
  EXPECT_THAT(reasons(town.world), ElementsAre(LossReason::stopped));
  EXPECT_EQ(worker.store.asked["get"], 0);
  EXPECT_EQ(worker.store.asked["batch_get"], 0);
  EXPECT_GE(town.row("c0").number(attribute::last_seq), town.world.seq("c0")) << "the last checkpoint is in the row";
  EXPECT_EQ(town.row("c0").text(attribute::status), "") << "nobody runs it";
}

TEST(Worker, tells_a_resource_that_its_row_was_edited_once_per_edit) {
  Town town(3s);
  town.add("c0");
  town.join("w");
  ASSERT_TRUE(town.all_flow(1, 10s));
  town.edit("c0", attribute::url, "ws://elsewhere/");
  town.nodes.advance(5s);
  EXPECT_THAT(town.world.edits, ElementsAre(std::pair<std::string, std::string>("c0", "ws://elsewhere/")));
  EXPECT_THAT(town.world.endings, IsEmpty());
}

TEST(Worker, holds_a_row_that_it_cannot_run_and_says_so_in_the_row) {
  Town town(3s);
  town.add("c0");
  town.edit("c0", attribute::url, "unusable");
  Town::Citizen& worker = town.join("w");
  ASSERT_TRUE(town.nodes.advance_until([&] { return town.row("c0").text(attribute::status) == "parked"; }, 10s));
  EXPECT_NE(town.row("c0").text(attribute::status_reason), "");
  town.nodes.advance(20s);
  EXPECT_EQ(town.row("c0").number(attribute::epoch), 1) << "it does not go round";
  worker.worker->drain();
  EXPECT_TRUE(town.nodes.advance_until([&] { return worker.ended; }, 5s));
}

}  // namespace
}  // namespace holdfast::test
