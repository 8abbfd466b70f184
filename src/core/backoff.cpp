#include "core/backoff.hpp"

#include <algorithm>

namespace holdfast {

void Backoff::opened(Instant now) {
  opened_at_ = now;
}

Duration Backoff::ended(Instant now, std::optional<Duration> retry_after, Random& random) {
  if (opened_at_ && now - *opened_at_ >= options_.stable) {
    failures_ = 0;
  } else if (opened_at_) {
    ++short_lived_;
  }
  opened_at_.reset();
  Duration bound = options_.longest;
  // Doubled as long as that stays below the longest, so that it cannot overflow.
  if (failures_ < 62 && options_.first <= options_.longest / (std::int64_t{1} << failures_)) {
    bound = options_.first * (std::int64_t{1} << failures_);
  }
  if (failures_ < UINT32_MAX) ++failures_;
  const Duration jitter = random.between(options_.least, bound);
  return retry_after ? std::clamp(*retry_after, Duration::zero(), longest_told) + jitter : jitter;
}

void Backoff::reset() {
  failures_ = 0;
  opened_at_.reset();
}

}  // namespace holdfast
