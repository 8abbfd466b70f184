// Recording what came of a run where the store was away, or the lease has ended: in virtual time, and from C++.
#include <gmock/gmock.h>
#include <sqlite3.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>

#include "core/coord/task_look.hpp"
#include "holdfast/coordinator.hpp"
#include "support/coordinator_test.hpp"
#include "support/temporary_folder.hpp"

namespace holdfast::coord {
namespace {

using namespace std::chrono_literals;
using test::CoordinatorTest;
using Fault = test::FaultyStore::Fault;
using test::OnceCall;
using test::Process;
using testing::HasSubstr;
using Kind = Failure::Kind;

class RecordingTest : public CoordinatorTest {
 protected:
  TaskOptions recording(Duration patience) {
    TaskOptions task = options();
    task.patience = patience;
    task.recording = task.terms.lease;
    return task;
  }
  std::shared_ptr<OnceCall> once(Process& by, const TaskOptions& task) {
    OnceOptions what;
    what.key = "k";
    auto call = begin_once(by, what, task);
    EXPECT_TRUE(until([&] { return call->turn.has_value(); }));
    return call;
  }
  Result<void> finish(Process& by, OnceCall& call) {
    return by.coordinator->finish(**call.turn, {true, "receipt", loop_.wall()}, 24h);
  }
  Ended<OnceResult> record(Process& by, Epoch epoch, Duration patience = 5s) {
    std::optional<Ended<OnceResult>> got;
    by.coordinator->record("k", epoch, {true, "receipt", loop_.wall()}, 24h, patience,
                           [&](Ended<OnceResult> ended) { got = std::move(ended); });
    EXPECT_TRUE(until([&] { return got.has_value(); }));
    return *got;
  }
  [[nodiscard]] std::string on_record() {
    const auto result = once_result_in(row("ONCE#k"));
    return result ? result->content : "nothing";
  }
  /// Its lease runs out without a word.
  Epoch abandoned_by(Process& me) {
    const auto run = once(me, recording(1s));
    EXPECT_TRUE(run->runs());
    me.store.judge = [](const Update*) { return Fault::request_lost; };
    loop_.advance(15s);
    me.store.judge = {};
    EXPECT_FALSE(finish(me, *run)) << "its lease is over";
    return (*run->turn)->held->epoch();
  }
};

TEST_F(RecordingTest, a_result_is_tried_to_be_recorded_for_as_long_as_the_lease_lasts_however_short_the_patience) {
  Process& me = join("me");
  const auto run = once(me, recording(1s));
  ASSERT_TRUE(run->runs());
  me.store.judge = [](const Update*) { return Fault::throttled; };
  ASSERT_TRUE(finish(me, *run));
  loop_.advance(9500ms);
  EXPECT_FALSE(run->finished);
  me.store.judge = {};
  ASSERT_TRUE(until([&] { return run->finished.has_value(); }));
  ASSERT_TRUE(*run->finished) << run->finished->error().error.detail;
  EXPECT_EQ(on_record(), "receipt");
}

TEST_F(RecordingTest, s10_and_no_longer_and_then_it_is_not_known) {
  Process& me = join("me");
  const auto run = once(me, recording(1s));
  ASSERT_TRUE(run->runs());
  me.store.judge = [](const Update*) { return Fault::request_lost; };
  const Instant begin = loop_.instant();
  ASSERT_TRUE(finish(me, *run));
  ASSERT_TRUE(until([&] { return run->finished.has_value(); }));
  EXPECT_LE(loop_.instant() - begin, 12s);
  EXPECT_EQ(run->finished->error().kind, Kind::unknown);
  EXPECT_THAT(run->finished->error().error.detail, HasSubstr("result of k"));
}

TEST_F(RecordingTest, f23_after_the_leases_end_it_is_recorded_while_nobody_else_has_had_the_key) {
  Process& me = join("me");
  const Epoch epoch = abandoned_by(me);
  EXPECT_TRUE(record(me, epoch));
  EXPECT_EQ(on_record(), "receipt");
  EXPECT_TRUE(record(me, epoch)) << "again is as once";
  const auto next = once(join("next"), recording(1s));
  EXPECT_TRUE(*next->turn && (*next->turn)->done) << "it is run no more";
}

TEST_F(RecordingTest, f23_and_not_once_somebody_else_has_the_key_or_had_it) {
  Process& me = join("me");
  const Epoch epoch = abandoned_by(me);
  Process& next = join("next");
  const auto other = once(next, recording(1s));
  ASSERT_TRUE(other->runs());
  EXPECT_EQ(record(me, epoch).error().kind, Kind::refused);
  (*other->turn)->held->release({});
  ASSERT_TRUE(until([&] { return other->finished.has_value(); }));
  const auto late = record(me, epoch);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind, Kind::refused);
  EXPECT_THAT(late.error().error.detail, HasSubstr("result of k"));
  EXPECT_EQ(on_record(), "nothing");
}

TEST_F(RecordingTest, f23_the_result_of_a_later_run_is_not_taken_for_ones_own) {
  Process& me = join("me");
  const Epoch epoch = abandoned_by(me);
  Process& next = join("next");
  const auto other = once(next, recording(1s));
  ASSERT_TRUE(other->runs());
  ASSERT_TRUE(finish(next, *other));
  ASSERT_TRUE(until([&] { return other->finished.has_value(); }));
  const auto late = record(me, epoch);
  ASSERT_FALSE(late) << "another run's result stands";
  EXPECT_EQ(late.error().kind, Kind::refused);
}

TEST_F(RecordingTest, f23_nor_where_it_was_released_by_hand) {
  Process& me = join("me");
  const Epoch epoch = abandoned_by(me);
  std::optional<Ended<ReleasedTask>> released;
  me.coordinator->run(
      std::make_unique<ReleaseTask>(TaskView::Kind::once, "k", epoch, loop_.instant() + 1s, loop_.random()),
      [&](const Ended<ReleasedTask>& ended) { released = ended; });
  ASSERT_TRUE(until([&] { return released.has_value(); }));
  EXPECT_EQ(record(me, epoch).error().kind, Kind::refused);
  EXPECT_EQ(on_record(), "nothing");
}

TEST_F(RecordingTest, s05_whichever_answer_is_lost_it_is_known_what_stands) {
  for (const Fault fault : {Fault::throttled, Fault::request_lost, Fault::reply_lost}) {
    for (int nth = 0; nth < 4; ++nth) {
      SCOPED_TRACE(testing::Message() << "fault " << static_cast<int>(fault) << " at request " << nth);
      table_ = std::make_shared<store::MemoryTable>();
      Process& me = join("me");
      const Epoch epoch = abandoned_by(me);
      int request = 0;
      me.store.judge = [&](const Update*) { return request++ == nth ? fault : Fault::none; };
      EXPECT_TRUE(record(me, epoch));
      me.store.judge = {};
      EXPECT_EQ(on_record(), "receipt");
    }
  }
}

TEST_F(RecordingTest, s05_a_try_that_another_has_overtaken_is_refused_and_not_doubtful) {
  Process& me = join("me");
  const Epoch epoch = abandoned_by(me);
  int writes = 0;
  me.store.judge = [&](const Update* update) {
    if (update == nullptr || writes++ > 0) return Fault::none;
    (void)table_->execute(
        Update{"ONCE#k", {Change::set(attribute::owner, "thief"), Change::add(attribute::epoch, 1)}, {}},
        loop_.wall());
    return Fault::request_lost;
  };
  EXPECT_EQ(record(me, epoch).error().kind, Kind::refused);
}

// ---- From C++ ----

/// Somebody else is in the middle of a write for so long.
class Blocker {
 public:
  Blocker(const std::string& file, Duration time) {
    EXPECT_EQ(sqlite3_open(file.c_str(), &base_), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(base_, "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr), SQLITE_OK);
    thread_ = std::thread([this, time] {
      std::this_thread::sleep_for(time);
      sqlite3_close(base_);
    });
  }
  ~Blocker() { thread_.join(); }
  Blocker(const Blocker&) = delete;
  Blocker& operator=(const Blocker&) = delete;

 private:
  sqlite3* base_ = nullptr;
  std::thread thread_;
};

class RecordingFromCpp : public testing::Test {
 protected:
  std::unique_ptr<holdfast::Coordinator> open() {
    auto opened = holdfast::Coordinator::open({.store = "sqlite:" + file_, .patience = 200ms, .skew = 10ms});
    EXPECT_TRUE(opened);
    return *std::move(opened);
  }
  const test::TemporaryFolder folder_;
  const std::string file_ = (folder_.path() / "agreed.db").string();
};

TEST_F(RecordingFromCpp, a_charge_is_on_record_though_the_store_was_away_for_longer_than_the_patience) {
  const auto coordinator = open();
  std::optional<Blocker> blocker;
  int charges = 0;
  const auto charge = [&](const Right&) -> std::optional<OnceResult> {
    ++charges;
    blocker.emplace(file_, 1500ms);
    return OnceResult{.content = "receipt"};
  };
  const auto ran = coordinator->run_once("inv", charge, {.lease = {.lease = 3s}});
  ASSERT_TRUE(ran) << ran.error().error.detail;
  blocker.reset();
  EXPECT_EQ(coordinator->run_once("inv", charge)->result->content, "receipt");
  EXPECT_EQ(charges, 1);
}

TEST_F(RecordingFromCpp, what_has_happened_and_is_not_known_to_be_on_record_is_no_refusal) {
  const auto coordinator = open();
  std::optional<Blocker> blocker;
  const auto ran = coordinator->run_once("inv",
                                         [&](const Right&) -> std::optional<OnceResult> {
                                           blocker.emplace(file_, 3s);
                                           return OnceResult{.content = "receipt"};
                                         },
                                         {.lease = {.lease = 300ms}});
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().kind, Kind::unknown);
  EXPECT_THAT(ran.error().error.detail, HasSubstr("result of inv"));
  EXPECT_THAT(ran.error().error.detail, HasSubstr("was called"));
}

TEST_F(RecordingFromCpp, f23_a_result_that_comes_after_the_lease_is_recorded_while_nobody_else_has_had_the_key) {
  const auto coordinator = open();
  const auto ran = coordinator->run_once("inv",
                                         [&](const Right& right) -> std::optional<OnceResult> {
                                           const Blocker blocker(file_, 600ms);
                                           while (right.holds()) std::this_thread::sleep_for(10ms);
                                           return OnceResult{.content = "receipt"};
                                         },
                                         {.lease = {.lease = 300ms}});
  ASSERT_TRUE(ran) << ran.error().error.detail;
  EXPECT_EQ(coordinator->run_once("inv", {})->result->content, "receipt");
}

TEST_F(RecordingFromCpp, f22_who_is_refused_what_is_held_is_told_both_ways_on) {
  const auto coordinator = open();
  EXPECT_THROW((void)coordinator->run_once("inv", [](const Right&) -> OnceResult { throw 1; }), int);
  const auto held = coordinator->run_once("inv", {}, {.abandoned = Abandoned::hold});
  ASSERT_FALSE(held);
  EXPECT_EQ(held.error().kind, Kind::refused);
  EXPECT_THAT(held.error().error.detail, HasSubstr("nothing was called"));
  EXPECT_THAT(held.error().error.detail, HasSubstr("Abandoned::reconcile"));
  EXPECT_THAT(held.error().error.detail, HasSubstr("holdfast task release --once --epoch 1 -- inv"));
}

TEST_F(RecordingFromCpp, that_a_right_was_lost_is_told_with_its_name_and_nothing_behind_it) {
  const auto coordinator = open();
  auto right = coordinator->acquire("nightly", {.lease = {.lease = 300ms}, .renews = false});
  ASSERT_TRUE(right);
  while (right->holds()) std::this_thread::sleep_for(10ms);
  std::this_thread::sleep_for(100ms);
  const auto released = right->release();
  ASSERT_FALSE(released);
  EXPECT_TRUE(released.error().error.detail.starts_with("nightly was lost before it was given back."));
  EXPECT_FALSE(released.error().error.detail.ends_with(" "));
}

}  // namespace
}  // namespace holdfast::coord
