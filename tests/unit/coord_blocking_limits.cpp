// What programs that wait may ask for: the same as on the command line and over HTTP.
#include <gmock/gmock.h>

#include <thread>

#include "core/coord/limits.hpp"
#include "holdfast/holdfast.hpp"

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class BlockingLimitsTest : public testing::Test {
 protected:
  template <class T>
  static void expect_usage(const Ended<T>& ended) {
    ASSERT_FALSE(ended);
    EXPECT_EQ(ended.error().kind, Failure::Kind::rejected);
    EXPECT_EQ(ended.error().error.code, Code::usage);
    EXPECT_THAT(ended.error().error.detail, HasSubstr(" to "));
  }
  /// What is outside of it at both ends, and further than any time reaches.
  static std::vector<Duration> outside(const coord::Span& span) {
    return {span.least - 1ns, span.most + 1ns, Duration::min(), Duration::max()};
  }
  Receipt receive_one() {
    EXPECT_TRUE(coordinator_->send({.queue = "q", .group = "g", .body = "1"}));
    return (**coordinator_->receive("q")).receipt;
  }

  std::unique_ptr<Coordinator> coordinator_ = Coordinator::open({.store = "memory:"}).value();
};

TEST_F(BlockingLimitsTest, what_is_waited_for_ever_is_waited_for) {
  constexpr Duration for_ever = Duration::max();
  auto held = coordinator_->acquire("t", {.wait = for_ever});
  ASSERT_TRUE(held);
  std::thread next([&] { EXPECT_TRUE(coordinator_->acquire("t", {.wait = for_ever})); });
  std::this_thread::sleep_for(50ms);  // whether or not it waits by then, it gets it
  ASSERT_TRUE(held->release());
  next.join();
  EXPECT_TRUE(coordinator_->run_once("k",
                                     [](const Right&) {
                                       return OnceResult{true, "done", {}};
                                     },
                                     {.wait = for_ever}));
  ASSERT_TRUE(coordinator_->send({.queue = "q", .group = "g", .body = "1"}));
  const auto batch = coordinator_->receive("q", {.wait = for_ever});
  EXPECT_TRUE(batch && *batch);
}

TEST_F(BlockingLimitsTest, less_than_no_wait_is_none) {
  EXPECT_TRUE(coordinator_->acquire("t", {.wait = Duration::min()}));
  EXPECT_TRUE(coordinator_->receive("q", {.wait = -1h}));
}

TEST_F(BlockingLimitsTest, what_would_be_forgotten_at_once_or_never_is_refused) {
  const auto runs = [](const Right&) -> std::optional<OnceResult> {
    ADD_FAILURE() << "it was run";
    return std::nullopt;
  };
  for (const Duration each : outside(coord::remembered)) {
    expect_usage(coordinator_->run_once("k", runs, {.retention = each}));
    expect_usage(coordinator_->add({.key = "k", .delta = 1, .op_id = "op", .remember = each}));
    expect_usage(coordinator_->reserve({.id = "r", .basket = {{"hat", 1}}, .remember = each}));
    expect_usage(coordinator_->send({.queue = "q", .group = "g", .retention = each}));
  }
  for (const Duration each : outside(coord::deduplicated)) {
    expect_usage(coordinator_->send({.queue = "q", .group = "g", .dedup_window = each}));
  }
  for (const Duration each : outside(coord::reserved)) {
    expect_usage(coordinator_->reserve({.id = "r", .basket = {{"hat", 1}}, .ttl = each}));
  }
}

TEST_F(BlockingLimitsTest, what_is_leased_or_delayed_for_too_short_or_too_long_is_refused) {
  const Receipt receipt = receive_one();
  for (const Duration each : outside(coord::visible)) {
    expect_usage(coordinator_->receive("q", {.visibility = each}));
    expect_usage(coordinator_->extend(receipt, each));
  }
  for (const Duration each : outside(coord::delayed)) {
    expect_usage(coordinator_->send({.queue = "q", .group = "g", .delay = each}));
    expect_usage(coordinator_->nack(receipt, each));
  }
  EXPECT_TRUE(coordinator_->extend(receipt, coord::visible.most));
  EXPECT_TRUE(coordinator_->nack(receipt));
}

TEST_F(BlockingLimitsTest, nothing_is_poison_before_it_was_given_out) {
  ASSERT_TRUE(coordinator_->send({.queue = "q", .group = "g", .body = "1"}));
  for (const std::int64_t each : {std::int64_t{0}, std::int64_t{-1}, INT64_MIN, INT64_MAX}) {
    expect_usage(coordinator_->receive("q", {.poison = QueueOptions::Poison::park, .receives_most = each}));
  }
  EXPECT_EQ(coordinator_->peek("q", "g", 1).value()->group.state, Group::State::ready);
}

}  // namespace
}  // namespace holdfast
