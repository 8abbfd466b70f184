// Numbers are text in DynamoDB, and an expiry may be in seconds there.
#include "store/dynamodb/number.hpp"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <limits>

#include "core/number.hpp"
#include "store/json.hpp"

namespace holdfast::store::dynamodb {
namespace {

using enum ExpiryUnit;

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t smallest = std::numeric_limits<std::int64_t>::min();

TEST(DynamoNumber, whole_numbers_of_64_bits_are_exact_however_they_are_written) {
  EXPECT_EQ(value_from_number("42"), Value(42));
  EXPECT_EQ(value_from_number("-0"), Value(0));
  EXPECT_EQ(value_from_number("1.0"), Value(1));
  EXPECT_EQ(value_from_number("+1.50e1"), Value(15));
  EXPECT_EQ(value_from_number("1E+18"), Value(std::int64_t{1'000'000'000'000'000'000}));
  EXPECT_EQ(value_from_number("9223372036854775807"), Value(largest));
  EXPECT_EQ(value_from_number("-9223372036854775808"), Value(smallest));
  EXPECT_EQ(value_from_number("00012"), Value(12));
}

TEST(DynamoNumber, others_are_doubles_where_these_say_the_same_digits) {
  EXPECT_EQ(value_from_number("0.1"), Value(0.1));
  EXPECT_EQ(value_from_number("1e30"), Value(1e30));
  EXPECT_EQ(value_from_number("-2.50"), Value(-2.5));
  EXPECT_EQ(value_from_number("+2.5"), Value(2.5));
}

TEST(DynamoNumber, what_would_lose_digits_or_is_no_number_is_told_and_not_rounded) {
  EXPECT_EQ(describe(value_from_number("9223372036854775809")),
            "a number that needs more than 64 bits: 9223372036854775809");
  EXPECT_EQ(describe(value_from_number("0.12345678901234567890")),
            "a number that needs more than 64 bits: 0.12345678901234567890");
  for (const char* text : {"", "-", ".", "1.2.3", "1e", "e1", "1e99999999", "abc", "0x10", "1 "}) {
    EXPECT_THAT(describe(value_from_number(text)), testing::StartsWith("a number that is none: ")) << text;
  }
}

RC_GTEST_PROP(DynamoNumber, what_we_write_comes_back, ()) {
  const auto whole = *rc::gen::arbitrary<std::int64_t>();
  std::string digits;
  write_json(whole, digits);
  RC_ASSERT(value_from_number(digits) == Value(whole));

  const auto real = *rc::gen::arbitrary<double>();
  digits.clear();
  write_json(real, digits);
  const Value read = value_from_number(digits);
  RC_ASSERT(read == Value(real) || read == Value(static_cast<std::int64_t>(real)));
}

TEST(DynamoExpiry, in_milliseconds_it_stands_as_it_is) {
  EXPECT_EQ(number_from_expiry(1'700'000'000'123, milliseconds), "1700000000123");
  EXPECT_EQ(expiry_from_number("1700000000123", milliseconds), 1'700'000'000'123);
  EXPECT_EQ(expiry_from_number("0", milliseconds), 0);
  EXPECT_EQ(number_from_expiry(0, milliseconds), "0");
}

TEST(DynamoExpiry, s04_seconds_are_written_rounded_up_so_that_nobody_takes_over_early) {
  EXPECT_EQ(number_from_expiry(20'000, seconds), "20");
  EXPECT_EQ(number_from_expiry(20'001, seconds), "21");
  EXPECT_EQ(number_from_expiry(1, seconds), "1");
  EXPECT_EQ(number_from_expiry(0, seconds), "0");
  EXPECT_EQ(number_from_expiry(-1, seconds), "0");
  EXPECT_EQ(number_from_expiry(largest, seconds), "9223372036854776");
}

TEST(DynamoExpiry, s01_a_second_counts_as_over_when_it_is_over) {
  // A plain worker with whole seconds holds on while its clock shows 20, which is until 20.999.
  EXPECT_EQ(expiry_from_number("20", seconds), 21'000);
  EXPECT_EQ(expiry_from_number("20.5", seconds), 21'500);
  EXPECT_EQ(expiry_from_number("0", seconds), 0) << "free";
  EXPECT_EQ(expiry_from_number("-3", seconds), -3000);
}

TEST(DynamoExpiry, fractions_are_rounded_up_and_what_is_beyond_64_bits_is_their_end) {
  EXPECT_EQ(expiry_from_number("12.001", milliseconds), 13);
  EXPECT_EQ(expiry_from_number("-12.9", milliseconds), -12);
  EXPECT_EQ(expiry_from_number("0.00001", milliseconds), 1);
  EXPECT_EQ(expiry_from_number("1e40", milliseconds), largest);
  EXPECT_EQ(expiry_from_number("-1e40", milliseconds), smallest);
  EXPECT_EQ(expiry_from_number("9223372036854775807", seconds), largest);
  EXPECT_EQ(expiry_from_number("soon", milliseconds), std::nullopt);
}

/// As a server compares two numbers; both in range of a double's 53 bits, in thousandths.
std::int64_t thousandths(const std::string& text) {
  // In milliseconds, a number of seconds is its expiry without the second that is waited on top.
  const std::int64_t ms = *expiry_from_number(text, seconds);
  return ms > 0 ? ms - 1000 : ms;
}

RC_GTEST_PROP(DynamoExpiry, s04_what_is_written_is_never_before_what_was_meant_for_anyone, ()) {
  const auto ms = *rc::gen::inRange<std::int64_t>(-10'000, 4'000'000'000'000);
  const std::string written = number_from_expiry(ms, seconds);
  RC_ASSERT(std::stoll(written) * 1000 >= ms);
  RC_ASSERT(std::stoll(written) * 1000 < ms + 1000);
  RC_ASSERT(*expiry_from_number(written, seconds) >= ms);
}

RC_GTEST_PROP(DynamoExpiry, the_bound_of_a_comparison_agrees_with_what_is_read, ()) {
  const auto stands_ms = *rc::gen::inRange<std::int64_t>(-5000, 5000);
  const auto bound = *rc::gen::inRange<std::int64_t>(-5000, 5000);
  const std::string stands = highest_number_within(stands_ms > 0 ? stands_ms + 1000 : stands_ms, seconds);
  RC_ASSERT(thousandths(stands) == stands_ms);
  const bool within = *expiry_from_number(stands, seconds) <= bound;
  RC_ASSERT(within == (stands_ms <= thousandths(highest_number_within(bound, seconds))));
  RC_ASSERT(highest_number_within(bound, milliseconds) == std::to_string(bound));
}

}  // namespace
}  // namespace holdfast::store::dynamodb
