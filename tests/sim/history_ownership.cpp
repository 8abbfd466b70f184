#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "holdfast/random.hpp"
#include "sim/history/ownership.hpp"

namespace holdfast::sim {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::SizeIs;

Instant at(std::int64_t ms) {
  return Instant(milliseconds(ms));
}
Grant grant(std::string owner, std::int64_t epoch, std::int64_t from, std::int64_t until, std::string key = "a") {
  return {std::move(key), std::move(owner), {epoch}, at(from), at(until)};
}
Belief belief(std::string owner, std::int64_t from, std::int64_t until, std::string key = "a") {
  return {std::move(key), std::move(owner), {1}, at(from), at(until)};
}
Effect effect(std::int64_t epoch, std::int64_t from, std::int64_t until, std::string key = "a") {
  return {std::move(key), "w", {epoch}, at(from), at(until), "x"};
}

TEST(Epochs, rising_ones_with_one_owner_each_are_right) {
  EXPECT_TRUE(check_epochs({}).good());
  EXPECT_TRUE(check_epochs({grant("w1", 1, 1, 2), grant("w2", 2, 3, 4), grant("w1", 5, 5, 6)}).good());
}

TEST(Epochs, every_key_has_its_own) {
  EXPECT_TRUE(check_epochs({grant("w1", 7, 1, 2, "a"), grant("w2", 1, 3, 4, "b"), grant("w2", 7, 5, 6, "c")}).good());
}

TEST(Epochs, two_owners_in_one_epoch_are_refused) {
  const Verdict verdict = check_epochs({grant("w1", 1, 1000, 2000), grant("w2", 1, 3000, 4000)});
  ASSERT_TRUE(verdict.bad());
  EXPECT_THAT(verdict.words, HasSubstr("an epoch has two owners"));
  EXPECT_THAT(verdict.words, HasSubstr("w1 was given epoch 1 of a, from 1.000 s to 2.000 s"));
  EXPECT_THAT(verdict.words, HasSubstr("w2 was given epoch 1 of a, from 3.000 s to 4.000 s"));
  EXPECT_TRUE(check_epochs({grant("w1", 1, 1, 9), grant("w2", 1, 1, 9)}).bad());
}

TEST(Epochs, an_epoch_given_to_its_owner_again_is_refused) {
  const Verdict verdict = check_epochs({grant("w1", 1, 1, 2), grant("w1", 1, 3, 4)});
  ASSERT_TRUE(verdict.bad());
  EXPECT_THAT(verdict.words, HasSubstr("an epoch was given twice"));
}

TEST(Epochs, one_that_goes_down_is_refused) {
  const Verdict verdict = check_epochs({grant("w1", 5, 1, 2), grant("w2", 6, 3, 4), grant("w3", 4, 5, 6)});
  ASSERT_TRUE(verdict.bad());
  EXPECT_THAT(verdict.words, HasSubstr("epochs went down"));
  EXPECT_THAT(verdict.words, HasSubstr("w2 was given epoch 6"));
  EXPECT_THAT(verdict.words, HasSubstr("w3 was given epoch 4"));
}

TEST(Epochs, of_grants_at_the_same_time_the_order_is_not_known) {
  EXPECT_TRUE(check_epochs({grant("w1", 6, 1, 5), grant("w2", 5, 3, 9)}).good());
  EXPECT_TRUE(check_epochs({grant("w1", 6, 1, 5), grant("w2", 5, 6, 9)}).bad());
}

TEST(OneBeliever, one_after_the_other_is_right) {
  EXPECT_TRUE(check_one_believer({}).good());
  EXPECT_TRUE(check_one_believer({belief("w2", 5, 9), belief("w1", 1, 5)}).good());
  EXPECT_TRUE(check_one_believer({belief("w1", 1, 5, "a"), belief("w2", 1, 5, "b")}).good());
}

TEST(OneBeliever, a_process_may_extend_its_own_and_a_belief_of_no_length_is_none) {
  EXPECT_TRUE(check_one_believer({belief("w1", 1, 5), belief("w1", 3, 9), belief("w2", 4, 4)}).good());
}

TEST(OneBeliever, two_at_once_are_refused) {
  const Verdict verdict = check_one_believer({belief("w1", 1, 6), belief("w2", 5, 9)});
  ASSERT_TRUE(verdict.bad());
  EXPECT_THAT(verdict.words, HasSubstr("two believed at once"));
  EXPECT_THAT(verdict.words, HasSubstr("w1 believed in epoch 1 of a, from 0.001 s to 0.006 s"));
}

TEST(OneBeliever, two_at_once_are_refused_whatever_lies_between_them) {
  EXPECT_TRUE(
      check_one_believer({belief("w1", 1, 100), belief("w1", 2, 3), belief("w1", 4, 5), belief("w2", 50, 60)}).bad());
  // The longest is w2's own; w1's is the one that it meets.
  EXPECT_TRUE(
      check_one_believer({belief("w2", 1, 4), belief("w1", 4, 20), belief("w1", 5, 6), belief("w2", 19, 30)}).bad());
}

TEST(OneBeliever, who_believes_when_a_later_epoch_has_been_given_is_refused) {
  // Nobody else says that he believes: the claim alone tells that two could.
  const Verdict verdict = check_one_believer({belief("w1", 1, 9)}, {grant("w2", 2, 5, 8)});
  ASSERT_TRUE(verdict.bad());
  EXPECT_THAT(verdict.words, HasSubstr("one believed although a later epoch had been given"));
  EXPECT_THAT(verdict.words, HasSubstr("w2 under epoch 2 of a, from 0.005 s to 0.008 s: a claim"));
  EXPECT_TRUE(check_one_believer({belief("w1", 1, 9)}, {grant("w2", 2, 5, 9)}).good());
  EXPECT_TRUE(check_one_believer({belief("w1", 1, 9)}, {grant("w2", 2, 5, 8, "b"), grant("w1", 1, 0, 1)}).good());
}

TEST(OneBeliever, agrees_with_comparing_each_with_each) {
  int wrong = 0;
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    Random random(seed);
    std::vector<Belief> beliefs;
    for (std::uint64_t i = 2 + random.below(5); i > 0; --i) {
      const auto from = static_cast<std::int64_t>(random.below(30));
      beliefs.push_back(belief(random.below(2) == 0 ? "w1" : "w2", from,
                               from + static_cast<std::int64_t>(random.below(8)), random.below(3) == 0 ? "b" : "a"));
    }
    bool overlap = false;
    for (const Belief& one : beliefs) {
      for (const Belief& other : beliefs) {
        overlap = overlap || (one.key == other.key && one.owner != other.owner &&
                              std::max(one.from, other.from) < std::min(one.until, other.until));
      }
    }
    wrong += overlap ? 1 : 0;
    ASSERT_EQ(overlap, check_one_believer(beliefs).bad()) << "seed " << seed;
  }
  EXPECT_GT(wrong, 300);
}

