// long-file: one fixture and its table serve all that a planner promises
#include "core/planner.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <span>
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
    const Duration begun = elapsed_;
    while (!(wanted = planner_.look(now()))) {
      ASSERT_LT(elapsed_, begun + 1h) << "it looks no more";
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
  for (std::size_t i = 0; i < planner_.batch() / 2; ++i) {
    planner_.claim_failed(*candidate_from(orphan("CONN#" + std::to_string(i))), {Setback::conflict}, now());
  }
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

TEST_F(PlannerFaults, f10_a_full_worker_does_not_count_for_ever_what_others_have_taken_of_very_many) {
  const auto look_at = [&](std::span<const Row> rows) {
    while (!planner_.look(now())) advance_to(std::max(*planner_.next(), now().instant + 1ms));
    for (std::size_t at = 0; planner_.saw(rows.subspan(at, 256), at + 256 < rows.size(), now());) at += 256;
    EXPECT_TRUE(take(0).empty());
  };
  const auto rows = orphans(2'048);
  for (int i = 0; i < 10; ++i) look_at(rows);
  EXPECT_GT(planner_.unowned(now()), 0U);
  for (int i = 0; i < 10; ++i) look_at(std::span(rows).last(512));
  EXPECT_LE(planner_.unowned(now()), 512U);
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
  Duration longest_poked{};
  for (int i = 0; i < 300; ++i) {
    while (!planner_.look(now())) advance_to(*planner_.next());
    planner_.failed(now());
    longest = std::max(longest, *planner_.next() - now().instant);
    planner_.poke(now());
    const Duration wait = *planner_.next() - now().instant;
    EXPECT_GE(wait, planner_.floor());
    waits.insert(wait);
    longest_poked = std::max(longest_poked, wait);
  }
  EXPECT_LE(longest_poked, 5s) << "nobody is deaf for longer than R";
  EXPECT_GT(longest_poked, 4s);
  EXPECT_LE(longest, 20s);
  EXPECT_GT(longest, 15s);
  EXPECT_GT(waits.size(), 100U);
}

TEST_F(PlannerFaults, f15_a_claim_that_the_store_could_not_answer_holds_up_the_next_batch) {
  look(orphans(100));
  advance(1s);
  planner_.claim_failed(*planner_.take(now(), 1000), {Setback::store}, now());
  EXPECT_TRUE(take().empty());
  advance(5s);
  EXPECT_EQ(take().size(), planner_.batch());
}

/// A table whose index is served in pages, and a worker whose claims come to what the test says.
class PlannerAndRows : public PlannerTest {
 protected:
  Row& add(const std::string& key) { return rows_.emplace_back(orphan(key)); }

  void serve() {
    if (const auto wanted = planner_.look(now())) {
      position_ = wanted->goes_on ? std::min(position_, rows_.size()) : 0;  // rows that were taken are gone
      ++looks_;
      for (bool more = true; more;) {
        const std::size_t count = std::min(wanted->limit, rows_.size() - position_);
        const std::span page = std::span(rows_).subspan(position_, count);
        position_ += count;
        read_ += count;
        more = planner_.saw(page, position_ < rows_.size(), now());
      }
    }
    while (const auto candidate = planner_.take(now(), 1000)) {
      ++tries_[candidate->key];
      if (const auto setback = fate_(candidate->key)) {
        planner_.claim_failed(*candidate, {*setback, "why"}, now());
      } else {
        std::erase_if(rows_, [&](const Row& row) { return row.key == candidate->key; });
        won_.insert(candidate->key);
      }
    }
  }
  void run(Duration time) {
    const Duration end = elapsed_ + time;
    while (elapsed_ < end) {
      serve();
      const Instant next = planner_.next().value_or(Instant::max());
      elapsed_ = std::min(end, std::max(elapsed_ + 1ms, next - Instant(1000s)));
    }
  }
  std::size_t all_tries() const {
    std::size_t sum = 0;
    for (const auto& [key, count] : tries_) sum += count;
    return sum;
  }

  std::vector<Row> rows_;  // in the order of the index
  std::size_t position_ = 0;
  std::size_t looks_ = 0;
  std::size_t read_ = 0;
  std::map<std::string, std::size_t> tries_;
  std::set<std::string> won_;
  std::function<std::optional<Setback>(const std::string&)> fate_ = [](const std::string& key) {
    return key.starts_with("CONN#bad") ? std::optional(Setback::conflict) : std::nullopt;
  };
};

TEST_F(PlannerAndRows, s10_rows_that_are_damaged_keep_no_good_one_waiting_and_are_counted) {
  for (int i = 0; i < 20'000; ++i) add("CONN#bad" + std::to_string(i)).attributes["lease_epoch"] = Value("7");
  add("CONN#good");
  run(60s);
  EXPECT_TRUE(won_.contains("CONN#good"));
  EXPECT_EQ(all_tries(), 1U) << "nothing else was claimed";
  EXPECT_EQ(planner_.unclaimable().count, 20'000U);
  EXPECT_EQ(planner_.unclaimable().why, "lease_epoch is a text: 7");
  rows_.clear();
  run(30s);
  EXPECT_EQ(planner_.unclaimable().count, 0U);
}

TEST_F(PlannerAndRows, s10_rows_whose_claims_meet_conflicts_for_ever_keep_no_good_one_waiting) {
  for (int i = 0; i < 3'000; ++i) add("CONN#bad" + std::to_string(i));
  add("CONN#good");
  run(60s);
  EXPECT_TRUE(won_.contains("CONN#good"));
}

TEST_F(PlannerAndRows, s10_a_row_whose_claims_meet_conflicts_for_ever_is_tried_less_and_less_often_up_to_a_cap) {
  for (int i = 0; i < 1'100; ++i) add("CONN#bad" + std::to_string(i));
  run(10min);
  const std::size_t before = all_tries();
  const std::size_t looks = looks_;
  run(10min);
  // Once in half a minute to a minute, and then at the next look.
  EXPECT_LE(all_tries() - before, 1'100U * 20);
  EXPECT_GE(all_tries() - before, 1'100U * 8) << "but it is tried";
  EXPECT_LE(looks_ - looks, 200U) << "and it brings no looks of its own";
  EXPECT_EQ(planner_.unclaimable().count, 1'100U);
  EXPECT_EQ(planner_.unowned(now()), 1'100U) << "F10: what is tried in vain is nobody's";
}

TEST_F(PlannerAndRows, s10_a_row_that_changed_since_its_claim_failed_is_tried_at_the_next_look) {
  add("CONN#bad");
  run(5min);
  fate_ = [](const std::string&) { return std::nullopt; };
  rows_[0].attributes["lease_epoch"] = Value(3);
  const std::size_t looks = looks_;
  while (won_.empty() && looks_ < looks + 3) run(100ms);
  EXPECT_EQ(won_.size(), 1U);
}

TEST_F(PlannerAndRows, s10_a_row_whose_claim_the_store_rejects_holds_up_no_other_claim) {
  fate_ = [](const std::string& key) {
    return key.starts_with("CONN#bad") ? std::optional(Setback::refused) : std::nullopt;
  };
  for (int i = 0; i < 60; ++i) add("CONN#bad" + std::to_string(i));
  for (int i = 0; i < 60; ++i) add("CONN#good" + std::to_string(i));
  run(2s);
  EXPECT_EQ(won_.size(), 60U);
  EXPECT_EQ(planner_.unclaimable().count, 60U);
  EXPECT_EQ(planner_.unclaimable().why, "the store rejects it: why");
}

TEST_F(PlannerAndRows, s10_every_due_row_is_reached_within_a_number_of_looks_that_its_place_bounds) {
  for (int i = 0; i < 30'000; ++i) add("CONN#bad" + std::to_string(i)).attributes["lease_owner"] = Value(5);
  for (int i = 0; i < 10; ++i) add("CONN#good" + std::to_string(i));
  while (won_.size() < 10 && looks_ < 100) run(100ms);
  EXPECT_EQ(won_.size(), 10U);
  EXPECT_LE(looks_, 5U) << "8192 rows each";
}

TEST_F(PlannerAndRows, s10_more_failing_rows_than_can_be_remembered_slow_the_claims_down_instead_of_storming) {
  for (int i = 0; i < 20'000; ++i) add("CONN#bad" + std::to_string(i));
  run(2min);
  const std::size_t before = all_tries();
  run(1min);
  // Without a memory each would be tried anew at each look: twelve times in a minute.
  EXPECT_LE(all_tries() - before, 30'000U);
}

/// An index that is behind its table by three leases, and rows whose owners are alive: every look shows a row that
/// has changed since the last one, and is long expired.
class PlannerAndLateIndex : public PlannerTest {
 protected:
  static constexpr int rows = 20;
  static constexpr Duration behind = 60s;

  void run(Duration time) {
    const Duration end = elapsed_ + time;
    while (elapsed_ < end) {
      if (planner_.look(now())) {
        std::vector<Row> page;
        for (int i = 0; i < rows; ++i) page.push_back(owned(key(i), expiry(elapsed_ - behind)));
        EXPECT_FALSE(planner_.saw(page, false, now()));
      }
      while (const auto candidate = planner_.take(now(), 1000)) {
        ++tries_;
        if (candidate->expires_at == expiry(elapsed_) && wanted_) {
          ++won_;
        } else {
          Row row = owned(candidate->key, expiry(elapsed_));
          if (!wanted_) row.attributes["desired_state"] = Value("STOPPED");
          planner_.claim_failed(*candidate, {.setback = Setback::conflict, .row = &row}, now());
        }
      }
      elapsed_ = std::min(end, std::max(elapsed_ + 1ms, planner_.next()->time_since_epoch() - 1000s));
    }
  }
  static std::string key(int i) { return "CONN#" + std::to_string(i); }
  /// What the row says at a time: renewed every 5 s, for 20 s, until its owner dies.
  WallTime expiry(Duration at) const {
    const Duration renewed = std::chrono::floor<std::chrono::seconds>(std::min(at, owner_dies_)) / 5s * 5s;
    return noon + std::chrono::floor<milliseconds>(renewed) + 20s;
  }

  Duration owner_dies_ = Duration::max();
  bool wanted_ = true;
  std::size_t tries_ = 0;
  std::size_t won_ = 0;
};

TEST_F(PlannerAndLateIndex, s10_a_row_that_is_held_is_claimed_in_vain_once_per_lease_and_not_at_each_look) {
  advance(120s);
  run(600s);
  EXPECT_LE(tries_, rows * (600U / 15 + 1));
  EXPECT_EQ(planner_.unclaimable().count, 0U) << "their owners hold them: nothing is wrong with them";
  EXPECT_EQ(planner_.unowned(now()), 0U);
}

TEST_F(PlannerAndLateIndex, what_a_conflict_showed_is_enough_to_take_over_when_the_owner_is_gone) {
  advance(120s);
  owner_dies_ = 240s;
  run(owner_dies_ - elapsed_ + 20s);
  EXPECT_EQ(won_, 0U) << "it is held until its expiry and the skew";
  run(30s);
  EXPECT_GE(won_, static_cast<std::size_t>(rows)) << "the index shows the last expiry only after a minute";
}

TEST_F(PlannerAndLateIndex,
       s10_a_row_that_was_stopped_is_tried_less_and_less_often_although_older_states_of_it_pass_by) {
  advance(120s);
  wanted_ = false;
  run(600s);
  EXPECT_LE(tries_, rows * 30U);
  EXPECT_EQ(planner_.unowned(now()), 0U) << "nobody is to own it";
}

TEST_F(PlannerTest, s10_a_row_that_a_plain_worker_gave_back_is_not_held_up_by_the_expiry_that_a_conflict_showed) {
  Row row = orphan("CONN#a");
  ASSERT_TRUE(planner_.look(now()));
  EXPECT_FALSE(planner_.saw(std::vector<Row>{row}, false, now()));
  advance(1s);
  const auto first = planner_.take(now(), 1);
  ASSERT_TRUE(first);
  Row held = row;
  held.attributes["lease_owner"] = Value("plain-1");
  held.attributes["lease_expires_at_ms"] = Value(std::int64_t{(now().wall + 1h).time_since_epoch() / 1ms});
  planner_.claim_failed(*first, {.setback = Setback::conflict, .row = &held}, now());
  row.attributes["lease_owner"] = Value("plain-1");  // releases by writing 0, as plain workers do: its name stays
  bool taken = false;
  for (int i = 0; i < 300 && !taken; ++i) {
    advance(100ms);
    if (planner_.look(now())) {
      EXPECT_FALSE(planner_.saw(std::vector<Row>{row}, false, now()));
    }
    const auto candidate = planner_.take(now(), 1);
    taken = candidate && candidate->owner == "plain-1" && candidate->expires_at == WallTime{};
  }
  EXPECT_TRUE(taken);
}

TEST_F(PlannerTest, s10_a_row_that_a_look_showed_again_while_its_claim_was_under_way_is_not_claimed_again_at_once) {
  const std::vector<Row> rows{owned("CONN#a", noon - 10s)};
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(seed);
    Planner planner(terms_, {}, random);
    const auto look_and_see = [&] {
      while (!planner.look(now())) advance(10ms);
      EXPECT_FALSE(planner.saw(rows, false, now()));
    };
    look_and_see();
    advance(1s);
    const auto first = planner.take(now(), 1);
    ASSERT_TRUE(first);
    look_and_see();
    planner.claim_failed(*first, {.setback = Setback::conflict}, now());
    const Instant heard = now().instant;
    while (!planner.take(now(), 1)) advance(1ms);
    EXPECT_GE(now().instant, heard + 125ms) << "half of the least time between looks; seed " << seed;
  }
}

TEST_F(PlannerTest, s10_a_row_whose_lease_was_shortened_is_claimed_though_a_conflict_showed_it_far_ahead) {
  const auto owned_until = [&](Duration ahead) {
    Row row = orphan("CONN#a");
    row.attributes["lease_owner"] = Value("W1");
    row.attributes["lease_epoch"] = Value(5);
    row.attributes["lease_expires_at_ms"] =
        Value(std::int64_t{(noon + std::chrono::floor<milliseconds>(ahead)).time_since_epoch() / 1ms});
    return row;
  };
  const Row old = owned_until(-60s), far = owned_until(10h), shortened = owned_until(-30s);
  bool taken = false, met = false;
  for (int i = 0; i < 1300 && !taken; ++i) {
    if (planner_.look(now())) {
      EXPECT_FALSE(planner_.saw(std::vector<Row>{i < 100 ? old : shortened}, false, now()));
    }
    if (const auto candidate = planner_.take(now(), 1)) {
      taken = candidate->expires_at == candidate_from(shortened)->expires_at;
      met = true;
      if (!taken) planner_.claim_failed(*candidate, {.setback = Setback::conflict, .row = &far}, now());
    }
    advance(100ms);
  }
  EXPECT_TRUE(met);
  EXPECT_TRUE(taken) << "within the longest wait of a row, 12 R";
}

TEST_F(PlannerTest, s10_rows_that_a_late_index_shows_as_expired_and_that_are_held_keep_no_orphan_waiting) {
  constexpr int held = 2'000;
  bool taken = false;
  std::size_t at = 0;
  while (elapsed_ < 120s && !taken) {
    if (const auto wanted = planner_.look(now())) {
      std::vector<Row> rows;
      for (int i = 0; i < held; ++i) rows.push_back(owned("CONN#" + std::to_string(i), noon - 100s));
      if (elapsed_ > 60s) rows.push_back(owned("CONN#orphan", noon - 50s));
      if (!wanted->goes_on) at = 0;
      while (at < rows.size()) {
        const std::size_t count = std::min(wanted->limit, rows.size() - at);
        const std::span page = std::span(rows).subspan(at, count);
        at += count;
        if (!planner_.saw(page, at < rows.size(), now())) break;
      }
    }
    while (const auto candidate = planner_.take(now(), 1000)) {
      taken = taken || candidate->key == "CONN#orphan";
      const auto renewed =
          std::chrono::floor<milliseconds>(std::chrono::floor<std::chrono::seconds>(elapsed_) / 5s * 5s);
      Row row = owned(candidate->key, noon + renewed + 20s);
      planner_.claim_failed(*candidate, {.setback = Setback::conflict, .row = &row}, now());
    }
    advance(10ms);
  }
  EXPECT_TRUE(taken);
}

// A large worker, and more orphans than it remembers: nine of ten go to somebody else, who was quicker. It used to
// take three times as long.
TEST_F(PlannerFaults, f15_collisions_over_many_orphans_do_not_slow_it_down_once_it_can_remember_no_more) {
  const std::vector<Row> rows = orphans(60'000);
  Planner planner(terms_, {.max_leases = 10'000}, random_);
  std::set<std::string> gone;
  std::size_t position = 0;
  while (gone.size() < rows.size() && elapsed_ < 10min) {
    if (const auto wanted = planner.look(now())) {
      if (!wanted->goes_on) position = 0;
      for (bool more = true; more;) {
        std::vector<Row> page;
        for (; page.size() < wanted->limit && position < rows.size(); ++position) {
          if (!gone.contains(rows[position].key)) page.push_back(rows[position]);
        }
        more = planner.saw(page, position < rows.size(), now());
      }
    }
    while (const auto candidate = planner.take(now(), 1000)) {
      gone.insert(candidate->key);
      if (gone.size() % 10 == 0) continue;
      const Row row = owned(candidate->key, now().wall + 20s);
      planner.claim_failed(*candidate, {.setback = Setback::conflict, .row = &row}, now());
    }
    advance_to(std::max(*planner.next(), now().instant + 1ms));
  }
  const auto batches = static_cast<std::int64_t>(rows.size() / planner.batch());
  EXPECT_LT(elapsed_, batches * planner.pace() * 3 / 2);
}

// Some of a page find no place where leases that end later wait for their time. They used to wait for the next lap.
TEST_F(PlannerFaults, f09_leases_that_end_one_after_the_other_are_taken_as_they_end_however_many_they_are) {
  constexpr std::size_t count = 4'000;
  const auto row = [](std::size_t i) {
    return owned("CONN#" + std::to_string(i), noon + 2s + milliseconds(3) * static_cast<int>(i));
  };
  Planner planner(terms_, {.max_leases = count}, random_);
  std::map<std::string, std::size_t> left;
  for (std::size_t i = 0; i < count; ++i) left.emplace(row(i).key, i);
  std::size_t position = 0;
  Duration latest{};
  while (!left.empty() && elapsed_ < 10min) {
    if (const auto wanted = planner.look(now())) {
      if (!wanted->goes_on) position = 0;
      for (bool more = true; more;) {
        std::vector<Row> page;
        for (; page.size() < wanted->limit && position < count; ++position) {
          Row next = row(position);
          if (next.number(attribute::expires_at) >= wanted->before.time_since_epoch() / 1ms) break;
          if (left.contains(next.key)) page.push_back(std::move(next));
        }
        more = planner.saw(page, page.size() == wanted->limit, now());
      }
    }
    while (const auto candidate = planner.take(now(), count)) {
      latest = std::max<Duration>(latest, now().wall - claimable_from(*candidate, terms_.skew));
      left.erase(candidate->key);
    }
    advance_to(std::max(*planner.next(), now().instant + 1ms));
  }
  EXPECT_LT(latest, 1s);
}

TEST_F(PlannerTest, a_look_that_fails_after_its_first_page_is_continued_and_one_that_fails_at_once_begins_anew) {
  const auto next_look = [&] {
    for (;;) {
      if (const auto wanted = planner_.look(now())) return *wanted;
      advance(10ms);
      (void)take();
    }
  };
  EXPECT_FALSE(next_look().goes_on);
  EXPECT_TRUE(planner_.saw(orphans(3), true, now()));
  planner_.failed(now());
  EXPECT_TRUE(next_look().goes_on);
  planner_.failed(now());
  EXPECT_FALSE(next_look().goes_on);
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
