#pragma once
#include <cstdint>
#include <functional>

#include "holdfast/random.hpp"
#include "holdfast/types.hpp"

namespace holdfast {

using Task = std::function<void()>;
using TimerId = std::uint64_t;  ///< 0 is never a timer

/// One thread of control: a clock, timers and a queue of tasks. Everything above the runtime is written
/// against this, so that the same code runs on Asio and on a simulator's virtual time.
///
/// Tasks and timers run one at a time on the loop's thread. post() and the clocks may be used from any
/// thread; everything else only from the loop's own. Must outlive all that uses it.
class Loop {
 public:
  virtual ~Loop() = default;

  [[nodiscard]] virtual Instant instant() const = 0;
  [[nodiscard]] virtual WallTime wall() const = 0;
  [[nodiscard]] Now now() const { return {instant(), wall()}; }

  /// Runs the task later, after what is already queued. Never runs it inside the call.
  virtual void post(Task task) = 0;

  /// Runs the task at the instant, or soon if that has passed. One-shot.
  virtual TimerId call_at(Instant when, Task task) = 0;
  TimerId call_after(Duration delay, Task task) { return call_at(instant() + delay, std::move(task)); }
  /// No effect where the timer has fired or was cancelled. After it returns the task will not run.
  virtual void cancel(TimerId timer) = 0;

  /// This loop's generator, seeded by whoever made the loop.
  virtual Random& random() = 0;
};

}  // namespace holdfast
