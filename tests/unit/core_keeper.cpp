// long-file: one rule after the other, on one fixture.
#include "core/keeper.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "support/lease_table.hpp"

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using Kind = Action::Kind;

/// One Keeper, one table, and time that moves when the test says so. Lease 20 s: renewals every 5 s, belief 18 s.
class KeeperTest : public testing::Test {
 protected:
  Now now() const { return {Instant(1000s) + elapsed_, WallTime(1'700'000'000'000ms) + wall_elapsed()}; }
  milliseconds wall_elapsed() const { return std::chrono::floor<milliseconds>(elapsed_) + wall_shift_; }
  void advance(Duration by) { elapsed_ += by; }
  void advance_to(Instant instant) { elapsed_ = std::max(elapsed_, instant - Instant(1000s)); }

  std::vector<Action> poll() {
    std::vector<Action> actions;
    while (const auto action = keeper_.poll(now())) actions.push_back(*action);
    return actions;
  }
  /// The only action that there is, of that kind.
  Action only(Kind kind) {
    const auto actions = poll();
    EXPECT_EQ(actions.size(), 1U);
    if (actions.size() != 1) return {};
    EXPECT_EQ(static_cast<int>(actions[0].kind), static_cast<int>(kind));
    return actions[0];
  }
  void expect_nothing() { EXPECT_TRUE(poll().empty()); }

  test::LeaseTable::Answer carry_out(const Action& write) { return table_.carry_out(render(write.write, me_)); }
  void answer(const Action& write, Outcome outcome, const Row* row = nullptr) {
    keeper_.on_write(write.slot, write.write_id, outcome, row, now());
  }
  void answer(const Action& write, const test::LeaseTable::Answer& answered) {
    answer(write, answered.outcome, answered.get());
  }
  bool claim(const std::string& key = "CONN#a") { return keeper_.claim(*candidate_from(*table_.find(key)), now()); }
  /// Claims and starts; the slot.
  Slot hold(const std::string& key = "CONN#a") {
    if (table_.find(key) == nullptr) table_.add(key);
    EXPECT_TRUE(claim(key));
    const Action write = only(Kind::write);
    answer(write, carry_out(write));
    const Action start = only(Kind::start);
    EXPECT_EQ(keeper_.key(start.slot), key);
    return start.slot;
  }
  /// Goes to the lease's next renewal and gives its write.
  Action renewal() {
    advance_to(*keeper_.next());
    return only(Kind::write);
  }
  void renew() {
    const Action write = renewal();
    EXPECT_EQ(write.write.kind, LeaseWrite::Kind::renew);
    answer(write, carry_out(write));
    (void)only(Kind::extend);
  }
  std::int64_t row_expiry() const { return table_.find("CONN#a")->number(attribute::expires_at); }
  void seize(const std::string& key, const char* owner, std::int64_t epochs) {
    Row& row = table_.row(key);
    row.attributes[std::string(attribute::owner)] = Value(owner);
    row.attributes[std::string(attribute::epoch)] = Value(row.number(attribute::epoch) + epochs);
  }

  Duration elapsed_{};
  milliseconds wall_shift_{};
  test::LeaseTable table_;
  WorkerId me_{"me#1"};
  Random random_{1};
  LeaseTerms terms_ = *make_terms({.lease = 20s});
  Keeper keeper_{me_, terms_, KeeperLimits{4, 2}, random_};
};

// ---- Claims ----

TEST_F(KeeperTest, a_claim_makes_the_row_ours_and_belief_counts_from_before_it_was_sent) {
  table_.add("CONN#a").attributes["last_seq"] = Value(41);
  ASSERT_TRUE(claim());
  const Instant sent = now().instant;
  const Action write = only(Kind::write);
  advance(3s);  // the store is slow
  answer(write, carry_out(write));
  const auto actions = poll();  // the first renewal may be due already
  ASSERT_FALSE(actions.empty());
  const Action& start = actions.front();
  ASSERT_EQ(start.kind, Kind::start);
  EXPECT_EQ(start.until, sent + 18s);
  EXPECT_EQ(start.epoch, Epoch{1});
  EXPECT_EQ(start.last_seq, 41);
  EXPECT_EQ(table_.find("CONN#a")->text(attribute::owner), "me#1");
  EXPECT_EQ(keeper_.counters().claims, 1U);
  EXPECT_EQ(keeper_.held(), 1U);
}

TEST_F(KeeperTest, claims_only_what_is_free_by_its_own_clock_with_the_skew_in_hand) {
  Row& row = table_.add("CONN#a");
  seize("CONN#a", "other", 1);
  row.attributes["lease_expires_at_ms"] = Value(std::int64_t{(now().wall - 999ms).time_since_epoch().count()});
  EXPECT_FALSE(claim());
  advance(1ms);
  EXPECT_TRUE(claim());
}

TEST_F(KeeperTest, a_clock_set_back_between_the_claim_and_its_sending_drops_it) {
  Row& row = table_.add("CONN#a");
  seize("CONN#a", "other", 1);
  row.attributes["lease_expires_at_ms"] = Value(std::int64_t{(now().wall - 1s).time_since_epoch().count()});
  ASSERT_TRUE(claim());
  wall_shift_ = -1ms;
  EXPECT_EQ(only(Kind::gone).ending, Ending::claim_failed);
}

