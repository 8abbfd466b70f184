#include "core/planner.hpp"

#include <algorithm>
#include <utility>

namespace holdfast {

namespace {

using std::chrono::milliseconds;

constexpr std::size_t page_rows_max = 256;
/// A row whose claims come to nothing is tried again after so many times R at the latest.
constexpr int row_wait_max = 12;

bool same_lease(const Candidate& left, const Candidate& right) {
  return left.epoch == right.epoch && left.owner == right.owner && left.expires_at == right.expires_at;
}

}  // namespace

bool Planner::Struck::outdates(const Candidate& seen) const {
  if (!met) return false;
  // Expiry 0 with the owner's name still there is how plain workers give back: that is newer.
  return seen.epoch < met->epoch || (seen.epoch == met->epoch && seen.owner == met->owner &&
                                     seen.expires_at < met->expires_at && seen.expires_at != WallTime{});
}

Planner::Planner(LeaseTerms terms, PlannerLimits limits, Random& random)
    : terms_(terms),
      limits_(limits),
      random_(random),
      horizon_(std::min(2 * terms.reconcile_every, (terms.lease - terms.renew_every) * 3 / 4)),
      floor_(std::clamp<Duration>(terms.reconcile_every / 10, milliseconds(50), milliseconds(250))),
      pace_(std::clamp<Duration>(terms.reconcile_every / 20, milliseconds(10), milliseconds(100))),
      jitter_(std::clamp<Duration>(terms.reconcile_every / 5, milliseconds(5), milliseconds(250))),
      batch_(std::clamp<std::size_t>(limits.max_leases / 8, 32, 256)),
      page_(std::min(limits.pool, page_rows_max)) {}

std::optional<Look> Planner::look(Now now) {
  if (looking_ && now.instant >= look_deadline_) failed(now);  // the store forgot us (S10)
  if (draining_ || looking_ || now.instant < next_look_) return std::nullopt;
  Look wanted;
  // What the last look brought must have been handed out by and large, else there is no place for more.
  wanted.goes_on = truncated_ && due_.size() <= limits_.pool / 2;
  if (!wanted.goes_on) {
    ++lap_;
    damaged_seen_ = {};
  }
  looking_ = looked_ = true;
  poked_ = false;
  seen_ = 0;
  conflicts_ = 0;
  last_look_ = now.instant;
  look_deadline_ =
      now.instant + std::clamp<Duration>(terms_.reconcile_every, milliseconds(250), std::chrono::seconds(5));
  wanted.before = now.wall + std::chrono::ceil<milliseconds>(horizon_);
  wanted.limit = page_;
  wanted.deadline = look_deadline_;
  return wanted;
}

bool Planner::saw(std::span<const Row> rows, bool more, Now now) {
  if (!looking_) return false;
  for (const Row& row : rows) admit(row, now);
  if (!rows.empty()) shown_ = WallTime(milliseconds(rows.back().number(attribute::expires_at)));
  seen_ += std::max<std::size_t>(rows.size(), 1);
  if (more && due_.size() < limits_.pool && seen_ < limits_.rows) return true;
  truncated_ = more;
  finish_look(now);
  return false;
}

void Planner::admit(const Row& row, Now now) {
  auto candidate = candidate_from(row);
  if (!candidate) {
    if (row.text(attribute::desired_state) != state::started) return;
    if (damaged_seen_.count++ == 0) {
      damaged_seen_.key = row.key;
      damaged_seen_.why = damage_of(row).value_or("");
    }
    return;
  }
  const Instant allowed = correct(*candidate, now);
  const WallTime claimable_at = claimable_from(*candidate, terms_.skew);
  // The look asked for no such row; far away, the arithmetic below would not hold.
  if (claimable_at > now.wall + std::chrono::ceil<milliseconds>(2 * terms_.lease)) return;
  // The wall clock counts in whole milliseconds: one more, so that the keeper does not find it early.
  const Duration wait =
      claimable_at <= now.wall ? Duration::zero() : Duration(claimable_at - now.wall + milliseconds(1));
  const Instant claimable = now.instant + wait;

  const auto found = places_.find(row.key);
  if (found != places_.end()) {
    Known& known = known_[found->second];
    const bool same = same_lease(known.candidate, *candidate);
    known.lap = lap_;
    if (same) return;
    known = Known{*std::move(candidate), claimable, lap_};
    due_.set(found->second, std::max(allowed, claimable + random_.between(Duration::zero(), jitter_)));
    return;
  }
  // One that is not to be tried before the next look would only take the place of others.
  if (allowed > now.instant + floor_) return;
  // A page is remembered whole, as far as that goes: what is left out of it waits for the next lap.
  if (known_.size() >= limits_.pool + page_) return;
  const auto place = static_cast<Slot>(known_.size());
  places_.emplace(row.key, place);
  known_.push_back(Known{*std::move(candidate), claimable, lap_});
  due_.set(place, std::max(allowed, claimable + random_.between(Duration::zero(), jitter_)));
}

/// Puts what a failed claim has taught in the place of what an index shows that is behind its table. When it may be
/// tried at the earliest: a row that has changed since its claim failed is a new one.
Instant Planner::correct(Candidate& seen, Now now) {
  const auto found = struck_.find(seen.key);
  if (found == struck_.end()) return Instant{};
  Struck& struck = found->second;
  struck.lap = lap_;
  struck.shown = true;
  if (struck.outdates(seen)) {
    if (!struck.wanted) return struck.again;
    const WallTime until = claimable_from(*struck.met, terms_.skew);
    // So far ahead that somebody will have put it right: what is seen is tried, less and less often.
    if (until > now.wall + std::chrono::ceil<milliseconds>(2 * terms_.lease)) return struck.again;
    // Not yet: a later look shows the row again, and meanwhile it takes no candidate's place.
    const Duration ahead = known_.size() < limits_.pool / 2 ? horizon_ : floor_;
    if (until > now.wall + std::chrono::ceil<milliseconds>(ahead)) return Instant::max();
    seen = *struck.met;
  } else if (!same_lease(struck.candidate, seen)) {
    struck_.erase(found);
    return Instant{};
  }
  return same_lease(struck.candidate, seen) ? struck.again : Instant{};
}

void Planner::forget(Slot gone) {
  const auto last = static_cast<Slot>(known_.size() - 1);
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

void Planner::finish_look(Now now) {
  looking_ = false;
  failures_ = 0;
  // What this lap did not show was taken, stopped or removed, as far as the lap has come. Where nothing is claimed no
  // place becomes free for what comes next: then all that is not in sight makes way.
  for (std::size_t place = known_.size(); place-- > 0;) {
    const bool passed = !truncated_ || full_ || known_[place].candidate.expires_at < shown_;
    if (passed && known_[place].lap != lap_) forget(static_cast<Slot>(place));
  }
  // One that somebody had and that two laps did not show is theirs, though these laps may not have been complete.
  std::erase_if(struck_, [&](const auto& item) {
    const Struck& struck = item.second;
    return struck.lap != lap_ && (!truncated_ || (struck.held && struck.lap + 1 < lap_));
  });
  if (!truncated_ || damaged_seen_.count > damaged_.count) damaged_ = damaged_seen_;
  const Duration every = terms_.reconcile_every;
  next_look_ = now.instant + std::max(floor_, random_.between(every / 10, 2 * every - every / 10));
  if (poked_) look_by(now.instant + soon());
}

void Planner::failed(Now now) {
  if (!looking_) return;
  looking_ = false;
  truncated_ = seen_ > 0;  // else the place to go on from may be what the store did not like
  const Duration bound =
      std::min(4 * terms_.reconcile_every, terms_.reconcile_every / 2 * (std::int64_t{1} << std::min(failures_, 8U)));
  ++failures_;
  const Duration wait = random_.between(Duration::zero(), bound);
  next_look_ = now.instant + std::max(floor_, wait);
  // With the same jitter, but not deaf for longer than somebody's lease would have lasted.
  const Duration deaf_most = std::min(terms_.reconcile_every, terms_.lease / 2);
  poke_from_ = now.instant + wait / std::max<std::int64_t>(1, bound / deaf_most);
}

void Planner::poke(Now now) {
  if (looking_) {
    poked_ = true;
  } else {
    look_by(failures_ == 0 ? now.instant + soon() : std::max(now.instant, poke_from_));
  }
}

void Planner::look_by(Instant at) {
  if (looked_) at = std::max(at, last_look_ + floor_);
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
  const Slot place = due_.top().slot;
  Candidate candidate = std::move(known_[place].candidate);
  known_[place].candidate.key = candidate.key;
  forget(place);
  // More is waiting than one look could show.
  if (truncated_ && !looking_ && due_.size() < batch_) look_by(now.instant);
  return candidate;
}

void Planner::claim_failed(const Candidate& candidate, ClaimFailure failure, Now now) {
  const auto found = struck_.find(candidate.key);
  const bool again =
      found != struck_.end() && (same_lease(found->second.candidate, candidate) || found->second.outdates(candidate));
  if (failure.setback == Setback::conflict && !again && ++conflicts_ >= batch_ / 2) {
    conflicts_ = 0;
    // Where rows are left unseen, those are looked at soon anyway; beginning anew each time would never reach them.
    if (!truncated_) poke(now);
  }
  const bool no_memory = found == struck_.end() && !has_place_to_remember(now);
  if (failure.setback == Setback::store || no_memory) {
    left_in_batch_ = 0;
    next_batch_ = std::max(next_batch_, now.instant + random_.between(pace_, terms_.reconcile_every));
  }
  if (no_memory) return;
  Struck& struck = struck_[candidate.key];
  if (!again) struck = Struck{.candidate = candidate, .met = std::move(struck.met), .since = now.instant};
  struck.setback = failure.setback;
  struck.why = std::move(failure.why);
  struck.lap = lap_;
  if (failure.row != nullptr) {
    struck.met = lease_of(*failure.row);
    struck.wanted = failure.row->text(attribute::desired_state) == state::started;
  }
  if (failure.setback == Setback::store) {
    struck.again = now.instant;  // it is not the row's fault
    return;
  }
  const Instant held = held_until(struck, now);
  struck.held = held > now.instant;
  if (struck.held) struck.since = held;
  const Duration bound =
      std::min(row_wait_max * terms_.reconcile_every, floor_ * (std::int64_t{1} << std::min(struck.times, 16U)));
  ++struck.times;
  struck.again = now.instant + random_.between(bound / 2, bound);
  // A look may have shown it once more while its claim was under way.
  const auto place = places_.find(candidate.key);
  if (place == places_.end()) return;
  const Slot known = place->second;
  if (struck.outdates(known_[known].candidate)) {
    forget(known);
  } else if (same_lease(known_[known].candidate, candidate)) {
    due_.set(known, std::max(due_.at(known).value_or(struck.again), struck.again));
  }
}

/// What somebody else was quicker to take no look shows again until its lease ends: it is remembered for the sake of
/// an index that is behind, and only what that has shown is worth a place.
bool Planner::has_place_to_remember(Now now) {
  if (struck_.size() < limits_.rows) return true;
  if (forgot_ > last_look_) return false;  // there is nothing new since
  forgot_ = now.instant;
  std::erase_if(struck_, [](const auto& item) { return item.second.held && !item.second.shown; });
  return struck_.size() < limits_.rows;
}

/// As far as the conflict showed. For ever, where the row is not to run.
Instant Planner::held_until(const Struck& struck, Now now) const {
  if (!struck.met) return now.instant;
  if (!struck.wanted) return Instant::max();
  const WallTime until = claimable_from(*struck.met, terms_.skew);
  if (until <= now.wall) return now.instant;
  // An absurd expiry is as good as for ever.
  return until - now.wall > std::chrono::hours(24) ? Instant::max() : now.instant + (until - now.wall);
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
  const auto is_old = [&](const Known& known) { return known.claimable <= before; };
  // A struck row that waits for its next try, too, is one of them only once.
  const auto is_old_and_struck = [&](const auto& item) {
    if (item.second.since > before) return false;
    const auto place = places_.find(item.first);
    return place == places_.end() || !is_old(known_[place->second]);
  };
  return static_cast<std::size_t>(std::count_if(known_.begin(), known_.end(), is_old)) +
         static_cast<std::size_t>(std::count_if(struck_.begin(), struck_.end(), is_old_and_struck));
}

Unclaimable Planner::unclaimable() const {
  Unclaimable result = damaged_;
  for (const auto& [key, struck] : struck_) {
    const bool refused = struck.setback == Setback::refused;
    if (struck.outdates(struck.candidate)) continue;  // it does change: only the index is behind
    if (!refused && (struck.setback != Setback::conflict || struck.times < stubborn)) continue;
    if (result.count++ > 0) continue;
    result.key = key;
    result.why = refused ? "the store rejects it: " + struck.why
                         : "its condition fails although the row does not change: " + std::to_string(struck.times) +
                               " times so far";
  }
  return result;
}

}  // namespace holdfast
