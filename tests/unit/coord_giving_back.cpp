// Giving a lease back where the store is away: in virtual time, and from C++.
#include <gmock/gmock.h>
#include <sqlite3.h>

#include <memory>
#include <optional>
#include <string>

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

class GivingBackTest : public CoordinatorTest {
 protected:
  /// A long lease, so that nothing ends with it.
  TaskOptions long_lease() {
    TaskOptions options;
    options.terms = *make_terms({.lease = 1h});
    options.patience = 5s;
    return options;
  }
  std::shared_ptr<OnceCall> once(Process& by, OnceOptions::Abandoned abandoned = OnceOptions::Abandoned::rerun) {
    OnceOptions what;
    what.key = "k";
    what.abandoned = abandoned;
    auto call = begin_once(by, what, long_lease());
    EXPECT_TRUE(until([&] { return call->turn.has_value(); }));
    return call;
  }
};

TEST_F(GivingBackTest, s10_who_gives_back_waits_for_the_store_no_longer_than_its_patience_whatever_the_lease_is) {
  for (const Fault fault : {Fault::throttled, Fault::request_lost}) {
    SCOPED_TRACE(static_cast<int>(fault));
    table_ = std::make_shared<store::MemoryTable>();
    Process& me = join("me");
    const auto mine = acquire(me, "t", long_lease());
    ASSERT_TRUE(until([&] { return mine->holds(); }));
    me.store.judge = [&](const Update*) { return fault; };
    const Instant begin = loop_.instant();
    mine->let_go();
    ASSERT_TRUE(until([&] { return mine->ended.has_value(); }));
    EXPECT_EQ(*mine->ended, HoldEnd::doubtful);
    EXPECT_EQ(loop_.instant() - begin, 5s);
    EXPECT_GE(me.writes(), 3U) << "one that got lost is tried again while somebody waits";
    me.store.judge = {};
  }
}

TEST_F(GivingBackTest, the_tries_go_on_behind_it_and_it_is_told_once) {
  Process& me = join("me");
  const auto mine = acquire(me, "t", long_lease());
  ASSERT_TRUE(until([&] { return mine->holds(); }));
  me.store.judge = [](const Update*) { return Fault::throttled; };
  mine->let_go();
  ASSERT_TRUE(until([&] { return mine->ended.has_value(); }));
  me.store.judge = {};
  mine->ended.reset();
  loop_.advance(15min);
  EXPECT_FALSE(mine->ended);
  const auto next = acquire(join("b"), "t", long_lease());
  ASSERT_TRUE(until([&] { return next->got.has_value(); }));
  EXPECT_TRUE(next->holds()) << "long before the lease would have run out";
}

TEST_F(GivingBackTest, one_request_that_is_lost_leaves_no_doubt) {
  for (const Fault fault : {Fault::throttled, Fault::request_lost, Fault::reply_lost}) {
    SCOPED_TRACE(static_cast<int>(fault));
    table_ = std::make_shared<store::MemoryTable>();
    Process& me = join("me");
    int writes = 0;
    // The claim's first, and the release's.
    me.store.judge = [&](const Update* update) {
      return update != nullptr && writes++ % 2 == 0 ? fault : Fault::none;
    };
    const auto mine = acquire(me, "t", long_lease());
    ASSERT_TRUE(until([&] { return mine->got.has_value(); }));
    ASSERT_TRUE(mine->holds()) << mine->got->error().error.detail;
    mine->let_go();
    ASSERT_TRUE(until([&] { return mine->ended.has_value(); }));
    EXPECT_EQ(*mine->ended, HoldEnd::released);
    me.store.judge = {};
  }
}

TEST_F(GivingBackTest, a_coordinator_may_end_while_somebody_waits) {
  Process& me = join("me");
  const auto mine = acquire(me, "t", long_lease());
  ASSERT_TRUE(until([&] { return mine->holds(); }));
  me.store.judge = [](const Update*) { return Fault::request_lost; };
  mine->let_go();
  loop_.advance(1s);
  me.coordinator.reset();
  loop_.advance(1min);
  EXPECT_FALSE(mine->ended) << "nobody is there any more";
}