TEST(Fence, epochs_that_never_go_down_are_right) {
  EXPECT_TRUE(check_fence({}).good());
  EXPECT_TRUE(check_fence({effect(1, 1, 2), effect(1, 3, 4), effect(2, 5, 6), effect(2, 7, 7)}).good());
  EXPECT_TRUE(check_fence({effect(2, 1, 2, "a"), effect(1, 3, 4, "b")}).good());
}

TEST(Fence, an_effect_of_a_lower_epoch_is_refused) {
  const Verdict verdict = check_fence({effect(1, 1, 2), effect(3, 3, 4), effect(3, 5, 6), effect(2, 7, 8)});
  ASSERT_TRUE(verdict.bad());
  EXPECT_THAT(verdict.words, HasSubstr("an effect was accepted after one of a higher epoch"));
  EXPECT_THAT(verdict.words, HasSubstr("w under epoch 3 of a, from 0.003 s to 0.004 s: x"));
  EXPECT_THAT(verdict.words, HasSubstr("w under epoch 2 of a, from 0.007 s to 0.008 s: x"));
}

TEST(Fence, effects_at_the_same_time_are_not_judged) {
  EXPECT_TRUE(check_fence({effect(2, 1, 5), effect(1, 4, 8)}).good());
  EXPECT_TRUE(check_fence({effect(2, 1, 5), effect(1, 5, 8)}).good());
  EXPECT_TRUE(check_fence({effect(2, 1, 5), effect(1, 6, 8)}).bad());
}

