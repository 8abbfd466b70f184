// The judge of the demo, tried on histories that are wrong in known ways.
#include "cli/demo_verify.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/demo_run.hpp"
#include "cli/sink_files.hpp"

namespace holdfast::cli {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

SinkRecord message(const std::string& connection, std::int64_t epoch, std::int64_t seq, std::int64_t at_ms) {
  return {.connection = connection, .epoch = epoch, .at_ms = at_ms, .seq = seq, .gap_to = std::nullopt};
}

// Messages 1 to 4 of one connection: 1 and 2 under w1, 3 and 4 under w2.
DeliveryHistory handed_over() {
  DeliveryHistory history({"a"}, 4);
  history.add("w1-x", message("a", 1, 1, 100));
  history.add("w1-x", message("a", 1, 2, 200));
  history.add("w2-y", message("a", 2, 3, 1300));
  history.add("w2-y", message("a", 2, 4, 1400));
  return history;
}

TEST(DeliveryHistory, a_clean_hand_over_holds) {
  const DeliveryHistory history = handed_over();
  EXPECT_TRUE(history.complete());
  const auto verdict = history.verdict();
  EXPECT_TRUE(verdict.holds());
  EXPECT_EQ(verdict.delivered, 4);
  EXPECT_EQ(verdict.missing, 0);
  EXPECT_EQ(verdict.repeats, 0);
  EXPECT_TRUE(verdict.problems.empty());
}

TEST(DeliveryHistory, a_repeat_is_counted_and_is_no_fault) {
  DeliveryHistory history = handed_over();
  history.add("w2-y", message("a", 2, 2, 1300));
  const auto verdict = history.verdict();
  EXPECT_EQ(verdict.repeats, 1);
  EXPECT_EQ(verdict.delivered, 4);
  EXPECT_TRUE(verdict.holds());
}

TEST(DeliveryHistory, a_missing_message_is_named) {
  DeliveryHistory history({"a", "b"}, 2);
  history.add("w1-x", message("a", 1, 1, 100));
  history.add("w1-x", message("a", 1, 2, 100));
  history.add("w1-x", message("b", 1, 1, 100));
  const auto verdict = history.verdict();
  EXPECT_FALSE(history.complete());
  EXPECT_FALSE(verdict.holds());
  EXPECT_EQ(verdict.missing, 1);
  EXPECT_THAT(verdict.problems.at(0), HasSubstr("connection b lacks 1 messages, the first is 2"));
}

TEST(DeliveryHistory, a_repeat_does_not_make_up_for_a_missing_message) {
  DeliveryHistory history({"a"}, 2);
  history.add("w1-x", message("a", 1, 1, 100));
  history.add("w1-x", message("a", 1, 1, 110));
  EXPECT_EQ(history.verdict().missing, 1);
}

TEST(DeliveryHistory, a_gap_record_is_a_fault_even_where_the_messages_came_after_all) {
  DeliveryHistory history = handed_over();
  SinkRecord gap = message("a", 2, 3, 1250);
  gap.gap_to = 3;
  history.add("w2-y", gap);
  EXPECT_EQ(history.verdict().gaps, 1);
  EXPECT_FALSE(history.verdict().holds());
}

TEST(DeliveryHistory, a_record_under_an_old_epoch_after_a_newer_one_began_is_an_overlap) {
  DeliveryHistory history = handed_over();
  history.add("w1-x", message("a", 1, 3, 1301));
  const auto verdict = history.verdict();
  EXPECT_EQ(verdict.overlaps, 1);
  EXPECT_FALSE(verdict.holds());
  EXPECT_THAT(verdict.problems.at(0), HasSubstr("epoch 1 (w1-x) has a record 1 ms after a newer epoch began"));
}

TEST(DeliveryHistory, the_last_moment_before_a_newer_epoch_is_none) {
  DeliveryHistory history = handed_over();
  history.add("w1-x", message("a", 1, 2, 1300));
  EXPECT_EQ(history.verdict().overlaps, 0);
}

TEST(DeliveryHistory, an_overlap_with_an_epoch_two_further_is_found_though_the_one_between_is_quiet) {
  DeliveryHistory history({"a"}, 4);
  history.add("w1-x", message("a", 1, 1, 100));
  history.add("w1-x", message("a", 1, 2, 900));
  history.add("w2-y", message("a", 2, 3, 2000));
  history.add("w3-z", message("a", 3, 4, 500));
  EXPECT_EQ(history.verdict().overlaps, 2) << "message 2 under epoch 1 and message 3 under epoch 2";
}

TEST(DeliveryHistory, two_owners_of_one_epoch_are_an_overlap) {
  DeliveryHistory history = handed_over();
  history.add("w3-z", message("a", 2, 4, 1500));
  EXPECT_EQ(history.verdict().overlaps, 1);
  EXPECT_THAT(history.verdict().problems.at(0), HasSubstr("two owners: w2-y and w3-z"));
}

TEST(DeliveryHistory, two_incarnations_of_one_worker_are_two_owners) {
  DeliveryHistory history = handed_over();
  history.add("w2-other", message("a", 2, 4, 1500));
  EXPECT_EQ(history.verdict().overlaps, 1);
}

TEST(DeliveryHistory, an_epoch_that_goes_back_in_one_file_is_an_overlap) {
  DeliveryHistory history({"a"}, 3);
  history.add("w1-x", message("a", 1, 1, 100));
  history.add("w1-x", message("a", 2, 2, 200));
  history.add("w1-x", message("a", 1, 3, 200));
  EXPECT_EQ(history.verdict().overlaps, 1);
  EXPECT_THAT(history.verdict().problems.at(0), HasSubstr("goes back from epoch 2 to 1"));
}

TEST(DeliveryHistory, messages_and_connections_that_were_never_there_are_faults) {
  for (const auto& [connection, seq] :
       std::vector<std::pair<std::string, std::int64_t>>{{"a", 5}, {"a", 0}, {"b", 1}}) {
    DeliveryHistory history = handed_over();
    history.add("w2-y", message(connection, 2, seq, 1500));
    EXPECT_EQ(history.verdict().strangers, 1);
    EXPECT_FALSE(history.verdict().holds());
  }
}

TEST(DeliveryHistory, a_damaged_line_is_a_fault) {
  DeliveryHistory history = handed_over();
  history.add_damaged("w1-x", "not JSON");
  EXPECT_FALSE(history.verdict().holds());
}

TEST(DeliveryHistory, connections_are_judged_each_for_itself) {
  DeliveryHistory history({"a", "b"}, 1);
  history.add("w1-x", message("a", 7, 1, 100));
  history.add("w2-y", message("b", 3, 1, 50));
  EXPECT_TRUE(history.verdict().holds());
}

TEST(DeliveryHistory, a_failover_takes_from_the_moment_given_to_the_first_record_of_the_next_epoch) {
  DeliveryHistory history({"a", "b", "c"}, 2);
  for (const std::string id : {"a", "b", "c"}) history.add("w1-x", message(id, 1, 1, 100));
  history.add("w2-y", message("a", 2, 2, 1200));
  history.add("w2-y", message("b", 2, 2, 1500));
  history.add("w2-y", message("c", 2, 2, 1100));
  const auto failover = history.failover("w1-x", 1000);
  EXPECT_EQ(failover.connections, 3U);
  EXPECT_EQ(failover.resumed, 3U);
  EXPECT_EQ(failover.ms_median, 200);
  EXPECT_EQ(failover.ms_max, 500);
}

TEST(DeliveryHistory, a_failover_leaves_out_what_others_held_and_tells_what_was_not_resumed) {
  DeliveryHistory history({"a", "b", "c"}, 2);
  history.add("w1-x", message("a", 1, 1, 100));
  history.add("w1-x", message("b", 1, 1, 100));
  history.add("w1-x", message("c", 1, 1, 100));
  history.add("w2-y", message("b", 2, 2, 500));  // had moved before
  history.add("w2-y", message("c", 2, 2, 1300));
  const auto failover = history.failover("w1-x", 1000);
  EXPECT_EQ(failover.connections, 2U) << "a and c";
  EXPECT_EQ(failover.resumed, 1U) << "c";
}

TEST(SinkRecord, is_read_from_a_line_of_the_sink) {
  const auto text = parse_sink_record(R"({"conn":"a","epoch":3,"seq":7,"at_ms":1700,"data":"{\"x\":1}"})");
  ASSERT_TRUE(text);
  EXPECT_EQ(text->connection, "a");
  EXPECT_EQ(text->epoch, 3);
  EXPECT_EQ(text->seq, 7);
  EXPECT_EQ(text->at_ms, 1700);
  EXPECT_EQ(text->gap_to, std::nullopt);
  const auto gap = parse_sink_record(R"({"conn":"a","epoch":3,"gap":[8,10],"at_ms":1700})");
  ASSERT_TRUE(gap);
  EXPECT_EQ(gap->seq, 8);
  EXPECT_EQ(gap->gap_to, 10);
}

TEST(SinkRecord, anything_else_is_damage) {
  for (const std::string line :
       {"", "{", "[]", "null", R"({"conn":"a","epoch":3,"at_ms":1})", R"({"conn":1,"epoch":3,"seq":7,"at_ms":1})",
        R"({"conn":"a","seq":7,"at_ms":1})", R"({"conn":"a","epoch":"3","seq":7,"at_ms":1})",
        R"({"conn":"a","epoch":3,"gap":[1],"at_ms":1})", R"({"conn":"a","epoch":3,"seq":7,"at_ms":1}x)"}) {
    EXPECT_FALSE(parse_sink_record(line)) << line;
  }
}

TEST(SinkFile, is_named_after_its_owner) {
  EXPECT_EQ(owner_of_file("w1-5f0c2a11-000002.ndjson"), "w1-5f0c2a11");
  EXPECT_EQ(owner_of_file("a-b-5f0c2a11-1000000.ndjson"), "a-b-5f0c2a11");
  EXPECT_EQ(owner_of_file("notes.txt"), "");
  EXPECT_EQ(owner_of_file("w1.ndjson"), "");
  EXPECT_EQ(owner_of_file("w1-x.ndjson"), "");
  EXPECT_EQ(worker_of_owner("a-b-5f0c2a11"), "a-b");
}

TEST(DemoPlan, kills_one_starts_one_and_stops_one_in_time) {
  DemoOptions options;
  const auto plan = demo_plan(options);
  ASSERT_EQ(plan.size(), 3U);
  EXPECT_EQ(plan[0].kind, DemoAct::Kind::crash);
  EXPECT_EQ(plan[1].kind, DemoAct::Kind::start);
  EXPECT_EQ(plan[2].kind, DemoAct::Kind::stop);
  EXPECT_LT(plan[2].at, options.seconds);
  EXPECT_GE(plan[2].at - plan[0].at, options.lease + 1500ms);
}

TEST(DemoPlan, a_lone_worker_has_a_successor_for_each_end) {
  DemoOptions options;
  options.workers = 1;
  std::size_t alive = 1;
  for (const DemoAct& act : demo_plan(options)) {
    alive = act.kind == DemoAct::Kind::start ? alive + 1 : alive - 1;
  }
  EXPECT_GE(alive, 1U);
  EXPECT_EQ(demo_capacity(options), options.connections);
}

TEST(DemoPlan, one_worker_short_the_rest_can_hold_everything) {
  for (std::size_t workers = 2; workers < 6; ++workers) {
    for (std::size_t connections = 1; connections < 40; ++connections) {
      DemoOptions options;
      options.workers = workers;
      options.connections = connections;
      EXPECT_GE(demo_capacity(options) * (workers - 1), connections);
    }
  }
}

TEST(DemoCheck, refuses_in_a_sentence_what_cannot_prove_anything) {
  DemoOptions options;
  EXPECT_TRUE(check_demo(options));
  options.seconds = 5s;
  ASSERT_FALSE(check_demo(options));
  EXPECT_THAT(check_demo(options).error().detail, HasSubstr("use 10 or more"));
  options = {};
  options.lease = 10ms;
  ASSERT_FALSE(check_demo(options));
  EXPECT_EQ(check_demo(options).error().code, Code::usage);
  options = {};
  options.connections = 5'000;
  options.rate = 1'000;
  EXPECT_FALSE(check_demo(options));
}

TEST(DemoJson, has_exactly_the_fields_that_programs_were_promised) {
  DemoResult result;
  result.verdict.delivered = 5;
  result.failovers = {{"crash", "w1", {2, 2, 3, 4}}, {"graceful", "w2", {1, 1, 7, 7}}};
  EXPECT_EQ(demo_json(result), R"({"delivered":5,"missing":0,"repeats":0,"gaps":0,"overlaps":0,"failovers":[)"
                               R"({"kind":"crash","connections":2,"ms_median":3,"ms_max":4},)"
                               R"({"kind":"graceful","connections":1,"ms_median":7,"ms_max":7}]})"
                               "\n");
}

TEST(DemoResult, holds_only_if_every_connection_was_taken_over) {
  DemoResult result;
  result.failovers = {{"crash", "w1", {2, 2, 3, 4}}};
  EXPECT_TRUE(result.holds());
  result.failovers[0].measured.resumed = 1;
  EXPECT_FALSE(result.holds());
  result.failovers[0].measured = {};
  EXPECT_FALSE(result.holds()) << "a victim that held nothing proves nothing";
}

}  // namespace
}  // namespace holdfast::cli
