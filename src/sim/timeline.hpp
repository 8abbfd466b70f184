#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "holdfast/loop.hpp"
#include "holdfast/types.hpp"
#include "sim/monotone_queue.hpp"

namespace holdfast::sim {

/// One thing that is to happen. Void once it has happened or was cancelled, also when its place has been given to
/// another.
struct Ticket {
  std::uint32_t place = 0;
  std::uint32_t generation = 0;
};

/// What runs on a Timeline and can stand still: one thread of one process.
struct Runner {
  bool paused = false;
  std::size_t tasks = 0;     // waiting or held
  std::vector<Ticket> held;  // came due while it was paused, in order
};

/// True time, which nobody inside the simulation can read, and everything that is still to happen, in order. What is
/// due at one instant happens in the order in which it was asked for. Not thread-safe.
class Timeline {
 public:
  static constexpr Instant start{std::chrono::seconds(1)};

  [[nodiscard]] Instant now() const { return now_; }
  /// `runner` null: part of the world, never paused. The id is never 0 and never used twice.
  TimerId add(Instant when, Task task, Runner* runner = nullptr);
  /// No effect where it has happened.
  void cancel(TimerId id);

  /// Makes the next thing happen, if it lies no later than `end`. False: nothing does, and now() is `end`.
  bool step(Instant end);

  /// What came due while it was paused happens now, timers before or after tasks that were handed over.
  void resume(Runner& runner, bool timers_first);
  /// Destroys everything that it still had to do.
  void drop(Runner& runner);

  [[nodiscard]] std::uint64_t steps() const { return steps_; }
  [[nodiscard]] std::size_t waiting() const { return places_.size() - free_.size(); }

 private:
  struct Place {
    Task task;
    Runner* runner = nullptr;
    std::uint32_t generation = 1;
    bool used = false;
    bool timer = false;
  };
  void push(Instant when, Ticket ticket);
  [[nodiscard]] bool is_void(Ticket ticket) const;
  [[nodiscard]] Task release(std::uint32_t place);

  Instant now_ = start;
  std::uint64_t steps_ = 0;
  MonotoneQueue<Ticket> due_;  // those that were cancelled, too, until their time
  std::vector<Place> places_;
  std::vector<std::uint32_t> free_;
};

}  // namespace holdfast::sim
