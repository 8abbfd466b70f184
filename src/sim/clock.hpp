#pragma once
#include <cstdint>

#include "holdfast/types.hpp"

namespace holdfast::sim {

/// The two clocks of one machine, as functions of true time. The monotonic one runs at a rate of its own and counts
/// pauses (CLOCK_BOOTTIME); the wall clock is off by an error that drifts and is stepped.
class NodeClock {
 public:
  static constexpr WallTime wall_start{std::chrono::milliseconds(1'700'000'000'000)};

  /// `rate`: seconds of its own per true second. `boot`: what its monotonic clock shows at the true time `since`.
  NodeClock(double rate, Instant since, Instant boot) : rate_(rate), since_(since), boot_(boot) {}
  /// A clock without fault.
  NodeClock() : NodeClock(1, Instant{}, Instant{}) {}

  [[nodiscard]] Instant instant(Instant truth) const {
    if (rate_ == 1) return boot_ + (truth - since_);
    return boot_ + Duration(static_cast<Duration::rep>(static_cast<double>((truth - since_).count()) * rate_));
  }
  /// The first true time at which instant() has reached this.
  [[nodiscard]] Instant truth_at(Instant own) const;

  [[nodiscard]] WallTime wall(Instant truth) const {
    return wall_start + std::chrono::floor<std::chrono::milliseconds>(truth.time_since_epoch() + error(truth));
  }
  /// From now on the wall clock is off by `error`, drifting by `drift` (seconds per second), never by more than
  /// `most` in either direction.
  void set_wall_error(Instant truth, Duration error, double drift, Duration most);
  [[nodiscard]] Duration error(Instant truth) const;

 private:
  double rate_;
  Instant since_;
  Instant boot_;
  Instant error_since_{};
  Duration error_{};
  Duration most_ = Duration::max();
  double drift_ = 0;
};

}  // namespace holdfast::sim
