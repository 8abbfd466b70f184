#include "core/planner.hpp"

#include <algorithm>
#include <utility>

namespace holdfast {

namespace {

using std::chrono::milliseconds;

bool same_lease(const Candidate& left, const Candidate& right) {
  return left.epoch == right.epoch && left.owner == right.owner && left.expires_at == right.expires_at;
}

}  // namespace

Planner::Planner(LeaseTerms terms, PlannerLimits limits, Random& random)
    : terms_(terms),
      limits_(limits),
      random_(random),
      horizon_(std::min(2 * terms.reconcile_every, (terms.lease - terms.renew_every) * 3 / 4)),
      floor_(std::clamp<Duration>(terms.reconcile_every / 10, milliseconds(50), milliseconds(250))),
      pace_(std::clamp<Duration>(terms.reconcile_every / 20, milliseconds(10), milliseconds(100))),
      jitter_(std::clamp<Duration>(terms.reconcile_every / 5, milliseconds(5), milliseconds(250))),
      batch_(std::clamp<std::size_t>(limits.max_leases / 8, 32, 256)) {}

std::optional<Look> Planner::look(Now now) {
  if (looking_ && now.instant >= look_deadline_) failed(now);  // the store forgot us (S10)
  if (draining_ || looking_ || now.instant < next_look_) return std::nullopt;
  looking_ = true;
  poked_ = false;
  ++look_;
  seen_ = 0;
  conflicts_ = 0;
  last_look_ = now.instant;
  look_deadline_ =
      now.instant + std::clamp<Duration>(terms_.reconcile_every, milliseconds(250), std::chrono::seconds(5));
  Look wanted;
  wanted.before = now.wall + std::chrono::ceil<milliseconds>(horizon_);
  wanted.limit = std::min<std::size_t>(limits_.pool, 256);
  wanted.deadline = look_deadline_;
  return wanted;
}

bool Planner::saw(std::span<const Row> rows, bool more, Now now) {
  if (!looking_) return false;
  for (const Row& row : rows) admit(row, now);
  seen_ += rows.size();
  if (more && !rows.empty() && seen_ < limits_.pool) return true;
  truncated_ = more;
  finish_look(now);
  return false;
}

void Planner::admit(const Row& row, Now now) {
  auto candidate = candidate_from(row);
  if (!candidate) return;
  const WallTime claimable_at = claimable_from(*candidate, terms_.skew);
  // The look asked for no such row; far away, the arithmetic below would not hold.
  if (claimable_at > now.wall + std::chrono::ceil<milliseconds>(2 * terms_.lease)) return;
  // The wall clock counts in whole milliseconds: one more, so that the keeper does not find it early.
  const Duration wait =
      claimable_at <= now.wall ? Duration::zero() : Duration(claimable_at - now.wall + milliseconds(1));

  auto found = places_.find(row.key);
  if (found == places_.end()) {
    if (known_.size() >= limits_.pool) return;
    found = places_.emplace(row.key, static_cast<Slot>(known_.size())).first;
    known_.push_back(Known{*std::move(candidate), now.instant + wait, look_});
  } else {
    Known& known = known_[found->second];
    const bool waiting = !known.taken && same_lease(known.candidate, *candidate);
    known.look = look_;
    if (waiting) return;
    known = Known{*std::move(candidate), now.instant + wait, look_};
  }
  due_.set(found->second, now.instant + wait + random_.between(Duration::zero(), jitter_));
}

void Planner::finish_look(Now now) {
  looking_ = false;
  failures_ = 0;
  // What this look did not show was taken, stopped or removed.
  for (std::size_t place = known_.size(); place-- > 0;) {
    if (known_[place].look == look_) continue;
    const auto last = static_cast<Slot>(known_.size() - 1);
    const auto gone = static_cast<Slot>(place);
    places_.erase(known_[gone].candidate.key);
    due_.remove(gone);
    if (gone != last) {
      known_[gone] = std::move(known_[last]);
      places_[known_[gone].candidate.key] = gone;
      if (const auto at = due_.at(last)) due_.set(gone, *at);
      due_.remove(last);
    }
    known_.pop_back();
  }
  const Duration every = terms_.reconcile_every;
  next_look_ = now.instant + std::max(floor_, random_.between(every / 10, 2 * every - every / 10));
  if (poked_) look_by(now.instant + soon());
}

void Planner::failed(Now now) {
  if (!looking_) return;
  looking_ = false;
  const Duration bound =
      std::min(4 * terms_.reconcile_every, terms_.reconcile_every / 2 * (std::int64_t{1} << std::min(failures_, 8U)));
  ++failures_;
  next_look_ = now.instant + std::max(floor_, random_.between(Duration::zero(), bound));
}

void Planner::poke(Now now) {
  if (looking_) {
    poked_ = true;
  } else if (failures_ == 0) {
    look_by(now.instant + soon());
  }
}

void Planner::look_by(Instant at) {
  if (look_ > 0) at = std::max(at, last_look_ + floor_);
  next_look_ = std::min(next_look_, at);
}

std::optional<Candidate> Planner::take(Now now, std::size_t room) {
  full_ = room == 0;
  if (draining_ || full_ || due_.empty() || due_.top().at > now.instant) return std::nullopt;
  if (now.instant >= next_batch_) {
    left_in_batch_ = batch_;
    next_batch_ = now.instant + pace_;
  }
  if (left_in_batch_ == 0) return std::nullopt;
  --left_in_batch_;
  Known& known = known_[due_.top().slot];
  due_.remove(due_.top().slot);
  known.taken = true;
  // More is waiting than one look could show.
  if (truncated_ && !looking_ && due_.size() < batch_) look_by(now.instant);
  return known.candidate;
}

void Planner::conflicted(Now now) {
  if (++conflicts_ < batch_ / 2) return;
  conflicts_ = 0;
  poke(now);
}

void Planner::claim_failed(Now now) {
  left_in_batch_ = 0;
  next_batch_ = std::max(next_batch_, now.instant + random_.between(pace_, terms_.reconcile_every));
}

void Planner::drain() {
  draining_ = true;
}

std::optional<Instant> Planner::next() const {
  if (draining_) return std::nullopt;
  Instant at = looking_ ? look_deadline_ : next_look_;
  if (!full_ && !due_.empty()) {
    const Instant claim = left_in_batch_ > 0 ? due_.top().at : std::max(due_.top().at, next_batch_);
    at = std::min(at, claim);
  }
  return at;
}

std::size_t Planner::unowned(Now now) const {
  const Instant before = now.instant - 2 * terms_.reconcile_every;
  return static_cast<std::size_t>(std::count_if(
      known_.begin(), known_.end(), [&](const Known& known) { return !known.taken && known.claimable <= before; }));
}

}  // namespace holdfast
