// What the simulated way to the table can do to a request, one fault at a time. That it keeps the contract otherwise
// is tried by the contract suite.
#include <gtest/gtest.h>

#include <optional>

#include "sim/node_loop.hpp"
#include "sim/store.hpp"
#include "sim/stream.hpp"
#include "sim/world.hpp"

namespace holdfast::sim {
namespace {

using namespace std::chrono_literals;

struct SimStoreFaults : testing::Test {
  Timeline timeline;
  NodeClock truth;
  NodeLoop world{timeline, truth, 1};
  NodeLoop own{timeline, truth, 2};
  std::shared_ptr<SimTable> table = std::make_shared<SimTable>();
  Fate fate;
  bool reachable = true;
  std::unique_ptr<SimStore> store = make_store();
  std::optional<RowReply> reply;

  std::unique_ptr<SimStore> make_store() {
    SimStore::Hooks hooks;
    hooks.judge = [this](const store::Request&) { return fate; };
    hooks.reachable = [this] { return reachable; };
    return std::make_unique<SimStore>(table, own, world, std::int16_t{0}, std::move(hooks), false);
  }
  void ask(Update update) {
    store->update(std::move(update), own.instant() + 1s, [this](RowReply got) { reply = std::move(got); });
  }
  void add_one() { ask({"k", {Change::add("x", 1)}, {}}); }
  void run(Duration time) {
    const Instant end = timeline.now() + time;
    while (timeline.step(end)) {
    }
  }
  std::int64_t x() {
    const auto answer = table->memory().execute(store::Get{"k"}, WallTime{});
    const auto& row = std::get<RowReply>(answer).value;
    return row ? row->number("x") : 0;
  }
};

TEST_F(SimStoreFaults, without_a_fault_it_is_carried_out_and_answered) {
  fate.there = fate.back = 10ms;
  add_one();
  run(15ms);
  EXPECT_EQ(x(), 1);
  EXPECT_FALSE(reply.has_value()) << "the answer is still under way";
  run(10ms);
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->outcome, Outcome::applied);
}

TEST_F(SimStoreFaults, a_batch_with_unprocessed_keys_is_read_in_goes_and_is_of_no_one_moment) {
  const auto put = [this](const char* key, std::int64_t value) {
    (void)table->memory().execute(Update{key, {Change::set("x", value)}, {}}, WallTime{});
  };
  for (const char* key : {"a", "b", "c"}) put(key, 1);
  fate = {.there = 10ms, .back = 10ms, .goes = 2};
  std::optional<RowsReply> got;
  store->batch_get({"a", "b", "c"}, own.instant() + 1s, [&](RowsReply rows) { got = std::move(rows); });
  run(15ms);  // the first go has been at the table
  for (const char* key : {"a", "b", "c"}) put(key, 2);
  run(25ms);
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(got->outcome, Outcome::applied);
  std::vector<std::int64_t> values;
  for (const Row& row : got->value) values.push_back(row.number("x"));
  EXPECT_EQ(values, (std::vector<std::int64_t>{1, 2, 2}));
}

TEST_F(SimStoreFaults, a_batch_whose_goes_take_longer_than_its_deadline_is_unknown) {
  fate = {.there = 300ms, .back = 300ms, .goes = 4};
  std::optional<RowsReply> got;
  store->batch_get({"a", "b", "c", "d"}, own.instant() + 1s, [&](RowsReply rows) { got = std::move(rows); });
  run(1001ms);
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(got->outcome, Outcome::unknown);
  run(5s);
}

/// A reader of the simulated stream, with every rate that the test sets.
struct SimStreams : testing::Test {
  static Plan plan(double trimmed) {
    Plan plan = draw_plan(1, Scenario::reactive);
    for (std::size_t i = 0; i < faults_count; ++i) plan.rate[static_cast<Fault>(i)] = 0;
    plan.rate[Fault::stream_trimmed] = trimmed;
    return plan;
  }
  void open(double trimmed = 0) {
    world.emplace(plan(trimmed), 0);
    own.emplace(world->timeline, world->truth, 2);
    stream.emplace(*world);
    feed = std::make_shared<store::ChangeFeed>(*own);
    feed->listen([this](const Changed& some) { told.push_back(some.rows); });
    reader = stream->read(feed, [this] { return reachable; });
  }
  void run(Duration time) {
    const Instant end = world->now() + time;
    while (world->timeline.step(end)) {
    }
  }
  static Row row(const std::string& owner) {
    return {"CONN#c0",
            {{std::string(attribute::desired_state), Value(state::started)},
             {std::string(attribute::owner), owner},
             {std::string(attribute::expires_at), owner.empty() ? 0 : 99}}};
  }
  std::optional<World> world;
  std::optional<NodeLoop> own;
  std::optional<SimStream> stream;
  std::shared_ptr<store::ChangeFeed> feed;
  std::shared_ptr<SimStream::Reader> reader;
  std::vector<std::size_t> told;
  bool reachable = true;
};

TEST_F(SimStreams, begin_with_the_unknown_and_then_tell_late_of_what_is_free) {
  open();
  run(2s);
  EXPECT_EQ(told, std::vector<std::size_t>{Changed::any});
  told.clear();
  stream->wrote(row("w#1"));
  stream->wrote(row(""));
  run(40ms);
  EXPECT_TRUE(told.empty()) << "not at once";
  run(2s);
  EXPECT_EQ(told, std::vector<std::size_t>{1});
}

TEST_F(SimStreams, lose_records_and_say_that_anything_may_have_changed) {
  open(1);
  run(2s);
  told.clear();
  stream->wrote(row(""));
  run(world->plan.terms.lease + 1s);
  EXPECT_EQ(told, std::vector<std::size_t>{Changed::any});
}

TEST_F(SimStreams, tell_nothing_while_they_are_off_or_out_of_reach_and_make_up_for_it) {
  open();
  run(2s);
  stream->turn(false);
  run(world->plan.terms.lease + 1s);
  EXPECT_FALSE(stream->on());
  told.clear();
  stream->wrote(row(""));
  run(world->plan.terms.lease);
  EXPECT_TRUE(told.empty());
  stream->turn(true);
  run(world->plan.terms.lease + 1s);
  EXPECT_EQ(told, std::vector<std::size_t>{Changed::any});
  told.clear();
  reachable = false;
  stream->wrote(row(""));
  run(5s);
  EXPECT_TRUE(told.empty());
  reachable = true;
  run(2s);
  EXPECT_EQ(told, std::vector<std::size_t>{1});
}

TEST_F(SimStoreFaults, a_lost_request_does_nothing_and_is_unknown_at_its_deadline) {
  fate.kind = Fate::Kind::lost;
  add_one();
  run(999ms);
  EXPECT_FALSE(reply.has_value());
  run(2ms);
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->outcome, Outcome::unknown);
  EXPECT_EQ(x(), 0);
}

