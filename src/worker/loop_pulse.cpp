#include "worker/loop_pulse.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::worker {
namespace {

constexpr int blocked_after = 2;                        // beats
constexpr Duration beat_max = std::chrono::seconds(2);  // a status that is wrong for longer than 6 s misleads

}  // namespace

LoopPulse::LoopPulse(Loop& control, const std::vector<Loop*>& loops, Duration patience,
                     std::function<void(std::size_t loop, State state, Duration silent)> changed)
    : control_(control),
      beat_(std::min(patience / 8, beat_max)),
      abandoned_after_(static_cast<int>(patience / beat_)),
      changed_(std::move(changed)) {
  for (Loop* loop : loops) loops_.push_back({loop});
}

LoopPulse::~LoopPulse() {
  stop();
}

void LoopPulse::start() {
  timer_ = control_.call_after(beat_, [this] { beat(); });
}

void LoopPulse::stop() {
  if (timer_ != 0) control_.cancel(std::exchange(timer_, 0));
}

bool LoopPulse::all_blocked() const {
  return std::none_of(loops_.begin(), loops_.end(), [](const Watched& each) { return each.state == State::runs; });
}

void LoopPulse::beat() {
  timer_ = control_.call_after(beat_, [this] { beat(); });
  for (std::size_t i = 0; i < loops_.size(); ++i) {
    Watched& watched = loops_[i];
    if (!std::exchange(watched.asked, true)) {
      watched.loop->post([this, i, &control = control_, alive = std::weak_ptr<bool>(alive_)] {
        control.post([this, i, alive] {
          if (!alive.expired()) answered(i);
        });
      });
      continue;
    }
    ++watched.silent;
    State state = watched.state;
    if (watched.silent == blocked_after) state = State::blocked;
    if (watched.silent == abandoned_after_) state = State::abandoned;
    if (std::exchange(watched.state, state) != state) changed_(i, state, beat_ * watched.silent);
  }
}

void LoopPulse::answered(std::size_t index) {
  Watched& watched = loops_[index];
  watched.asked = false;
  const int silent = std::exchange(watched.silent, 0);
  if (std::exchange(watched.state, State::runs) != State::runs) changed_(index, State::runs, beat_ * silent);
}

}  // namespace holdfast::worker
