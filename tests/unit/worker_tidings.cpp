// What a worker says about itself, in virtual time.
#include "worker/tidings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/virtual_loop.hpp"

namespace holdfast::worker {
namespace {

using namespace std::chrono_literals;
using Asked = Tidings::Asked;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct TidingsTest : testing::Test {
  test::VirtualLoop loop;
  std::vector<std::string> lines;
  runtime::Log log{runtime::LogLevel::info,
                   [this](runtime::LogLevel, std::string_view line) { lines.emplace_back(line); }};
  Tidings tidings{loop, log, 100};
};

TEST_F(TidingsTest, f20_a_store_that_answers_reads_and_rejects_writes_is_told_of_once) {
  for (int i = 0; i < 10; ++i) {
    tidings.answered(Asked::write, Outcome::rejected, {Code::denied, "read-only"});
    tidings.answered(Asked::read, Outcome::applied, {});
    loop.advance(5s);
  }
  EXPECT_THAT(lines, ElementsAre(HasSubstr("read-only")));
  lines.clear();
  tidings.answered(Asked::write, Outcome::applied, {});
  EXPECT_THAT(lines, ElementsAre(HasSubstr("answers again after 50 s")));
}

TEST_F(TidingsTest, a_store_that_is_away_for_both_is_back_when_both_are) {
  for (int i = 0; i < 3; ++i) {
    tidings.answered(Asked::write, Outcome::unknown, {Code::unavailable, "away"});
    tidings.answered(Asked::read, Outcome::throttled, {Code::unavailable, "away"});
  }
  EXPECT_THAT(lines, ElementsAre(HasSubstr("away")));
  lines.clear();
  tidings.answered(Asked::read, Outcome::applied, {});
  EXPECT_THAT(lines, IsEmpty());
  tidings.answered(Asked::write, Outcome::conflict, {});
  EXPECT_THAT(lines, ElementsAre(HasSubstr("answers again")));
}

TEST_F(TidingsTest, a_hiccup_of_the_store_is_not_worth_a_word) {
  tidings.answered(Asked::write, Outcome::unknown, {Code::unavailable, "away"});
  tidings.answered(Asked::write, Outcome::unknown, {Code::unavailable, "away"});
  tidings.answered(Asked::write, Outcome::applied, {});
  EXPECT_THAT(lines, IsEmpty());
}

TEST_F(TidingsTest, few_connections_in_trouble_have_a_line_each) {
  tidings.took(2);
  loop.advance(1s);
  lines.clear();
  tidings.troubled({"btc", true, "HTTP 404"});
  tidings.troubled({"eth", false, "connection refused"});
  loop.advance(1s);
  EXPECT_THAT(lines, ElementsAre("btc: parked: HTTP 404", "eth: backing off: connection refused"));
  loop.advance(1min);
  EXPECT_EQ(lines.size(), 2U);
}

TEST_F(TidingsTest, f20_ten_thousand_connections_in_trouble_are_one_line) {
  for (int i = 0; i < 10'000; ++i) tidings.troubled({"s" + std::to_string(i), i >= 9'000, "connection refused"});
  loop.advance(1s);
  EXPECT_THAT(lines, ElementsAre(AllOf(HasSubstr("10000 connections do not flow"), HasSubstr("9000 backing off"),
                                       HasSubstr("1000 parked"), HasSubstr("s0: backing off: connection refused"))));
}

}  // namespace
}  // namespace holdfast::worker
