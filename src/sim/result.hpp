#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/faults.hpp"
#include "sim/marks.hpp"
#include "sim/rules.hpp"
#include "sim/world.hpp"

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

/// As far as the world knows it before everybody goes; the marks and what was recorded are for the caller.
/// `tail_most`: how many happenings to tell of where a rule was broken.
[[nodiscard]] Result result_of(const World& world, const std::optional<Violation>& violation, Duration well_after,
                               std::size_t tail_most);

}  // namespace holdfast::sim