TEST_F(KeeperTest, takes_no_more_than_its_limit_and_no_key_twice) {
  for (const char* key : {"CONN#a", "CONN#b", "CONN#c", "CONN#d", "CONN#e"}) table_.add(key);
  EXPECT_TRUE(claim("CONN#a"));
  EXPECT_FALSE(claim("CONN#a"));
  EXPECT_TRUE(claim("CONN#b"));
  EXPECT_TRUE(claim("CONN#c"));
  EXPECT_TRUE(claim("CONN#d"));
  EXPECT_EQ(keeper_.room(), 0U);
  EXPECT_FALSE(claim("CONN#e"));
}

TEST_F(KeeperTest, a_claim_that_others_won_is_forgotten_and_its_slot_reused) {
  table_.add("CONN#a");
  ASSERT_TRUE(claim());
  seize("CONN#a", "other", 1);
  const Action write = only(Kind::write);
  answer(write, carry_out(write));
  EXPECT_EQ(only(Kind::gone).ending, Ending::claim_conflict);
  EXPECT_EQ(keeper_.counters().claim_conflicts, 1U);
  EXPECT_EQ(keeper_.used(), 0U);
  EXPECT_FALSE(keeper_.find("CONN#a"));
  hold("CONN#b");
  // A reply for the slot's earlier life means nothing to its new one.
  answer(write, Outcome::conflict);
  expect_nothing();
  EXPECT_EQ(keeper_.counters().replies_ignored, 1U);
}

TEST_F(KeeperTest, a_row_that_vanished_or_was_stopped_is_not_claimed) {
  table_.add("CONN#a");
  table_.add("CONN#b");
  ASSERT_TRUE(claim("CONN#a"));
  ASSERT_TRUE(claim("CONN#b"));
  table_.erase("CONN#a");
  table_.row("CONN#b").attributes["desired_state"] = Value(state::stopped);
  for (const Action& write : poll()) answer(write, carry_out(write));
  for (const Action& gone : poll()) EXPECT_EQ(gone.ending, Ending::claim_conflict);
  EXPECT_EQ(table_.find("CONN#a"), nullptr) << "a claim creates nothing (S8)";
  EXPECT_EQ(keeper_.used(), 0U);
}

TEST_F(KeeperTest, a_claim_that_cannot_be_settled_is_retried_with_its_attempt_until_it_is_useless) {
  table_.add("CONN#a");
  ASSERT_TRUE(claim());
  const Instant end = now().instant + 18s;
  std::set<Attempt> attempts;
  Ending ending = Ending::released;
  while (keeper_.used() > 0) {
    for (const Action& action : poll()) {
      if (action.kind == Kind::gone) ending = action.ending;
      if (action.kind != Kind::write) continue;
      attempts.insert(action.write.attempt);
      EXPECT_LE(action.deadline, end);
      EXPECT_LT(now().instant, end);
      answer(action, Outcome::unknown);
    }
    if (const auto next = keeper_.next()) advance_to(std::max(*next, now().instant));
  }
  EXPECT_EQ(ending, Ending::claim_failed);
  EXPECT_EQ(attempts.size(), 1U);
  EXPECT_GT(keeper_.counters().unknown, 4U);
}

TEST_F(KeeperTest, s10_a_rejected_claim_is_dropped_and_told_apart_from_one_that_was_not_answered) {
  table_.add("CONN#a");
  ASSERT_TRUE(claim());
  answer(only(Kind::write), Outcome::rejected);
  EXPECT_EQ(only(Kind::gone).ending, Ending::claim_refused);
}

// ---- Renewals ----

TEST_F(KeeperTest, renews_at_its_phase_and_carries_what_was_acknowledged) {
  const Slot slot = hold();
  keeper_.progress(slot, 7);
  keeper_.progress(slot, 5);  // never back
  renew();
  EXPECT_EQ(table_.find("CONN#a")->number(attribute::last_seq), 7);
  const Instant first = now().instant;
  const Action second = renewal();
  EXPECT_EQ(now().instant, first + 5s);
  EXPECT_FALSE(second.write.last_seq) << "nothing new to say";
}

TEST_F(KeeperTest, s04_a_renewal_extends_the_belief_from_before_it_was_sent) {
  hold();
  const Action write = renewal();
  const Instant sent = now().instant;
  advance(2s);  // the store is slow
  answer(write, carry_out(write));
  EXPECT_EQ(only(Kind::extend).until, sent + 18s);
}

TEST_F(KeeperTest, a_checkpoint_whose_renewal_got_lost_rides_on_the_next_one) {
  const Slot slot = hold();
  keeper_.progress(slot, 7);
  answer(renewal(), Outcome::unknown);
  EXPECT_EQ(renewal().write.last_seq, 7);
}

TEST_F(KeeperTest, a_wall_clock_that_was_set_back_does_not_make_us_our_own_rival) {
  hold();
  renew();
  wall_shift_ = -1h;
  renew();
  EXPECT_EQ(keeper_.held(), 1U);
  EXPECT_EQ(keeper_.counters().adopted, 0U);
}

