#include <cstdio>

#include "holdfast/assert.hpp"
#include "holdfast/lease.hpp"
#include "holdfast/store.hpp"

namespace holdfast {

namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

constexpr Duration shortest_lease = milliseconds(100);
constexpr Duration longest_lease = hours(24);
/// Expiries are written in milliseconds, rounded down: the margin has to cover what that takes away.
constexpr Duration least = milliseconds(1);
/// For one lost renewal to be noticed and sent again; below, a single lost packet costs the lease.
constexpr Duration least_retry_room = milliseconds(20);

std::string text(Duration duration) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%.10g s", std::chrono::duration<double>(duration).count());
  return buffer;
}

tl::unexpected<Error> refuse(std::string sentence) {
  return fail(Code::usage, std::move(sentence));
}

std::optional<std::string> out_of_range(std::string_view name, Duration value) {
  if (value < least) return std::string(name) + " is " + text(value) + ", but must be at least " + text(least) + ".";
  if (value > longest_lease) {
    return std::string(name) + " is " + text(value) + ", but must be at most " + text(longest_lease) + ".";
  }
  return std::nullopt;
}

std::optional<std::string> contradiction(const LeaseTerms& terms) {
  const Duration belief = terms.lease - terms.margin;
  if (terms.lease <= terms.margin + terms.skew) {
    return "The lease of " + text(terms.lease) + " must be longer than its margin (" + text(terms.margin) +
           ") and skew (" + text(terms.skew) + ") together, or nothing of it could be used.";
  }
  if (terms.renew_every >= belief) {
    return "Renewing every " + text(terms.renew_every) + " is too late: effects stop at lease - margin, which is " +
           text(belief) + " after a renewal.";
  }
  const Duration room = belief - terms.renew_every;
  if (room < least_retry_room || room < terms.lease / 10) {
    return "Renewing every " + text(terms.renew_every) + " leaves " + text(room) + " of the lease of " +
           text(terms.lease) + " to try again in; leave at least a tenth of it, and at least " +
           text(least_retry_room) + ", or one lost request loses the lease.";
  }
  return std::nullopt;
}

}  // namespace

Result<LeaseTerms> make_terms(const LeaseOptions& options) {
  const Duration lease = options.lease;
  if (lease < shortest_lease) {
    return refuse("lease is " + text(lease) + ", but must be at least " + text(shortest_lease) + ".");
  }
  if (lease > longest_lease) {
    return refuse("lease is " + text(lease) + ", but must be at most " + text(longest_lease) +
                  ": a crashed worker's connections wait that long.");
  }
  LeaseTerms terms;
  terms.lease = lease;
  terms.renew_every = options.renew_every.value_or(lease / 4);
  terms.margin = options.margin.value_or(lease / 10);
  terms.skew = options.skew.value_or(lease / 20);
  terms.reconcile_every = options.reconcile_every.value_or(lease / 4);
  const std::pair<std::string_view, Duration> values[] = {{"renew_every", terms.renew_every},
                                                          {"margin", terms.margin},
                                                          {"skew", terms.skew},
                                                          {"reconcile_every", terms.reconcile_every}};
  for (const auto& [name, value] : values) {
    if (auto why = out_of_range(name, value)) return refuse(*std::move(why));
  }
  if (auto why = contradiction(terms)) return refuse(*std::move(why));
  return terms;
}

bool LeaseGuard::extend(Instant until) {
  const Duration::rep wanted = until.time_since_epoch().count();
  Duration::rep known = until_ns_.load(std::memory_order_acquire);
  // revoke() may come from another thread between the look and the write: only what was looked at is replaced.
  while (known != revoked_ns && known < wanted) {
    if (until_ns_.compare_exchange_weak(known, wanted, std::memory_order_acq_rel)) return true;
  }
  return known != revoked_ns;
}

std::string_view to_string(LossReason reason) {
  switch (reason) {
    case LossReason::taken_over:
      return "taken_over";
    case LossReason::belief_expired:
      return "belief_expired";
    case LossReason::row_missing:
      return "row_missing";
    case LossReason::stopped:
      return "stopped";
    case LossReason::drained:
      return "drained";
    case LossReason::sink_failed:
      return "sink_failed";
  }
  HOLDFAST_ASSERT(false, "every reason has a name");
  return {};
}

std::string_view to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::applied:
      return "applied";
    case Outcome::conflict:
      return "conflict";
    case Outcome::throttled:
      return "throttled";
    case Outcome::unknown:
      return "unknown";
    case Outcome::rejected:
      return "rejected";
  }
  HOLDFAST_ASSERT(false, "every outcome has a name");
  return {};
}

}  // namespace holdfast
