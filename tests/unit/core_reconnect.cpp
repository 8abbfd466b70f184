#include <gtest/gtest.h>

#include <algorithm>

#include "core/backoff.hpp"
#include "core/close_policy.hpp"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

ConnectionEnd closed(int code) {
  return {.kind = ConnectionEnd::Kind::closed, .code = static_cast<std::uint16_t>(code)};
}
ConnectionEnd refused(int status, std::optional<Duration> retry_after = {}) {
  return {.kind = ConnectionEnd::Kind::refused, .http_status = status, .retry_after = retry_after};
}

/// The longest of many draws at the nth failure in a row: close to the bound.
Duration longest_draw(int failures) {
  Random random(7);
  Duration longest{};
  for (int draw = 0; draw < 300; ++draw) {
    Backoff backoff;
    Duration delay{};
    for (int i = 0; i < failures; ++i) delay = backoff.ended(Instant(0s), {}, random);
    longest = std::max(longest, delay);
  }
  return longest;
}

TEST(Backoff, doubles_from_half_a_second_to_a_minute_with_full_jitter) {
  EXPECT_LE(longest_draw(1), 500ms);
  EXPECT_GT(longest_draw(1), 450ms);
  EXPECT_LE(longest_draw(4), 4s);
  EXPECT_GT(longest_draw(4), 3600ms);
  EXPECT_LE(longest_draw(20), 60s);
  EXPECT_GT(longest_draw(20), 54s);
  EXPECT_LE(longest_draw(100), 60s) << "no overflow, however long it goes on";
}

TEST(Backoff, never_draws_a_busy_loop) {
  Random random(1);
  for (int draw = 0; draw < 10'000; ++draw) {
    Backoff backoff;
    EXPECT_GE(backoff.ended(Instant(0s), {}, random), 20ms);
  }
}

TEST(Faults, f36_a_connection_that_opens_and_is_closed_at_once_does_not_reset_the_backoff) {
  Random random(1);
  Backoff backoff;
  Instant now(0s);
  for (int i = 0; i < 10; ++i) {
    backoff.opened(now);
    now += 1s;
    (void)backoff.ended(now, {}, random);
  }
  EXPECT_EQ(backoff.failures(), 10U);
  EXPECT_EQ(backoff.short_lived(), 10U);
}

TEST(Faults, f36_a_connection_that_was_stable_for_half_a_minute_starts_over) {
  Random random(1);
  Backoff backoff;
  for (int i = 0; i < 10; ++i) (void)backoff.ended(Instant(0s), {}, random);
  backoff.opened(Instant(0s));
  EXPECT_LE(backoff.ended(Instant(30s), {}, random), 500ms);
  EXPECT_EQ(backoff.failures(), 1U);
  EXPECT_EQ(backoff.short_lived(), 0U);
}

TEST(Faults, f37_retry_after_is_honoured_with_jitter_on_top_and_capped) {
  Random random(1);
  for (int draw = 0; draw < 100; ++draw) {
    Reconnect reconnect;
    const auto plan = reconnect.ended(refused(503, 30s), Instant(0s), random);
    EXPECT_FALSE(plan.parked);
    EXPECT_GT(plan.at, Instant(30s));
    EXPECT_LE(plan.at, Instant(30s + 500ms));
  }
  Reconnect reconnect;
  EXPECT_LE(reconnect.ended(refused(429, 24h), Instant(0s), random).at, Instant(Backoff::longest_told + 500ms));
}

TEST(Faults, f37_busy_without_retry_after_still_waits) {
  Random random(1);
  for (const int status : {429, 503}) {
    Reconnect reconnect;
    EXPECT_GE(reconnect.ended(refused(status), Instant(0s), random).at, Instant(Reconnect::later_at_least));
  }
}

TEST(Faults, f38_every_kind_of_end_has_its_own_answer) {
  for (const int code : {1000, 1001, 1005, 1006, 1011, 1015, 3008, 4000, 4999}) {
    EXPECT_EQ(judge(closed(code)), Response::retry) << code;
  }
  for (const int code : {1012, 1013, 1014}) EXPECT_EQ(judge(closed(code)), Response::retry_later) << code;
  for (const int code : {3000, 3003}) EXPECT_EQ(judge(closed(code)), Response::refresh_credentials) << code;
  for (const int code : {1002, 1003, 1007, 1008, 1009, 1010}) {
    EXPECT_EQ(judge(closed(code)), Response::park) << code;
  }
  for (const int status : {408, 425, 500, 502, 504}) EXPECT_EQ(judge(refused(status)), Response::retry) << status;
  for (const int status : {429, 503}) EXPECT_EQ(judge(refused(status)), Response::retry_later) << status;
  for (const int status : {401, 403, 407}) EXPECT_EQ(judge(refused(status)), Response::refresh_credentials) << status;
  for (const int status : {200, 301, 400, 404, 410, 426}) EXPECT_EQ(judge(refused(status)), Response::park) << status;
  EXPECT_EQ(judge({}), Response::retry) << "no connection at all";
}

TEST(Faults, f38_a_parked_connection_says_why_and_is_tried_again_in_ten_to_twenty_minutes) {
  Random random(1);
  Reconnect reconnect;
  const auto plan = reconnect.ended(closed(1008), Instant(0s), random);
  EXPECT_TRUE(plan.parked);
  EXPECT_EQ(plan.reason, "The connection was closed with code 1008 (against the policy).");
  EXPECT_GE(plan.at, Instant(10min));
  EXPECT_LE(plan.at, Instant(20min));
}

TEST(Reconnect, refreshes_credentials_and_parks_when_that_does_not_help) {
  Random random(1);
  Reconnect reconnect;
  for (int i = 0; i < 2; ++i) {
    const auto plan = reconnect.ended(refused(401), Instant(0s), random);
    EXPECT_TRUE(plan.refresh_credentials);
    EXPECT_FALSE(plan.parked);
  }
  const auto plan = reconnect.ended(refused(401), Instant(0s), random);
  EXPECT_TRUE(plan.parked);
  EXPECT_EQ(plan.reason, "The server answered the upgrade with HTTP 401 (unauthorized).");
}

TEST(Reconnect, a_stable_connection_forgives_earlier_refusals_of_credentials) {
  Random random(1);
  Reconnect reconnect;
  for (int day = 0; day < 10; ++day) {
    const Instant now = Instant(24h * day);
    EXPECT_FALSE(reconnect.ended(refused(401), now, random).parked);
    reconnect.opened(now);
    (void)reconnect.ended(closed(1001), now + 1min, random);
  }
}

TEST(Reconnect, starts_over_when_the_row_is_edited) {
  Random random(1);
  Reconnect reconnect;
  for (int i = 0; i < 10; ++i) (void)reconnect.ended({}, Instant(0s), random);
  reconnect.row_changed();
  EXPECT_LE(reconnect.ended({}, Instant(0s), random).at, Instant(500ms));
}

}  // namespace
}  // namespace holdfast