TEST_F(KeeperTest, s04_a_clock_that_was_an_hour_ahead_leaves_no_lease_an_hour_ahead_once_it_is_right) {
  wall_shift_ = 1h;
  hold();
  renew();
  EXPECT_EQ(row_expiry(), (now().wall + 20s).time_since_epoch().count());
  wall_shift_ = 0h;
  renew();
  EXPECT_EQ(row_expiry(), (now().wall + 20s).time_since_epoch().count());
  renew();
  EXPECT_EQ(row_expiry(), (now().wall + 20s).time_since_epoch().count());
}

TEST_F(KeeperTest, s04_late_duplicates_of_renewals_by_either_clock_change_nothing) {
  wall_shift_ = 1h;
  hold();
  const Action by_wrong_clock = renewal();
  answer(by_wrong_clock, carry_out(by_wrong_clock));
  (void)only(Kind::extend);
  wall_shift_ = 0h;
  const Action by_right_clock = renewal();  // the one that lowers the expiry
  answer(by_right_clock, carry_out(by_right_clock));
  (void)only(Kind::extend);
  renew();
  const Row newest = *table_.find("CONN#a");
  EXPECT_EQ(carry_out(by_wrong_clock).outcome, Outcome::conflict);
  EXPECT_EQ(carry_out(by_right_clock).outcome, Outcome::conflict);
  EXPECT_EQ(*table_.find("CONN#a"), newest);
}

TEST_F(KeeperTest, s04_an_earlier_try_of_the_same_renewal_that_arrives_late_takes_nothing_back) {
  hold();
  const Action first = renewal();
  answer(first, Outcome::unknown);
  const Action second = renewal();
  answer(second, carry_out(second));
  (void)only(Kind::extend);
  const std::int64_t promised = row_expiry();
  EXPECT_EQ(carry_out(first).outcome, Outcome::conflict);
  EXPECT_EQ(row_expiry(), promised);
}

TEST_F(KeeperTest, an_expiry_that_somebody_moved_ahead_by_years_is_put_right_by_the_next_renewal) {
  hold();
  table_.row("CONN#a").attributes["lease_expires_at_ms"] =
      Value(std::int64_t{(now().wall + 24h * 3650).time_since_epoch().count()});
  renew();
  EXPECT_EQ(row_expiry(), (now().wall + 20s).time_since_epoch().count());
}

TEST_F(KeeperTest, a_delayed_duplicate_of_an_older_renewal_changes_nothing) {
  const Slot slot = hold();
  keeper_.progress(slot, 5);
  const Action old = renewal();
  answer(old, carry_out(old));
  (void)only(Kind::extend);
  keeper_.progress(slot, 9);
  renew();
  const Row before = *table_.find("CONN#a");
  EXPECT_EQ(carry_out(old).outcome, Outcome::conflict);
  EXPECT_EQ(*table_.find("CONN#a"), before);
}

TEST_F(KeeperTest, s02_a_late_renewal_of_an_earlier_ownership_of_our_own_changes_nothing) {
  const Slot slot = hold();
  const Action late = renewal();
  answer(late, Outcome::unknown);
  keeper_.stopped(slot, 0, now());
  const Action release = only(Kind::write);
  answer(release, carry_out(release));
  (void)only(Kind::gone);
  hold();
  const Row before = *table_.find("CONN#a");
  EXPECT_EQ(before.number(attribute::epoch), 2);
  EXPECT_EQ(carry_out(late).outcome, Outcome::conflict) << "the owner is the same, the epoch is not";
  EXPECT_EQ(*table_.find("CONN#a"), before);
}

TEST_F(KeeperTest, a_conflict_that_still_shows_us_as_the_owner_is_no_loss) {
  hold();
  // Somebody edited the row by hand.
  table_.row("CONN#a").attributes["lease_renewal"] = Value(1000);
  const Action write = renewal();
  const auto answered = carry_out(write);
  EXPECT_EQ(answered.outcome, Outcome::conflict);
  answer(write, answered);
  expect_nothing();
  EXPECT_EQ(keeper_.counters().adopted, 1U);
  renew();
  EXPECT_EQ(keeper_.held(), 1U);
}

TEST_F(KeeperTest, s06_a_claim_begins_the_numbers_of_renewals_anew) {
  table_.add("CONN#a").attributes["lease_renewal"] = Value(1000);  // by those who held it before
  hold();
  renew();
  EXPECT_EQ(keeper_.counters().adopted, 0U) << "no renewal met a number of another epoch";
}

TEST_F(KeeperTest, s04_a_renewal_that_a_conflict_settles_counts_from_its_first_try) {
  hold();
  // Somebody's edit: the number can rise once more, then several tries have the same.
  table_.row("CONN#a").attributes["lease_renewal"] = Value(INT64_MAX - 1);
  const Action refused = renewal();
  const Instant first_sent = now().instant;
  answer(refused, carry_out(refused));
  const Action applied = renewal();
  EXPECT_EQ(carry_out(applied).outcome, Outcome::applied);
  advance(1s);
  answer(applied, Outcome::unknown);
  const Action again = renewal();
  EXPECT_GT(now().instant, first_sent + 1s);
  const auto settled = carry_out(again);
  EXPECT_EQ(settled.outcome, Outcome::conflict);
  answer(again, settled);
  EXPECT_EQ(only(Kind::extend).until, first_sent + 18s) << "the row's expiry is that of an earlier try";
}

