#pragma once
#include <cstddef>

#include "sim/plan.hpp"
#include "sim/result.hpp"

namespace holdfast::sim {

/// Runs a plan from its beginning to its end, or to the first rule that is broken. `tail_most`: how many happenings
/// to tell of then.
/// `judge_history`: every update is recorded as its asker saw it and judged, which costs many times the run.
[[nodiscard]] Result simulate(const Plan& plan, std::size_t tail_most = 0, bool judge_history = false);

}  // namespace holdfast::sim
