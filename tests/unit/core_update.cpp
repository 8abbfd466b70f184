#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

#include "holdfast/update.hpp"

namespace holdfast {
namespace {

using Compare = Condition::Compare;
constexpr std::int64_t smallest = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

Row a_row() {
  return {"CONN#a",
          {{"number", 5},
           {"text", "m"},
           {"half", 0.5},
           {"yes", true},
           {"nothing", nullptr},
           {"list", Value::List{1, "two"}},
           {"map", Value::Map{{"inner", 1}}}}};
}

bool holds_for_a_row(const Condition& condition) {
  const Row row = a_row();
  return holds(condition, &row);
}

// Conditions

TEST(Condition, always_holds_with_and_without_a_row) {
  EXPECT_TRUE(holds_for_a_row(Condition::always()));
  EXPECT_TRUE(holds(Condition::always(), nullptr));
}

TEST(Condition, knows_whether_the_row_exists) {
  EXPECT_TRUE(holds_for_a_row(Condition::row_exists()));
  EXPECT_FALSE(holds(Condition::row_exists(), nullptr));
  EXPECT_FALSE(holds_for_a_row(Condition::row_missing()));
  EXPECT_TRUE(holds(Condition::row_missing(), nullptr));
}

TEST(Condition, an_empty_row_is_a_row) {
  const Row row{"CONN#a", {}};
  EXPECT_TRUE(holds(Condition::row_exists(), &row));
}

TEST(Condition, knows_whether_an_attribute_exists_and_null_is_a_value) {
  EXPECT_TRUE(holds_for_a_row(Condition::exists("number")));
  EXPECT_TRUE(holds_for_a_row(Condition::exists("nothing")));
  EXPECT_FALSE(holds_for_a_row(Condition::exists("absent")));
  EXPECT_FALSE(holds_for_a_row(Condition::not_exists("number")));
  EXPECT_TRUE(holds_for_a_row(Condition::not_exists("absent")));
}

TEST(Condition, every_attribute_of_a_missing_row_is_missing) {
  EXPECT_FALSE(holds(Condition::exists("number"), nullptr));
  EXPECT_TRUE(holds(Condition::not_exists("number"), nullptr));
  EXPECT_FALSE(holds(Condition::equals("number", 5), nullptr));
  EXPECT_TRUE(holds(Condition::is("number", Compare::not_equal, 5), nullptr));
}

struct Comparison {
  Compare compare;
  bool below, same, above;  ///< what it says of 4, 5 and 6 when the row has… 5
};

class Comparisons : public testing::TestWithParam<Comparison> {};

TEST_P(Comparisons, order_integers) {
  const auto [compare, below, same, above] = GetParam();
  EXPECT_EQ(holds_for_a_row(Condition::is("number", compare, 4)), below);
  EXPECT_EQ(holds_for_a_row(Condition::is("number", compare, 5)), same);
  EXPECT_EQ(holds_for_a_row(Condition::is("number", compare, 6)), above);
}

TEST_P(Comparisons, order_strings) {
  const auto [compare, below, same, above] = GetParam();
  EXPECT_EQ(holds_for_a_row(Condition::is("text", compare, "lzzz")), below);
  EXPECT_EQ(holds_for_a_row(Condition::is("text", compare, "m")), same);
  EXPECT_EQ(holds_for_a_row(Condition::is("text", compare, "ma")), above);
}

TEST_P(Comparisons, order_doubles) {
  const auto [compare, below, same, above] = GetParam();
  EXPECT_EQ(holds_for_a_row(Condition::is("half", compare, 0.25)), below);
  EXPECT_EQ(holds_for_a_row(Condition::is("half", compare, 0.5)), same);
  EXPECT_EQ(holds_for_a_row(Condition::is("half", compare, 0.75)), above);
}

TEST_P(Comparisons, are_false_for_a_missing_attribute_unless_not_equal) {
  const bool expected = GetParam().compare == Compare::not_equal;
  EXPECT_EQ(holds_for_a_row(Condition::is("absent", GetParam().compare, 5)), expected);
  EXPECT_EQ(holds_for_a_row(Condition::is("absent", GetParam().compare, nullptr)), expected);
}

TEST_P(Comparisons, are_false_for_another_type_unless_not_equal) {
  const bool expected = GetParam().compare == Compare::not_equal;
  EXPECT_EQ(holds_for_a_row(Condition::is("number", GetParam().compare, "5")), expected);
  EXPECT_EQ(holds_for_a_row(Condition::is("number", GetParam().compare, 5.0)), expected);
  EXPECT_EQ(holds_for_a_row(Condition::is("number", GetParam().compare, nullptr)), expected);
  EXPECT_EQ(holds_for_a_row(Condition::is("text", GetParam().compare, 5)), expected);
  EXPECT_EQ(holds_for_a_row(Condition::is("yes", GetParam().compare, 1)), expected);
  EXPECT_EQ(holds_for_a_row(Condition::is("map", GetParam().compare, "inner")), expected);
}

INSTANTIATE_TEST_SUITE_P(All, Comparisons,
                         testing::Values(Comparison{Compare::equal, false, true, false},
                                         Comparison{Compare::not_equal, true, false, true},
                                         Comparison{Compare::less, false, false, true},
                                         Comparison{Compare::less_equal, false, true, true},
                                         Comparison{Compare::greater, true, false, false},
                                         Comparison{Compare::greater_equal, true, true, false}));

TEST(Condition, equality_works_on_every_type_and_ordering_on_numbers_and_strings_only) {
  for (const auto& [name, value] : a_row().attributes)
    EXPECT_TRUE(holds_for_a_row(Condition::equals(name, value))) << name;
  for (const char* name : {"yes", "nothing", "list", "map"}) {
    const Value value = *a_row().find(name);
    EXPECT_FALSE(holds_for_a_row(Condition::is(name, Compare::less_equal, value))) << name;
    EXPECT_FALSE(holds_for_a_row(Condition::is(name, Compare::greater_equal, value))) << name;
  }
}

TEST(Condition, integers_are_compared_in_all_64_bits) {
  const Row row{"k", {{"low", smallest}, {"high", largest}}};
  EXPECT_TRUE(holds(Condition::is("low", Compare::less, smallest + 1), &row));
  EXPECT_FALSE(holds(Condition::equals("low", smallest + 1), &row));
  EXPECT_TRUE(holds(Condition::is("high", Compare::greater, largest - 1), &row));
  EXPECT_FALSE(holds(Condition::equals("high", largest - 1), &row));
}

TEST(Condition, strings_are_ordered_by_unsigned_bytes) {
  const Row row{"k", {{"text", "\xc3\xa9"}}};  // é
  EXPECT_TRUE(holds(Condition::is("text", Compare::greater, "z"), &row));
}

TEST(Condition, not_a_number_equals_nothing) {
  const Value nan(std::numeric_limits<double>::quiet_NaN());
  const Row row{"k", {{"x", nan}}};
  EXPECT_FALSE(holds(Condition::equals("x", nan), &row));
  EXPECT_TRUE(holds(Condition::is("x", Compare::not_equal, nan), &row));
}

TEST(Condition, operators_combine_and_negate_to_any_depth) {
  const Condition yes = Condition::equals("number", 5);
  const Condition no = Condition::equals("number", 6);
  EXPECT_TRUE(holds_for_a_row(yes && yes && yes));
  EXPECT_FALSE(holds_for_a_row(yes && no && yes));
  EXPECT_TRUE(holds_for_a_row(no || no || yes));
  EXPECT_FALSE(holds_for_a_row(no || no));
  EXPECT_TRUE(holds_for_a_row(!no));
  EXPECT_FALSE(holds_for_a_row(!!no));
  EXPECT_TRUE(holds_for_a_row(yes && (no || !(no && yes)) && !(no || no)));
  EXPECT_FALSE(holds_for_a_row((yes || no) && !(yes && (yes || no))));
}

TEST(Condition, negation_turns_a_comparison_with_a_missing_attribute_round) {
  EXPECT_TRUE(holds_for_a_row(!Condition::is("absent", Compare::less, 5)));
  EXPECT_FALSE(holds_for_a_row(!Condition::is("absent", Compare::not_equal, 5)));
}

TEST(Condition, a_chain_of_one_operator_is_one_flat_list_and_mixed_ones_nest) {
  const Condition x = Condition::exists("x");
  EXPECT_EQ((x && x && x).operands.size(), 3U);
  EXPECT_EQ((x && (x && x)).operands.size(), 3U);
  EXPECT_EQ((x || x || x).operands.size(), 3U);
  const Condition mixed = (x || x) && x;
  EXPECT_EQ(mixed.kind, Condition::Kind::all);
  ASSERT_EQ(mixed.operands.size(), 2U);
  EXPECT_EQ(mixed.operands.front().kind, Condition::Kind::any);
}

TEST(Condition, with_no_operands_all_holds_and_any_does_not) {
  Condition all, any;
  all.kind = Condition::Kind::all;
  any.kind = Condition::Kind::any;
  EXPECT_TRUE(holds_for_a_row(all));
  EXPECT_FALSE(holds_for_a_row(any));
}

// Changes

TEST(Change, set_replaces_a_value_of_any_type_or_makes_it) {
  Row row = a_row();
  ASSERT_TRUE(apply({Change::set("number", "now text"), Change::set("fresh", 1)}, row));
  EXPECT_EQ(row.text("number"), "now text");
  EXPECT_EQ(row.number("fresh"), 1);
}

TEST(Change, set_if_absent_leaves_what_is_there_even_null) {
  Row row = a_row();
  ASSERT_TRUE(apply(
      {Change::set_if_absent("number", 9), Change::set_if_absent("nothing", 9), Change::set_if_absent("fresh", 9)},
      row));
  EXPECT_EQ(row.number("number"), 5);
  EXPECT_EQ(*row.find("nothing"), Value(nullptr));
  EXPECT_EQ(row.number("fresh"), 9);
}

TEST(Change, add_counts_up_and_down_and_starts_from_zero) {
  Row row = a_row();
  ASSERT_TRUE(apply({Change::add("number", -7), Change::add("fresh", 3)}, row));
  EXPECT_EQ(row.number("number"), -2);
  EXPECT_EQ(row.number("fresh"), 3);
}

TEST(Change, add_refuses_what_is_no_integer_and_touches_nothing) {
  for (const char* name : {"text", "half", "yes", "nothing", "list", "map"}) {
    Row row = a_row();
    EXPECT_FALSE(apply({Change::set("number", 1), Change::add(name, 1), Change::remove("text")}, row)) << name;
    EXPECT_EQ(row, a_row()) << name;
  }
}

TEST(Change, add_refuses_an_overflow_at_either_end_and_touches_nothing) {
  const Row before{"k", {{"high", largest}, {"low", smallest}}};
  Row row = before;
  EXPECT_FALSE(apply({Change::set("x", 1), Change::add("high", 1)}, row));
  EXPECT_FALSE(apply({Change::set("x", 1), Change::add("low", -1)}, row));
  EXPECT_EQ(row, before);
  EXPECT_TRUE(apply({Change::add("high", smallest), Change::add("low", largest)}, row));
  EXPECT_EQ(row.number("high"), -1);
  EXPECT_EQ(row.number("low"), -1);
}

TEST(Change, remove_of_a_missing_attribute_is_no_error) {
  Row row = a_row();
  ASSERT_TRUE(apply({Change::remove("absent"), Change::remove("number")}, row));
  EXPECT_EQ(row.find("number"), nullptr);
  EXPECT_EQ(row.attributes.size(), a_row().attributes.size() - 1);
}

TEST(Change, two_changes_of_one_attribute_are_refused_and_touch_nothing) {
  Row row = a_row();
  EXPECT_FALSE(apply({Change::set("number", 1), Change::set("text", "x"), Change::add("number", 1)}, row));
  EXPECT_EQ(row, a_row());
}

TEST(Change, no_changes_leave_the_row_as_it_is) {
  Row row = a_row();
  EXPECT_TRUE(apply({}, row));
  EXPECT_EQ(row, a_row());
}

}  // namespace
}  // namespace holdfast