TEST_F(KeeperTest, rejected_renewals_are_tried_again_at_the_usual_pace_and_the_belief_runs_out) {
  hold();
  const Instant end = keeper_.until(0);
  int tries = 0;
  std::vector<Action> actions;
  while (actions.empty() || actions.back().kind == Kind::write) {
    advance_to(*keeper_.next());
    actions = poll();
    ASSERT_EQ(actions.size(), 1U);
    if (actions[0].kind == Kind::write) {
      ++tries;
      answer(actions[0], Outcome::rejected);
    }
  }
  EXPECT_EQ(actions[0].kind, Kind::lost);
  EXPECT_EQ(actions[0].reason, LossReason::belief_expired);
  EXPECT_EQ(now().instant, end);
  EXPECT_GE(tries, 3);
  EXPECT_LE(tries, 4);
}

TEST_F(KeeperTest, retries_are_jittered_bounded_and_never_past_the_belief) {
  hold();
  const Instant end = keeper_.until(0);
  Action write = renewal();
  Duration longest{};
  std::set<Duration> delays;
  for (;;) {
    answer(write, Outcome::throttled);
    const Instant before = now().instant;
    advance_to(*keeper_.next());
    const auto actions = poll();
    ASSERT_EQ(actions.size(), 1U);
    if (actions[0].kind == Kind::lost) break;
    write = actions[0];
    EXPECT_LT(now().instant, end);
    longest = std::max(longest, now().instant - before);
    delays.insert(now().instant - before);
  }
  EXPECT_LE(longest, terms_.renew_every / 2);
  EXPECT_GT(delays.size(), 5U);
  EXPECT_LT(delays.size(), 200U) << "a throttled store is not hammered";
}

TEST_F(KeeperTest, s10_renewals_that_failed_after_the_same_time_are_not_tried_again_after_the_same_time) {
  hold();
  std::set<Duration> delays;
  for (int i = 0; i < 5; ++i) {
    answer(renewal(), Outcome::throttled);
    const Instant failed = now().instant;
    const Action again = renewal();
    delays.insert(now().instant - failed);
    answer(again, carry_out(again));
    (void)only(Kind::extend);
  }
  EXPECT_EQ(delays.size(), 5U);
  EXPECT_LE(*delays.rbegin(), 200ms) << "a hundredth of the lease for the first";
}

// ---- Ends ----

TEST_F(KeeperTest, stopping_a_connection_is_learned_from_the_row_that_a_renewal_returns) {
  const Slot slot = hold();
  table_.row("CONN#a").attributes["desired_state"] = Value(state::stopped);
  const Action write = renewal();
  answer(write, carry_out(write));
  const auto actions = poll();
  ASSERT_EQ(actions.size(), 2U);
  EXPECT_EQ(actions[0].kind, Kind::extend);
  EXPECT_EQ(actions[1].kind, Kind::stop);
  EXPECT_EQ(actions[1].reason, LossReason::stopped);
  keeper_.stopped(slot, 12, now());
  const Action release = only(Kind::write);
  EXPECT_EQ(release.write.kind, LeaseWrite::Kind::release);
  answer(release, carry_out(release));
  EXPECT_EQ(only(Kind::gone).ending, Ending::released);
  const Row& row = *table_.find("CONN#a");
  EXPECT_EQ(row.find(attribute::owner), nullptr);
  EXPECT_EQ(row.number(attribute::expires_at), 0);
  EXPECT_EQ(row.number(attribute::epoch), 1) << "the epoch stays for good (S3)";
  EXPECT_EQ(row.number(attribute::last_seq), 12);
  EXPECT_EQ(keeper_.counters().ended_by(LossReason::stopped), 1U);
  EXPECT_EQ(keeper_.counters().releases, 1U);
}

TEST_F(KeeperTest, draining_claims_nothing_more_and_renews_until_the_release) {
  const Slot slot = hold();
  table_.add("CONN#b");
  keeper_.drain(now());
  EXPECT_EQ(only(Kind::stop).reason, LossReason::drained);
  EXPECT_FALSE(claim("CONN#b"));
  EXPECT_EQ(keeper_.room(), 0U);
  renew();  // S11: the resource is still flushing
  renew();
  keeper_.stopped(slot, 3, now());
  const Action release = only(Kind::write);
  answer(release, carry_out(release));
  EXPECT_EQ(only(Kind::gone).ending, Ending::released);
  EXPECT_FALSE(keeper_.next());
}

