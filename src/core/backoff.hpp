#pragma once
#include <cstdint>
#include <optional>

#include "holdfast/random.hpp"
#include "holdfast/types.hpp"

namespace holdfast {

struct BackoffOptions {
  Duration first = std::chrono::milliseconds(500);
  Duration longest = std::chrono::seconds(60);
  Duration least = std::chrono::milliseconds(20);  ///< so that no draw makes a busy loop
  Duration stable = std::chrono::seconds(30);      ///< open for this long: start over
};

/// How long to wait before connecting again: exponential with full jitter (uniform between `least` and a bound that
/// doubles from `first` to `longest`). It starts over only once a connection has stayed open for `stable`: a server
/// that accepts and then closes at once is as much a failure as one that refuses (F36). Pure state; one per
/// connection.
class Backoff {
 public:
  explicit Backoff(BackoffOptions options = {}) : options_(options) {}

  /// The connection is open.
  void opened(Instant now);
  /// The connection failed to open, or ended: how long to wait. A server's Retry-After is honoured, with jitter added
  /// on top (everybody was told the same), as far as `longest_told`.
  [[nodiscard]] Duration ended(Instant now, std::optional<Duration> retry_after, Random& random);
  /// Start over: the row was edited.
  void reset();

  [[nodiscard]] std::uint32_t failures() const { return failures_; }        ///< in a row, short-lived ones included
  [[nodiscard]] std::uint64_t short_lived() const { return short_lived_; }  ///< opened, then closed before `stable`

  static constexpr Duration longest_told = std::chrono::minutes(10);

 private:
  BackoffOptions options_;
  std::optional<Instant> opened_at_;
  std::uint32_t failures_ = 0;
  std::uint64_t short_lived_ = 0;
};

}  // namespace holdfast
