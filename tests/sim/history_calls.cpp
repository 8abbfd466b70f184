// Histories of calls: those that can be explained, and those that are wrong in known ways.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/history/calls.hpp"

namespace holdfast::sim {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

Instant at(int seconds) {
  return Instant{} + std::chrono::seconds(seconds);
}

DecideCall decide(const char* proposal, int from, int until, const char* value) {
  return {.proposal = proposal, .invoked = at(from), .returned = at(until), .value = value};
}

TEST(DecideHistory, is_good_where_everybody_is_told_the_first_proposal) {
  EXPECT_TRUE(check_decide({decide("a", 1, 4, "b"), decide("b", 2, 3, "b"), decide("c", 5, 6, "b")}).good());
}

TEST(DecideHistory, is_good_where_the_first_proposal_is_of_who_never_heard) {
  DecideCall died = decide("a", 1, 2, "");
  died.returned.reset();
  EXPECT_TRUE(check_decide({died, decide("b", 5, 6, "a")}).good());
}

TEST(DecideHistory, is_bad_where_two_are_told_different_values) {
  const Verdict verdict = check_decide({decide("a", 1, 2, "a"), decide("b", 3, 4, "b")});
  EXPECT_TRUE(verdict.bad());
  EXPECT_THAT(verdict.words, HasSubstr("'b' is told 'b'"));
}

TEST(DecideHistory, is_bad_where_a_value_is_told_before_anybody_proposed_it) {
  EXPECT_TRUE(check_decide({decide("a", 1, 2, "b"), decide("b", 3, 4, "b")}).bad());
}

TEST(DecideHistory, is_bad_where_that_won_of_which_was_told_that_nothing_happened) {
  DecideCall never = decide("a", 1, 2, "");
  never.never = true;
  EXPECT_TRUE(check_decide({never, decide("b", 3, 4, "a")}).bad());
}

AddCall add(const char* op, std::int64_t delta, int from, int until, std::int64_t value) {
  return {.op = op, .delta = delta, .invoked = at(from), .returned = at(until), .value = value};
}
AddCall refused(const char* op, std::int64_t delta, int from, int until) {
  AddCall call = add(op, delta, from, until, 0);
  call.floor = 0;
  call.told = AddCall::Told::refused;
  return call;
}

TEST(CounterHistory, is_good_where_each_operation_counts_once) {
  EXPECT_TRUE(check_counter({add("a", 3, 1, 4, 5), add("b", 2, 2, 3, 2), add("a", 3, 5, 6, 5)}).good());
}

TEST(CounterHistory, is_good_where_a_reply_was_lost_and_the_value_is_read_later) {
  // Both are told 3: the first one heard of it by reading.
  EXPECT_TRUE(check_counter({add("a", 1, 1, 9, 3), add("b", 2, 2, 3, 3)}).good());
}

TEST(CounterHistory, is_good_where_what_nobody_heard_of_happened_later_or_never) {
  AddCall lost = add("a", 5, 1, 2, 0);
  lost.returned.reset();
  EXPECT_TRUE(check_counter({lost, add("b", 1, 3, 4, 1), add("c", 1, 5, 6, 7)}).good());
  EXPECT_TRUE(check_counter({lost, add("b", 1, 3, 4, 1), add("c", 1, 5, 6, 2)}).good());
}

TEST(CounterHistory, is_bad_where_an_operation_counts_twice) {
  EXPECT_TRUE(check_counter({add("a", 3, 1, 2, 3), add("a", 3, 3, 4, 6)}).bad());
}

TEST(CounterHistory, is_bad_where_an_operation_is_lost) {
  EXPECT_TRUE(check_counter({add("a", 3, 1, 2, 3), add("b", 1, 3, 4, 1)}).bad());
}

TEST(CounterHistory, is_bad_where_it_is_refused_although_enough_was_there) {
  EXPECT_TRUE(check_counter({add("a", 3, 1, 2, 3), refused("b", -2, 3, 4)}).bad());
  EXPECT_TRUE(check_counter({add("a", 3, 1, 2, 3), refused("b", -4, 3, 4)}).good());
}

TEST(CounterHistory, is_bad_where_it_falls_below_the_floor) {
  AddCall below = add("b", -4, 3, 4, -1);
  below.floor = 0;
  EXPECT_TRUE(check_counter({add("a", 3, 1, 2, 3), below}).bad());
}

using Kind = StockCall::Kind;
StockCall stock(Kind kind, const char* id, std::map<std::string, std::int64_t> items, int from, int until) {
  return {.kind = kind, .id = id, .items = std::move(items), .invoked = at(from), .returned = at(until)};
}
StockCall told_no(StockCall call) {
  call.told = StockCall::Told::refused;
  return call;
}
const StockCall delivery = stock(Kind::add, "g", {{"hat", 2}, {"shirt", 1}}, 1, 2);

TEST(StockHistory, is_good_where_goods_are_set_aside_and_end_once) {
  EXPECT_TRUE(check_stock({delivery, stock(Kind::reserve, "r", {{"hat", 2}}, 3, 4),
                           told_no(stock(Kind::reserve, "q", {{"hat", 1}}, 5, 6)), stock(Kind::cancel, "r", {}, 7, 8),
                           stock(Kind::reserve, "p", {{"hat", 1}}, 9, 10), stock(Kind::confirm, "p", {}, 11, 12)})
                  .good());
}

TEST(StockHistory, is_bad_where_more_is_sold_than_there_was) {
  EXPECT_TRUE(check_stock({delivery, stock(Kind::reserve, "r", {{"hat", 2}}, 3, 4),
                           stock(Kind::reserve, "q", {{"hat", 1}}, 5, 6)})
                  .bad());
}

TEST(StockHistory, is_bad_where_part_of_a_reservation_is_set_aside) {
  EXPECT_TRUE(check_stock({delivery, told_no(stock(Kind::reserve, "r", {{"hat", 1}, {"shirt", 2}}, 3, 4)),
                           told_no(stock(Kind::reserve, "q", {{"hat", 2}}, 5, 6))})
                  .bad());
}

TEST(StockHistory, is_bad_where_a_reservation_ends_in_two_ways) {
  EXPECT_TRUE(check_stock({delivery, stock(Kind::reserve, "r", {{"hat", 2}}, 3, 4),
                           stock(Kind::confirm, "r", {}, 5, 6), stock(Kind::cancel, "r", {}, 7, 8)})
                  .bad());
}

TEST(StockHistory, is_bad_where_what_was_returned_is_confirmed) {
  EXPECT_TRUE(check_stock({delivery, stock(Kind::reserve, "r", {{"hat", 2}}, 3, 4),
                           stock(Kind::expire, "r", {}, 5, 5), stock(Kind::confirm, "r", {}, 7, 8)})
                  .bad());
}

TEST(StockHistory, is_good_where_a_confirmation_comes_too_late_by_its_own_clock) {
  StockCall late = stock(Kind::confirm, "r", {}, 5, 6);
  late.told = StockCall::Told::too_late;
  EXPECT_TRUE(check_stock({delivery, stock(Kind::reserve, "r", {{"hat", 2}}, 3, 4), late}).good());
  EXPECT_TRUE(check_stock({delivery, stock(Kind::reserve, "r", {{"hat", 2}}, 3, 4), told_no(late)}).bad());
}

}  // namespace
}  // namespace holdfast::sim
