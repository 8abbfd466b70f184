#include "core/planner.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "core/keeper.hpp"
#include "support/lease_table.hpp"

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

constexpr WallTime noon{milliseconds(1'700'000'000'000)};

Row orphan(const std::string& key) {
  Row row;
  row.key = key;
  row.attributes = {{std::string(attribute::desired_state), Value(state::started)},
                    {std::string(attribute::expires_at), Value(std::int64_t{0})}};
  return row;
}

Row owned(const std::string& key, WallTime expires_at) {
  Row row = orphan(key);
  row.attributes["lease_owner"] = Value("other");
  row.attributes["lease_epoch"] = Value(1);
  row.attributes["lease_expires_at_ms"] = Value(std::int64_t{expires_at.time_since_epoch().count()});
  return row;
}

std::vector<Row> orphans(int count) {
  std::vector<Row> rows;
  for (int i = 0; i < count; ++i) rows.push_back(orphan("CONN#" + std::to_string(i)));
  return rows;
}

class PlannerTest : public testing::Test {
 protected:
  Now now() const { return {Instant(1000s) + elapsed_, noon + std::chrono::floor<milliseconds>(elapsed_)}; }
  void advance(Duration by) { elapsed_ += by; }
  void advance_to(Instant at) { elapsed_ = std::max(elapsed_, at - Instant(1000s)); }
  /// Goes to the next look and answers it.
  void look(const std::vector<Row>& rows) {
    std::optional<Look> wanted;
    while (!(wanted = planner_.look(now()))) {
      const Duration before = elapsed_;
      advance_to(*planner_.next());
      // A candidate that is due keeps next() at "now" until it is taken, which is not this function's business.
      if (elapsed_ == before) advance(1ms);
    }
    EXPECT_FALSE(planner_.saw(rows, false, now()));
  }
  std::vector<std::string> take(std::size_t room = 1000) {
    std::vector<std::string> keys;
    while (const auto candidate = planner_.take(now(), room)) keys.push_back(candidate->key);
    return keys;
  }

  Duration elapsed_{};
  Random random_{5};
  LeaseTerms terms_ = *make_terms({.lease = 20s});
  Planner planner_{terms_, {}, random_};
};

TEST_F(PlannerTest, looks_at_once_and_then_at_random_intervals_around_the_reconcile_time) {
  EXPECT_TRUE(planner_.look(now()));
  EXPECT_FALSE(planner_.look(now())) << "one at a time";
  planner_.saw({}, false, now());
  Duration sum{}, shortest = 1h, longest{};
  for (int i = 0; i < 1000; ++i) {
    const Duration before = elapsed_;
    look({});
    const Duration interval = elapsed_ - before;
    sum += interval;
    shortest = std::min(shortest, interval);
    longest = std::max(longest, interval);
  }
  EXPECT_NEAR(std::chrono::duration<double>(sum).count() / 1000, 5.0, 0.3);
  EXPECT_GE(shortest, 500ms);
  EXPECT_LE(shortest, 700ms);
  EXPECT_LE(longest, 9500ms);
  EXPECT_GE(longest, 9300ms);
}

TEST_F(PlannerTest, sees_what_will_expire_before_the_next_look_but_no_healthy_lease) {
  const auto wanted = planner_.look(now());
  ASSERT_TRUE(wanted);
  EXPECT_EQ(wanted->before, now().wall + 10s);
  // Longest interval between looks: 9.5 s. A healthy lease has at least three quarters of 20 s left.
  EXPECT_GT(planner_.horizon(), 9500ms);
  EXPECT_LT(planner_.horizon(), 15s);
}

TEST_F(PlannerTest, a_dead_owners_row_is_claimed_soon_after_its_expiry_and_skew_and_not_before) {
  look({owned("CONN#a", noon + 3s)});
  for (;;) {
    advance_to(*planner_.next());
    if (const auto keys = take(); !keys.empty()) break;
    if (planner_.look(now())) planner_.saw(std::vector{owned("CONN#a", noon + 3s)}, false, now());
  }
  EXPECT_GE(now().wall, noon + 4s);
  EXPECT_LE(now().wall, noon + 4s + 252ms);
}

TEST_F(PlannerTest, a_row_that_was_renewed_meanwhile_is_not_claimed) {
  look({owned("CONN#a", noon + 3s)});
  look({});  // no longer due
  advance(10s);
  EXPECT_TRUE(take().empty());
}

