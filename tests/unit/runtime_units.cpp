#include "runtime/units.hpp"

#include <gtest/gtest.h>

#include "runtime/environment.hpp"

namespace holdfast::runtime {
namespace {

using namespace std::chrono_literals;

Duration duration_of(std::string_view text) {
  const auto parsed = parse_duration(text);
  EXPECT_TRUE(parsed.has_value()) << text;
  return parsed.value_or(-1ns);
}

TEST(Durations, are_a_number_and_a_unit) {
  EXPECT_EQ(duration_of("20s"), 20s);
  EXPECT_EQ(duration_of("500ms"), 500ms);
  EXPECT_EQ(duration_of("1m"), 1min);
  EXPECT_EQ(duration_of("2h"), 2h);
  EXPECT_EQ(duration_of("90d"), 24h * 90);
  EXPECT_EQ(duration_of("250us"), 250us);
  EXPECT_EQ(duration_of("0"), 0s);
  EXPECT_EQ(duration_of("0s"), 0s);
}

TEST(Durations, may_have_a_fraction) {
  EXPECT_EQ(duration_of("1.5s"), 1500ms);
  EXPECT_EQ(duration_of("0.25m"), 15s);
  EXPECT_EQ(duration_of("0.3s"), 300ms);
  EXPECT_EQ(duration_of("0.000000001s"), 1ns);
  EXPECT_EQ(duration_of("1.0000000009999s"), 1s) << "finer than a nanosecond is cut off";
}

TEST(Durations, that_make_no_sense_are_refused_in_a_sentence_that_quotes_them) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "'' is no duration"},
      {"abc", "'abc' is no duration"},
      {"s", "'s' is no duration"},
      {".5s", "'.5s' is no duration"},
      {"-5s", "'-5s' is negative"},
      {"20", "'20' has no unit: write 20s or 20ms"},
      {"20 s", "unknown unit"},
      {"20S", "unknown unit"},
      {"1m30s", "unknown unit"},
      {"20sec", "unknown unit"},
      {"1.s", "unknown unit"},
      {"106752d", "too long"},
      {"99999999999999999999999s", "too long"},
      {"9223372037s", "too long"},
      {"9223372036.9s", "too long"},
  };
  for (const auto& [text, expected] : cases) {
    const auto parsed = parse_duration(text);
    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_EQ(parsed.error().code, Code::usage);
    EXPECT_NE(parsed.error().detail.find(expected), std::string::npos) << parsed.error().detail;
    EXPECT_EQ(parsed.error().detail.find('\n'), std::string::npos);
  }
}

TEST(Durations, a_line_break_in_what_was_typed_does_not_reach_the_message) {
  EXPECT_EQ(parse_duration("a\nb").error().detail.find('\n'), std::string::npos);
}

TEST(Durations, are_written_so_that_they_read_back_the_same) {
  for (const Duration duration : {Duration(20s), Duration(1500ms), Duration(1min), Duration(0s), Duration(7us),
                                  Duration(1ns), Duration(24h), Duration::max()}) {
    EXPECT_EQ(parse_duration(write_duration(duration)), duration) << write_duration(duration);
  }
  EXPECT_EQ(write_duration(1500ms), "1500ms");
  EXPECT_EQ(write_duration(60s), "1m");
}

TEST(Durations, are_told_to_people_in_one_unit) {
  EXPECT_EQ(describe_duration(340ms), "340 ms");
  EXPECT_EQ(describe_duration(-340ms), "340 ms");
  EXPECT_EQ(describe_duration(12'400ms), "12 s");
  EXPECT_EQ(describe_duration(119s), "119 s");
  EXPECT_EQ(describe_duration(2min), "2 min");
  EXPECT_EQ(describe_duration(3h), "3 h");
  EXPECT_EQ(describe_duration(24h * 3), "3 days");
}

TEST(Sizes, are_a_number_and_a_unit_or_bytes) {
  EXPECT_EQ(parse_size("64MiB"), 64ULL << 20U);
  EXPECT_EQ(parse_size("512KiB"), 512ULL << 10U);
  EXPECT_EQ(parse_size("1.5GiB"), 3ULL << 29U);
  EXPECT_EQ(parse_size("2MB"), 2'000'000ULL);
  EXPECT_EQ(parse_size("100"), 100ULL);
  EXPECT_EQ(parse_size("0"), 0ULL);
}

TEST(Sizes, are_written_so_that_they_read_back_the_same) {
  EXPECT_EQ(write_size(64U << 20U), "64MiB");
  EXPECT_EQ(write_size(0), "0B");
  for (const std::uint64_t size : {1ULL, 100ULL, 1024ULL, 1'000'000ULL, 1ULL << 40U, 3ULL << 30U}) {
    EXPECT_EQ(parse_size(write_size(size)), size) << write_size(size);
  }
}

TEST(Sizes, that_make_no_sense_are_refused) {
  for (const std::string text : {"", "MiB", "-1MiB", "1mib", "1 MiB", "99999999999999999999", "9000000TiB", "1e3"}) {
    const auto parsed = parse_size(text);
    ASSERT_FALSE(parsed.has_value()) << text;
    EXPECT_EQ(parsed.error().code, Code::usage);
  }
}

TEST(Environment, an_empty_variable_counts_as_not_set) {
  ASSERT_EQ(setenv("HOLDFAST_TEST_EMPTY", "", 1), 0);
  ASSERT_EQ(setenv("HOLDFAST_TEST_FULL", "x", 1), 0);
  EXPECT_EQ(environment("HOLDFAST_TEST_EMPTY"), std::nullopt);
  EXPECT_EQ(environment("HOLDFAST_TEST_FULL"), "x");
  const auto names = environment_names("HOLDFAST_TEST_");
  EXPECT_EQ(names, (std::vector<std::string>{"HOLDFAST_TEST_EMPTY", "HOLDFAST_TEST_FULL"}));
}

}  // namespace
}  // namespace holdfast::runtime
