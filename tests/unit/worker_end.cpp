// How a worker ends: draining, cutting, stopping, and what it says of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "support/worker_town.hpp"

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using Fault = FaultyStore::Fault;
using testing::IsEmpty;

TEST(WorkerEnd, a_drain_gives_everything_back_with_its_last_checkpoint_and_marks_the_workers_row) {
  Town town(3s);
  town.add_many(20);
  Town::Citizen& worker = town.join("w");
  ASSERT_TRUE(town.all_flow(20, 10s));
  worker.worker->drain();
  ASSERT_TRUE(town.nodes.advance_until([&] { return worker.ended; }, 1s));
  for (int i = 0; i < 20; ++i) {
    const std::string id = "c" + std::to_string(i);
    EXPECT_EQ(town.row(id).text(attribute::owner), "");
    EXPECT_EQ(town.row(id).number(attribute::expires_at), 0);
    EXPECT_EQ(town.row(id).number(attribute::last_seq), town.world.seq(id)) << id;
  }
  const Row row = town.row_at("WORKER#w");
  EXPECT_EQ(row.number(attribute::expires_at), 0);
  EXPECT_GT(row.number(attribute::tombstone_expires_at), 1'700'000'000) << "seconds";
  EXPECT_LT(row.number(attribute::tombstone_expires_at), 1'700'000'000 + 2 * 86'400) << "seconds, not milliseconds";
  const Report report = worker.worker->report();
  EXPECT_EQ(report.end, Report::End::drained);
  EXPECT_EQ(report.releases, 20);
  EXPECT_EQ(report.cut, 0);
  EXPECT_EQ(report.losses.at("drained"), 20);
}

TEST(WorkerEnd, a_drain_whose_last_word_gets_lost_says_it_again_and_does_not_wait_for_its_limit) {
  Town town(3s);
  town.add_many(3);
  Town::Citizen& worker = town.join("w", 1000, [](worker::WorkerOptions& options) { options.drain_timeout = 60s; });
  ASSERT_TRUE(town.all_flow(3, 10s));
  int last_words = 0;
  worker.store.judge = [&](const Update* update) {
    const auto is_last = [](const Change& change) {
      const std::int64_t* const number = change.value.as_int();
      return change.attribute == attribute::expires_at && number != nullptr && *number == 0;
    };
    const bool is_own = update != nullptr && update->key == "WORKER#w";
    if (!is_own || std::none_of(update->changes.begin(), update->changes.end(), is_last)) {
      return Fault::none;
    }
    return ++last_words <= 2 ? Fault::request_lost : FaultyStore::Fault::none;
  };
  worker.worker->drain();
  ASSERT_TRUE(town.nodes.advance_until([&] { return worker.ended; }, 6s));
  EXPECT_EQ(last_words, 3);
  EXPECT_EQ(town.row_at("WORKER#w").number(attribute::expires_at), 0);
  EXPECT_EQ(worker.worker->report().end, Report::End::drained);
}

TEST(WorkerEnd, f18_one_that_is_killed_leaves_a_row_that_the_table_may_forget_a_day_after_its_session) {
  Town town(3s);
  town.join("w");
  const auto forgotten_at = [&] { return town.row_at("WORKER#w").number(attribute::tombstone_expires_at); };
  const auto session_end = [&] { return town.row_at("WORKER#w").number(attribute::expires_at) / 1000; };
  ASSERT_TRUE(town.nodes.advance_until([&] { return town.row_at("WORKER#w").number(attribute::beat) == 2; }, 10s));
  const std::int64_t early = forgotten_at();
  EXPECT_EQ(early, session_end() + 86'400);
  ASSERT_TRUE(town.nodes.advance_until([&] { return town.row_at("WORKER#w").number(attribute::beat) == 9; }, 60s));
  EXPECT_GT(forgotten_at(), early) << "each beat moves it on";
  EXPECT_EQ(forgotten_at(), session_end() + 86'400);
}

TEST(WorkerEnd, what_is_drained_flows_elsewhere_within_a_second_and_without_an_overlap) {
  Town town(3s);
  town.add_many(50);
  Town::Citizen& leaver = town.join("leaver");
  ASSERT_TRUE(town.all_flow(50, 10s));
  town.join("b");
  town.join("c");
  town.nodes.advance(3s);
  leaver.worker->drain();
  town.nodes.advance(50ms);
  EXPECT_TRUE(town.all_flow(50, 950ms));
  EXPECT_THAT(town.world.wrong(), IsEmpty());
}

TEST(WorkerEnd, one_stuck_resource_holds_up_nobody_and_is_cut_and_given_back) {
  Town town(3s);
  town.add_many(10);
  Town::Citizen& worker = town.join("w", 10, [](auto& options) { options.drain_timeout = 8s; });
  worker.manners["c3"].never_stops = true;
  ASSERT_TRUE(town.all_flow(10, 10s));
  const Instant asked = town.nodes.now();
  worker.worker->drain();
  ASSERT_TRUE(town.nodes.advance_until([&] { return town.owned_by("w", 10) == 1; }, 1s));
  EXPECT_EQ(town.row("c3").text(attribute::owner), "w#00000001") << "kept while something may be under way";
  ASSERT_TRUE(town.nodes.advance_until([&] { return worker.ended; }, 10s));
  EXPECT_LE(town.nodes.now() - asked, 8s);
  EXPECT_EQ(town.row("c3").text(attribute::owner), "") << "its loop let go of it, so it could be given back";
  EXPECT_EQ(worker.said("did not stop in time"), 1U);
}

TEST(WorkerEnd, slow_resources_are_waited_for_while_their_leases_are_renewed) {
  Town town(3s);
  town.add_many(3);
  Town::Citizen& worker = town.join("w");
  worker.manners["c1"].stops_after = 10s;
  ASSERT_TRUE(town.all_flow(3, 10s));
  town.join("other");
  worker.worker->drain();
  town.nodes.advance(9s);
  EXPECT_EQ(town.owned_by("w", 3), 1U);
  ASSERT_TRUE(town.nodes.advance_until([&] { return worker.ended; }, 5s));
  EXPECT_TRUE(town.all_flow(3, 5s, "other"));
  EXPECT_THAT(town.world.wrong(), IsEmpty());
}

TEST(WorkerEnd, what_no_store_took_back_before_its_lease_ran_out_counts_as_cut) {
  Town town(3s);
  town.add_many(5);
  Town::Citizen& worker = town.join("w", 1000, [](auto& options) { options.drain_timeout = 20s; });
  ASSERT_TRUE(town.all_flow(5, 10s));
  worker.store.judge = [](const Update*) { return Fault::request_lost; };
  worker.worker->drain();
  ASSERT_TRUE(town.nodes.advance_until([&] { return worker.ended; }, 30s));
  EXPECT_EQ(worker.worker->report().end, Report::End::cut);
  EXPECT_EQ(worker.worker->report().cut, 5);
  EXPECT_EQ(worker.worker->report().releases, 0);
  EXPECT_EQ(worker.said("ended: 0 given back, 5 cut"), 1U);
}

TEST(WorkerEnd, a_drain_without_a_store_ends_at_its_limit_and_says_what_was_cut) {
  Town town(3s);
  town.add_many(5);
  Town::Citizen& worker = town.join("w", 10, [](auto& options) { options.drain_timeout = 2s; });
  ASSERT_TRUE(town.all_flow(5, 10s));
  worker.store.judge = [](const Update*) { return Fault::request_lost; };
  worker.worker->drain();
  ASSERT_TRUE(town.nodes.advance_until([&] { return worker.ended; }, 2s + 10ms));
  EXPECT_EQ(worker.worker->report().end, Report::End::cut);
  EXPECT_EQ(worker.worker->report().cut, 5);
  const Instant end = town.nodes.now();
  town.nodes.advance(5s);
  EXPECT_LE(town.world.last_seen("c0"), end);
}

TEST(WorkerEnd, stopping_at_once_leaves_the_leases_to_run_out) {
  Town town(3s);
  town.add_many(5);
  Town::Citizen& worker = town.join("w");
  ASSERT_TRUE(town.all_flow(5, 10s));
  worker.worker->drain();
  worker.worker->stop();
  town.nodes.advance(1ms);
  EXPECT_TRUE(worker.ended);
  EXPECT_EQ(worker.worker->report().end, Report::End::stopped);
  EXPECT_EQ(worker.worker->report().cut, 5);
  EXPECT_EQ(town.owned_by("w", 5), 5U);
  town.join("other");
  EXPECT_TRUE(town.all_flow(5, 10s, "other"));
  EXPECT_THAT(town.world.wrong(), IsEmpty());
}

TEST(WorkerEnd, drains_also_when_it_never_held_anything) {
  Town town;
  Town::Citizen& worker = town.join("w");
  town.nodes.advance(1s);
  worker.worker->drain();
  EXPECT_TRUE(town.nodes.advance_until([&] { return worker.ended; }, 1s));
}

TEST(WorkerSink, gives_everything_back_when_its_sink_fails_for_too_long_and_takes_again_when_it_works) {
  Town town(3s);
  town.add_many(5);
  Town::Citizen* self = nullptr;
  Town::Citizen& worker = town.join("w", 10, [&](auto& options) {
    options.sink_patience = 4s;
    options.sink_failure = [&]() -> std::optional<Error> {
      return self == nullptr ? std::nullopt : self->sink_failure;
    };
  });
  self = &worker;
  ASSERT_TRUE(town.all_flow(5, 10s));
  worker.sink_failure = Error(Code::exhausted, "disk full");
  town.nodes.advance(3s);
  EXPECT_EQ(worker.worker->held(), 5U) << "not for a hiccup";
  ASSERT_TRUE(town.nodes.advance_until([&] { return town.owned_by("w", 5) == 0; }, 5s));
  town.nodes.advance(10s);
  EXPECT_EQ(worker.worker->held(), 0U) << "takes nothing that it could not deliver";
  EXPECT_EQ(worker.worker->report().losses.at("sink_failed"), 5);
  EXPECT_EQ(worker.worker->report().sink_failures, 1);
  worker.sink_failure.reset();
  EXPECT_TRUE(town.all_flow(5, 10s));
  EXPECT_EQ(worker.said("sink: works again"), 1U);
}

TEST(WorkerReport, times_a_crash_from_the_last_renewal_and_a_hand_over_from_the_release) {
  Town town(3s);
  town.add_many(4);
  Town::Citizen& first = town.join("first");
  ASSERT_TRUE(town.all_flow(4, 10s));
  first.crash();
  Town::Citizen& second = town.join("second");
  ASSERT_TRUE(town.all_flow(4, 10s, "second"));
  town.nodes.advance(1s);
  Town::Citizen& third = town.join("third");
  town.nodes.advance(3s);
  second.worker->drain();
  ASSERT_TRUE(town.nodes.advance_until([&] { return second.ended; }, 5s));
  ASSERT_TRUE(town.all_flow(4, 10s, "third"));
  third.worker->drain();
  ASSERT_TRUE(town.nodes.advance_until([&] { return third.ended; }, 5s));

  EXPECT_THAT(first.worker, testing::IsNull());
  const Report after_crash = second.worker->report();
  ASSERT_EQ(after_crash.failovers.size(), 4U);
  for (const Failover& failover : after_crash.failovers) {
    EXPECT_EQ(failover.kind, Failover::Kind::crash);
    ASSERT_TRUE(failover.first_message_ms.has_value());
    EXPECT_GE(*failover.first_message_ms, 3000) << "nobody may begin before the lease is over";
    EXPECT_LE(*failover.first_message_ms, 4500);
  }
  const Report after_release = third.worker->report();
  ASSERT_EQ(after_release.failovers.size(), 4U);
  for (const Failover& failover : after_release.failovers) {
    EXPECT_EQ(failover.kind, Failover::Kind::graceful);
    ASSERT_TRUE(failover.first_message_ms.has_value());
    EXPECT_LE(*failover.first_message_ms, 1000);
  }
}

TEST(WorkerReport, a_first_claim_and_a_restart_after_a_stop_are_no_failovers) {
  Town town(3s);
  town.add("c0");
  Town::Citizen& worker = town.join("w");
  ASSERT_TRUE(town.all_flow(1, 10s));
  town.edit("c0", attribute::desired_state, state::stopped);
  ASSERT_TRUE(town.nodes.advance_until([&] { return town.row("c0").text(attribute::owner).empty(); }, 5s));
  town.nodes.advance(30s);
  town.edit("c0", attribute::desired_state, state::started);
  ASSERT_TRUE(town.all_flow(1, 10s));
  worker.worker->drain();
  ASSERT_TRUE(town.nodes.advance_until([&] { return worker.ended; }, 5s));
  EXPECT_THAT(worker.worker->report().failovers, IsEmpty());
}

TEST(WorkerReport, counts_what_the_store_was_asked) {
  Town town(3s);
  town.add("c0");
  Town::Citizen& worker = town.join("w");
  ASSERT_TRUE(town.all_flow(1, 10s));
  town.nodes.advance(10s);
  const Report report = worker.worker->report();
  EXPECT_EQ(report.claims, 1);
  EXPECT_GT(report.renewals, 8);
  EXPECT_GT(report.store.at("update").at("applied"), report.renewals);
  EXPECT_GT(report.store.at("query_due").at("applied"), 1);
  EXPECT_EQ(report.renewal_late_ms_max, 0) << "in virtual time nothing is late";
}

TEST(WorkerRow, a_worker_that_stood_still_finds_its_row_again) {
  Town town(3s);
  Town::Citizen& worker = town.join("w");
  town.nodes.advance(2s);
  worker.pause();
  town.nodes.advance(60s);
  worker.resume();
  town.nodes.advance(2s);
  EXPECT_EQ(town.row_at("WORKER#w").text(attribute::incarnation), "00000001");
  EXPECT_GT(town.row_at("WORKER#w").number(attribute::beat), 2);
}

TEST(WorkerRow, a_name_whose_owner_died_long_ago_is_free) {
  Town town(3s);
  Town::Citizen& dead = town.join("w");
  town.nodes.advance(2s);
  dead.crash();
  town.nodes.advance(10s);
  Town::Citizen& heir = town.join("w");
  town.nodes.advance(1s);
  EXPECT_EQ(town.row_at("WORKER#w").text(attribute::incarnation), "00000002");
  EXPECT_EQ(heir.said("another worker"), 0U);
}

}  // namespace
}  // namespace holdfast::test
