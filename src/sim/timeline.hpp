#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "holdfast/loop.hpp"
#include "holdfast/types.hpp"

namespace holdfast::sim {

/// What runs on a Timeline and can stand still: one thread of one process.
struct Runner {
  struct Held {
    std::uint32_t slot = 0;
    std::uint32_t generation = 0;
  };
  bool paused = false;
  std::size_t tasks = 0;   // waiting or held
  std::vector<Held> held;  // came due while it was paused, in order
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
  [[nodiscard]] std::size_t waiting() const { return slots_.size() - free_.size(); }

 private:
  struct Slot {
    Task task;
    Runner* runner = nullptr;
    std::uint32_t generation = 1;
    bool used = false;
    bool timer = false;
  };
  struct Entry {
    Instant when;
    std::uint64_t order;
    std::uint32_t slot;
    std::uint32_t generation;
  };
  struct Later {
    bool operator()(const Entry& a, const Entry& b) const {
      return a.when != b.when ? a.when > b.when : a.order > b.order;
    }
  };
  void push(Instant when, std::uint32_t slot);
  [[nodiscard]] Task release(std::uint32_t slot);

  Instant now_ = start;
  std::uint64_t order_ = 0;
  std::uint64_t steps_ = 0;
  std::vector<Entry> heap_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
};

}  // namespace holdfast::sim
