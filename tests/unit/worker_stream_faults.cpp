#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "support/stream_rig.hpp"

namespace holdfast::worker {
namespace {

using namespace std::chrono_literals;
using test::StreamRig;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Seqs = std::vector<std::int64_t>;

TEST(Faults, f01_a_stream_whose_lease_ended_while_it_was_frozen_gives_nothing_to_the_sink) {
  StreamRig rig;
  rig.hold_for(10s);
  rig.start_open(StreamRig::with_seq());
  rig.net.text(R"({"seq":1})");
  rig.loop.freeze(11s);
  rig.net.batch_end();
  EXPECT_TRUE(rig.sink.records.empty());
  EXPECT_FALSE(rig.net.alive()) << "the socket is closed at once";
  EXPECT_EQ(rig.status(), "stopped");
}

TEST(Faults, f01_what_a_stream_could_not_hand_over_is_not_handed_over_by_the_next_on_its_loop) {
  StreamRig rig;
  rig.hold_for(10s);
  rig.start_open(StreamRig::with_seq());
  const auto frozen = rig.net.peers.back();
  auto next = rig.group.make_stream();
  Row row = StreamRig::row(StreamRig::with_seq());
  row.key = "CONN#b";
  next->start({ConnectionId("b"), row, std::make_shared<LeaseGuard>(Epoch{3}, rig.loop.instant() + 1h)});
  rig.loop.settle();
  rig.net.open();

  frozen->events->on_message({false, R"({"seq":1})"});
  rig.loop.freeze(11s);
  frozen->events->on_batch_end();
  rig.net.receive_seq(5);

  ASSERT_EQ(rig.sink.records.size(), 1U) << "only what the stream that still holds its lease has read";
  EXPECT_EQ(rig.sink.records[0].connection, "b");
  EXPECT_EQ(rig.sink.records[0].epoch, Epoch{3});
  EXPECT_EQ(rig.sink.records[0].seq, 5);
}

TEST(Faults, f01_what_one_stream_is_reading_is_not_handed_over_under_the_lease_of_another_that_closes) {
  StreamRig rig;
  rig.start_open(StreamRig::with_seq());
  const auto reading = rig.net.peers.back();
  auto other = rig.group.make_stream();
  Row row = StreamRig::row(StreamRig::with_seq());
  row.key = "CONN#b";
  other->start({ConnectionId("b"), row, std::make_shared<LeaseGuard>(Epoch{3}, rig.loop.instant() + 1h)});
  rig.loop.settle();
  rig.net.open();

  reading->events->on_message({false, R"({"seq":1})"});
  rig.net.fails("reset");
  EXPECT_TRUE(rig.sink.records.empty()) << "whether its own lease still holds has not been asked yet";
  reading->events->on_batch_end();
  ASSERT_EQ(rig.sink.records.size(), 1U);
  EXPECT_EQ(rig.sink.records[0].connection, "a");
}

TEST(Faults, f01_the_socket_closes_when_the_belief_ends_whatever_store_and_network_do) {
  StreamRig rig;
  rig.hold_for(10s);
  rig.start_open();
  rig.loop.advance(9999ms);
  EXPECT_TRUE(rig.net.alive());
  rig.loop.advance(1ms);
  EXPECT_FALSE(rig.net.alive());
  EXPECT_FALSE(rig.guard->extend(rig.loop.instant() + 1h)) << "a renewal that is confirmed now comes too late";
  rig.stop(LossReason::belief_expired, 10s);
  EXPECT_TRUE(rig.stopped);
}

TEST(Faults, f01_a_lease_that_is_extended_in_time_goes_on) {
  StreamRig rig;
  rig.hold_for(10s);
  rig.start_open();
  for (int i = 0; i < 10; ++i) {
    rig.loop.advance(5s);
    rig.guard->extend(rig.loop.instant() + 10s);
  }
  EXPECT_TRUE(rig.net.alive());
  rig.net.receive("x");
  EXPECT_EQ(rig.sink.records.size(), 1U);
}

TEST(Faults, f01_nothing_is_connected_under_a_lease_that_ended_during_backoff) {
  StreamRig rig;
  rig.hold_for(10s);
  rig.start_open();
  rig.net.fails("reset");
  rig.guard->revoke();
  rig.loop.advance(5min);
  EXPECT_EQ(rig.net.count(), 1U);
  EXPECT_EQ(rig.status(), "stopped");
}

TEST(Faults, f01_what_a_sink_left_out_is_never_checkpointed_even_where_the_keeper_still_believes) {
  StreamRig rig;
  rig.start_open(StreamRig::with_seq(), 10);
  rig.net.receive_seq(11);
  rig.sink.acknowledge_all();
  EXPECT_EQ(rig.last_seq(), 11);
  rig.net.receive_seq(12);
  rig.guard->revoke();         // by the sink, which leaves 12 out
  rig.sink.acknowledge_all();  // and moves on
  EXPECT_EQ(rig.last_seq(), 11);
}

TEST(Faults, f07_a_stop_that_waits_for_the_sink_ends_with_the_belief) {
  StreamRig rig;
  rig.hold_for(10s);
  rig.start_open();
  rig.net.receive("x");
  rig.stop(LossReason::drained, 1h);
  EXPECT_FALSE(rig.stopped);
  rig.loop.advance(10s);
  EXPECT_TRUE(rig.stopped);
  EXPECT_FALSE(rig.net.alive());
}

TEST(Faults, f33_pings_and_the_deadline_for_any_frame_are_set_and_a_dead_connection_is_made_anew) {
  StreamRig rig;
  rig.start_open({{"ping_every", "5s"}, {"dead_after", "11s"}});
  EXPECT_EQ(rig.net.peer().options.limits.ping_every, 5s);
  EXPECT_EQ(rig.net.peer().options.limits.dead_after, 11s);
  rig.net.fails("nothing was heard for 11s");
  EXPECT_EQ(rig.status(), "backing_off");
  EXPECT_EQ(rig.reason(), "nothing was heard for 11s");
  EXPECT_LE(rig.reconnects_in(), 1s);
}

TEST(Faults, f34_a_quiet_feed_is_called_silent_and_not_reconnected) {
  StreamRig rig;
  rig.start_open({{"silent_after", "30s"}});
  rig.net.receive("x");
  EXPECT_EQ(rig.status(), "flowing");
  rig.loop.advance(29s);
  EXPECT_EQ(rig.status(), "flowing");
  rig.loop.advance(1s);
  EXPECT_EQ(rig.status(), "silent");
  EXPECT_EQ(rig.reason(), "no message for 30s");
  rig.loop.advance(1h);
  EXPECT_EQ(rig.net.count(), 1U) << "the connection is left alone";
  rig.net.receive("y");
  EXPECT_EQ(rig.status(), "flowing");
  rig.loop.advance(30s);
  EXPECT_EQ(rig.status(), "silent");
}

TEST(Faults, f34_messages_that_keep_coming_keep_it_flowing) {
  StreamRig rig;
  rig.start_open({{"silent_after", "30s"}});
  for (int i = 0; i < 20; ++i) {
    rig.loop.advance(20s);
    EXPECT_EQ(rig.status(), i == 0 ? "open" : "flowing");
    rig.net.receive("x");
  }
}

TEST(Faults, f35_subscriptions_are_sent_once_per_connection_in_order) {
  StreamRig rig;
  rig.start_open({{"subscribe", Value::List{"one", "two", "three"}}});
  EXPECT_THAT(rig.net.peer().sent, ElementsAre("one", "two", "three"));
  rig.net.receive("x");
  for (int i = 0; i < 3; ++i) {
    rig.net.close_frame(1001);
    ASSERT_NE(rig.reconnects_in(), Duration::max());
    rig.net.open();
    rig.net.receive("x");
    EXPECT_THAT(rig.net.peer().sent, ElementsAre("one", "two", "three"));
  }
}

TEST(Faults, f36_opening_alone_does_not_reset_the_backoff) {
  StreamRig rig;
  rig.start_open();
  Duration longest{};
  for (int i = 0; i < 30; ++i) {
    rig.net.close_frame(1011);
    longest = std::max(longest, rig.reconnects_in());
    rig.net.open();
  }
  EXPECT_GT(longest, 10s) << "a server that closes at once is not asked in a tight loop";
  rig.loop.advance(31s);  // stable at last
  rig.net.close_frame(1011);
  EXPECT_LE(rig.reconnects_in(), 500ms);
}

TEST(Faults, f37_retry_after_is_honoured) {
  StreamRig rig;
  rig.start();
  rig.net.refuses(503, 90s);
  EXPECT_EQ(rig.status(), "backing_off");
  EXPECT_THAT(rig.reason(), HasSubstr("503"));
  EXPECT_GE(rig.reconnects_in(), 90s);
  rig.net.refuses(429);
  EXPECT_GE(rig.reconnects_in(), 5s) << "busy, and it did not say for how long";
}

TEST(Faults, f38_close_codes_decide_between_retrying_and_parking) {
  for (const std::uint16_t code : std::initializer_list<std::uint16_t>{1000, 1001, 1006, 1011, 1012, 1013, 4000}) {
    StreamRig rig;
    rig.start_open();
    rig.net.close_frame(code);
    EXPECT_EQ(rig.status(), "backing_off") << code;
    EXPECT_LE(rig.reconnects_in(), 60s) << code;
  }
  for (const std::uint16_t code : std::initializer_list<std::uint16_t>{1002, 1003, 1007, 1008, 1009}) {
    StreamRig rig;
    rig.start_open();
    rig.net.close_frame(code, "because\n");
    EXPECT_EQ(rig.status(), "parked") << code;
    EXPECT_THAT(rig.reason(), HasSubstr(std::to_string(code)));
    EXPECT_THAT(rig.reason(), HasSubstr("because"));
    EXPECT_EQ(rig.reason().find('\n'), std::string::npos);
    EXPECT_GE(rig.reconnects_in(), 10min) << code;
  }
}

TEST(Faults, f38_a_parked_stream_keeps_its_lease_and_is_tried_at_once_when_its_row_is_edited) {
  StreamRig rig;
  rig.start_open();
  rig.net.close_frame(1008);
  rig.loop.advance(1min);
  EXPECT_TRUE(rig.guard->holds(rig.loop.instant()));
  rig.stream->row_changed(StreamRig::row({{"headers", Value::Map{{"X-Key", "new"}}}}));
  EXPECT_EQ(rig.net.count(), 2U);
  EXPECT_EQ(rig.status(), "connecting");
}

TEST(Faults, f38_refused_credentials_are_read_again_before_the_next_try) {
  ::setenv("HOLDFAST_TEST_TOKEN", "old", 1);
  StreamRig rig;
  rig.start({{"headers", Value::Map{{"Authorization", "env:HOLDFAST_TEST_TOKEN"}}}});
  EXPECT_EQ(rig.net.peer().options.headers.at(0).second, "old");
  ::setenv("HOLDFAST_TEST_TOKEN", "new", 1);
  rig.net.refuses(401);
  EXPECT_EQ(rig.status(), "backing_off");
  ASSERT_NE(rig.reconnects_in(), Duration::max());
  EXPECT_EQ(rig.net.peer().options.headers.at(0).second, "new");
  ::unsetenv("HOLDFAST_TEST_TOKEN");
}

TEST(Faults, f39_while_the_sink_is_behind_the_socket_is_not_read) {
  StreamRig rig;
  rig.start_open();
  rig.sink.set_behind(true);
  rig.net.receive("x");
  EXPECT_TRUE(rig.net.peer().paused);
  EXPECT_EQ(rig.status(), "paused");
  rig.loop.advance(1h);
  EXPECT_TRUE(rig.net.peer().paused);
  rig.sink.set_behind(false);
  rig.loop.settle();
  EXPECT_FALSE(rig.net.peer().paused);
  EXPECT_EQ(rig.status(), "flowing");
}

TEST(Faults, f39_a_sink_that_others_have_filled_is_noticed_before_the_next_read) {
  StreamRig rig;
  rig.start_open();
  rig.sink.set_behind(true);
  rig.net.peer().events->before_read();
  EXPECT_TRUE(rig.net.peer().paused);
  EXPECT_EQ(rig.status(), "paused");
  rig.sink.set_behind(false);
  rig.loop.settle();
  EXPECT_FALSE(rig.net.peer().paused);
}

TEST(Stream, the_first_checkpoint_of_a_rows_life_is_brought_about_and_told_once) {
  StreamRig rig;
  int told = 0;
  rig.stream->start({ConnectionId("a"), StreamRig::row(StreamRig::with_seq()), rig.guard, [&] { ++told; }});
  rig.net.open();
  rig.net.receive("no number");
  rig.loop.settle();
  EXPECT_EQ(rig.sink.flushes, 0U) << "there is nothing to be checkpointed yet";
  rig.net.receive_seq(4);
  rig.loop.settle();
  EXPECT_EQ(rig.sink.flushes, 1U);
  EXPECT_EQ(told, 0) << "not before it is safe (S9)";
  rig.sink.acknowledge_all();
  rig.loop.settle();
  EXPECT_EQ(told, 1);
  EXPECT_EQ(rig.last_seq(), 4);
  rig.net.receive_seq(5);
  rig.sink.acknowledge_all();
  rig.loop.settle();
  EXPECT_EQ(told, 1);
  EXPECT_EQ(rig.sink.flushes, 1U);
}

TEST(Stream, a_row_that_has_a_checkpoint_is_checkpointed_with_its_renewals) {
  StreamRig rig;
  int told = 0;
  rig.stream->start({ConnectionId("a"), StreamRig::row(StreamRig::with_seq(), 3), rig.guard, [&] { ++told; }});
  rig.net.open();
  rig.net.receive_seq(4);
  rig.sink.acknowledge_all();
  rig.loop.settle();
  EXPECT_EQ(told, 0);
  EXPECT_EQ(rig.sink.flushes, 0U);
}

TEST(Faults, f39_a_sink_that_caught_up_just_before_the_stream_began_to_wait_is_not_waited_for_for_ever) {
  StreamRig rig;
  rig.start_open();
  rig.sink.set_behind(true);
  rig.loop.settle();
  rig.net.receive("x");
  ASSERT_TRUE(rig.net.peer().paused);
  rig.sink.catch_up_unheard();  // what it told, it told before there was anyone to hear it
  rig.loop.settle();
  EXPECT_FALSE(rig.net.peer().paused);
}

TEST(Faults, f39_a_connection_that_opens_while_the_sink_is_behind_is_not_read_either) {
  StreamRig rig;
  rig.sink.set_behind(true);
  rig.sink.set_failure(Error(Code::exhausted, "disk full"));
  rig.start_open();
  EXPECT_TRUE(rig.net.peer().paused);
  EXPECT_EQ(rig.status(), "paused");
  EXPECT_EQ(rig.reason(), "the sink fails: disk full");
}

TEST(Faults, f41_an_inclusive_or_longer_replay_is_dropped_and_counted) {
  StreamRig rig;
  rig.start_open(StreamRig::with_seq(), 10);
  for (const std::int64_t seq : {8, 9, 10, 11, 12}) rig.net.receive_seq(seq);
  EXPECT_EQ(rig.sink.seqs(), (Seqs{11, 12}));
  EXPECT_EQ(rig.tally().repeats_dropped, 3);
  EXPECT_EQ(rig.tally().messages, 2);
}

TEST(Faults, f41_a_hole_becomes_a_gap_record_before_the_message) {
  StreamRig rig;
  rig.start_open(StreamRig::with_seq(), 10);
  rig.net.receive_seq(11);
  rig.net.receive_seq(15);
  EXPECT_EQ(rig.sink.seqs(), (Seqs{11, -12, 15}));
  EXPECT_EQ(rig.sink.records[1].gap_to, 14);
  EXPECT_EQ(rig.tally().gaps, 1);
}

TEST(Faults, f41_a_hole_over_a_reconnect_is_recorded_too) {
  StreamRig rig;
  rig.start_open(StreamRig::with_seq(), 10);
  rig.net.receive_seq(11);
  rig.net.fails("reset");
  ASSERT_NE(rig.reconnects_in(), Duration::max());
  rig.net.open();
  rig.net.receive_seq(13);
  EXPECT_EQ(rig.sink.seqs(), (Seqs{11, -12, 13}));
}

TEST(Faults, f41_an_upstream_that_begins_its_numbers_anew_is_not_dropped_in_silence) {
  StreamRig rig;
  rig.start_open(StreamRig::with_seq({{"silent_after", "30s"}}), 0);
  rig.net.receive_seq(1000);
  EXPECT_EQ(rig.reason(), "");
  for (std::int64_t seq = 1; seq <= 5; ++seq) rig.net.receive_seq(seq);
  EXPECT_THAT(rig.reason(),
              HasSubstr("5 messages in a row were left out as repeats, the last with seq 5, not above 1000"));
  EXPECT_EQ(rig.tally().seq_went_back, 1);
  EXPECT_EQ(rig.tally().repeats_dropped, 5);
  rig.loop.advance(30s);
  rig.net.receive_seq(6);
  EXPECT_EQ(rig.status(), "silent") << "repeats are not data";
  EXPECT_THAT(rig.reason(), HasSubstr("6 messages in a row"));
  rig.net.receive_seq(1001);
  EXPECT_EQ(rig.status(), "flowing");
  EXPECT_EQ(rig.reason(), "");
}

TEST(Faults, f41_a_pointer_that_never_matches_is_told_of_while_messages_flow) {
  StreamRig rig;
  rig.start_open({{"seq.pointer", "/nope"}});
  for (int i = 0; i < 4; ++i) rig.net.receive_seq(i);
  EXPECT_EQ(rig.reason(), "") << "a greeting and some heartbeats are no sign of a wrong pointer";
  for (int i = 0; i < 96; ++i) rig.net.receive_seq(i);
  EXPECT_EQ(rig.status(), "flowing");
  EXPECT_THAT(rig.reason(), HasSubstr("no number at /nope in the last "));
  EXPECT_EQ(rig.tally().unnumbered, 100);
}

TEST(Faults, f41_numbers_that_come_after_all_end_the_doubt_about_the_pointer) {
  StreamRig rig;
  rig.start_open(StreamRig::with_seq());
  for (int i = 0; i < 50; ++i) rig.net.receive("heartbeat");
  EXPECT_THAT(rig.reason(), HasSubstr("no number at /seq"));
  rig.net.receive_seq(1);
  EXPECT_EQ(rig.reason(), "");
}

TEST(Faults, f20_a_connection_that_fails_again_and_again_is_told_of_once) {
  StreamRig rig;
  rig.start();
  for (int tries = 0; tries < 5; ++tries) {
    rig.net.fails("connection refused");
    ASSERT_NE(rig.reconnects_in(), Duration::max());
  }
  ASSERT_EQ(rig.troubles.size(), 1U);
  EXPECT_EQ(rig.troubles[0].connection, "a");
  EXPECT_FALSE(rig.troubles[0].parked);
  EXPECT_EQ(rig.troubles[0].reason, "connection refused");
}

TEST(Faults, f20_one_that_comes_and_goes_is_told_of_once_a_minute_at_most) {
  StreamRig rig;
  rig.start();
  const Instant begin = rig.loop.instant();
  while (rig.loop.instant() < begin + 10min) {
    rig.net.open();
    rig.net.fails("reset by peer");
    ASSERT_NE(rig.reconnects_in(), Duration::max());
  }
  EXPECT_GE(rig.troubles.size(), 3U) << "it is news each time that it was open";
  EXPECT_LE(rig.troubles.size(), 11U);
}

TEST(Faults, f38_being_parked_is_told_of_with_the_time_of_the_next_try) {
  StreamRig rig;
  rig.start();
  rig.net.fails("connection refused");
  ASSERT_NE(rig.reconnects_in(), Duration::max());
  rig.net.refuses(404);
  ASSERT_EQ(rig.troubles.size(), 2U) << "parked is worse than backing off, and told at once";
  EXPECT_TRUE(rig.troubles[1].parked);
  EXPECT_THAT(rig.reason(),
              testing::MatchesRegex(".*HTTP 404 \\(not found\\); tried again at [0-9]+:[0-9]+ UTC, .*"));
}

TEST(Faults, f42_the_status_tells_the_truth_from_connecting_to_flowing) {
  StreamRig rig;
  EXPECT_EQ(rig.status(), "starting");
  rig.start({{"subscribe", Value::List{"one"}}});
  EXPECT_EQ(rig.status(), "connecting");
  rig.net.open();
  EXPECT_EQ(rig.status(), "subscribed") << "and not a message since";
  rig.net.receive("x");
  EXPECT_EQ(rig.status(), "flowing");
  rig.net.fails("reset by peer");
  EXPECT_EQ(rig.status(), "backing_off");
  ASSERT_NE(rig.reconnects_in(), Duration::max());
  EXPECT_EQ(rig.status(), "connecting");
  EXPECT_EQ(rig.reason(), "reset by peer") << "why it has to connect again";
  rig.net.open();
  EXPECT_EQ(rig.status(), "subscribed") << "it flowed before, it does not now";
}

TEST(Faults, f43_a_connection_that_never_opens_nor_fails_is_given_up) {
  StreamRig rig;
  rig.start();
  rig.loop.advance(60s);
  EXPECT_THAT(rig.status(), testing::AnyOf("backing_off", "connecting"));
  EXPECT_FALSE(rig.net.peers[0]->events != nullptr) << "the first try is over";
  EXPECT_LE(rig.reconnects_in(), 61s);
}

TEST(Faults, f41_a_last_seq_written_as_a_float_or_a_text_is_gone_on_from) {
  for (const Value& value : {Value(100.0), Value("100")}) {
    StreamRig rig;
    Row row = StreamRig::row(StreamRig::with_seq({{"resume.query", "since"}}));
    row.attributes["last_seq"] = value;
    rig.stream->start({ConnectionId("a"), row, rig.guard});
    rig.loop.settle();
    EXPECT_EQ(rig.target(), "/stream?since=100");
    EXPECT_EQ(rig.last_seq(), 100);
  }
}

TEST(Faults, f41_a_last_seq_that_cannot_be_read_parks_the_stream_instead_of_replaying_all_until_it_is_mended) {
  StreamRig rig;
  Row row = StreamRig::row(StreamRig::with_seq({{"resume.query", "since"}}));
  row.attributes["last_seq"] = Value("seven");
  rig.stream->start({ConnectionId("a"), row, rig.guard});
  rig.loop.settle();
  EXPECT_EQ(rig.net.count(), 0U);
  EXPECT_EQ(rig.status(), "parked");
  EXPECT_THAT(rig.reason(), HasSubstr("last_seq is a text: seven"));
  row.attributes["last_seq"] = Value(7);
  rig.stream->row_changed(row);
  EXPECT_EQ(rig.target(), "/stream?since=7");
}

TEST(Faults, f41_a_stream_whose_own_numbers_are_used_up_is_parked_and_delivers_nothing_below_zero) {
  StreamRig rig;
  rig.start_open({}, INT64_MAX - 1);
  rig.net.text("a");
  rig.net.text("b");
  rig.net.batch_end();
  ASSERT_EQ(rig.sink.records.size(), 1U);
  EXPECT_EQ(rig.sink.records[0].seq, INT64_MAX);
  EXPECT_EQ(rig.status(), "parked");
  EXPECT_THAT(rig.reason(), HasSubstr("used up"));
  EXPECT_FALSE(rig.net.alive());
}

TEST(Faults, f41_the_number_after_the_last_one_that_there_is_is_not_asked_for) {
  StreamRig rig;
  rig.start(StreamRig::with_seq({{"resume.query", "from"}, {"resume.inclusive", true}}), INT64_MAX);
  EXPECT_EQ(rig.target(), "/stream?from=9223372036854775807");
}

TEST(Faults, f44_the_limit_on_a_message_is_handed_to_the_engine_and_its_excess_parks) {
  StreamRig rig;
  rig.start_open({{"max_message_bytes", 5000}});
  EXPECT_EQ(rig.net.peer().options.limits.message_bytes, 5000U);
  ws::Closed end;
  end.kind = ws::Closed::Kind::protocol;
  end.code = 1009;
  end.reason = "a message of more than 5000 bytes";
  rig.net.closed(end);
  EXPECT_EQ(rig.status(), "parked");
  EXPECT_THAT(rig.reason(), HasSubstr("more than 5000 bytes"));
}

}  // namespace
}  // namespace holdfast::worker