TEST_F(GivingBackTest, s05_a_key_that_may_not_have_been_given_back_is_not_said_to_be) {
  Process& me = join("me");
  const auto run = once(me);
  ASSERT_TRUE(run->runs());
  me.store.judge = [](const Update*) { return Fault::request_lost; };
  const Instant begin = loop_.instant();
  (*run->turn)->held->release({});
  ASSERT_TRUE(until([&] { return run->finished.has_value(); }));
  ASSERT_FALSE(*run->finished);
  EXPECT_EQ(run->finished->error().kind, Failure::Kind::unknown);
  EXPECT_THAT(run->finished->error().error.detail, HasSubstr("given back"));
  EXPECT_LE(loop_.instant() - begin, 5s);
}

TEST_F(GivingBackTest, s05_a_key_that_was_lost_before_it_was_given_back_is_said_to_be) {
  Process& me = join("me");
  const auto run = once(me);
  ASSERT_TRUE(run->runs());
  (void)table_->execute(
      Update{"ONCE#k", {Change::set(attribute::owner, "thief"), Change::add(attribute::epoch, 1)}, {}}, loop_.wall());
  (*run->turn)->held->release({});
  ASSERT_TRUE(until([&] { return run->finished.has_value(); }));
  ASSERT_FALSE(*run->finished);
  EXPECT_EQ(run->finished->error().kind, Failure::Kind::refused);
}

TEST_F(GivingBackTest, f22_what_was_abandoned_and_is_won_too_late_is_abandoned_still) {
  Process& dies = join("a");
  ASSERT_TRUE(once(dies)->runs());
  dies.coordinator.reset();
  loop_.advance(2h);
  Process& late = join("b");
  wins_too_late(late);
  TaskOptions patient = options();
  patient.patience = 9s;  // as long as its belief
  OnceOptions what;
  what.key = "k";
  std::optional<Ended<Coordinator::Turn>> turn;
  late.coordinator->once(what, patient, {.turn = [&](auto got) { turn = std::move(got); }});
  ASSERT_TRUE(until([&] { return turn.has_value(); }));
  ASSERT_FALSE(*turn);
  EXPECT_EQ(row("ONCE#k").number(attribute::epoch), 2) << "it was won";
  loop_.advance(5min);
  const auto next = once(join("c"), OnceOptions::Abandoned::hold);
  ASSERT_TRUE(*next->turn);
  EXPECT_TRUE((*next->turn)->hold);
}

/// Somebody else is in the middle of a write for as long as this lives.
class Blocker {
 public:
  explicit Blocker(const std::string& file) {
    EXPECT_EQ(sqlite3_open(file.c_str(), &base_), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(base_, "BEGIN EXCLUSIVE", nullptr, nullptr, nullptr), SQLITE_OK);
  }
  ~Blocker() { sqlite3_close(base_); }
  Blocker(const Blocker&) = delete;
  Blocker& operator=(const Blocker&) = delete;

 private:
  sqlite3* base_ = nullptr;
};

TEST(GivingBackFromCpp, s10_it_waits_for_the_store_no_longer_than_its_patience_whatever_the_lease_is) {
  const test::TemporaryFolder folder;
  const std::string file = (folder.path() / "agreed.db").string();
  const LeaseOptions lasting{.lease = 1h};
  auto opened = holdfast::Coordinator::open({.store = "sqlite:" + file, .patience = 300ms, .skew = 10ms});
  ASSERT_TRUE(opened) << opened.error().detail;
  auto coordinator = *std::move(opened);
  auto right = coordinator->acquire("report", {.lease = lasting});
  const auto kept = coordinator->acquire("kept", {.lease = lasting});
  ASSERT_TRUE(right && kept);
  std::optional<Blocker> blocker;
  const auto ran = coordinator->run_once("k",
                                         [&](const Right&) -> std::optional<OnceResult> {
                                           blocker.emplace(file);
                                           return std::nullopt;
                                         },
                                         {.lease = lasting});
  ASSERT_FALSE(ran) << "whether the next one may run it is not known";
  EXPECT_EQ(ran.error().kind, Failure::Kind::unknown);
  const auto released = right->release();
  ASSERT_FALSE(released);
  EXPECT_EQ(released.error().kind, Failure::Kind::unknown);
  const Instant begin = holdfast::Coordinator::now();
  coordinator.reset();
  EXPECT_LT(holdfast::Coordinator::now() - begin, 30s);
}

}  // namespace
}  // namespace holdfast::coord