TEST_F(KeeperTest, a_claim_under_way_when_the_drain_begins_is_given_back_without_a_start) {
  table_.add("CONN#a");
  ASSERT_TRUE(claim());
  const Action write = only(Kind::write);
  keeper_.drain(now());
  expect_nothing();
  answer(write, carry_out(write));
  const Action release = only(Kind::write);
  EXPECT_EQ(release.write.kind, LeaseWrite::Kind::release);
  answer(release, carry_out(release));
  EXPECT_EQ(only(Kind::gone).ending, Ending::released);
  EXPECT_EQ(table_.find("CONN#a")->find(attribute::owner), nullptr);
}

TEST_F(KeeperTest, a_claim_of_unknown_fate_is_given_back_when_the_drain_begins) {
  table_.add("CONN#a");
  ASSERT_TRUE(claim());
  const Action write = only(Kind::write);
  (void)carry_out(write);  // applied, but nobody hears of it
  keeper_.drain(now());
  answer(write, Outcome::unknown);
  const Action release = only(Kind::write);
  EXPECT_EQ(carry_out(release).outcome, Outcome::applied);
}

TEST_F(KeeperTest, s04_a_claim_of_unknown_fate_is_not_given_back_by_who_may_claim_again) {
  table_.add("CONN#a");
  ASSERT_TRUE(claim());
  const Action lost = only(Kind::write);  // it never arrives
  answer(lost, Outcome::unknown);
  keeper_.stop(lost.slot, LossReason::stopped, now());
  EXPECT_EQ(only(Kind::gone).ending, Ending::claim_failed) << "a release under epoch 1 could be late";
  const Slot slot = hold();
  EXPECT_EQ(keeper_.epoch(slot), Epoch{1});
}

TEST_F(KeeperTest, a_release_is_tried_until_the_expiry_makes_it_moot) {
  const Slot slot = hold();
  const Instant sent = now().instant;
  keeper_.stopped(slot, 0, now());
  Ending ending = Ending::lost;
  int tries = 0;
  while (keeper_.used() > 0) {
    for (const Action& action : poll()) {
      if (action.kind == Kind::gone) ending = action.ending;
      if (action.kind == Kind::write) {
        ++tries;
        answer(action, Outcome::throttled);
      }
    }
    if (const auto next = keeper_.next()) advance_to(std::max(*next, now().instant));
  }
  EXPECT_EQ(ending, Ending::released);
  EXPECT_EQ(now().instant, sent + terms_.lease + terms_.skew);
  EXPECT_GT(tries, 3);
}

TEST_F(KeeperTest, a_store_that_never_answers_does_not_hold_a_slot_for_ever) {
  const Slot slot = hold();
  (void)renewal();  // never answered
  bool lost = false;
  for (int steps = 0; !lost && steps < 1000; ++steps) {
    advance_to(*keeper_.next());
    const auto actions = poll();
    lost = !actions.empty() && actions[0].kind == Kind::lost;
  }
  ASSERT_TRUE(lost);
  keeper_.stopped(slot, 0, now());
  for (int steps = 0; keeper_.used() > 0 && steps < 1000; ++steps) {
    (void)poll();
    if (const auto next = keeper_.next()) advance_to(std::max(*next, now().instant));
  }
  EXPECT_EQ(keeper_.used(), 0U);
  EXPECT_EQ(keeper_.in_flight(), 0U);
}

TEST_F(KeeperTest, what_an_earlier_try_had_stored_is_known_and_the_rest_goes_with_the_next_renewal) {
  const Slot slot = hold();
  keeper_.progress(slot, 5);
  const Action first = renewal();
  EXPECT_EQ(first.write.last_seq, 5);
  (void)carry_out(first);
  answer(first, Outcome::unknown);
  keeper_.progress(slot, 9);
  // A number above all of ours: the second try meets the first one's row.
  table_.row("CONN#a").attributes["lease_renewal"] = Value(1000);
  const Action second = renewal();
  EXPECT_EQ(second.write.last_seq, 9);
  const auto answered = carry_out(second);
  ASSERT_EQ(answered.outcome, Outcome::conflict);
  answer(second, answered);
  EXPECT_EQ(keeper_.counters().settled, 1U);
  (void)only(Kind::extend);
  EXPECT_EQ(renewal().write.last_seq, 9) << "the row says 5";
}

TEST_F(KeeperTest, s09_a_last_seq_that_others_wrote_as_a_float_or_a_text_is_the_number_that_it_says) {
  for (const Value& value : {Value(100.0), Value("100")}) {
    const std::string key = "CONN#" + std::to_string(value.data().index());
    table_.add(key).attributes["last_seq"] = value;
    ASSERT_TRUE(claim(key));
    const Action write = only(Kind::write);
    answer(write, carry_out(write));
    EXPECT_EQ(only(Kind::start).last_seq, 100);
  }
}

TEST_F(KeeperTest, s09_a_last_seq_that_cannot_be_read_is_never_written_over_until_somebody_mends_it) {
  table_.add("CONN#a").attributes["last_seq"] = Value("seven");
  const Slot slot = hold();
  keeper_.progress(slot, 43);
  renew();
  EXPECT_EQ(table_.find("CONN#a")->text(attribute::last_seq), "seven");
  table_.row("CONN#a").attributes["last_seq"] = Value(7);
  renew();
  renew();
  EXPECT_EQ(table_.find("CONN#a")->number(attribute::last_seq), 43);
}

