// How long what is over is remembered.
#include "core/coord/memory.hpp"

#include <gtest/gtest.h>

namespace holdfast {
namespace {

using namespace std::chrono_literals;

Row row_of(std::int64_t until) {
  Row row;
  row.attributes = {{std::string(attribute::tombstone_expires_at), Value(until)}};
  return row;
}

TEST(MemoryTest, it_lasts_for_as_long_as_was_asked_for_and_the_longest_time_is_not_long_ago) {
  const WallTime now(1'796'000'000'500ms);
  EXPECT_EQ(remembered_until(now, 1s), 1'796'000'002) << "at least";
  EXPECT_FALSE(is_past_retention(row_of(1'796'000'002), now + 1s));
  EXPECT_TRUE(is_past_retention(row_of(1'796'000'002), now + 2s));
  for (const Duration longest : {Duration(24h * 90'000), Duration::max()}) {
    const std::int64_t until = remembered_until(now, longest);
    EXPECT_GT(until, 9'000'000'000);
    EXPECT_FALSE(is_past_retention(row_of(until), now + std::chrono::hours(24 * 365 * 200)));
  }
}

TEST(MemoryTest, how_many_seconds_a_row_says_may_be_any) {
  const WallTime now(1'796'000'000'500ms);
  EXPECT_EQ(remembered_until_s(now, 10), 1'796'000'011) << "at least";
  EXPECT_EQ(remembered_until_s(now, INT64_MIN), 1'796'000'001);
  EXPECT_GT(remembered_until_s(now, INT64_MAX), 9'000'000'000);
  EXPECT_TRUE(is_past_retention(row_of(INT64_MIN), now));
}

TEST(MemoryTest, what_a_row_says_beyond_all_reason_is_for_ever) {
  EXPECT_FALSE(is_past_retention(row_of(INT64_MAX), WallTime(1'796'000'000'000ms)));
  EXPECT_FALSE(is_past_retention(row_of(4'000'000'000), WallTime(1'796'000'000'000ms))) << "the year 2096";
  EXPECT_TRUE(is_past_retention(row_of(-5), WallTime(1'796'000'000'000ms)));
  EXPECT_FALSE(is_past_retention(Row{}, WallTime(1'796'000'000'000ms)));
}

}  // namespace
}  // namespace holdfast
