#include "worker/membership.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace holdfast::worker {
namespace {

using Compare = Condition::Compare;

/// After the end of its session the table may forget a worker: also one that was killed, which leaves no last word.
/// Each beat moves that time on, so that the TTL never meets the row of one that lives (F18), unless its clock is a
/// day wrong: then it writes its row anew, and nothing depends on it.
constexpr std::int64_t remembered_seconds = 24 * 3600;

std::int64_t epoch_ms(WallTime time) {
  return time.time_since_epoch().count();
}

}  // namespace

Membership::Membership(MembershipOptions options, Loop& loop, Store& store, runtime::Log& log,
                       std::function<Facts()> facts)
    : options_(std::move(options)),
      loop_(loop),
      store_(store),
      log_(log),
      facts_(std::move(facts)),
      key_(std::string(key_prefix::worker) + options_.name) {}

Membership::~Membership() {
  if (timer_ != 0) loop_.cancel(timer_);
}

void Membership::start() {
  beat();
}

void Membership::abandon() {
  abandoned_ = true;
  if (timer_ != 0) loop_.cancel(std::exchange(timer_, 0));
}

void Membership::tell() {
  if (in_flight_) {
    again_ = true;
  } else {
    beat();
  }
}

void Membership::schedule(Duration delay) {
  if (timer_ != 0) loop_.cancel(timer_);
  timer_ = loop_.call_after(delay, [this] {
    timer_ = 0;
    if (!in_flight_) beat();
  });
}

void Membership::send(Update update, Instant deadline, std::function<void(RowReply)> then) {
  in_flight_ = true;
  update.purpose = Purpose::session;
  store_.update(std::move(update), deadline,
                [this, alive = std::weak_ptr<bool>(alive_), then = std::move(then)](RowReply reply) {
                  if (alive.expired()) return;
                  in_flight_ = false;
                  then(std::move(reply));
                });
}

void Membership::beat() {
  if (timer_ != 0) loop_.cancel(std::exchange(timer_, 0));
  again_ = false;
  ++beat_;
  // Useless once the next beat is due.
  send(registered_ ? renewal() : registration(), loop_.instant() + options_.terms.renew_every,
       [this](const RowReply& reply) { written(reply); });
}

void Membership::written(const RowReply& reply) {
  if (abandoned_) return;
  if (finish_) return std::exchange(finish_, nullptr)();
  Duration delay = options_.terms.renew_every;
  if (reply.ok()) {
    registered_ = true;
    if (std::exchange(complaining_, false)) log_.info("worker row " + key_ + ": written again");
  } else if (reply.outcome == Outcome::conflict && registered_) {
    // Removed, or taken by another incarnation while this process stood still.
    registered_ = false;
    delay = Duration::zero();
  } else if (reply.outcome == Outcome::conflict) {
    const std::string own = std::string(key_prefix::worker) + options_.name + "#" + options_.incarnation;
    if (key_ != own) {
      log_.warning("another worker called '" + options_.name +
                   "' is running, or died less than a lease ago: this one is " + own);
      key_ = own;
      delay = Duration::zero();
    }
  } else if (!std::exchange(complaining_, true)) {
    log_.warning("worker row " + key_ + " cannot be written: " + reply.error.detail);
  }
  if (again_) delay = Duration::zero();
  if (delay > Duration::zero()) {
    // Not in step with others that began together (F16).
    delay = loop_.random().between(delay * 3 / 4, delay);
  }
  schedule(delay);
}

void Membership::finish(Instant deadline, std::function<void()> done) {
  if (in_flight_) {
    // One write at a time, in order (F5).
    finish_ = [this, deadline, done = std::move(done)]() mutable { say_last(deadline, std::move(done)); };
  } else {
    say_last(deadline, std::move(done));
  }
}

/// A try that nobody answers is made again, so that one lost request does not cost a drain all of its time (S11).
void Membership::say_last(Instant deadline, std::function<void()> done) {
  if (timer_ != 0) loop_.cancel(std::exchange(timer_, 0));
  if (loop_.instant() >= deadline) return done();
  const Instant useful = std::min(deadline, loop_.instant() + options_.terms.renew_every);
  send(last_words(), useful, [this, deadline, done = std::move(done)](const RowReply& reply) mutable {
    const bool undecided = reply.outcome == Outcome::throttled || reply.outcome == Outcome::unknown;
    if (abandoned_ || !undecided) return done();
    const Duration pause = loop_.random().between(Duration::zero(), options_.terms.renew_every / 2);
    timer_ = loop_.call_at(std::min(deadline, loop_.instant() + pause),
                           [this, deadline, done = std::move(done)]() mutable {
                             timer_ = 0;
                             say_last(deadline, std::move(done));
                           });
  });
}

Update Membership::last_words() const {
  Update update = renewal();
  std::erase_if(update.changes, [](const Change& change) {
    return change.attribute == attribute::expires_at || change.attribute == attribute::tombstone_expires_at;
  });
  update.changes.push_back(Change::set(attribute::expires_at, 0));
  update.changes.push_back(
      Change::set(attribute::tombstone_expires_at, epoch_ms(loop_.wall()) / 1000 + remembered_seconds));
  return update;
}

std::vector<Change> Membership::changes() const {
  const Facts facts = facts_();
  const std::int64_t expiry =
      epoch_ms(loop_.wall()) + std::chrono::duration_cast<std::chrono::milliseconds>(options_.terms.lease).count();
  return {Change::set(attribute::desired_state, state::worker),
          Change::set(attribute::expires_at, expiry),
          Change::set(attribute::incarnation, options_.incarnation),
          Change::set(attribute::beat, beat_),
          Change::set(attribute::capacity, options_.capacity),
          Change::set(attribute::held, facts.held),
          Change::set(attribute::address, options_.address),
          Change::set(attribute::draining, facts.draining),
          Change::set(attribute::tombstone_expires_at, expiry / 1000 + remembered_seconds)};
}

Update Membership::registration() const {
  Update update;
  update.key = key_;
  update.changes = changes();
  const std::int64_t long_gone =
      epoch_ms(loop_.wall()) - std::chrono::duration_cast<std::chrono::milliseconds>(options_.terms.skew).count();
  // One's own, if an answer was lost; nobody's; or one whose time is over.
  update.condition = Condition::row_missing() || Condition::equals(attribute::incarnation, options_.incarnation) ||
                     Condition::absent(attribute::expires_at) ||
                     Condition::is(attribute::expires_at, Compare::less, long_gone);
  return update;
}

Update Membership::renewal() const {
  Update update;
  update.key = key_;
  update.changes = changes();
  update.condition = Condition::equals(attribute::incarnation, options_.incarnation);
  return update;
}

}  // namespace holdfast::worker