// ---- Faults, by number ----

class KeeperFaults : public KeeperTest {};

TEST_F(KeeperFaults, f01_a_process_that_wakes_up_after_its_lease_hears_of_every_loss_before_anything_else) {
  hold("CONN#a");
  hold("CONN#b");
  hold("CONN#c");
  table_.add("CONN#d");
  ASSERT_TRUE(claim("CONN#d"));
  advance(1h);
  const auto actions = poll();
  ASSERT_GE(actions.size(), 3U);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(actions[static_cast<std::size_t>(i)].kind, Kind::lost);
    EXPECT_EQ(actions[static_cast<std::size_t>(i)].reason, LossReason::belief_expired);
  }
  for (const Action& action : actions) EXPECT_NE(action.kind, Kind::write) << "nothing of this is useful any more";
  EXPECT_EQ(keeper_.held(), 0U);
}

TEST_F(KeeperFaults, f02_a_claim_that_timed_out_although_it_was_applied_is_our_own_success) {
  table_.add("CONN#a");
  ASSERT_TRUE(claim());
  const Instant first_sent = now().instant;
  const Action first = only(Kind::write);
  (void)carry_out(first);
  advance(2s);
  answer(first, Outcome::unknown);
  advance_to(*keeper_.next());
  const Action second = only(Kind::write);
  EXPECT_EQ(second.write.attempt, first.write.attempt);
  const auto answered = carry_out(second);
  EXPECT_EQ(answered.outcome, Outcome::conflict);
  answer(second, answered);
  const Action start = only(Kind::start);
  EXPECT_EQ(start.until, first_sent + 18s) << "nothing tells which try it was, so the first counts (S4)";
  EXPECT_EQ(keeper_.counters().settled, 1U);
  EXPECT_EQ(keeper_.counters().claim_conflicts, 0U);
}

TEST_F(KeeperFaults, f02_a_renewal_that_timed_out_although_it_was_applied_is_simply_renewed_again) {
  hold();
  const Action first = renewal();
  (void)carry_out(first);
  answer(first, Outcome::unknown);
  const Action second = renewal();
  const Instant sent = now().instant;
  answer(second, carry_out(second));
  EXPECT_EQ(only(Kind::extend).until, sent + 18s);
}

TEST_F(KeeperFaults, f02_a_renewal_that_counts_from_its_first_try_is_followed_by_the_next_before_the_belief_ends) {
  const Slot slot = hold();
  keeper_.renew_soon(slot, now());
  Action write = renewal();
  const Instant first_sent = now().instant;
  while (now().instant < keeper_.until(slot) - 500ms) {  // nothing arrives
    answer(write, Outcome::unknown);
    write = renewal();
  }
  (void)carry_out(write);  // its answer is lost, but that of a duplicate is not
  answer(write, carry_out(write));
  std::vector<Action> actions = poll();
  ASSERT_FALSE(actions.empty());
  EXPECT_EQ(actions.front().kind, Kind::extend);
  EXPECT_EQ(actions.front().until, first_sent + 18s);
  if (actions.size() == 1) {
    advance_to(*keeper_.next());
    actions = poll();
  }
  EXPECT_EQ(actions.back().kind, Kind::write);
  EXPECT_LT(now().instant, first_sent + 18s);
}

TEST_F(KeeperFaults, f02_a_release_that_timed_out_although_it_was_applied_is_done) {
  const Slot slot = hold();
  keeper_.stopped(slot, 0, now());
  const Action first = only(Kind::write);
  (void)carry_out(first);
  answer(first, Outcome::unknown);
  advance_to(*keeper_.next());
  const Action second = only(Kind::write);
  answer(second, carry_out(second));
  EXPECT_EQ(only(Kind::gone).ending, Ending::released);
  EXPECT_EQ(keeper_.counters().settled, 1U);
}

TEST_F(KeeperFaults, f03_throttling_time_outs_and_refusals_do_not_cost_the_lease_while_it_lasts) {
  hold();
  for (const Outcome outcome : {Outcome::throttled, Outcome::unknown, Outcome::throttled, Outcome::unknown}) {
    answer(renewal(), outcome);
    EXPECT_EQ(keeper_.held(), 1U);
  }
  renew();
  EXPECT_EQ(keeper_.held(), 1U);
}

TEST_F(KeeperFaults, f04_release_is_conditional_so_a_successor_keeps_its_lease) {
  const Slot slot = hold();
  keeper_.stopped(slot, 99, now());
  const Action release = only(Kind::write);
  seize("CONN#a", "successor", 1);
  const Row before = *table_.find("CONN#a");
  answer(release, carry_out(release));
  EXPECT_EQ(*table_.find("CONN#a"), before);
  EXPECT_EQ(only(Kind::gone).ending, Ending::released);
}

TEST_F(KeeperFaults, f05_a_release_waits_for_the_renewal_in_flight_and_a_late_renewal_revives_nothing) {
  const Slot slot = hold();
  const Action late = renewal();
  keeper_.stopped(slot, 0, now());
  expect_nothing();  // in order: one write at a time
  answer(late, Outcome::unknown);
  const Action release = only(Kind::write);
  EXPECT_EQ(release.write.kind, LeaseWrite::Kind::release);
  answer(release, carry_out(release));
  EXPECT_EQ(carry_out(late).outcome, Outcome::conflict);
  EXPECT_EQ(table_.find("CONN#a")->number(attribute::expires_at), 0);
}

