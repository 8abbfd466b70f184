#pragma once
#include "holdfast/types.hpp"

namespace holdfast::runtime {

/// CLOCK_BOOTTIME: monotonic, counts suspend, the same for all processes of the machine. Any thread.
[[nodiscard]] Instant boot_now();
/// CLOCK_REALTIME in milliseconds. Any thread.
[[nodiscard]] WallTime wall_now();
/// From the operating system's generator: for seeds and ids.
[[nodiscard]] std::uint64_t random_seed();

}  // namespace holdfast::runtime
