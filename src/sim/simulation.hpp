#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/faults.hpp"
#include "sim/marks.hpp"
#include "sim/plan.hpp"
#include "sim/rules.hpp"

namespace holdfast::sim {

/// What one run came to.
struct Result {
  std::optional<Violation> violation;
  std::uint64_t hash = 0;    ///< of everything that happened
  std::uint64_t events = 0;  ///< that were hashed
  std::uint64_t steps = 0;   ///< tasks and timers that ran
  Duration virtual_time{};
  Duration well_after{};  ///< how long after the last fault everything had come right
  ByFault<std::uint64_t> injected;
  Marks marks;
  std::size_t recorded = 0;       ///< operations in the history
  std::vector<std::string> tail;  ///< where a rule was broken: the last happenings, one per line
};

/// Runs a plan from its beginning to its end, or to the first rule that is broken. `tail_most`: how many happenings
/// to tell of then.
/// `judge_history`: every update is recorded as its asker saw it and judged, which costs many times the run.
[[nodiscard]] Result simulate(const Plan& plan, std::size_t tail_most = 0, bool judge_history = false);

}  // namespace holdfast::sim
