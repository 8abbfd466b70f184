#include "runtime/clock.hpp"

#include <sys/random.h>

#include <cerrno>
#include <ctime>

#include "holdfast/assert.hpp"

namespace holdfast::runtime {

Instant boot_now() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return Instant(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

WallTime wall_now() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return WallTime(std::chrono::milliseconds(std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000));
}

Duration cpu_time() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

std::uint64_t random_seed() {
  std::uint64_t seed = 0;
  ssize_t got = 0;
  do {
    got = getrandom(&seed, sizeof seed, 0);
  } while (got < 0 && errno == EINTR);
  HOLDFAST_ASSERT(got == sizeof seed, "getrandom gives 8 bytes at once");
  return seed;
}

}  // namespace holdfast::runtime
