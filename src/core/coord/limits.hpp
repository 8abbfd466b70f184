#pragma once
#include <chrono>
#include <cstdint>

#include "holdfast/types.hpp"

// What may be asked of the coordinators, on the command line and over HTTP alike. What differs there on purpose (how
// long a server waits for a caller, or renews for one) is said there.
namespace holdfast::coord {

/// Both ends included.
struct Span {
  Duration least{};
  Duration most{};
};

/// What is remembered: results, operations, reservations that have ended. Less than a second would forget between two
/// tries; a year, and a day to spare.
inline constexpr Span remembered{std::chrono::seconds(1), std::chrono::days(366)};
/// Of a reservation that nobody has confirmed.
inline constexpr Span reserved{std::chrono::milliseconds(100), std::chrono::days(366)};
/// Of goods that are sold without the store: until they go back.
inline constexpr Span set_aside{std::chrono::seconds(1), std::chrono::days(366)};
/// Of a provisional ticket that nobody has begun to settle (max_age). In no time it would be rejected at once; what
/// was begun is remembered by the store for a year.
inline constexpr Span waiting{std::chrono::milliseconds(1), std::chrono::days(365)};
/// Of a message: not much longer than it would be kept.
inline constexpr Span delayed{Duration::zero(), std::chrono::days(15)};
/// Of the id of a message. Less would forget between two tries of a sender that was restarted.
inline constexpr Span deduplicated{std::chrono::minutes(5), std::chrono::days(15)};
/// Of a group that is leased: in less nothing can be done, and it would count as a receive.
inline constexpr Span visible{std::chrono::milliseconds(100), std::chrono::days(1)};

/// What the clocks of two machines may differ by: whoever dies is followed so much later.
inline constexpr Span skewed{Duration::zero(), std::chrono::days(1)};

/// How often a message is given out before it is poison: up to so often, once at least.
inline constexpr std::int64_t receives_most = 1'000'000;
/// What somebody would wait for: beyond this it is for ever, and would overflow as a time.
inline constexpr Span waited{Duration::zero(), std::chrono::days(36'600)};

[[nodiscard]] constexpr std::int64_t in_ms(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}
/// In milliseconds, too: as nanoseconds they may overflow.
template <class Rep, class Period>
[[nodiscard]] constexpr bool is_within(std::chrono::duration<Rep, Period> duration, const Span& span) {
  using Steps = std::chrono::duration<Rep, Period>;
  // In its own steps: what is longer than a Duration can say does not become one.
  return duration >= std::chrono::ceil<Steps>(span.least) && duration <= std::chrono::floor<Steps>(span.most);
}

[[nodiscard]] constexpr Duration clamped(Duration duration, const Span& span) {
  return duration < span.least ? span.least : duration > span.most ? span.most : duration;
}

}  // namespace holdfast::coord