TEST(Fence, agrees_with_comparing_each_with_each) {
  int wrong = 0;
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    Random random(seed);
    std::vector<Effect> effects;
    for (std::uint64_t i = 2 + random.below(6); i > 0; --i) {
      const auto from = static_cast<std::int64_t>(random.below(20));
      effects.push_back(effect(static_cast<std::int64_t>(from / 5 + static_cast<std::int64_t>(random.below(3))), from,
                               from + static_cast<std::int64_t>(random.below(5)), random.below(3) == 0 ? "b" : "a"));
    }
    bool falls = false;
    for (const Effect& one : effects) {
      for (const Effect& later : effects) {
        falls = falls || (one.key == later.key && one.until < later.from && one.epoch > later.epoch);
      }
    }
    wrong += falls ? 1 : 0;
    ASSERT_EQ(falls, check_fence(effects).bad()) << "seed " << seed;
  }
  EXPECT_GT(wrong, 300);
}

TEST(Owners, one_of_each_epoch_is_right) {
  EXPECT_TRUE(check_owners({}, {}, {}).good());
  EXPECT_TRUE(check_owners({grant("w", 1, 1, 2), grant("w1", 2, 3, 4)}, {{"a", "w1", {2}, at(4), at(5)}},
                           {effect(1, 2, 2), effect(2, 2, 2, "b")})
                  .good());
}

TEST(Owners, a_belief_or_an_effect_under_the_epoch_of_another_is_refused) {
  // Apart in time, and under no older epoch: neither the fence nor the one believer is touched.
  const Verdict verdict = check_owners({grant("w1", 3, 1, 2)}, {}, {effect(3, 7, 8)});
  ASSERT_TRUE(verdict.bad());
  EXPECT_THAT(verdict.words, HasSubstr("an epoch has two owners"));
  EXPECT_THAT(verdict.words, HasSubstr("w1 was given epoch 3 of a"));
  EXPECT_THAT(verdict.words, HasSubstr("w under epoch 3 of a, from 0.007 s to 0.008 s: x"));
  EXPECT_TRUE(check_owners({grant("w1", 1, 1, 2)}, {belief("w2", 5, 9)}, {}).bad());
  EXPECT_TRUE(check_owners({}, {belief("w1", 1, 2), belief("w2", 5, 9)}, {}).bad());
}

TEST(Writers, a_checkpoint_in_the_row_of_another_is_refused) {
  const Update checkpoint{"a", {Change::set("last_seq", 9)}, Condition::always()};
  const Row of_w2{"a", {{"lease_owner", "w2"}, {"lease_epoch", 4}, {"last_seq", 9}}};
  const Row of_nobody{"a", {{"lease_epoch", 4}, {"last_seq", 9}}};
  const auto judged = [&](std::string client, const Row& row, Outcome outcome = Outcome::applied) {
    return check_writers({{std::move(client), "a", at(1), at(2), checkpoint, outcome, row}});
  };
  EXPECT_THAT(judged("w1", of_w2).words, HasSubstr("a checkpoint was written into another's lease"));
  EXPECT_TRUE(judged("w2", of_w2).good());
  EXPECT_TRUE(judged("w1", of_nobody).good());
  EXPECT_TRUE(judged("w1", of_w2, Outcome::conflict).good());
}

TEST(Ownership, grants_and_checkpoints_are_found_in_operations) {
  Update claim{"a", {Change::set("lease_owner", "w1"), Change::set("lease_epoch", 3)}, Condition::always()};
  Update checkpoint{"a", {Change::set("last_seq", 9)}, Condition::always()};
  const Row row{"a", {{"lease_owner", "w1"}, {"lease_epoch", 3}, {"last_seq", 9}}};
  const History history = {{"w1", "a", at(1), at(2), claim, Outcome::applied, row},
                           {"w2", "a", at(1), at(2), claim, Outcome::conflict, row},
                           {"w1", "a", at(3), at(4), checkpoint, Outcome::applied, row},
                           {"w1", "a", at(5), at(5), checkpoint, Outcome::unknown, std::nullopt},
                           {"w1", "a", at(6), at(7), std::nullopt, Outcome::applied, row}};
  const auto grants = grants_in(history);
  ASSERT_THAT(grants, SizeIs(1));
  EXPECT_EQ("w1", grants[0].owner);
  EXPECT_EQ(Epoch{3}, grants[0].epoch);
  const auto effects = effects_in(history, "last_seq");
  ASSERT_THAT(effects, SizeIs(1));
  EXPECT_EQ(at(3), effects[0].from);
  EXPECT_EQ("last_seq = 9", effects[0].what);
}

}  // namespace
}  // namespace holdfast::sim
