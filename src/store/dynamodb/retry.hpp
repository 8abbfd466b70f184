#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "holdfast/random.hpp"
#include "holdfast/types.hpp"

namespace holdfast::store::dynamodb {

/// What one attempt came to, as far as what to do next depends on it.
enum class Verdict {
  applied,      ///< done, and its answer can be believed
  conflict,     ///< a condition did not hold; nothing happened
  throttled,    ///< refused for now; nothing happened
  not_sent,     ///< did not reach the server; nothing happened
  uncertain,    ///< no answer, or a 5xx: it may have happened, or may still happen
  unreadable,   ///< answered, most likely carried out, but the answer is damaged
  wrong_clock,  ///< refused since its signature was dated too far from the server's time
  stale_keys,   ///< refused since the credentials are not, or no longer, known
  rejected,     ///< it can never work as it is
};

/// What an answer that is not 200 says. `type` is the error's type without prefix; `message` the server's words.
/// TransactionCanceledException is judged by its reasons: see classify_cancelled().
[[nodiscard]] Verdict classify(int status, std::string_view type, std::string_view message);

/// What one of a cancelled transaction's reasons ("ConditionalCheckFailed", "ThrottlingError", "None", …) says;
/// `applied` for "None". The transaction's own verdict is the gravest: rejected, then conflict, then throttled.
[[nodiscard]] Verdict classify_cancelled(std::string_view reason);

struct RetryOptions {
  std::size_t tries_max = 8;                            ///< the first one included
  Duration first = std::chrono::milliseconds(25);       ///< bound of the first wait; doubles with every retry
  Duration longest = std::chrono::seconds(1);           ///< bound of a wait
  Duration attempt_max = std::chrono::seconds(2);       ///< an attempt without an answer is given up after this
  Duration useful_min = std::chrono::milliseconds(20);  ///< no retry begins with less time than this left
};

/// The tokens that all clients of a process pay their retries from (S10): when a store is down or overloaded, retries
/// stop multiplying what is asked of it. Each retry takes some; a retry that succeeds gives its own back, and every
/// success gives one more. Any thread.
class RetryBudget {
 public:
  static constexpr std::int64_t capacity_default = 500;
  static constexpr std::int64_t retry_cost = 5;

  explicit RetryBudget(std::int64_t capacity = capacity_default) : capacity_(capacity), tokens_(capacity) {}

  /// False where there are not enough: do not retry.
  [[nodiscard]] bool take();
  /// After a success that took `retries` of them.
  void succeeded(std::size_t retries);
  [[nodiscard]] std::int64_t tokens() const { return tokens_.load(std::memory_order_relaxed); }

 private:
  const std::int64_t capacity_;
  std::atomic<std::int64_t> tokens_;
};

/// How long to wait before the next attempt: full jitter, uniform from 0 to a bound that doubles from `first` to
/// `longest`. Nothing: give up, since the tries or the tokens are used up, or an attempt after the wait would have
/// less than `useful_min` until the deadline. `tries` is how many there were, at least 1.
[[nodiscard]] std::optional<Duration> wait_before_retry(const RetryOptions& options, std::size_t tries, Duration left,
                                                        Random& random, RetryBudget& budget);

}  // namespace holdfast::store::dynamodb
