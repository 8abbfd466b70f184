#pragma once
#include <chrono>

#include "runtime/asio_loop.hpp"
#include "runtime/clock.hpp"

namespace holdfast::test {

/// Runs the loop until the predicate holds, looking at it after every handler and every 10 ms. False where it
/// still does not after the limit, which is generous on purpose: a test waits for what must happen, it does not
/// measure how fast. Use as ASSERT_TRUE(run_until(loop, [&] { return done; })).
template <class Predicate>
[[nodiscard]] bool run_until(runtime::AsioLoop& loop, Predicate predicate,
                             Duration limit = std::chrono::seconds(30)) {
  const Instant end = runtime::boot_now() + limit;
  loop.context().restart();
  while (!predicate()) {
    if (runtime::boot_now() >= end) return false;
    loop.context().run_one_for(std::chrono::milliseconds(10));
  }
  return true;
}

/// Lets the loop go on for a while: for "and then nothing more happens", never for "by then it has happened".
inline void run_for(runtime::AsioLoop& loop, Duration time) {
  (void)run_until(
      loop, [] { return false; }, time);
}

}  // namespace holdfast::test
