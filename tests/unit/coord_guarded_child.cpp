// A command that runs under a lease: nothing of it is left when the belief ends.
#include "coord/guarded_child.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <optional>

namespace holdfast::coord {
namespace {

using namespace std::chrono_literals;

class GuardedChildTest : public testing::Test {
 protected:
  /// Runs a script under a lease that lasts so long, to its end.
  GuardedChild::Ending run(const std::string& script, Duration lease, OnLost on_lost, Duration notice = 200ms,
                           std::optional<Duration> time = {}) {
    guard_ = std::make_shared<LeaseGuard>(Epoch{1}, loop_.instant() + lease);
    runtime::SpawnOptions command;
    command.arguments = {"sh", "-c", script};
    std::optional<GuardedChild::Ending> ending;
    auto child = GuardedChild::start(std::move(command), guard_, on_lost, notice, loop_, [&](auto how) {
      ending = how;
      ended_at_ = loop_.instant();
      loop_.stop();
    });
    EXPECT_TRUE(child) << child.error().detail;
    if (!child) return {};
    child_ = child->get();
    if (time) child_->end_by(loop_.instant() + *time, notice);
    loop_.run();
    child_ = nullptr;
    return *ending;
  }

  runtime::AsioLoop loop_{1};
  std::shared_ptr<LeaseGuard> guard_;
  GuardedChild* child_ = nullptr;
  Instant ended_at_{};
};

TEST_F(GuardedChildTest, one_that_ends_in_time_has_its_own_exit) {
  const auto ending = run("exit 7", 1h, OnLost::terminate);
  EXPECT_EQ(ending.exit, (runtime::Exit{7, 0}));
  EXPECT_FALSE(ending.was_lost);
}

TEST_F(GuardedChildTest, f26_it_is_asked_to_end_before_the_belief_does) {
  const auto ending = run("trap 'exit 5' TERM; while :; do sleep 0.01; done", 500ms, OnLost::terminate, 400ms);
  EXPECT_TRUE(ending.was_lost);
  EXPECT_EQ(ending.exit.code, 5);
}

TEST_F(GuardedChildTest, f26_what_does_not_listen_is_killed_with_its_group) {
  const auto ending = run("trap '' TERM; while :; do sleep 0.01; done", 300ms, OnLost::terminate);
  EXPECT_TRUE(ending.was_lost);
  EXPECT_EQ(ending.exit.signal, SIGKILL);
}

TEST_F(GuardedChildTest, it_can_be_killed_without_being_asked) {
  const auto ending = run("trap 'exit 5' TERM; while :; do sleep 0.01; done", 300ms, OnLost::kill);
  EXPECT_TRUE(ending.was_lost);
  EXPECT_EQ(ending.exit.signal, SIGKILL);
}

TEST_F(GuardedChildTest, it_can_be_left_alone) {
  const auto ending = run("sleep 0.3", 50ms, OnLost::ignore);
  EXPECT_FALSE(ending.was_lost);
  EXPECT_EQ(ending.exit.code, 0);
}

TEST_F(GuardedChildTest, a_renewal_moves_its_end) {
  loop_.call_after(50ms, [&] { guard_->extend(loop_.instant() + 1h); });
  const auto ending = run("sleep 0.6", 400ms, OnLost::terminate, 100ms);
  EXPECT_FALSE(ending.was_lost);
  EXPECT_EQ(ending.exit.code, 0);
}

TEST_F(GuardedChildTest, a_loss_that_is_known_ends_it_at_once) {
  loop_.call_after(50ms, [&] { child_->lost(); });
  const auto ending = run("sleep 100", 1h, OnLost::terminate);
  EXPECT_TRUE(ending.was_lost);
  EXPECT_EQ(ending.exit.signal, SIGKILL);
}

TEST_F(GuardedChildTest, one_whose_time_is_over_is_asked_to_end_and_has_not_lost_its_lease) {
  const auto ending = run("trap 'exit 5' TERM; while :; do sleep 0.01; done", 1h, OnLost::terminate, 400ms, 500ms);
  EXPECT_TRUE(ending.was_late);
  EXPECT_FALSE(ending.was_lost);
  EXPECT_EQ(ending.exit.code, 5);
}

TEST_F(GuardedChildTest, one_whose_time_is_over_and_that_does_not_listen_is_killed) {
  for (const OnLost on_lost : {OnLost::terminate, OnLost::ignore}) {
    const auto ending = run("trap '' TERM; while :; do sleep 0.01; done", 1h, on_lost, 100ms, 300ms);
    EXPECT_TRUE(ending.was_late);
    EXPECT_EQ(ending.exit.signal, SIGKILL);
  }
}

TEST_F(GuardedChildTest, whichever_ends_first_ends_it) {
  const auto ending = run("sleep 100", 300ms, OnLost::terminate, 100ms, 1h);
  EXPECT_TRUE(ending.was_lost);
  EXPECT_FALSE(ending.was_late);
}

TEST_F(GuardedChildTest, nothing_is_started_under_a_lease_that_has_ended) {
  guard_ = std::make_shared<LeaseGuard>(Epoch{1}, loop_.instant());
  runtime::SpawnOptions command;
  command.arguments = {"true"};
  const auto child = GuardedChild::start(std::move(command), guard_, OnLost::terminate, 1s, loop_, [](auto) {});
  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().code, Code::unavailable);
}

}  // namespace
}  // namespace holdfast::coord
