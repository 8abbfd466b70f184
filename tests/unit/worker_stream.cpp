#include "worker/stream.hpp"

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

// Resuming.

TEST(Stream, resumes_by_query_from_the_last_sequence_number) {
  StreamRig rig;
  rig.start({{"resume.query", "since"}}, 41);
  EXPECT_EQ(rig.target(), "/stream?since=41");
}

TEST(Stream, an_inclusive_upstream_is_asked_for_the_next_number) {
  StreamRig rig;
  rig.start({{"resume.query", "from"}, {"resume.inclusive", true}}, 41);
  EXPECT_EQ(rig.target(), "/stream?from=42");
}

TEST(Stream, where_nothing_was_received_yet_it_asks_from_the_start) {
  StreamRig rig;
  rig.start({{"resume.query", "from"}, {"resume.inclusive", true}}, 0);
  EXPECT_EQ(rig.target(), "/stream?from=0");
}

TEST(Stream, the_resume_message_goes_before_the_subscriptions_so_that_nothing_live_overtakes_the_replay) {
  StreamRig rig;
  rig.start_open(
      {{"resume.message", "{{\"from\":{next_seq},\"id\":\"{id}\"}}"}, {"subscribe", Value::List{"one", "two"}}}, 41);
  EXPECT_THAT(rig.net.peer().sent, ElementsAre(R"({"from":42,"id":"a"})", "one", "two"));
  EXPECT_EQ(rig.status(), "subscribed");
}

TEST(Stream, the_resume_message_goes_where_the_subscriptions_say) {
  StreamRig rig;
  rig.start_open(
      {{"resume.message", "go on after {last_seq}"}, {"subscribe", Value::List{"auth", "{resume}", "rest"}}}, 41);
  EXPECT_THAT(rig.net.peer().sent, ElementsAre("auth", "go on after 41", "rest"));
}

TEST(Stream, after_a_reconnect_it_resumes_after_what_the_sink_was_given) {
  StreamRig rig;
  rig.start_open(StreamRig::with_seq({{"resume.query", "since"}}), 10);
  rig.net.receive_seq(11);
  rig.net.receive_seq(12);
  rig.net.fails("reset");
  ASSERT_NE(rig.reconnects_in(), Duration::max());
  EXPECT_EQ(rig.target(), "/stream?since=12");
  EXPECT_EQ(rig.last_seq(), 10) << "nothing was acknowledged";
  EXPECT_EQ(rig.tally().reconnects, 1);
}

// Messages.

TEST(Stream, a_read_is_one_write_to_the_sink_with_connection_and_epoch) {
  StreamRig rig;
  rig.start_open(StreamRig::with_seq());
  rig.net.text(R"({"seq":1})");
  rig.net.text(R"({"seq":2})");
  EXPECT_TRUE(rig.sink.records.empty());
  rig.net.batch_end();
  EXPECT_EQ(rig.sink.writes, 1U);
  ASSERT_EQ(rig.sink.seqs(), (Seqs{1, 2}));
  EXPECT_EQ(rig.sink.records[0].connection, "a");
  EXPECT_EQ(rig.sink.records[0].epoch, Epoch{7});
  EXPECT_EQ(rig.sink.records[0].data, R"({"seq":1})");
}

TEST(Stream, without_a_pointer_it_numbers_messages_itself_from_the_last_one_on) {
  StreamRig rig;
  rig.start_open({}, 41);
  rig.net.receive("anything");
  rig.net.binary("\x01");
  rig.net.batch_end();
  EXPECT_EQ(rig.sink.seqs(), (Seqs{42, 43}));
  EXPECT_EQ(rig.sink.records[1].kind, Record::Kind::binary);
}

TEST(Stream, a_message_without_a_number_is_delivered_without_one_and_moves_nothing) {
  StreamRig rig;
  rig.start_open(StreamRig::with_seq(), 10);
  rig.net.receive(R"({"op":"ack"})");
  rig.net.receive_seq(11);
  rig.net.receive("no json");
  rig.sink.acknowledge_all();
  EXPECT_EQ(rig.sink.seqs(), (Seqs{Record::no_seq, 11, Record::no_seq}));
  EXPECT_EQ(rig.last_seq(), 11);
  EXPECT_EQ(rig.tally().unnumbered, 2);
}

TEST(Stream, messages_without_a_number_can_be_left_out) {
  StreamRig rig;
  rig.start_open(StreamRig::with_seq({{"seq.missing", "drop"}}), 10);
  rig.net.receive(R"({"op":"heartbeat"})");
  EXPECT_TRUE(rig.sink.records.empty());
  EXPECT_EQ(rig.tally().unnumbered, 1);
  EXPECT_EQ(rig.status(), "open") << "not a message yet that counts";
}

TEST(Stream, a_sequence_that_leaves_numbers_out_has_no_gaps) {
  StreamRig rig;
  rig.start_open(StreamRig::with_seq({{"seq.sparse", true}}), 10);
  rig.net.receive_seq(20);
  EXPECT_EQ(rig.sink.seqs(), (Seqs{20}));
}