TEST_F(PlannerTest, what_was_handed_out_is_forgotten_until_it_is_seen_again) {
  look({orphan("CONN#a")});
  advance(1s);
  EXPECT_EQ(take(), std::vector<std::string>{"CONN#a"});
  advance(1s);
  EXPECT_TRUE(take().empty());
  look({orphan("CONN#a")});
  advance(1s);
  EXPECT_EQ(take(), std::vector<std::string>{"CONN#a"});
}

TEST_F(PlannerTest, stopped_rows_are_no_candidates) {
  Row stopped = orphan("CONN#a");
  stopped.attributes["desired_state"] = Value(state::stopped);
  look({stopped});
  advance(1s);
  EXPECT_TRUE(take().empty());
}

TEST_F(PlannerTest, two_workers_go_through_the_same_orphans_in_different_orders) {
  Random other_random(6);
  Planner other(terms_, {}, other_random);
  const auto rows = orphans(32);
  look(rows);
  ASSERT_TRUE(other.look(now()));
  other.saw(rows, false, now());
  advance(1s);
  const auto mine = take();
  std::vector<std::string> theirs;
  while (const auto candidate = other.take(now(), 1000)) theirs.push_back(candidate->key);
  EXPECT_EQ(mine.size(), 32U);
  EXPECT_EQ(theirs.size(), 32U);
  EXPECT_NE(mine, theirs);
  EXPECT_EQ(std::set(mine.begin(), mine.end()), std::set(theirs.begin(), theirs.end()));
}

TEST_F(PlannerTest, a_poke_brings_the_next_look_forward_but_never_below_the_floor) {
  look({});
  const Instant looked = now().instant;
  int looks = 0;
  while (now().instant < looked + 10s) {  // changes without end
    planner_.poke(now());
    advance(10ms);
    if (planner_.look(now())) {
      ++looks;
      planner_.saw({}, false, now());
    }
  }
  EXPECT_GE(looks, 20);
  EXPECT_LE(looks, 40) << "at most one per 250 ms";
}

TEST_F(PlannerTest, a_poke_during_a_look_is_not_lost) {
  ASSERT_TRUE(planner_.look(now()));
  planner_.poke(now());
  planner_.saw({}, false, now());
  EXPECT_LE(*planner_.next(), now().instant + planner_.floor() + planner_.floor());
}

TEST_F(PlannerTest, a_look_that_is_never_answered_is_given_up) {
  const auto wanted = planner_.look(now());
  advance_to(wanted->deadline);
  EXPECT_FALSE(planner_.look(now()));
  advance(20s);
  EXPECT_TRUE(planner_.look(now()));
}

TEST_F(PlannerTest, goes_on_with_further_pages_until_its_pool_is_full) {
  ASSERT_TRUE(planner_.look(now()));
  const auto rows = orphans(1024);
  for (int page = 0; page < 3; ++page) {
    EXPECT_TRUE(planner_.saw(std::span(rows).subspan(static_cast<std::size_t>(page) * 256, 256), true, now()));
  }
  EXPECT_FALSE(planner_.saw(std::span(rows).subspan(768, 256), true, now()));
}

TEST_F(PlannerTest, after_a_drain_it_neither_looks_nor_claims) {
  look(orphans(3));
  advance(1s);
  planner_.drain();
  EXPECT_TRUE(take().empty());
  advance(1h);
  EXPECT_FALSE(planner_.look(now()));
  EXPECT_FALSE(planner_.next());
}

TEST_F(PlannerTest, claims_that_meet_conflicts_bring_a_fresh_look) {
  look(orphans(100));
  const Instant looked = now().instant;
  advance(300ms);
  for (std::size_t i = 0; i < planner_.batch() / 2; ++i) planner_.conflicted(now());
  while (!planner_.look(now())) advance_to(std::max(*planner_.next(), now().instant + 1ms));
  EXPECT_LE(now().instant, looked + 300ms + planner_.floor());
}

class PlannerFaults : public PlannerTest {};

TEST_F(PlannerFaults, f09_a_worker_takes_orphans_whatever_it_holds_already) {
  look(orphans(1));
  advance(1s);
  EXPECT_EQ(take(1).size(), 1U) << "room for one, full otherwise: still taken";
}

