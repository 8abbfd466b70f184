#pragma once
#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>

#include "holdfast/error.hpp"
#include "holdfast/types.hpp"

namespace holdfast {

/// How long leases last and how they are kept. All but `lease` follow from it unless set.
struct LeaseTerms {
  Duration lease = std::chrono::seconds(20);
  Duration renew_every{};      ///< default lease / 4
  Duration margin{};           ///< default lease / 10: effects stop this long before the expiry (S4)
  Duration skew{};             ///< default lease / 20: what two wall clocks may differ by (S1)
  Duration reconcile_every{};  ///< default lease / 4: the mean time between looks for orphans
};

struct LeaseOptions {
  Duration lease = std::chrono::seconds(20);
  std::optional<Duration> renew_every{}, margin{}, skew{}, reconcile_every{};
};

/// Fills in what was not set and refuses nonsense with a sentence that says which and why (Code::usage).
[[nodiscard]] Result<LeaseTerms> make_terms(const LeaseOptions& options);

/// Why a lease, or what it held, came to its end.
enum class LossReason {
  taken_over,      ///< a conflict showed another owner or a higher epoch
  belief_expired,  ///< no renewal was confirmed in time; the store may be away
  row_missing,     ///< the row is gone
  stopped,         ///< desired state is no longer STARTED: released
  drained,         ///< this worker is stopping: released
  sink_failed,     ///< the sink could not take anything for too long: released
};
[[nodiscard]] std::string_view to_string(LossReason reason);

/// The holder's belief, as those see it who act on it: until when, under which epoch. Written by the keeper's
/// shell, read before every effect (S7) from any thread, without a lock.
class LeaseGuard {
 public:
  explicit LeaseGuard(Epoch epoch, Instant until) : epoch_(epoch), until_ns_(until.time_since_epoch().count()) {}
  [[nodiscard]] Epoch epoch() const { return epoch_; }
  [[nodiscard]] Instant until() const { return Instant(Duration(until_ns_.load(std::memory_order_acquire))); }
  [[nodiscard]] bool holds(Instant now) const { return now < until(); }
  /// Of the belief; zero where it is over. Looked at once: revoke() may come in between.
  [[nodiscard]] Duration left(Instant now) const {
    const Instant end = until();
    return end <= now ? Duration::zero() : end - now;
  }
  /// A renewal was confirmed. False, and no effect, after revoke(): a belief once ended stays so. Who holds by it
  /// may have seen it end and revoked it before the confirmation got here: then the lease is to be given up.
  bool extend(Instant until);
  /// Whether revoke() was called. Other ends of the belief can be told by the clock only.
  [[nodiscard]] bool revoked() const { return until_ns_.load(std::memory_order_acquire) == revoked_ns; }
  void revoke() { until_ns_.store(revoked_ns, std::memory_order_release); }

 private:
  static constexpr Duration::rep revoked_ns = INT64_MIN;
  const Epoch epoch_;
  std::atomic<Duration::rep> until_ns_;
};

}  // namespace holdfast