TEST(Stream, very_many_small_messages_in_one_read_are_handed_over_in_parts) {
  StreamRig rig;
  rig.start_open();
  for (int i = 0; i < 5000; ++i) rig.net.text("x");
  rig.net.batch_end();
  EXPECT_EQ(rig.sink.records.size(), 5000U);
  EXPECT_GE(rig.sink.writes, 5U);
}

// Acknowledging (S9).

TEST(Stream, last_seq_moves_only_with_what_the_sink_has_acknowledged) {
  StreamRig rig;
  rig.start_open(StreamRig::with_seq(), 10);
  for (std::int64_t seq = 11; seq <= 20; ++seq) rig.net.receive_seq(seq);
  EXPECT_EQ(rig.last_seq(), 10);
  rig.sink.acknowledge(1);
  EXPECT_EQ(rig.last_seq(), 11);
  rig.sink.acknowledge(9);
  EXPECT_LE(rig.last_seq(), 19) << "two marks know no better, and never claim more than there is";
  rig.sink.acknowledge(10);
  EXPECT_EQ(rig.last_seq(), 20);
}

TEST(Stream, a_row_that_is_ahead_is_never_moved_back) {
  StreamRig rig;
  rig.start_open({}, 100);
  EXPECT_EQ(rig.last_seq(), 100);
}

// Rows.

TEST(Stream, a_row_that_makes_no_sense_parks_and_says_why) {
  StreamRig rig;
  rig.start({{"resume.qeury", "since"}});
  EXPECT_EQ(rig.net.count(), 0U);
  EXPECT_EQ(rig.status(), "parked");
  EXPECT_THAT(rig.reason(), HasSubstr("unknown option 'resume.qeury'"));
  rig.stream->row_changed(StreamRig::row({{"resume.query", "since"}}));
  EXPECT_EQ(rig.net.count(), 1U);
}

TEST(Stream, an_edit_to_nonsense_parks_even_in_the_middle_of_waiting) {
  StreamRig rig;
  rig.start_open();
  rig.net.fails("reset");
  rig.stream->row_changed(StreamRig::row({{"nonsense", 1}}));
  EXPECT_EQ(rig.status(), "parked");
  rig.loop.advance(1h);
  EXPECT_EQ(rig.net.count(), 1U);
}

TEST(Stream, an_edit_closes_the_connection_and_opens_it_with_the_new_options) {
  StreamRig rig;
  rig.start_open({{"subscribe", Value::List{"old"}}});
  rig.stream->row_changed(StreamRig::row({{"subscribe", Value::List{"new"}}}));
  EXPECT_EQ(rig.net.peer().close_code, 1001);
  rig.net.closes_too();
  ASSERT_EQ(rig.net.count(), 2U);
  rig.net.open();
  EXPECT_THAT(rig.net.peer().sent, ElementsAre("new"));
}

TEST(Stream, an_edit_does_not_wait_long_for_the_other_side_to_close) {
  StreamRig rig;
  rig.start_open();
  rig.stream->row_changed(StreamRig::row({{"silent_after", "1m"}}));
  rig.loop.advance(1s);
  EXPECT_EQ(rig.net.count(), 2U);
}

TEST(Stream, a_row_that_says_the_same_changes_nothing) {
  StreamRig rig;
  rig.start_open({{"silent_after", "1m"}});
  rig.stream->row_changed(StreamRig::row({{"silent_after", "60s"}}, 99));
  EXPECT_EQ(rig.net.count(), 1U);
  EXPECT_EQ(rig.net.peer().close_code, 0);
}

TEST(Stream, a_missing_secret_is_a_reason_to_wait_and_try_again) {
  ::unsetenv("HOLDFAST_TEST_TOKEN");
  StreamRig rig;
  rig.start({{"headers", Value::Map{{"Authorization", "env:HOLDFAST_TEST_TOKEN"}}}});
  EXPECT_EQ(rig.net.count(), 0U);
  EXPECT_EQ(rig.status(), "backing_off");
  EXPECT_THAT(rig.reason(), HasSubstr("HOLDFAST_TEST_TOKEN"));
  ::setenv("HOLDFAST_TEST_TOKEN", "there", 1);
  EXPECT_NE(rig.reconnects_in(), Duration::max());
  ::unsetenv("HOLDFAST_TEST_TOKEN");
}

// Stopping (S11).

TEST(Stream, stop_reads_no_more_flushes_waits_for_the_acknowledgement_then_closes) {
  StreamRig rig;
  rig.start_open();
  rig.net.receive("x");
  rig.stop(LossReason::drained, 20s);
  EXPECT_TRUE(rig.net.peer().paused);
  EXPECT_EQ(rig.sink.flushes, 1U);
  EXPECT_EQ(rig.net.peer().close_code, 0) << "not before the sink has it";
  rig.net.receive("too late");
  rig.sink.acknowledge_all();
  rig.loop.settle();
  EXPECT_EQ(rig.net.peer().close_code, 1001);
  EXPECT_FALSE(rig.stopped);
  rig.net.closes_too();
  EXPECT_TRUE(rig.stopped);
  EXPECT_EQ(rig.last_seq(), 1);
  EXPECT_EQ(rig.sink.records.size(), 1U);
}

