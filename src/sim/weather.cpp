#include "sim/weather.hpp"

#include <cmath>
#include <utility>

namespace holdfast::sim {

void Weather::after(Duration time, Task task) {
  world_.loop.call_after(time, [&world = world_, task = std::move(task)] {
    if (!world.calm) task();
  });
}

Duration Weather::until_next(Fault fault) {
  const double mean = std::chrono::duration<double>(world_.plan.terms.lease).count() * 100 / world_.plan.rate[fault];
  const double seconds = -mean * std::log(1 - random_.unit());
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds + 0.001));
}

Duration Weather::some_leases(double least, double most) {
  const double part = least * std::pow(most / least, random_.unit());
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double, std::nano>(static_cast<double>(world_.plan.terms.lease.count()) * part));
}

bool Weather::strike(Fault fault) {
  if (fault == Fault::outage) {
    if (std::exchange(world_.outage, true)) return true;
    world_.inject(fault);
    world_.note(Happening::Kind::fault, -1, -1, static_cast<std::int64_t>(fault));
    const Duration time = some_leases(0.1, 4);
    after(time, [&world = world_, time] {
      world.outage = false;
      if (time > world.plan.terms.lease) world.marks.hit(Mark::outage_outlived);
    });
    return true;
  }
  if (fault == Fault::throttle_burst) {
    if (world_.throttled_share > 0) return true;
    world_.inject(fault);
    world_.note(Happening::Kind::fault, -1, -1, static_cast<std::int64_t>(fault));
    world_.throttled_share = 0.5 + 0.5 * random_.unit();
    after(some_leases(0.05, 2), [&world = world_] { world.throttled_share = 0; });
    return true;
  }
  return false;
}

}  // namespace holdfast::sim
