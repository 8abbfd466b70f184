#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/random.hpp"
#include "sim/history/delivery.hpp"

namespace holdfast::sim {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

Instant at(std::int64_t ms) {
  return Instant(milliseconds(ms));
}
std::string item(std::int64_t seq) {
  return "item " + std::to_string(seq);
}
std::vector<Produced> source(std::int64_t count) {
  std::vector<Produced> made;
  for (std::int64_t seq = 1; seq <= count; ++seq) made.push_back({"c", seq, item(seq), at(seq)});
  return made;
}
Delivered record(std::int64_t epoch, std::int64_t seq) {
  return {"c", {epoch}, seq, item(seq), at(1000 + seq), "w" + std::to_string(epoch)};
}
Gap gap(std::int64_t epoch, std::int64_t first, std::int64_t last) {
  return {"c", {epoch}, first, last, at(2000)};
}
std::string words(const Account& account) {
  EXPECT_TRUE(account.verdict.bad());
  return account.verdict.words;
}

TEST(Accounting, every_item_once_is_right) {
  const Account found = account(source(3), {record(1, 1), record(1, 2), record(2, 3)}, {});
  EXPECT_TRUE(found.verdict.good()) << found.verdict.words;
  EXPECT_EQ(3U, found.produced);
  EXPECT_EQ(3U, found.counted_once);
  EXPECT_EQ(0U, found.repeats);
}

TEST(Accounting, repeats_under_the_same_number_are_right_and_counted_once) {
  const Account found = account(source(2), {record(1, 1), record(1, 2), record(2, 1), record(2, 2)}, {});
  EXPECT_TRUE(found.verdict.good()) << found.verdict.words;
  EXPECT_EQ(2U, found.counted_once);
  EXPECT_EQ(2U, found.repeats);
}

TEST(Accounting, a_hole_is_refused_and_the_first_is_named) {
  EXPECT_THAT(words(account(source(5), {record(1, 1), record(1, 2), record(1, 5)}, {})),
              HasSubstr("2 items were never delivered, and no gap covers them; the first:\n  - c seq 3 'item 3', "
                        "produced at 0.003 s"));
}

TEST(Accounting, a_hole_at_the_end_is_a_hole) {
  EXPECT_TRUE(account(source(2), {record(1, 1)}, {}).verdict.bad());
  EXPECT_TRUE(account(source(1), {}, {}).verdict.bad());
}

TEST(Accounting, a_hole_that_a_gap_covers_is_counted) {
  const Account found = account(source(6), {record(1, 1), record(1, 6)}, {gap(1, 2, 3), gap(2, 3, 5)});
  EXPECT_TRUE(found.verdict.good()) << found.verdict.words;
  EXPECT_EQ(4U, found.covered);
}

TEST(Accounting, a_gap_that_ends_too_early_begins_too_late_or_is_of_another_connection_covers_nothing) {
  EXPECT_TRUE(account(source(4), {record(1, 1), record(1, 4)}, {gap(1, 2, 2)}).verdict.bad());
  EXPECT_TRUE(account(source(4), {record(1, 1), record(1, 4)}, {gap(1, 3, 3)}).verdict.bad());
  Gap other = gap(1, 2, 3);
  other.connection = "d";
  EXPECT_TRUE(account(source(4), {record(1, 1), record(1, 4)}, {other}).verdict.bad());
}

TEST(Accounting, a_wide_gap_covers_what_a_narrow_one_inside_it_does_not) {
  EXPECT_TRUE(account(source(6), {record(2, 1), record(2, 6)}, {gap(1, 2, 5), gap(1, 3, 3)}).verdict.good());
}

TEST(Accounting, a_gap_over_what_its_own_epoch_delivered_is_refused) {
  EXPECT_THAT(words(account(source(3), {record(1, 1), record(1, 2), record(1, 3)}, {gap(1, 2, 2)})),
              HasSubstr("a gap covers what its own epoch delivered"));
  EXPECT_TRUE(account(source(3), {record(1, 1), record(1, 2), record(1, 3)}, {gap(2, 2, 2)}).verdict.good());
  EXPECT_THAT(words(account(source(1), {record(1, 1)}, {gap(1, 3, 2)})), HasSubstr("ends before it begins"));
}

TEST(Accounting, a_gap_over_what_was_produced_only_later_is_refused) {
  Gap early = gap(1, 2, 3);
  early.at = at(2);
  EXPECT_THAT(words(account(source(3), {record(1, 1)}, {early})),
              HasSubstr("a gap covers what was produced only later"));
  early.at = at(3);
  EXPECT_TRUE(account(source(3), {record(1, 1)}, {early}).verdict.good());
}

TEST(Accounting, numbers_that_fall_or_come_again_under_one_epoch_are_refused) {
  EXPECT_THAT(words(account(source(3), {record(1, 1), record(1, 3), record(1, 2)}, {})),
              HasSubstr("numbers do not rise under one epoch"));
  EXPECT_THAT(words(account(source(1), {record(1, 1), record(1, 1)}, {})),
              HasSubstr("numbers do not rise under one epoch"));
}

TEST(Accounting, a_repeat_under_another_number_is_refused) {
  Delivered again = record(2, 2);
  again.item = item(1);
  EXPECT_THAT(words(account(source(2), {record(1, 1), again, record(2, 2)}, {})),
              HasSubstr("an item was delivered under another number"));
}

TEST(Accounting, another_item_under_a_number_that_was_used_is_refused) {
  Delivered wrong = record(2, 1);
  wrong.item = item(2);
  EXPECT_TRUE(account(source(2), {record(1, 1), record(1, 2), wrong}, {}).verdict.bad());
}

TEST(Accounting, a_repeat_under_a_lower_epoch_is_refused) {
  EXPECT_THAT(words(account(source(1), {record(2, 1), record(1, 1)}, {})), HasSubstr("repeated under a lower epoch"));
}

TEST(Accounting, an_item_that_nobody_produced_is_refused) {
  EXPECT_THAT(words(account(source(1), {record(1, 1), record(1, 2)}, {})), HasSubstr("no item that was produced"));
  Delivered elsewhere = record(1, 1);
  elsewhere.connection = "d";
  EXPECT_TRUE(account(source(1), {record(1, 1), elsewhere}, {}).verdict.bad());
}

TEST(Accounting, an_item_that_is_delivered_before_it_is_produced_is_refused) {
  Delivered early = record(1, 2);
  early.at = at(1);
  EXPECT_THAT(words(account(source(2), {record(1, 1), early}, {})), HasSubstr("before it was produced"));
}

TEST(Accounting, a_source_that_uses_a_number_twice_is_no_source_to_judge_by) {
  auto made = source(2);
  made[1].seq = 1;
  EXPECT_THAT(words(account(made, {}, {})), HasSubstr("the source gave one number twice"));
}

// ---- Order ----

Enqueued put(std::string name, std::int64_t from, std::int64_t until) {
  return {"g", std::move(name), at(from), at(until)};
}
Dequeued got(std::string name, std::int64_t epoch = 1, std::int64_t when = 100) {
  return {"g", std::move(name), {epoch}, at(when), "w"};
}
const std::vector<Enqueued> in_turn = {put("a", 1, 2), put("b", 3, 4), put("c", 5, 6)};

TEST(Fifo, the_order_of_putting_in_is_right) {
  EXPECT_TRUE(check_fifo({}, {}).good());
  EXPECT_TRUE(check_fifo(in_turn, {got("a"), got("b"), got("c")}).good());
}

TEST(Fifo, what_is_not_delivered_yet_is_no_fault_at_the_end) {
  EXPECT_TRUE(check_fifo(in_turn, {got("a")}).good());
}

TEST(Fifo, an_exchange_is_refused) {
  const Verdict verdict = check_fifo(in_turn, {got("a"), got("c"), got("b")});
  ASSERT_TRUE(verdict.bad());
  EXPECT_THAT(verdict.words, HasSubstr("an item was delivered before an earlier one"));
  EXPECT_THAT(verdict.words, HasSubstr("'b' was put into g from 0.003 s to 0.004 s"));
  EXPECT_THAT(verdict.words, HasSubstr("'c' was put into g from 0.005 s to 0.006 s"));
}

TEST(Fifo, an_item_that_is_passed_over_is_refused) {
  const Verdict verdict = check_fifo(in_turn, {got("a"), got("c")});
  ASSERT_TRUE(verdict.bad());
  EXPECT_THAT(verdict.words, HasSubstr("an item was passed over"));
}

TEST(Fifo, of_items_put_in_at_once_either_may_be_first) {
  const std::vector<Enqueued> at_once = {put("a", 1, 5), put("b", 3, 6)};
  EXPECT_TRUE(check_fifo(at_once, {got("a"), got("b")}).good());
  EXPECT_TRUE(check_fifo(at_once, {got("b"), got("a")}).good());
}

TEST(Fifo, an_item_without_a_reply_may_come_late_or_never) {
  const std::vector<Enqueued> one_unknown = {{"g", "a", at(1), Instant::max()}, put("b", 3, 4), put("c", 5, 6)};
  EXPECT_TRUE(check_fifo(one_unknown, {got("b"), got("a"), got("c")}).good());
  EXPECT_TRUE(check_fifo(one_unknown, {got("b"), got("c")}).good());
  EXPECT_TRUE(check_fifo(one_unknown, {got("a"), got("c"), got("b")}).bad());
}

TEST(Fifo, a_later_consumer_may_repeat_the_same_may_not) {
  EXPECT_TRUE(check_fifo(in_turn, {got("a", 1), got("b", 1), got("b", 2), got("c", 2)}).good());
  EXPECT_TRUE(check_fifo(in_turn, {got("a", 1), got("b", 1), got("a", 2), got("b", 2), got("c", 2)}).good());
  EXPECT_THAT(check_fifo(in_turn, {got("a"), got("a")}).words, HasSubstr("repeated in one epoch"));
}

TEST(Fifo, an_epoch_that_goes_back_is_refused) {
  EXPECT_THAT(check_fifo(in_turn, {got("a", 1), got("b", 1), got("b", 2), got("a", 2)}).words,
              HasSubstr("an epoch went back to an earlier item"));
  EXPECT_THAT(check_fifo(in_turn, {got("a", 2), got("b", 1)}).words, HasSubstr("under an epoch below 2"));
}

TEST(Fifo, an_item_from_nowhere_or_too_early_is_refused) {
  EXPECT_TRUE(check_fifo(in_turn, {got("x")}).bad());
  EXPECT_THAT(check_fifo(in_turn, {got("a", 1, 0)}).words, HasSubstr("before it was put in"));
  EXPECT_THAT(check_fifo({put("a", 1, 2), put("a", 3, 4)}, {}).words, HasSubstr("put in twice"));
}

TEST(Fifo, groups_have_no_order_between_them) {
  std::vector<Enqueued> two = in_turn;
  two.push_back({"h", "a", at(7), at(8)});
  EXPECT_TRUE(check_fifo(two, {{"h", "a", {1}, at(100), "w"}, got("a", 5), got("b", 5)}).good());
}

TEST(Fifo, right_histories_pass_and_any_exchange_of_items_apart_fails) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    std::vector<Enqueued> items;
    std::vector<Dequeued> read;
    const auto count = static_cast<std::int64_t>(4 + random.below(20));
    for (std::int64_t i = 0; i < count; ++i) {
      items.push_back(put(std::to_string(i), 10 * i, 10 * i + 5));
      read.push_back(got(std::to_string(i), 1, 1000 + i));
    }
    ASSERT_TRUE(check_fifo(items, read).good());
    const std::size_t left = random.below(read.size());
    const std::size_t right = random.below(read.size());
    if (left == right) continue;
    std::swap(read[left], read[right]);
    ASSERT_TRUE(check_fifo(items, read).bad()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace holdfast::sim