TEST(Stream, a_connection_that_was_stopped_for_good_closes_with_1000) {
  StreamRig rig;
  rig.start_open();
  rig.stop(LossReason::stopped, 20s);
  EXPECT_EQ(rig.net.peer().close_code, 1000);
}

TEST(Stream, stop_waits_only_briefly_for_the_close_of_the_other_side) {
  StreamRig rig;
  rig.start_open();
  rig.stop(LossReason::drained, 20s);
  EXPECT_FALSE(rig.stopped);
  rig.loop.advance(500ms);
  EXPECT_TRUE(rig.stopped);
  EXPECT_FALSE(rig.net.alive());
}

TEST(Stream, stop_ends_at_its_deadline_with_what_was_acknowledged_by_then) {
  StreamRig rig;
  rig.start_open();
  rig.net.receive("x");
  rig.net.receive("y");
  rig.stop(LossReason::drained, 20s);
  rig.sink.acknowledge(1);
  rig.loop.advance(20s);
  EXPECT_TRUE(rig.stopped);
  EXPECT_EQ(rig.last_seq(), 1);
}

TEST(Stream, stop_while_connecting_waiting_or_parked_is_immediate) {
  for (const int when : {0, 1, 2}) {
    StreamRig rig;
    rig.start();
    if (when == 1) rig.net.fails("no route");
    if (when == 2) rig.net.refuses(404);
    rig.stop(LossReason::drained, 20s);
    EXPECT_TRUE(rig.stopped);
    rig.loop.advance(1h);
    EXPECT_EQ(rig.net.count(), 1U);
  }
}

TEST(Stream, stop_while_backing_off_still_waits_for_what_the_sink_was_given) {
  StreamRig rig;
  rig.start_open();
  rig.net.receive("x");
  rig.net.fails("reset");
  rig.stop(LossReason::drained, 20s);
  EXPECT_FALSE(rig.stopped);
  rig.sink.acknowledge_all();
  rig.loop.settle();
  EXPECT_TRUE(rig.stopped);
  EXPECT_EQ(rig.last_seq(), 1);
}

TEST(Stream, a_sink_that_failed_is_not_waited_for) {
  StreamRig rig;
  rig.start_open();
  rig.net.receive("x");
  rig.stop(LossReason::sink_failed, 20s);
  rig.loop.advance(500ms);
  EXPECT_TRUE(rig.stopped);
  EXPECT_EQ(rig.last_seq(), 0);
}

TEST(Stream, the_progress_of_a_sink_that_nobody_waits_for_costs_the_loop_nothing) {
  StreamRig rig;
  rig.start_open();
  rig.net.receive("x");
  rig.loop.settle();
  rig.sink.acknowledge_all();
  EXPECT_EQ(rig.loop.tasks(), 0U);
  rig.sink.set_behind(true);
  rig.net.receive("y");
  rig.loop.settle();
  rig.sink.set_behind(false);
  EXPECT_EQ(rig.loop.tasks(), 1U) << "now there is one that waits";
}

TEST(Stream, a_stream_may_be_destroyed_in_any_state_and_leaves_nothing_behind) {
  for (int state = 0; state < 7; ++state) {
    StreamRig rig;
    if (state > 0) rig.start({{"silent_after", "1m"}});
    if (state == 2) rig.net.fails("no");
    if (state >= 3) rig.net.open();
    if (state == 4) rig.sink.set_behind(true);
    if (state >= 4) rig.net.receive("x");
    if (state == 6) rig.stop(LossReason::drained, 20s);
    rig.stream.reset();
    EXPECT_EQ(rig.loop.timers(), 0U) << state;
    EXPECT_FALSE(rig.net.alive());
    rig.sink.set_behind(false);
    rig.sink.acknowledge_all();
    rig.loop.advance(1h);
  }
}

TEST(Stream, it_may_be_destroyed_from_inside_stopped) {
  StreamRig rig;
  rig.start_open();
  rig.net.receive("x");
  rig.stream->stop(LossReason::drained, rig.loop.instant() + 20s, [&] { rig.stream.reset(); });
  rig.sink.acknowledge_all();
  rig.loop.settle();
  rig.net.closes_too();
  EXPECT_EQ(rig.stream, nullptr);
}

TEST(Stream, the_time_of_the_first_message_is_kept) {
  StreamRig rig;
  rig.start_open(StreamRig::with_seq(), 5);
  rig.loop.advance(3s);
  rig.net.receive_seq(5);
  EXPECT_EQ(rig.stream->progress().first_message_at, std::nullopt) << "a repeat is not progress";
  rig.loop.advance(1s);
  const WallTime first = rig.loop.wall();
  rig.net.receive_seq(6);
  rig.loop.advance(1s);
  rig.net.receive_seq(7);
  EXPECT_EQ(rig.stream->progress().first_message_at, first);
}

}  // namespace
}  // namespace holdfast::worker
