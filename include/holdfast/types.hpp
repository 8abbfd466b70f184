#pragma once
#include <chrono>
#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

namespace holdfast {

using Duration = std::chrono::nanoseconds;

/// The time line of beliefs: monotonic, and it goes on while the machine is suspended (CLOCK_BOOTTIME).
/// It has no now(): time is a value that is handed in, so that a simulator can hand in its own.
struct BootClock {
  using duration = Duration;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<BootClock, duration>;
  static constexpr bool is_steady = true;
};
using Instant = BootClock::time_point;

/// Wall-clock time in milliseconds since 1970 UTC: what is written into rows, compared across machines.
using WallTime = std::chrono::sys_time<std::chrono::milliseconds>;

/// Both clocks, read together.
struct Now {
  Instant instant{};
  WallTime wall{};
};

/// The fencing token: one higher at every change of ownership, never reset (S3). 0 = never owned.
struct Epoch {
  std::int64_t value = 0;
  auto operator<=>(const Epoch&) const = default;
};

/// A random id of one logical write, the same in all its retries (S5).
struct Attempt {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  auto operator<=>(const Attempt&) const = default;
  /// 32 lower-case hexadecimal digits: the form kept in the row.
  [[nodiscard]] std::string to_string() const;
};

/// A name that cannot be mistaken for another kind of name.
template <class Tag>
struct Name {
  std::string value;
  Name() = default;
  explicit Name(std::string value_) : value(std::move(value_)) {}
  auto operator<=>(const Name&) const = default;
};
/// What a lease is about, without the row's prefix: the row `CONN#btc` is the connection `btc`.
using ConnectionId = Name<struct ConnectionIdTag>;
/// Who holds: the worker's name and its incarnation, as written to `lease_owner`.
using WorkerId = Name<struct WorkerIdTag>;

}  // namespace holdfast

template <class Tag>
struct std::hash<holdfast::Name<Tag>> {
  std::size_t operator()(const holdfast::Name<Tag>& name) const noexcept {
    return std::hash<std::string>{}(name.value);
  }
};
