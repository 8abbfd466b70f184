#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "holdfast/lease.hpp"
#include "holdfast/types.hpp"
#include "sim/faults.hpp"

namespace holdfast::sim {

/// What a seed is about. Each has its own faults always on; which of the others are on is drawn.
enum class Scenario : std::uint8_t {
  steady,         ///< a fleet, a network that is a little bad, nobody dies
  crashes,        ///< processes crash, pause for longer than any lease, stall, restart
  rolling,        ///< a rolling restart
  drain,          ///< processes are drained, whatever their sinks and resources are at
  outage,         ///< the store is away for everyone, for longer than a lease, and comes back
  churn,          ///< desired state, options and rows change all the time
  plain,          ///< workers that know nothing of epochs share the table
  clocks_within,  ///< clocks are wrong, but as little as was promised: S1 holds
  clocks_beyond,  ///< clocks are wrong by any amount: S2 holds
  upstreams,      ///< hostile upstreams
  sinks,          ///< sinks stall, fail and fill up
  swarm,          ///< anything
  reactive,       ///< a stream that one worker reads for all; looks are rare
  coordinators,   ///< no fleet: short-lived processes that use the coordinators, with clocks that keep the promise
  coordinators_beyond,  ///< the same with clocks that are wrong by any amount
};
inline constexpr std::size_t scenarios_count = static_cast<std::size_t>(Scenario::coordinators_beyond) + 1;
[[nodiscard]] constexpr bool is_of_coordinators(Scenario scenario) {
  return scenario >= Scenario::coordinators;
}
[[nodiscard]] std::string_view name_of(Scenario scenario);
[[nodiscard]] std::optional<Scenario> scenario_named(std::string_view name);

/// All that a run depends on, drawn from its seed, then perhaps cut down by hand: the same plan gives the same run.
struct Plan {
  std::uint64_t seed = 1;
  Scenario scenario = Scenario::swarm;
  LeaseTerms terms;
  std::size_t processes = 5;  ///< of coordinators: as many as are there at once
  std::size_t plain_workers = 0;
  std::size_t connections = 50;  ///< of coordinators: how many tasks, counters, … of each kind there are
  std::size_t capacity = 100;    ///< of each process
  std::size_t stream_threads = 1;
  Duration duration{};  ///< with faults; then all is made well, and everything has to come right
  Duration drain_timeout{};
  Duration sink_patience{};
  Duration latency{};        ///< of the store, one way, typically
  Duration message_every{};  ///< of one upstream, typically
  bool change_feed = false;  ///< the store tells of changes
  bool stream = false;       ///< one worker at a time should read them, for all
  ByFault<double> rate{};    ///< 0: off

  [[nodiscard]] bool on(Fault fault) const { return rate[fault] > 0; }
  /// Whether wall clocks keep the promise that S1 rests on.
  [[nodiscard]] bool clocks_keep_promise() const {
    return scenario != Scenario::clocks_beyond && scenario != Scenario::coordinators_beyond;
  }
  /// How far a wall clock may be from the truth.
  [[nodiscard]] Duration wall_error_most() const;
  /// How far the rate of a monotonic clock may be from 1.
  [[nodiscard]] double rate_error_most() const;
  /// How long after the last fault everything may take to come right. What may still be in the way: expiries that a
  /// wrong clock wrote, requests and index entries that are late by three leases, drains under way, the time that
  /// connecting again may take.
  [[nodiscard]] Duration time_to_come_well() const;
  /// Whether only waiting for the skew keeps a successor away from who still believes: with a margin above the skew,
  /// as it is by default, the margin does that alone.
  [[nodiscard]] bool margin_is_below_skew() const { return terms.margin < terms.skew; }
};

/// Cuts to a plan, as the command line says them and as shrinking finds them.
struct Cuts {
  std::optional<Duration> duration;
  std::optional<std::size_t> processes;
  std::optional<std::size_t> connections;
  std::optional<Duration> lease;
  std::vector<Fault> without;
};

[[nodiscard]] Plan draw_plan(std::uint64_t seed, std::optional<Scenario> scenario, const Cuts& cuts = {});

/// The seed of one part's own generator: parts do not disturb each other's draws.
[[nodiscard]] std::uint64_t seed_of(std::uint64_t seed, std::string_view part, std::uint64_t number = 0);

}  // namespace holdfast::sim
