// once(): several coordinators on one table, in virtual time.
#include <gmock/gmock.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/coordinator_test.hpp"

namespace holdfast::coord {
namespace {

using namespace std::chrono_literals;
using test::CoordinatorTest;
using Fault = test::FaultyStore::Fault;
using test::OnceCall;
using test::Process;
using testing::HasSubstr;

class OnceCallTest : public CoordinatorTest {
 protected:
  std::shared_ptr<OnceCall> once(Process& by, Duration wait = 0s,
                                 OnceOptions::Abandoned abandoned = OnceOptions::Abandoned::rerun) {
    OnceOptions what;
    what.key = "k";
    what.fingerprint = "f";
    what.abandoned = abandoned;
    return begin_once(by, what, options(wait));
  }
  bool finish(Process& by, OnceCall& call, const char* content = "result") {
    return by.coordinator->finish(**call.turn, {true, content, loop_.wall()}, 24h).has_value();
  }
};

TEST_F(OnceCallTest, it_takes_two_writes_and_its_replay_none) {
  Process& first = join("a");
  const auto run = once(first);
  ASSERT_TRUE(until([&] { return run->runs(); }));
  EXPECT_TRUE(finish(first, *run));
  ASSERT_TRUE(until([&] { return run->finished.has_value(); }));
  ASSERT_TRUE(*run->finished);
  EXPECT_EQ(first.writes(), 2U);
  Process& second = join("b");
  const auto replay = once(second);
  ASSERT_TRUE(until([&] { return replay->turn.has_value(); }));
  ASSERT_TRUE(*replay->turn);
  ASSERT_TRUE((*replay->turn)->done);
  EXPECT_EQ((*replay->turn)->done->result.content, "result");
  EXPECT_EQ(second.writes(), 0U);
}

TEST_F(OnceCallTest, a_duplicate_that_waits_is_given_the_result_of_the_first) {
  Process& first = join("a");
  const auto run = once(first);
  ASSERT_TRUE(until([&] { return run->runs(); }));
  const auto waits = once(join("b"), 1min);
  loop_.advance(3s);
  EXPECT_FALSE(waits->turn);
  EXPECT_TRUE(finish(first, *run));
  ASSERT_TRUE(until([&] { return waits->turn.has_value(); }));
  EXPECT_EQ((*waits->turn)->done->result.content, "result");
}

TEST_F(OnceCallTest, a_duplicate_that_nobody_waits_for_is_over_at_once) {
  const auto run = once(join("a"));
  ASSERT_TRUE(until([&] { return run->runs(); }));
  Process& second = join("b");
  bool is_wanted = true;
  std::optional<Ended<Coordinator::Turn>> turn;
  OnceOptions what;
  what.key = "k";
  second.coordinator->once(
      what, options(1h), {.turn = [&](auto got) { turn = std::move(got); }, .is_wanted = [&] { return is_wanted; }});
  loop_.advance(10s);
  ASSERT_FALSE(turn);
  is_wanted = false;
  second.coordinator->recheck();
  loop_.settle();
  ASSERT_TRUE(turn && !*turn);
  EXPECT_EQ(turn->error().kind, Failure::Kind::busy);
}

TEST_F(OnceCallTest, one_that_failed_for_now_is_run_by_the_next) {
  auto run = once(join("a"));
  ASSERT_TRUE(until([&] { return run->runs(); }));
  run->turn.reset();  // dropped without a result
  ASSERT_TRUE(until([&] { return run->finished.has_value(); }));
  ASSERT_TRUE(*run->finished);
  EXPECT_FALSE(**run->finished) << "nothing was recorded";
  const auto next = once(join("b"));
  ASSERT_TRUE(until([&] { return next->runs(); }));
  EXPECT_FALSE((*next->turn)->was_abandoned);
}

TEST_F(OnceCallTest, f23_a_zombie_does_not_overwrite_its_successors_result) {
  Process& zombie = join("a");
  const auto first = once(zombie);
  ASSERT_TRUE(until([&] { return first->runs(); }));
  zombie.store.judge = [](const Update*) { return Fault::request_lost; };
  Process& successor = join("b");
  const auto second = once(successor, 1min);
  ASSERT_TRUE(until([&] { return second->runs(); }));
  EXPECT_TRUE((*second->turn)->was_abandoned);
  EXPECT_TRUE(first->lost);
  EXPECT_TRUE(finish(successor, *second, "the successor's"));
  ASSERT_TRUE(until([&] { return second->finished.has_value(); }));
  zombie.store.judge = {};
  EXPECT_FALSE(finish(zombie, *first, "the zombie's"));
  loop_.advance(30s);
  EXPECT_EQ(once_result_in(row("ONCE#k"))->content, "the successor's");
}

TEST_F(OnceCallTest, a_result_whose_reply_is_lost_is_known_to_stand) {
  Process& me = join("a");
  const auto run = once(me);
  ASSERT_TRUE(until([&] { return run->runs(); }));
  // From here on nothing that is written is answered, but what is read is.
  me.store.judge = [](const Update* update) { return update != nullptr ? Fault::reply_lost : Fault::none; };
  EXPECT_TRUE(finish(me, *run));
  ASSERT_TRUE(until([&] { return run->finished.has_value(); }));
  ASSERT_TRUE(*run->finished);
  EXPECT_EQ((**run->finished)->content, "result");
}

TEST_F(OnceCallTest, whether_a_result_stands_is_not_claimed_where_nobody_knows) {
  Process& me = join("a");
  const auto run = once(me);
  ASSERT_TRUE(until([&] { return run->runs(); }));
  me.store.judge = [](const Update*) { return Fault::request_lost; };
  EXPECT_TRUE(finish(me, *run));
  ASSERT_TRUE(until([&] { return run->finished.has_value(); }));
  ASSERT_FALSE(*run->finished);
  EXPECT_EQ(run->finished->error().kind, Failure::Kind::unknown);
}

TEST_F(OnceCallTest, money_that_was_abandoned_waits_for_a_decision) {
  Process& dies = join("a");
  const auto run = once(dies, 0s, OnceOptions::Abandoned::hold);
  ASSERT_TRUE(until([&] { return run->runs(); }));
  dies.coordinator.reset();
  loop_.advance(20s);
  Process& other = join("b");
  const auto next = once(other, 0s, OnceOptions::Abandoned::hold);
  ASSERT_TRUE(until([&] { return next->turn.has_value(); }));
  ASSERT_TRUE((*next->turn)->hold);
  EXPECT_EQ((*next->turn)->hold->epoch, Epoch{1});
  EXPECT_EQ(other.writes(), 0U);
}

TEST_F(OnceCallTest, a_result_that_does_not_fit_is_refused_and_the_lease_is_still_held) {
  Process& me = join("a");
  const auto run = once(me);
  ASSERT_TRUE(until([&] { return run->runs(); }));
  const auto finished =
      me.coordinator->finish(**run->turn, {true, std::string(OnceResult::most + 1, 'x'), loop_.wall()}, 24h);
  ASSERT_FALSE(finished);
  EXPECT_THAT(finished.error().detail, HasSubstr("350000"));
  loop_.advance(1min);
  EXPECT_TRUE((*run->turn)->held->guard()->holds(loop_.instant()));
}

TEST_F(OnceCallTest, whichever_request_is_lost_it_is_run_once_and_all_are_told_the_same_result) {
  for (const Fault fault : {Fault::throttled, Fault::request_lost, Fault::reply_lost}) {
    for (int nth = 0; nth < 4; ++nth) {
      SCOPED_TRACE(testing::Message() << "fault " << static_cast<int>(fault) << " at request " << nth);
      table_ = std::make_shared<store::MemoryTable>();
      Process& me = join("a");
      int request = 0;
      me.store.judge = [&](const Update*) { return request++ == nth ? fault : Fault::none; };
      const auto run = once(me);
      ASSERT_TRUE(until([&] { return run->runs(); }));
      EXPECT_TRUE(finish(me, *run));
      ASSERT_TRUE(until([&] { return run->finished.has_value(); }));
      ASSERT_TRUE(*run->finished) << run->finished->error().error.detail;
      EXPECT_EQ((**run->finished)->content, "result");
      const auto replay = once(join("b"));
      ASSERT_TRUE(until([&] { return replay->turn.has_value(); }));
      ASSERT_TRUE((*replay->turn)->done);
      EXPECT_EQ((*replay->turn)->done->result.content, "result");
      EXPECT_EQ((*replay->turn)->done->epoch, Epoch{1});
      me.store.judge = {};
    }
  }
}

}  // namespace
}  // namespace holdfast::coord
