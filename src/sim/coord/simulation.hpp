#pragma once
#include <cstddef>

#include "sim/simulation.hpp"

namespace holdfast::sim::coordinated {

/// As sim::simulate(), for the scenarios of coordinators: what callers were told is judged as a history each time.
[[nodiscard]] Result simulate(const Plan& plan, std::size_t tail_most);

}  // namespace holdfast::sim::coordinated
