#include "sim/timeline.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "sim/clock.hpp"
#include "sim/node_loop.hpp"

namespace holdfast::sim {
namespace {

using namespace std::chrono_literals;

TEST(Timeline, things_happen_in_the_order_of_their_time_then_of_their_asking) {
  Timeline timeline;
  std::vector<int> order;
  const Instant now = timeline.now();
  timeline.add(now + 2s, [&] { order.push_back(3); });
  timeline.add(now + 1s, [&] { order.push_back(1); });
  timeline.add(now + 1s, [&] { order.push_back(2); });
  const TimerId never = timeline.add(now + 1s, [&] { order.push_back(-1); });
  timeline.cancel(never);
  while (timeline.step(now + 3s)) {
  }
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(timeline.now(), now + 3s);
}

TEST(Timeline, an_id_that_has_happened_cancels_nobody_else) {
  Timeline timeline;
  const TimerId first = timeline.add(timeline.now(), [] {});
  (void)timeline.step(timeline.now());
  bool happened = false;
  timeline.add(timeline.now(), [&] { happened = true; });  // takes the place of the first
  timeline.cancel(first);
  (void)timeline.step(timeline.now());
  EXPECT_TRUE(happened);
}

TEST(NodeLoop, one_that_is_paused_does_nothing_and_all_that_came_due_when_it_wakes) {
  Timeline timeline;
  const NodeClock clock;
  NodeLoop loop(timeline, clock, 1);
  std::vector<int> order;
  loop.call_after(1s, [&] { order.push_back(1); });
  loop.call_after(5s, [&] { order.push_back(3); });
  loop.pause();
  const Instant start = timeline.now();
  while (timeline.step(start + 2s)) {
  }
  loop.post([&] { order.push_back(2); });
  while (timeline.step(start + 3s)) {
  }
  EXPECT_TRUE(order.empty());
  loop.resume(/*timers_first=*/true);
  while (timeline.step(start + 10s)) {
  }
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST(NodeLoop, a_timer_that_is_cancelled_while_it_is_held_does_not_run) {
  Timeline timeline;
  const NodeClock clock;
  NodeLoop loop(timeline, clock, 1);
  bool ran = false;
  const TimerId timer = loop.call_after(1s, [&] { ran = true; });
  loop.pause();
  const Instant start = timeline.now();
  while (timeline.step(start + 2s)) {
  }
  loop.cancel(timer);
  loop.resume(true);
  while (timeline.step(start + 3s)) {
  }
  EXPECT_FALSE(ran);
}

TEST(NodeLoop, destroying_it_destroys_what_it_had_to_do_even_where_that_asks_for_more) {
  Timeline timeline;
  const NodeClock clock;
  auto loop = std::make_unique<NodeLoop>(timeline, clock, 1);
  NodeLoop* const raw = loop.get();
  struct AsksForMore {
    NodeLoop* loop;
    ~AsksForMore() {
      loop->post([] {});
    }
  };
  loop->post([keep = std::make_shared<AsksForMore>(AsksForMore{raw})] {});
  loop.reset();
  EXPECT_EQ(timeline.waiting(), 0U);
}

TEST(NodeClock, a_timer_never_runs_before_its_own_clock_says_so_at_any_rate) {
  for (const double rate : {0.5, 0.97, 1.0, 1.03, 1.5}) {
    Timeline timeline;
    const NodeClock clock(rate, timeline.now(), Instant{} + 7h);
    NodeLoop loop(timeline, clock, 1);
    for (int i = 1; i <= 1000; ++i) {
      const Instant when = loop.instant() + Duration(i * 7'654'321LL);
      Instant ran{};
      loop.call_at(when, [&] { ran = loop.instant(); });
      while (timeline.step(timeline.now() + 1h)) {
        if (ran != Instant{}) break;
      }
      ASSERT_GE(ran, when) << rate;
      ASSERT_LT(ran - when, 10us) << rate;
    }
  }
}

TEST(NodeClock, a_wall_clock_drifts_only_as_far_as_it_may) {
  NodeClock clock;
  const Instant start = Timeline::start;
  clock.set_wall_error(start, 100ms, 0.001, 200ms);
  EXPECT_EQ(clock.error(start), 100ms);
  EXPECT_EQ(clock.error(start + 50s), 150ms);
  EXPECT_EQ(clock.error(start + 1h), 200ms);
}

}  // namespace
}  // namespace holdfast::sim
