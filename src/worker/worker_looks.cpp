// The part of Worker that looks for orphans, and for what only people can mend.
#include <algorithm>
#include <utility>

#include "worker/worker.hpp"

namespace holdfast::worker {
namespace {

constexpr int looks_between_far_ones = 12;
constexpr std::size_t far_ones_max = 100;
/// More would not fit into a Duration, and is absurd all the same.
constexpr auto shown_ahead_max = std::chrono::hours(24 * 365 * 100);

}  // namespace

void Worker::look(const Look& due, std::string page) {
  QueryDue query;
  query.state = state::started;
  query.before = due.before;
  query.limit = due.limit;
  query.page = look_page_ = std::move(page);
  query.purpose = Purpose::look;
  store_.query_due(std::move(query), due.deadline, [this, due, alive = std::weak_ptr<bool>(alive_)](PageReply reply) {
    if (alive.expired() || over_) return;
    tidings_.answered(Tidings::Asked::read, reply.outcome, reply.error);
    if (!reply.ok()) {
      planner_.failed(control_.now());
    } else {
      strays_.unreadable(reply.error);
      if (planner_.saw(reply.value.rows, !reply.value.next.empty(), control_.now())) {
        look(due, std::move(reply.value.next));
      } else {
        look_page_ = std::move(reply.value.next);
        tell_unowned();
        strays_.unclaimable(planner_.unclaimable());
        look_far_ahead();
      }
    }
    pump();
  });
}

/// Rows that no look for orphans shows, for a long time, as nobody may take them: only people can tell whether their
/// owners live, and what a time without an owner is to mean. One's own are renewed to what is right.
void Worker::look_far_ahead() {
  const Instant now = control_.instant();
  if (draining_ || now < look_far_ahead_after_) return;
  look_far_ahead_after_ = now + looks_between_far_ones * options_.terms.reconcile_every;
  const auto healthy = std::chrono::ceil<std::chrono::milliseconds>(2 * options_.terms.lease + options_.terms.skew +
                                                                    options_.terms.margin);
  QueryDue query;
  query.state = state::started;
  query.from = control_.wall() + healthy;
  query.before = WallTime::max();
  query.limit = far_ones_max;
  query.purpose = Purpose::look;
  store_.query_due(std::move(query), now + options_.terms.reconcile_every,
                   [this, alive = std::weak_ptr<bool>(alive_)](const PageReply& reply) {
                     if (alive.expired() || over_ || !reply.ok()) return;
                     Strays::FarAhead far;
                     for (const Row& row : reply.value.rows) {
                       const std::string_view owner = row.text(attribute::owner);
                       if (owner == keeper_.owner().value || far.count++ > 0) continue;
                       far.key = row.key;
                       far.owner = owner;
                       const std::chrono::milliseconds ahead(row.number(attribute::expires_at) -
                                                             control_.wall().time_since_epoch().count());
                       far.ahead = std::min<std::chrono::milliseconds>(ahead, shown_ahead_max);
                     }
                     far.or_more = !reply.value.next.empty();
                     strays_.far_ahead(far);
                   });
}

void Worker::tell_unowned() {
  const std::size_t unowned = planner_.unowned(control_.now());
  const bool now_full = unowned > 0 && keeper_.room() == 0 && !draining_;
  if (now_full && !full_and_unowned_) {
    log_.warning(std::to_string(unowned) + " connections belong to nobody and this worker is full (" +
                 std::to_string(options_.max_connections) + "): start more workers or raise --max-connections");
  }
  full_and_unowned_ = now_full;
}

}  // namespace holdfast::worker
