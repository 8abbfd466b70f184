#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>

#include "holdfast/loop.hpp"
#include "sim/clock.hpp"
#include "sim/timeline.hpp"

namespace holdfast::sim {

/// One thread of a simulated process: a Loop on the Timeline that tells time by its machine's clocks. Timeline and
/// clock must outlive it; destroying it destroys what it still had to do.
class NodeLoop final : public Loop {
 public:
  NodeLoop(Timeline& timeline, const NodeClock& clock, std::uint64_t seed)
      : timeline_(timeline), clock_(clock), random_(seed) {}
  ~NodeLoop() override { clear(); }
  NodeLoop(const NodeLoop&) = delete;
  NodeLoop& operator=(const NodeLoop&) = delete;

  [[nodiscard]] Instant instant() const override { return clock_.instant(timeline_.now()); }
  [[nodiscard]] WallTime wall() const override { return clock_.wall(timeline_.now()); }
  void post(Task task) override { timeline_.add(timeline_.now(), std::move(task), &runner_); }
  TimerId call_at(Instant when, Task task) override {
    return timeline_.add(clock_.truth_at(when), std::move(task), &runner_);
  }
  void cancel(TimerId timer) override { timeline_.cancel(timer); }
  Random& random() override { return random_; }

  /// Stands still: what comes due waits until resume(), by when the clocks have gone on.
  void pause() { runner_.paused = true; }
  void resume(bool timers_first) { timeline_.resume(runner_, timers_first); }
  [[nodiscard]] bool paused() const { return runner_.paused; }
  /// Destroys what it still has to do.
  void clear() { timeline_.drop(runner_); }
  [[nodiscard]] std::size_t waiting() const { return runner_.tasks; }

 private:
  Timeline& timeline_;
  const NodeClock& clock_;
  Random random_;
  Runner runner_;
};

}  // namespace holdfast::sim