TEST_F(PlannerFaults, f10_orphans_that_stay_unowned_are_counted_and_a_full_worker_is_not_kept_busy_by_them) {
  look(orphans(7));
  advance(1s);
  EXPECT_TRUE(take(0).empty());
  EXPECT_EQ(planner_.unowned(now()), 0U) << "not yet: others may be about to take them";
  for (int i = 0; i < 6; ++i) {
    look(orphans(7));
    EXPECT_TRUE(take(0).empty());
    EXPECT_GT(*planner_.next(), now().instant);
  }
  advance(10s);
  EXPECT_EQ(planner_.unowned(now()), 7U);
  EXPECT_EQ(take(1000).size(), 7U) << "once there is room";
  EXPECT_EQ(planner_.unowned(now()), 0U);
}

TEST_F(PlannerFaults, f15_claims_come_in_paced_batches) {
  look(orphans(1000));
  advance(1s);
  EXPECT_EQ(take().size(), planner_.batch());
  EXPECT_TRUE(take().empty());
  advance(planner_.pace());
  EXPECT_EQ(take().size(), planner_.batch());
  advance(1h);
  EXPECT_EQ(take().size(), planner_.batch()) << "what was not used is not saved up";
}

TEST_F(PlannerFaults, f15_looks_into_a_failing_store_back_off_with_jitter_and_a_cap_and_pokes_do_not_undo_it) {
  std::set<Duration> waits;
  Duration longest{};
  for (int i = 0; i < 300; ++i) {
    while (!planner_.look(now())) advance_to(*planner_.next());
    planner_.failed(now());
    planner_.poke(now());
    const Duration wait = *planner_.next() - now().instant;
    EXPECT_GE(wait, planner_.floor());
    waits.insert(wait);
    longest = std::max(longest, wait);
  }
  EXPECT_LE(longest, 20s);
  EXPECT_GT(longest, 15s);
  EXPECT_GT(waits.size(), 100U);
}

TEST_F(PlannerFaults, f15_a_claim_that_the_store_could_not_answer_holds_up_the_next_batch) {
  look(orphans(100));
  advance(1s);
  (void)planner_.take(now(), 1000);
  planner_.claim_failed(now());
  EXPECT_TRUE(take().empty());
  advance(5s);
  EXPECT_EQ(take().size(), planner_.batch());
}

/// Planner and Keeper together, virtual time: a worker that held 300 connections dies.
TEST(Failover, after_a_crash_every_connection_is_owned_again_within_the_lease_and_a_second) {
  const LeaseTerms terms = *make_terms({.lease = 3s});
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    Random random(seed);
    Planner planner(terms, {.max_leases = 300}, random);
    Keeper keeper(WorkerId("survivor"), terms, {.max_leases = 300}, random);
    test::LeaseTable table;
    std::vector<std::string> keys;
    for (int i = 0; i < 300; ++i) {
      // Renewed by its owner at some time within the interval before the crash.
      const Row row =
          owned("CONN#" + std::to_string(i), noon + 3s - std::chrono::floor<milliseconds>(random.between(0s, 750ms)));
      table.add(row.key) = row;
      keys.push_back(row.key);
    }
    Now now{Instant(1000s), noon};
    std::size_t started = 0;
    while (started < 300 && now.wall < noon + 60s) {
      if (const auto wanted = planner.look(now)) {
        std::vector<Row> due;
        for (const auto& key : keys) {
          const Row& row = *table.find(key);
          if (row.number(attribute::expires_at) < wanted->before.time_since_epoch().count()) due.push_back(row);
        }
        planner.saw(due, false, now);
      }
      while (const auto candidate = planner.take(now, keeper.room())) keeper.claim(*candidate, now);
      while (const auto action = keeper.poll(now)) {
        if (action->kind == Action::Kind::start) ++started;
        if (action->kind != Action::Kind::write) continue;
        const auto answer = table.carry_out(render(action->write, keeper.owner()));
        keeper.on_write(action->slot, action->write_id, answer.outcome, answer.get(), now);
      }
      now.instant += 1ms;
      now.wall += 1ms;
    }
    EXPECT_EQ(started, 300U);
    EXPECT_LE(now.wall, noon + 4s) << "seed " << seed;
  }
}

}  // namespace
}  // namespace holdfast