TEST_F(SimStoreFaults, a_lost_answer_is_unknown_although_it_was_carried_out) {
  fate.answer_lost = true;
  add_one();
  run(2s);
  ASSERT_TRUE(reply.has_value());
  EXPECT_EQ(reply->outcome, Outcome::unknown);
  EXPECT_EQ(x(), 1);
}

TEST_F(SimStoreFaults, a_slow_request_arrives_after_its_deadline_and_after_its_sender_has_died) {
  fate.there = 5s;
  add_one();
  run(2s);
  EXPECT_EQ(reply->outcome, Outcome::unknown);
  EXPECT_EQ(x(), 0);
  store.reset();
  own.clear();
  run(4s);
  EXPECT_EQ(x(), 1);
}

TEST_F(SimStoreFaults, a_late_duplicate_is_carried_out_once_more) {
  fate.again = 5s;
  add_one();
  run(1s);
  EXPECT_EQ(x(), 1);
  run(5s);
  EXPECT_EQ(x(), 2);
}

TEST_F(SimStoreFaults, a_throttled_one_and_a_rejected_one_do_nothing) {
  for (const auto& [kind, outcome] :
       {std::pair(Fate::Kind::throttled, Outcome::throttled), std::pair(Fate::Kind::rejected, Outcome::rejected)}) {
    fate.kind = kind;
    add_one();
    run(10ms);
    ASSERT_TRUE(reply.has_value());
    EXPECT_EQ(reply->outcome, outcome);
    EXPECT_FALSE(reply->error.detail.empty());
    EXPECT_EQ(x(), 0);
  }
}

TEST_F(SimStoreFaults, a_server_error_says_nothing_about_what_happened) {
  fate.answer_broken = true;
  add_one();
  run(10ms);
  EXPECT_EQ(reply->outcome, Outcome::unknown);
  EXPECT_EQ(x(), 1);
}

TEST_F(SimStoreFaults, an_outage_swallows_what_was_under_way) {
  fate.there = 100ms;
  add_one();
  reachable = false;
  run(2s);
  EXPECT_EQ(reply->outcome, Outcome::unknown);
  EXPECT_EQ(x(), 0);
}

TEST_F(SimStoreFaults, the_index_may_lag_and_never_goes_back) {
  Duration lag = 5s;
  table->let_index_lag([&] { return lag; });
  const auto rows_due = [&] {
    std::optional<PageReply> page;
    store->query_due({"STARTED", WallTime::max(), 10, {}}, own.instant() + 1s,
                     [&](PageReply got) { page = std::move(got); });
    run(1ms);
    return page->value.rows;
  };
  ask({"k", {Change::set("desired_state", "STARTED"), Change::set("lease_expires_at_ms", 1)}, {}});
  run(1s);
  EXPECT_TRUE(rows_due().empty());
  lag = 0s;  // a later write is not seen before an earlier one
  ask({"k", {Change::set("lease_expires_at_ms", 2)}, {}});
  run(1s);
  EXPECT_TRUE(rows_due().empty());
  run(5s);
  ASSERT_EQ(rows_due().size(), 1U);
  EXPECT_EQ(rows_due().front().number("lease_expires_at_ms"), 2);
}

}  // namespace
}  // namespace holdfast::sim
