#include "sim/result.hpp"

namespace holdfast::sim {

Result result_of(const World& world, const std::optional<Violation>& violation, Duration well_after,
                 std::size_t tail_most) {
  Result result;
  result.violation = violation;
  result.hash = world.trace.hash();
  result.events = world.trace.count();
  result.steps = world.timeline.steps();
  result.virtual_time = world.now() - Timeline::start;
  result.well_after = well_after;
  result.injected = world.injected;
  if (violation && tail_most > 0) {
    for (const Happening& one : world.trace.last(violation->connection, tail_most)) {
      result.tail.push_back(describe(one));
    }
  }
  return result;
}

}  // namespace holdfast::sim
