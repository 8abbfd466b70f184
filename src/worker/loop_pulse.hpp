#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "holdfast/loop.hpp"

namespace holdfast::worker {

/// Notices a loop that does not run its tasks (S10, F14): something in it waits and does not come back.
///
/// Every beat each loop is sent a task, unless its last one is still there. Silence is counted in beats of the loop
/// that watches, not by the clock: a process that stood still as a whole has no loop that is silent. All on the
/// control loop's thread; the watched loops must outlive it or run no more.
class LoopPulse {
 public:
  enum class State {
    runs,
    blocked,    ///< silent for two beats
    abandoned,  ///< silent for `patience`: nothing is done any more to keep what lives there
  };
  /// `changed` is called at each change, with how long the loop has been silent, to within a beat.
  LoopPulse(Loop& control, const std::vector<Loop*>& loops, Duration patience,
            std::function<void(std::size_t loop, State state, Duration silent)> changed);
  ~LoopPulse();
  LoopPulse(const LoopPulse&) = delete;
  LoopPulse& operator=(const LoopPulse&) = delete;

  void start();
  void stop();
  [[nodiscard]] State state(std::size_t loop) const { return loops_[loop].state; }
  [[nodiscard]] bool all_blocked() const;

 private:
  struct Watched {
    Loop* loop = nullptr;
    bool asked = false;  // a task of ours is waiting there
    int silent = 0;      // beats
    State state = State::runs;
  };
  void beat();
  void answered(std::size_t index);

  Loop& control_;
  std::vector<Watched> loops_;
  const Duration beat_;
  const int abandoned_after_;  // beats
  const std::function<void(std::size_t loop, State state, Duration silent)> changed_;
  TimerId timer_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace holdfast::worker