TEST_F(KeeperFaults, f06_each_way_to_lose_a_lease_is_told_once_with_its_reason) {
  const Slot taken = hold("CONN#a");
  const Slot missing = hold("CONN#b");
  const Slot expired = hold("CONN#c");
  seize("CONN#a", "other", 1);
  table_.erase("CONN#b");
  std::map<Slot, std::vector<LossReason>> told;
  while (told.size() < 3) {
    advance_to(*keeper_.next());
    for (const Action& action : poll()) {
      if (action.kind == Kind::lost) told[action.slot].push_back(action.reason);
      if (action.kind != Kind::write) continue;
      if (action.slot == expired) {
        answer(action, Outcome::throttled);
      } else {
        answer(action, carry_out(action));
      }
    }
  }
  advance(1h);
  expect_nothing();
  EXPECT_EQ(told[taken], std::vector{LossReason::taken_over});
  EXPECT_EQ(told[missing], std::vector{LossReason::row_missing});
  EXPECT_EQ(told[expired], std::vector{LossReason::belief_expired});
  EXPECT_EQ(keeper_.counters().ended_by(LossReason::taken_over), 1U);
  EXPECT_EQ(keeper_.used(), 3U) << "a slot is kept until its resource has ended";
  for (const Slot slot : {taken, missing, expired}) {
    keeper_.stopped(slot, 0, now());
    EXPECT_EQ(only(Kind::gone).ending, Ending::lost);
  }
}

TEST_F(KeeperFaults, f06_a_plain_worker_that_took_over_without_an_epoch_is_noticed) {
  hold();
  seize("CONN#a", "plain", 0);
  const Action write = renewal();
  answer(write, carry_out(write));
  EXPECT_EQ(only(Kind::lost).reason, LossReason::taken_over);
}

TEST_F(KeeperFaults, f07_the_belief_ends_on_time_whatever_is_in_flight_and_while_stopping) {
  const Slot slot = hold();
  const Instant end = keeper_.until(slot);
  keeper_.stop(slot, LossReason::sink_failed, now());
  EXPECT_EQ(only(Kind::stop).reason, LossReason::sink_failed);
  (void)renewal();  // in flight, unanswered, like those that follow
  Action action;
  while (action.kind != Kind::lost) {
    advance_to(*keeper_.next());
    for (const Action& each : poll()) action = each;
  }
  EXPECT_EQ(now().instant, end);
  EXPECT_EQ(action.reason, LossReason::belief_expired);
}

TEST_F(KeeperFaults, f07_a_renewal_confirmed_after_the_belief_ended_brings_nothing_back) {
  const Slot slot = hold();
  advance(17s);
  const Action write = only(Kind::write);
  const auto answered = carry_out(write);
  advance(2s);
  answer(write, answered);
  EXPECT_EQ(only(Kind::lost).reason, LossReason::belief_expired);
  keeper_.stopped(slot, 0, now());
  EXPECT_EQ(only(Kind::gone).ending, Ending::lost);
}

TEST_F(KeeperFaults, f08_a_claim_confirmed_after_its_belief_ended_starts_nothing_and_is_given_back) {
  table_.add("CONN#a");
  ASSERT_TRUE(claim());
  const Action write = only(Kind::write);
  const auto answered = carry_out(write);
  advance(18s);
  answer(write, answered);
  const Action release = only(Kind::write);
  EXPECT_EQ(release.write.kind, LeaseWrite::Kind::release);
  EXPECT_EQ(keeper_.counters().claims_late, 1U);
  EXPECT_EQ(keeper_.counters().claims, 0U);
}

TEST_F(KeeperFaults, f08_a_claim_confirmed_in_time_but_looked_at_too_late_starts_nothing) {
  table_.add("CONN#a");
  ASSERT_TRUE(claim());
  const Action write = only(Kind::write);
  answer(write, carry_out(write));
  advance(18s);  // the process was paused between the reply and the start
  EXPECT_EQ(only(Kind::write).write.kind, LeaseWrite::Kind::release);
}

TEST_F(KeeperFaults, f12_loss_is_normal_and_the_same_row_can_be_won_again) {
  const Slot slot = hold();
  seize("CONN#a", "other", 1);
  const Action write = renewal();
  answer(write, carry_out(write));
  (void)only(Kind::lost);
  EXPECT_FALSE(claim()) << "not while its resource is still ending";
  keeper_.stopped(slot, 0, now());
  (void)only(Kind::gone);
  table_.row("CONN#a").attributes["lease_expires_at_ms"] = Value(std::int64_t{0});
  hold();
  EXPECT_EQ(keeper_.epoch(*keeper_.find("CONN#a")), Epoch{3});
}

