#include "worker/feed_lease.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::worker {
namespace {

/// Between two looks at the row that somebody's word has brought about.
constexpr Duration soon = std::chrono::milliseconds(250);

}  // namespace

FeedLease::FeedLease(WorkerId owner, LeaseTerms terms, Loop& loop, Store& store, runtime::Log& log, Events events)
    : terms_(terms),
      loop_(loop),
      store_(store),
      log_(log),
      events_(std::move(events)),
      keeper_(std::move(owner), terms, KeeperLimits{.max_leases = 1, .max_in_flight = 1}, loop.random(),
              state::feed) {}

FeedLease::~FeedLease() {
  for (const TimerId timer : {seek_timer_, timer_, finish_timer_}) {
    if (timer != 0) loop_.cancel(timer);
  }
}

void FeedLease::start() {
  // Not all that begin together at once (F16).
  seek_at(loop_.instant() + loop_.random().between(Duration::zero(), soon));
}

Duration FeedLease::between_looks() {
  return loop_.random().between(terms_.lease / 4, terms_.lease * 3 / 4);
}

void FeedLease::seek_at(Instant when) {
  if (!seeks_ || over_ || keeper_.used() > 0) return;
  if (seek_timer_ != 0) {
    if (seek_due_ <= when) return;
    loop_.cancel(seek_timer_);
  }
  seek_due_ = when;
  seek_timer_ = loop_.call_at(when, [this] {
    seek_timer_ = 0;
    seek();
  });
}

void FeedLease::seek_soon() {
  const Instant now = loop_.instant();
  seek_at(std::max(now, sought_ + soon) + loop_.random().between(Duration::zero(), soon));
}

void FeedLease::seek_no_more() {
  seeks_ = false;
  if (seek_timer_ != 0) loop_.cancel(std::exchange(seek_timer_, 0));
  if (held_) return;
  keeper_.drain(loop_.now());  // a claim that is under way is not made again (S11)
  pump();
}

void FeedLease::seek() {
  if (seeking_ || !seeks_ || over_ || keeper_.used() > 0) return;
  seeking_ = true;
  sought_ = loop_.instant();
  store_.get(std::string(row), sought_ + terms_.renew_every,
             [this, alive = std::weak_ptr<bool>(alive_)](const RowReply& reply) {
               if (alive.expired()) return;
               seeking_ = false;
               seen(reply);
             });
}

bool FeedLease::in_order(const RowReply& reply) {
  if (reply.outcome != Outcome::rejected) {
    complaining_ = complaining_ && !reply.ok();
    return reply.ok();
  }
  if (!std::exchange(complaining_, true))
    log_.warning("the row " + std::string(row) +
                 " cannot be used, so changes are not followed: " + reply.error.detail);
  return false;
}

void FeedLease::seen(const RowReply& reply) {
  const Instant next = loop_.instant() + between_looks();
  if (over_ || !seeks_) return;
  if (!in_order(reply)) return seek_at(next);
  if (!reply.value) return make_row();
  const auto candidate = lease_of(*reply.value);
  if (reply.value->text(attribute::desired_state) != state::feed || !candidate) return seek_at(next);
  const Now now = loop_.now();
  const WallTime free_from = claimable_from(*candidate, terms_.skew);
  if (free_from > now.wall) {
    // It may be given back before; and nobody waits for an expiry that is absurd.
    const Duration wait = std::min<Duration>(free_from - now.wall, 2 * terms_.lease);
    return seek_at(std::min(next, now.instant + wait + loop_.random().between(Duration::zero(), 2 * soon)));
  }
  if (!keeper_.claim(*candidate, now)) return seek_at(next);
  pump();
}

/// Nobody's, and to be held by somebody. Another worker may do the same: then it is there.
void FeedLease::make_row() {
  Update update;
  update.key = row;
  update.condition = Condition::row_missing();
  update.changes = {Change::set(attribute::desired_state, state::feed),
                    Change::set(attribute::expires_at, std::int64_t{0})};
  seeking_ = true;
  store_.update(
      std::move(update), loop_.instant() + terms_.renew_every,
      [this, alive = std::weak_ptr<bool>(alive_)](const RowReply& reply) {
        if (alive.expired()) return;
        seeking_ = false;
        const bool there = reply.ok() || reply.outcome == Outcome::conflict;
        if (!there) (void)in_order(reply);
        seek_at(loop_.instant() + (there ? loop_.random().between(Duration::zero(), soon) : between_looks()));
      });
}

void FeedLease::pump() {
  while (!over_) {
    const std::optional<Action> action = keeper_.poll(loop_.now());  // the clocks are read anew for each (S4)
    if (!action) break;
    carry_out(*action);
  }
  if (!over_) arm();
}

void FeedLease::arm() {
  if (timer_ != 0) loop_.cancel(std::exchange(timer_, 0));
  const auto next = keeper_.next();
  if (!next) return;
  timer_ = loop_.call_at(*next, [this] {
    timer_ = 0;
    pump();
  });
}

void FeedLease::carry_out(const Action& action) {
  switch (action.kind) {
    case Action::Kind::write:
      return write(action);
    case Action::Kind::start:
      held_ = true;
      until_ = action.until;
      log_.info("reads the table's changes for all workers");
      return events_.won();
    case Action::Kind::extend:
      until_ = action.until;
      return;
    case Action::Kind::stop:
    case Action::Kind::lost:
      end_holding();
      return keeper_.stopped(action.slot, 0, loop_.now());
    case Action::Kind::gone:
      seek_at(loop_.instant() + between_looks());
      return finish_if_done();
  }
}

void FeedLease::write(const Action& action) {
  store_.update(
      render(action.write, keeper_.owner()), action.deadline,
      [this, alive = std::weak_ptr<bool>(alive_), slot = action.slot, id = action.write_id](RowReply reply) {
        if (alive.expired() || over_) return;
        const Row* now = reply.value ? &*reply.value : nullptr;
        keeper_.on_write(slot, id, reply.outcome, now, loop_.now());
        pump();
      });
}

void FeedLease::end_holding() {
  if (!std::exchange(held_, false)) return;
  log_.info("no longer reads the table's changes for all workers");
  events_.lost();
}

void FeedLease::finish(Instant deadline, std::function<void()> done) {
  seek_no_more();
  finish_ = std::move(done);
  finish_timer_ = loop_.call_at(deadline, [this] {
    finish_timer_ = 0;
    if (auto then = std::exchange(finish_, nullptr)) then();
  });
  keeper_.drain(loop_.now());
  pump();
  finish_if_done();
}

void FeedLease::finish_if_done() {
  if (!finish_ || keeper_.used() > 0) return;
  loop_.cancel(std::exchange(finish_timer_, 0));
  loop_.post([then = std::exchange(finish_, nullptr), alive = std::weak_ptr<bool>(alive_)] {
    if (!alive.expired()) then();
  });
}

void FeedLease::abandon() {
  if (std::exchange(over_, true)) return;
  for (TimerId* timer : {&seek_timer_, &timer_, &finish_timer_}) {
    if (*timer != 0) loop_.cancel(std::exchange(*timer, 0));
  }
  finish_ = nullptr;
  end_holding();
}

}  // namespace holdfast::worker
