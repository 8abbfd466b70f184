#include "support/virtual_loop.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

TEST(VirtualLoop, timers_run_in_order_at_their_own_time_and_tasks_before_time_moves) {
  VirtualLoop loop;
  const Instant start = loop.instant();
  std::vector<Duration> at;
  loop.call_after(2s, [&] { at.push_back(loop.instant() - start); });
  loop.call_after(1s, [&] {
    at.push_back(loop.instant() - start);
    loop.post([&] { at.push_back(loop.instant() - start); });
  });
  const TimerId never = loop.call_after(1500ms, [&] { at.push_back(-1s); });
  loop.cancel(never);
  loop.advance(3s);
  EXPECT_EQ(at, (std::vector<Duration>{1s, 1s, 2s}));
  EXPECT_EQ(loop.instant() - start, 3s);
}

TEST(VirtualLoop, after_a_freeze_timers_are_late) {
  VirtualLoop loop;
  const Instant start = loop.instant();
  Duration ran_at{};
  loop.call_after(1s, [&] { ran_at = loop.instant() - start; });
  loop.freeze(10s);
  EXPECT_EQ(ran_at, 0s);
  loop.advance(0s);
  EXPECT_EQ(ran_at, 10s);
}

}  // namespace
}  // namespace holdfast::test