TEST(KeeperAtScale, f16_renewals_of_leases_that_were_won_together_spread_over_the_interval) {
  Random random(1);
  const LeaseTerms terms = *make_terms({.lease = 20s});
  Keeper keeper(WorkerId("me"), terms, {2000, 2000}, random);
  test::LeaseTable table;
  Now now{Instant(1000s), WallTime(1'700'000'000'000ms)};
  for (int i = 0; i < 2000; ++i) {
    ASSERT_TRUE(keeper.claim(*candidate_from(table.add("CONN#" + std::to_string(i))), now));
  }
  std::vector<int> per_tenth(10);
  std::map<Slot, Instant> first;
  const Instant start = now.instant;
  for (; now.instant < start + 10s; now.instant += 10ms, now.wall += 10ms) {
    while (const auto action = keeper.poll(now)) {
      if (action->kind != Kind::write) continue;
      if (action->write.kind == LeaseWrite::Kind::renew) {
        const auto [known, fresh] = first.emplace(action->slot, now.instant);
        if (fresh) {
          ++per_tenth.at(static_cast<std::size_t>(std::min<std::int64_t>((now.instant - start) / 500ms, 9)));
        } else {
          EXPECT_EQ(now.instant - known->second, 5s) << "each keeps its phase";
        }
      }
      const auto answer = table.carry_out(render(action->write, WorkerId("me")));
      keeper.on_write(action->slot, action->write_id, answer.outcome, answer.get(), now);
    }
  }
  EXPECT_EQ(first.size(), 2000U);
  for (const int renewals : per_tenth) {
    EXPECT_GT(renewals, 130);
    EXPECT_LT(renewals, 270);
  }
}

/// A worker with many leases on virtual time in steps of 10 ms: how many renewals each step of one interval sends.
std::map<Instant, int> renewals_in_one_interval(const LeaseTerms& terms, int leases, std::uint64_t seed) {
  Random random(seed);
  Keeper keeper(WorkerId("me"), terms, {static_cast<std::size_t>(leases), static_cast<std::size_t>(leases)}, random);
  test::LeaseTable table;
  Now now{Instant(1000s), WallTime(1'700'000'000'000ms)};
  for (int i = 0; i < leases; ++i) {
    EXPECT_TRUE(keeper.claim(*candidate_from(table.add("CONN#" + std::to_string(i))), now));
  }
  std::map<Instant, int> sent;
  const Instant settled = now.instant + 2 * terms.renew_every;
  for (; now.instant < settled + terms.renew_every; now.instant += 10ms, now.wall += 10ms) {
    while (const auto action = keeper.poll(now)) {
      if (action->kind != Kind::write) continue;
      if (now.instant >= settled) ++sent[now.instant];
      const auto answer = table.carry_out(render(action->write, WorkerId("me")));
      keeper.on_write(action->slot, action->write_id, answer.outcome, answer.get(), now);
    }
  }
  return sent;
}

TEST(KeeperAtScale, f16_renewals_come_in_many_small_groups_that_can_share_a_commit_each) {
  struct Case {
    LeaseTerms terms;
    std::size_t groups;
  };
  const Case cases[] = {{*make_terms({.lease = 20s}), 50}, {*make_terms({.lease = 4s}), 25}};
  for (const auto& [terms, groups] : cases) {
    const std::map<Instant, int> sent = renewals_in_one_interval(terms, 2000, 1);
    const int mean = 2000 / static_cast<int>(groups);
    int total = 0;
    for (const auto& [at, count] : sent) {
      total += count;
      EXPECT_LT(count, 3 * mean) << "no group is a crowd";
    }
    EXPECT_EQ(total, 2000);
    EXPECT_LE(sent.size(), groups + 1) << "few instants, so that a commit is shared";
    EXPECT_GT(sent.size(), groups * 9 / 10) << "but all over the interval";
  }
}

TEST(KeeperAtScale, f16_two_workers_do_not_renew_at_the_same_instants) {
  const LeaseTerms terms = *make_terms({.lease = 20s});
  const auto ours = renewals_in_one_interval(terms, 500, 1);
  const auto theirs = renewals_in_one_interval(terms, 500, 2);
  const auto shared = std::ranges::count_if(ours, [&](const auto& group) { return theirs.contains(group.first); });
  EXPECT_EQ(shared, 0);
}

TEST_F(KeeperFaults, f17_writes_are_pipelined_up_to_a_bound_and_the_earliest_belief_goes_first) {
  hold("CONN#a");
  advance(100ms);
  hold("CONN#b");
  advance(100ms);
  hold("CONN#c");
  advance(100ms);
  hold("CONN#d");
  advance(10s);  // all four are due
  const auto writes = poll();
  ASSERT_EQ(writes.size(), 2U) << "the bound on writes in flight";
  EXPECT_EQ(writes[0].write.key, "CONN#a");
  EXPECT_EQ(writes[1].write.key, "CONN#b");
  EXPECT_GT(*keeper_.next(), now().instant) << "waiting for room is not waiting for time";
  answer(writes[1], carry_out(writes[1]));
  const auto more = poll();
  ASSERT_EQ(more.size(), 2U);
  EXPECT_EQ(more[0].kind, Kind::extend);
  EXPECT_EQ(more[1].write.key, "CONN#c");
}

}  // namespace
}  // namespace holdfast
