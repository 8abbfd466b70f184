#include "store/dynamodb/retry.hpp"

#include <algorithm>
#include <array>

namespace holdfast::store::dynamodb {
namespace {

template <std::size_t size>
bool is_one_of(std::string_view type, const std::array<std::string_view, size>& types) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

// All of them refuse before anything is done. A transaction that meets another one at a row (TransactionConflict) and
// a table that is busy with its own change (LimitExceeded) are throttling by another name.
constexpr std::array<std::string_view, 12> throttling = {
    "ProvisionedThroughputExceededException",
    "ThrottlingException",
    "Throttling",
    "RequestLimitExceeded",
    "RequestThrottled",
    "RequestThrottledException",
    "TooManyRequestsException",
    "BandwidthLimitExceeded",
    "SlowDown",
    "LimitExceededException",
    "TransactionConflictException",
    "ReplicatedWriteConflictException",
};
constexpr std::array<std::string_view, 3> clocks = {"RequestTimeTooSkewed", "RequestExpired", "RequestInTheFuture"};
constexpr std::array<std::string_view, 6> keys = {"ExpiredTokenException",       "ExpiredToken",
                                                  "UnrecognizedClientException", "InvalidClientTokenId",
                                                  "InvalidAccessKeyId",          "TokenRefreshRequired"};
constexpr std::array<std::string_view, 2> signatures = {"InvalidSignatureException", "SignatureDoesNotMatch"};

}  // namespace

Verdict classify(int status, std::string_view type, std::string_view message) {
  if (type == "ConditionalCheckFailedException") return Verdict::conflict;
  if (is_one_of(type, throttling)) return Verdict::throttled;
  if (is_one_of(type, clocks)) return Verdict::wrong_clock;
  if (is_one_of(type, signatures)) {
    const bool dated = message.find("Signature expired") != std::string_view::npos ||
                       message.find("not yet current") != std::string_view::npos;
    return dated ? Verdict::wrong_clock : Verdict::rejected;
  }
  if (is_one_of(type, keys)) return Verdict::stale_keys;
  // The same token is being carried out: by an earlier try of ours.
  if (type == "TransactionInProgressException") return Verdict::uncertain;
  if (status == 429) return Verdict::throttled;
  // What is neither an answer nor a refusal (a redirect, a proxy's page with 2xx) may stand for anything.
  if (status < 400 || status >= 500 || status == 408) return Verdict::uncertain;
  return Verdict::rejected;
}

Verdict classify_cancelled(std::string_view reason) {
  if (reason == "None") return Verdict::applied;
  if (reason == "ConditionalCheckFailed") return Verdict::conflict;
  if (reason == "TransactionConflict" || reason == "ThrottlingError" || reason == "ProvisionedThroughputExceeded") {
    return Verdict::throttled;
  }
  return Verdict::rejected;
}

bool RetryBudget::take() {
  std::int64_t tokens = tokens_.load(std::memory_order_relaxed);
  do {
    if (tokens < retry_cost) return false;
  } while (!tokens_.compare_exchange_weak(tokens, tokens - retry_cost, std::memory_order_relaxed));
  return true;
}

void RetryBudget::succeeded(std::size_t retries) {
  std::int64_t tokens = tokens_.load(std::memory_order_relaxed);
  std::int64_t more = 0;
  do {
    if (tokens == capacity_) return;
    more = std::min(capacity_, tokens + 1 + retry_cost * static_cast<std::int64_t>(retries));
  } while (!tokens_.compare_exchange_weak(tokens, more, std::memory_order_relaxed));
}

std::optional<Duration> wait_before_retry(const RetryOptions& options, std::size_t tries, Duration left,
                                          Random& random, RetryBudget& budget) {
  if (tries >= options.tries_max || left < options.useful_min || !budget.take()) return std::nullopt;
  Duration bound = options.first;
  for (std::size_t i = 1; i < tries && bound < options.longest; ++i) bound *= 2;
  return random.between(Duration::zero(), std::min({bound, options.longest, left - options.useful_min}));
}

}  // namespace holdfast::store::dynamodb
