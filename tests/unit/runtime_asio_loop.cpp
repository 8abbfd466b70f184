#include <gtest/gtest.h>

#include <vector>

#include "runtime/asio_loop.hpp"

namespace holdfast::runtime {
namespace {

using namespace std::chrono_literals;

TEST(AsioLoop, runs_timers_in_order_of_their_time_and_tasks_before_later_timers) {
  AsioLoop loop(1);
  std::vector<int> order;
  loop.call_after(20ms, [&] {
    order.push_back(3);
    loop.stop();
  });
  loop.call_after(5ms, [&] { order.push_back(2); });
  loop.post([&] { order.push_back(1); });
  loop.run();
  EXPECT_EQ(order, (std::vector<int>{1, 2, 3}));
}

TEST(AsioLoop, a_cancelled_timer_never_runs) {
  AsioLoop loop(1);
  bool ran = false;
  const TimerId timer = loop.call_after(1ms, [&] { ran = true; });
  loop.cancel(timer);
  loop.call_after(10ms, [&] { loop.stop(); });
  loop.run();
  EXPECT_FALSE(ran);
}

TEST(AsioLoop, a_timer_may_cancel_and_set_others_while_it_runs) {
  AsioLoop loop(1);
  int fired = 0;
  TimerId victim = 0;
  const Instant at = loop.instant() + 2ms;
  loop.call_at(at, [&] {
    ++fired;
    loop.cancel(victim);
    loop.call_at(at, [&] {
      ++fired;
      loop.stop();
    });
  });
  victim = loop.call_at(at, [&] { fired += 100; });
  loop.run();
  EXPECT_EQ(fired, 2);
}

}  // namespace
}  // namespace holdfast::runtime
