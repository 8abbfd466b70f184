#pragma once
#include "holdfast/loop.hpp"
#include "holdfast/random.hpp"
#include "sim/world.hpp"

namespace holdfast::sim {

/// When faults come, for how long, and those that meet everybody at once.
class Weather {
 public:
  Weather(World& world, Random& random) : world_(world), random_(random) {}

  /// Unless faults are over by then.
  void after(Duration time, Task task);
  /// Rates are per hundred leases; times between events are exponential.
  [[nodiscard]] Duration until_next(Fault fault);
  /// Evenly on a logarithmic scale.
  [[nodiscard]] Duration some_leases(double least, double most);
  /// An outage of the store, or a burst of throttling. False: it is neither.
  [[nodiscard]] bool strike(Fault fault);

 private:
  World& world_;
  Random& random_;
};

}  // namespace holdfast::sim
