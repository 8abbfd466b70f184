#pragma once
#include "holdfast/types.hpp"

namespace holdfast::runtime {

/// CLOCK_BOOTTIME: monotonic, counts suspend, the same for all processes of the machine. Any thread.
[[nodiscard]] Instant boot_now();
/// CLOCK_REALTIME in milliseconds. Any thread.
[[nodiscard]] WallTime wall_now();
/// What this process has used of its processors so far: for measuring.
[[nodiscard]] Duration cpu_time();
/// From the operating system's generator: for seeds and ids.
[[nodiscard]] std::uint64_t random_seed();

}  // namespace holdfast::runtime
