#include "sim/clock.hpp"

#include <algorithm>

namespace holdfast::sim {

Instant NodeClock::truth_at(Instant own) const {
  if (own <= boot_) return since_;
  if (rate_ == 1) return since_ + (own - boot_);
  const double ahead = static_cast<double>((own - boot_).count()) / rate_;
  constexpr double farthest = 4e18;  // a timer that is never to fire
  Instant truth = since_ + Duration(static_cast<Duration::rep>(std::min(ahead, farthest)));
  while (ahead < farthest && instant(truth) < own) truth += Duration(1);
  return truth;
}

void NodeClock::set_wall_error(Instant truth, Duration error, double drift, Duration most) {
  error_since_ = truth;
  error_ = std::clamp(error, -most, most);
  drift_ = drift;
  most_ = most;
}

Duration NodeClock::error(Instant truth) const {
  if (drift_ == 0) return error_;
  const auto drifted =
      Duration(static_cast<Duration::rep>(static_cast<double>((truth - error_since_).count()) * drift_));
  return std::clamp(error_ + drifted, -most_, most_);
}

}  // namespace holdfast::sim
