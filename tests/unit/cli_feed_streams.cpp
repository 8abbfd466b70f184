#include "cli/feed_streams.hpp"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <map>

namespace holdfast::cli {
namespace {

using namespace std::chrono_literals;

constexpr Instant start{1h};
Now at(Duration since_start) {
  return {start + since_start,
          WallTime(1'700'000'000'000ms + std::chrono::floor<std::chrono::milliseconds>(since_start))};
}

FeedOptions options(std::size_t streams, double rate, std::size_t history = 100) {
  FeedOptions made;
  made.streams = streams;
  made.rate = rate;
  made.history = history;
  return made;
}

FeedStreams begun(const FeedOptions& made) {
  FeedStreams streams(made);
  streams.begin(start);
  return streams;
}

TEST(FeedStreams, say_nothing_before_they_begin) {
  FeedStreams streams(options(1, 10));
  streams.advance(at(10s), [](std::size_t) {});
  EXPECT_EQ(streams.latest(0), 0);
  EXPECT_EQ(streams.next_due(), std::nullopt);
  streams.begin(start + 10s);
  EXPECT_EQ(streams.next_due(), start + 10s + 100ms);
}

TEST(FeedStreams, each_stream_says_rate_messages_per_second_whether_looked_at_often_or_seldom) {
  for (const Duration step : {Duration(2ms), Duration(500ms)}) {
    FeedStreams streams = begun(options(3, 10));
    for (Duration passed = step; passed <= 2s; passed += step) streams.advance(at(passed), [](std::size_t) {});
    for (std::size_t stream = 0; stream < 3; ++stream) EXPECT_EQ(streams.latest(stream), 20) << stream;
  }
}

TEST(FeedStreams, phases_are_spread_so_that_streams_do_not_speak_at_once) {
  FeedStreams streams = begun(options(4, 1));
  std::map<std::int64_t, int> said;
  for (Duration passed = 10ms; passed <= 1s; passed += 10ms) {
    streams.advance(at(passed), [&](std::size_t) { ++said[passed / 1ms]; });
  }
  EXPECT_EQ(said, (std::map<std::int64_t, int>{{250, 1}, {500, 1}, {750, 1}, {1000, 1}}));
}

TEST(FeedStreams, next_due_is_when_advance_finds_something) {
  FeedStreams streams = begun(options(1, 4));
  ASSERT_EQ(streams.next_due(), start + 250ms);
  int said = 0;
  streams.advance({start + 249ms, {}}, [&](std::size_t) { ++said; });
  EXPECT_EQ(said, 0);
  streams.advance({start + 250ms, {}}, [&](std::size_t) { ++said; });
  EXPECT_EQ(said, 1);
  EXPECT_EQ(streams.next_due(), start + 500ms);
}

TEST(FeedStreams, the_history_keeps_the_newest_messages) {
  FeedStreams streams = begun(options(1, 100, 5));
  streams.advance(at(200ms), [](std::size_t) {});
  EXPECT_EQ(streams.latest(0), 20);
  EXPECT_EQ(streams.oldest(0), 16);
}

TEST(FeedStreams, without_a_history_the_newest_can_still_be_sent) {
  FeedStreams streams = begun(options(1, 100, 0));
  EXPECT_EQ(streams.oldest(0), 1);
  EXPECT_EQ(streams.latest(0), 0);
  streams.advance(at(50ms), [](std::size_t) {});
  EXPECT_EQ(streams.oldest(0), streams.latest(0));
}

TEST(FeedStreams, a_stream_falls_silent_after_the_number_of_messages_asked_for) {
  FeedOptions limited = options(2, 10);
  limited.messages = 3;
  FeedStreams streams = begun(limited);
  for (Duration passed = 50ms; passed <= 2s; passed += 50ms) streams.advance(at(passed), [](std::size_t) {});
  EXPECT_EQ(streams.latest(0), 3);
  EXPECT_EQ(streams.latest(1), 3);
  EXPECT_EQ(streams.next_due(), std::nullopt);
}

TEST(FeedStreams, after_standing_still_it_goes_on_without_a_burst) {
  FeedStreams streams = begun(options(1, 10));
  streams.advance(at(1s), [](std::size_t) {});
  ASSERT_EQ(streams.latest(0), 10);
  streams.advance(at(60s), [](std::size_t) {});
  EXPECT_EQ(streams.latest(0), 10);
  streams.advance(at(61s), [](std::size_t) {});
  EXPECT_EQ(streams.latest(0), 20);
}

TEST(FeedStreams, a_message_is_json_with_its_stream_number_time_and_data_of_the_size_asked_for) {
  FeedOptions sized = options(2, 10);
  sized.size = 40;
  FeedStreams streams = begun(sized);
  streams.advance(at(200ms), [](std::size_t) {});
  const auto message = boost::json::parse(streams.render(1, 2)).as_object();
  EXPECT_EQ(message.size(), 4U);
  EXPECT_EQ(message.at("stream").as_string(), "s1");
  EXPECT_EQ(message.at("seq").as_int64(), 2);
  EXPECT_EQ(message.at("at_ms").as_int64(), 1'700'000'000'200);
  EXPECT_EQ(message.at("data").as_string().size(), 40U);
  EXPECT_NE(streams.render(1, 1), streams.render(1, 2));
}

TEST(FeedStreams, are_found_by_their_name_and_by_nothing_else) {
  const FeedStreams streams(options(12, 1));
  EXPECT_EQ(streams.find("s0"), 0U);
  EXPECT_EQ(streams.find("s11"), 11U);
  for (const std::string name : {"s12", "s", "", "x1", "s01", "s-1", "s1x", "S1", "s99999999999999999999"}) {
    EXPECT_EQ(streams.find(name), std::nullopt) << name;
  }
}

TEST(FeedTarget, names_a_stream_and_perhaps_a_place_to_go_on_from) {
  bool bad = true;
  auto request = parse_feed_target("/stream/s3", bad);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->stream, "s3");
  EXPECT_EQ(request->since, std::nullopt);
  EXPECT_FALSE(bad);
  request = parse_feed_target("/stream/s3?token=x&since=42", bad);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->since, 42);
  EXPECT_FALSE(bad);
}

TEST(FeedTarget, nonsense_is_no_target) {
  bool bad = false;
  EXPECT_FALSE(parse_feed_target("/", bad));
  EXPECT_FALSE(parse_feed_target("/streams/s1", bad));
  for (const std::string since : {"", "x", "-1", "1x", "99999999999999999999"}) {
    ASSERT_TRUE(parse_feed_target("/stream/s1?since=" + since, bad));
    EXPECT_TRUE(bad) << since;
  }
}

}  // namespace
}  // namespace holdfast::cli
