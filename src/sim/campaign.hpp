#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/plan.hpp"
#include "sim/simulation.hpp"

namespace holdfast::sim {

/// A plan that was cut down as far as it still breaks the same rule.
struct Shrunk {
  Plan plan;
  Cuts cuts;
  Result result;
  int runs = 0;
  bool judged_histories = false;
};

/// Turns faults off one by one, then takes processes, connections and time away.
[[nodiscard]] Shrunk shrink(const Plan& plan, const Cuts& cuts, const Result& broken);

/// The command that runs it again, just as it is.
[[nodiscard]] std::string replay_command(const Shrunk& shrunk);

/// Many seeds, one after another.
struct Campaign {
  std::uint64_t first = 1;
  std::uint64_t last = 200;
  std::optional<Scenario> scenario;
  Cuts cuts;
  bool shrinks = true;
  bool judges_histories = false;
};
struct Sum {
  std::uint64_t seeds = 0;
  std::uint64_t steps = 0;
  std::uint64_t events = 0;
  std::uint64_t recorded = 0;  ///< operations that the checkers of histories judged
  std::uint64_t hash = 0;      ///< of all runs' hashes, in order
  Duration virtual_time{};
  Duration longest_to_come_well{};
  std::uint64_t margins_below_skew = 0;  ///< seeds
  std::vector<std::uint64_t> by_scenario = std::vector<std::uint64_t>(scenarios_count);
  ByFault<std::uint64_t> injected;
  Marks marks;
  std::optional<Shrunk> broken;  ///< the first seed that broke a rule ended it
  std::uint64_t broken_seed = 0;
  Violation first_violation;
};

/// `progress` is called after each seed.
[[nodiscard]] Sum run(const Campaign& campaign, const std::function<void(const Sum&)>& progress);

}  // namespace holdfast::sim
