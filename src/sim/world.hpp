#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "sim/clock.hpp"
#include "sim/faults.hpp"
#include "sim/marks.hpp"
#include "sim/node_loop.hpp"
#include "sim/plan.hpp"
#include "sim/timeline.hpp"
#include "sim/trace.hpp"

namespace holdfast::sim {

/// What all parts of one run share: time, the plan, what was injected, what was seen.
struct World {
  static constexpr std::size_t trace_most = 200'000;

  /// `keeps_trace`: what happened last is kept, to be told of.
  World(const Plan& plan_, bool keeps_trace)
      : plan(plan_), trace(keeps_trace ? trace_most : 0), loop(timeline, truth, seed_of(plan_.seed, "world")) {}

  const Plan plan;
  Timeline timeline;
  NodeClock truth;  ///< the clock of those who stand outside
  Trace trace;
  Marks marks;
  ByFault<std::uint64_t> injected;
  NodeLoop loop;      ///< what happens outside of all processes
  bool calm = false;  ///< faults are over
  bool outage = false;
  double throttled_share = 0;  ///< of all requests: they are refused
  bool upstreams_down = false;

  [[nodiscard]] Instant now() const { return timeline.now(); }
  /// Whether a fault that has a rate per opportunity strikes now.
  [[nodiscard]] bool strikes(Fault fault, Random& random) {
    const double rate = plan.rate[fault];
    if (rate <= 0 || calm || random.unit() >= rate) return false;
    inject(fault);
    return true;
  }
  /// How late an index shows one change, where it may.
  [[nodiscard]] Duration index_lag(Random& random);
  void inject(Fault fault) { ++injected[fault]; }
  void note(Happening::Kind kind, std::int16_t process, std::int32_t connection, std::int64_t a = 0,
            std::int64_t b = 0, std::int64_t c = 0) {
    trace.add({now(), a, b, c, connection, process, kind});
  }
};

/// What a machine's clocks are like when a process starts there. The wall clock is to be set besides.
[[nodiscard]] NodeClock draw_clock(const World& world, Random& random);

/// Connections are called c0, c1, …; -1 for what is none of them. What coordinators are about has numbers of its own
/// (coord/words.hpp).
[[nodiscard]] std::string connection_name(std::int32_t connection);
[[nodiscard]] std::string connection_key(std::int32_t connection);
[[nodiscard]] std::int32_t connection_of_name(std::string_view name);
[[nodiscard]] std::int32_t connection_of_key(std::string_view key);

}  // namespace holdfast::sim
