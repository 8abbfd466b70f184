// long-file: one state machine; whoever changes one transition has to see the others.
#include "core/keeper.hpp"

#include <algorithm>
#include <utility>

#include "core/number.hpp"
#include "core/stable_hash.hpp"
#include "holdfast/assert.hpp"

namespace holdfast {

namespace {

using std::chrono::milliseconds;

constexpr Duration try_least = milliseconds(10);

/// Two tries that time out fit between a renewal's due time and the belief's end; no try is worth more than 5 s.
Duration limit_of_one_try(const LeaseTerms& terms) {
  const Duration room = terms.lease - terms.margin - terms.renew_every;
  return std::clamp<Duration>(room / 2, try_least, std::chrono::seconds(5));
}

/// Renewals fall due at so many instants of an interval at least, and at most 100 ms apart: far enough apart that
/// those which fall together are worth sharing a commit and a wake-up, close enough that none of them is a crowd
/// (F16).
constexpr int phases_min = 25;
constexpr Duration phase_step_max = milliseconds(100);

constexpr Duration soon_max = milliseconds(200);

Duration step_between_phases(const LeaseTerms& terms) {
  return std::clamp<Duration>(terms.renew_every / phases_min, milliseconds(1), phase_step_max);
}

/// No sequence number goes past it, so where the row's own cannot be read nothing is ever written over it (S9).
constexpr std::int64_t unreadable = INT64_MAX;

}  // namespace

std::string_view to_string(Ending ending) {
  switch (ending) {
    case Ending::claim_conflict:
      return "claim_conflict";
    case Ending::claim_failed:
      return "claim_failed";
    case Ending::claim_refused:
      return "claim_refused";
    case Ending::released:
      return "released";
    case Ending::lost:
      return "lost";
  }
  HOLDFAST_ASSERT(false, "every ending has a name");
  return {};
}

Keeper::Keeper(WorkerId owner, LeaseTerms terms, KeeperLimits limits, Random& random, std::string_view wanted)
    : owner_(std::move(owner)),
      wanted_(wanted),
      terms_(terms),
      limits_(limits),
      random_(random),
      belief_(terms.lease - terms.margin),
      lease_(std::chrono::ceil<milliseconds>(terms.lease)),
      try_limit_(limit_of_one_try(terms)),
      phase_step_(step_between_phases(terms)),
      phase_offset_(random.between(Duration::zero(), phase_step_ - Duration(1))) {
  HOLDFAST_ASSERT(belief_ > Duration::zero() && terms.renew_every > Duration::zero(), "terms come from make_terms()");
  HOLDFAST_ASSERT(!owner_.value.empty(), "an owner without a name would look like nobody");
}

// ---- What happened ----

bool Keeper::claim(const Candidate& candidate, Now now, Instant by) {
  if (room() == 0 || slots_.contains(candidate.key)) return false;
  if (now.wall < claimable_from(candidate, terms_.skew)) return false;
  const Slot slot = take_slot();
  Lease& lease = leases_[slot];
  lease = Lease{};
  lease.key = candidate.key;
  lease.row_exists = candidate.row_exists;
  lease.seen_owner = candidate.owner;
  lease.seen_expires_at = candidate.expires_at;
  lease.seen_released_at = candidate.released_at;
  lease.epoch = {candidate.epoch.value + 1};
  lease.state = State::claiming;
  // A claim that is settled later than this could not be believed in any more, whichever of its tries it was.
  lease.until = std::min(now.instant + belief_, by);
  wait_until(lease, by, now);
  lease.phase = phase_of(lease.key);
  slots_.emplace(lease.key, slot);
  ++used_;
  ask_write(slot);
  return true;
}

/// One of a few instants of the interval, for ever the same for a key; the offset tells Keepers apart.
Duration Keeper::phase_of(std::string_view key) const {
  const auto phases = static_cast<std::uint64_t>(std::max<Duration::rep>(terms_.renew_every / phase_step_, 1));
  return phase_offset_ + phase_step_ * static_cast<Duration::rep>(stable_hash(key) % phases);
}

Slot Keeper::take_slot() {
  if (!free_.empty()) {
    const Slot slot = free_.back();
    free_.pop_back();
    return slot;
  }
  leases_.emplace_back();
  return static_cast<Slot>(leases_.size() - 1);
}

void Keeper::progress(Slot slot, std::int64_t last_seq) {
  Lease& lease = leases_[slot];
  lease.acknowledged = std::max(lease.acknowledged, last_seq);
}

Instant Keeper::soon(Now now) {
  return now.instant + random_.between(Duration::zero(), std::min<Duration>(terms_.renew_every / 10, soon_max));
}

void Keeper::renew_soon(Slot slot, Now now) {
  Lease& lease = leases_[slot];
  if (lease.state != State::held) return;
  if (lease.pace == Pace::in_flight) lease.hurry = true;
  if (lease.pace != Pace::waiting) return;
  if (const Instant due = soon(now); due < lease.due) ask_write_at(slot, due);
}

void Keeper::stop(Slot slot, LossReason reason, Now now) {
  Lease& lease = leases_[slot];
  if (lease.state == State::claiming) {
    lease.unwanted = true;
    if (lease.pace == Pace::in_flight) return;  // in order (F5): its answer comes first
    drop_claim(slot, now);
    return;
  }
  if (lease.state != State::held || lease.stop_asked) return;
  if (lease.starting) {
    leave_held(lease);
    give_back(slot, now);
    return;
  }
  lease.stop_asked = true;
  lease.reason = reason;
  lease.say_stop = true;
  queue_event(slot);
}

void Keeper::drain(Now now) {
  draining_ = true;
  for (Slot slot = 0; slot < leases_.size(); ++slot) stop(slot, LossReason::drained, now);
}

void Keeper::stopped(Slot slot, std::int64_t last_seq, Now now, Instant by) {
  progress(slot, last_seq);
  Lease& lease = leases_[slot];
  wait_until(lease, by, now);
  if (lease.state == State::held && !lease.starting) {
    const bool over = now.instant >= lease.until;
    if (over) {
      lease.reason = LossReason::belief_expired;
    } else if (!lease.stop_asked) {
      lease.reason = LossReason::stopped;
    }
    ++counters_.ended[static_cast<std::size_t>(lease.reason)];
    leave_held(lease);
    lease.resource_ended = true;
    if (over) {
      lease.state = State::lost;
    } else {
      give_back(slot, now);
      return;
    }
  } else if (lease.state != State::lost) {
    return;
  }
  lease.resource_ended = true;
  if (lease.pace == Pace::in_flight) {
    schedule(slot);
  } else {
    end(slot, Ending::lost);
  }
}

void Keeper::on_write(Slot slot, WriteId id, Outcome outcome, const Row* row, Now now) {
  if (slot >= leases_.size() || id == 0 || leases_[slot].write_id != id) {
    ++counters_.replies_ignored;
    return;
  }
  settle(slot, outcome, row, now);
}

void Keeper::settle(Slot slot, Outcome outcome, const Row* row, Now now) {
  Lease& lease = leases_[slot];
  lease.write_id = 0;
  lease.pace = Pace::resting;
  --in_flight_;
  if (outcome == Outcome::throttled) ++counters_.throttled;
  if (outcome == Outcome::rejected) ++counters_.rejected;
  if (outcome == Outcome::unknown) {
    ++counters_.unknown;
    lease.maybe_applied = true;
  }
  switch (lease.state) {
    case State::claiming:
      claim_answered(slot, outcome, row, now);
      break;
    case State::held:
      renewal_answered(slot, outcome, row, now);
      break;
    case State::releasing:
      release_answered(slot, outcome, row, now);
      break;
    case State::lost:
      // A belief once ended stays so (S7), whatever the write came to.
      if (lease.resource_ended) {
        end(slot, Ending::lost);
      } else {
        rest(slot);
      }
      break;
    case State::free:
    case State::ended:
      HOLDFAST_ASSERT(false, "nothing is in flight for a slot that has ended");
  }
}

void Keeper::claim_answered(Slot slot, Outcome outcome, const Row* row, Now now) {
  Lease& lease = leases_[slot];
  switch (outcome) {
    case Outcome::applied:
      won(slot, lease.sent, row, now);
      return;
    case Outcome::conflict:
      if (own_attempt(lease, row)) {
        // An earlier try of ours was the one: nothing tells which, so belief counts from the first (S4, S5).
        ++counters_.settled;
        won(slot, lease.first_sent, row, now);
      } else {
        ++counters_.claim_conflicts;
        end(slot, Ending::claim_conflict);
      }
      return;
    case Outcome::throttled:
    case Outcome::unknown:
      if (!lease.unwanted) {
        retry(slot, now);
      } else {
        drop_claim(slot, now);
      }
      return;
    case Outcome::rejected:
      end(slot, Ending::claim_refused);
      return;
  }
}

void Keeper::won(Slot slot, Instant counted_from, const Row* row, Now now) {
  Lease& lease = leases_[slot];
  if (row != nullptr) {
    const auto last_seq = last_seq_of(*row);
    lease.checkpointed = last_seq.value_or(unreadable);
    lease.acknowledged = last_seq.value_or(0);
  }
  wait_until(lease, Instant::max(), now);
  const Instant until = counted_from + belief_;
  // A grant is checked again when it arrives: it may have come too late (F8), or not be wanted any more.
  if (now.instant >= until) ++counters_.claims_late;
  if (now.instant >= until || lease.unwanted || !still_wanted(row)) {
    give_back(slot, now);
    return;
  }
  ++counters_.claims;
  ++held_;
  lease.state = State::held;
  lease.until = until;
  lease.starting = true;
  begin_write(lease);
  ask_write_at(slot, next_phase(lease, counted_from));
  queue_event(slot);
}

void Keeper::renewal_answered(Slot slot, Outcome outcome, const Row* row, Now now) {
  Lease& lease = leases_[slot];
  switch (outcome) {
    case Outcome::applied:
      renewed(slot, lease.sent, row, now);
      return;
    case Outcome::conflict:
      if (!still_ours(lease, row)) {
        lose(slot, row == nullptr ? LossReason::row_missing : LossReason::taken_over, now);
      } else if (own_attempt(lease, row)) {
        ++counters_.settled;
        renewed(slot, lease.first_sent, row, now);
      } else {
        // Nobody else's: the row has a higher number than ours (somebody edited it). From there we go on (S6).
        ++counters_.adopted;
        lease.renewal = std::max(lease.renewal, row->number(attribute::renewal));
        retry(slot, now);
      }
      return;
    case Outcome::throttled:
    case Outcome::unknown:
      retry(slot, now);  // only a conflict proves loss (S6)
      return;
    case Outcome::rejected:
      ask_write_at(slot, next_phase(lease, now.instant));
      return;
  }
}

void Keeper::renewed(Slot slot, Instant counted_from, const Row* row, Now now) {
  Lease& lease = leases_[slot];
  note_checkpoint(lease, row);
  begin_write(lease);
  // Due by what the belief is counted from: after a try that counts from an earlier one the belief could end before
  // the phase that follows the later one (the model's variant `due-after-the-latest-try`).
  ask_write_at(slot, std::exchange(lease.hurry, false) ? soon(now) : next_phase(lease, counted_from));
  if (now.instant >= lease.until) return;  // too late: poll() says so, nothing brings a belief back (S7)
  ++counters_.renewals;
  if (const Instant until = counted_from + belief_; until > lease.until) {
    lease.until = until;
    schedule(slot);
    if (!lease.starting) {
      lease.say_extend = true;
      queue_event(slot);
    }
  }
  if (!still_wanted(row)) stop(slot, LossReason::stopped, now);
}

/// What the row says, not what was sent last: of several tries an earlier one, with less, may be the one that
/// counted.
void Keeper::note_checkpoint(Lease& lease, const Row* row) {
  if (row == nullptr) {
    lease.checkpointed = std::max(lease.checkpointed, lease.carried);
  } else if (const auto last_seq = last_seq_of(*row); lease.checkpointed == unreadable) {
    lease.checkpointed = last_seq.value_or(unreadable);  // somebody may have mended it
  } else {
    lease.checkpointed = std::max(lease.checkpointed, last_seq.value_or(unreadable));
  }
}

void Keeper::release_answered(Slot slot, Outcome outcome, const Row* row, Now now) {
  Lease& lease = leases_[slot];
  if (lease.sent_kind != LeaseWrite::Kind::release) {
    // The write that was on its way when the resource ended; now the release may go (F5).
    if (outcome == Outcome::applied) note_checkpoint(lease, row);
    begin_write(lease);
    if (outcome == Outcome::conflict && !still_ours(lease, row)) {
      end(slot, Ending::released);
    } else {
      ask_write(slot);
    }
    return;
  }
  switch (outcome) {
    case Outcome::applied:
      ++counters_.releases;
      end(slot, Ending::released);
      return;
    case Outcome::conflict:
      if (own_attempt(lease, row)) ++counters_.settled;
      end(slot, Ending::released);  // ours earlier, or no longer ours: nothing is left to give back (F4)
      return;
    case Outcome::throttled:
    case Outcome::unknown:
      retry(slot, now);
      return;
    case Outcome::rejected:
      give_up_release(slot);
      return;
  }
}

void Keeper::give_up_release(Slot slot) {
  ++counters_.not_released;
  end(slot, Ending::released);
}

void Keeper::give_back(Slot slot, Now now) {
  Lease& lease = leases_[slot];
  lease.state = State::releasing;
  lease.until = lease.sent + terms_.lease + terms_.skew;  // from then on others take it without our help
  if (lease.pace == Pace::in_flight) {
    schedule(slot);
    return;
  }
  begin_write(lease);
  if (now.instant >= lease.until) {
    give_up_release(slot);
  } else {
    ask_write(slot);
  }
}

/// A claim that nobody wants any more and that nobody has answered. Where it may have been applied it is given back,
/// but only by who claims nothing more: a late copy of that release would free what a next claim of ours, under the
/// very same epoch, had won (S4; the model's variant `claim-after-an-unseen-release`).
void Keeper::drop_claim(Slot slot, Now now) {
  if (draining_ && leases_[slot].maybe_applied) {
    give_back(slot, now);
  } else {
    end(slot, Ending::claim_failed);
  }
}

void Keeper::lose(Slot slot, LossReason reason, Now now) {
  Lease& lease = leases_[slot];
  const bool started = !lease.starting;
  leave_held(lease);
  if (!started) {
    // Nothing runs under it yet. It went by while `start` was waiting to be handed out (F8).
    ++counters_.claims_late;
    give_back(slot, now);
    return;
  }
  ++counters_.ended[static_cast<std::size_t>(reason)];
  lease.reason = reason;
  lease.state = State::lost;
  if (lease.pace != Pace::in_flight) lease.pace = Pace::resting;
  ready_.remove(slot);
  schedule(slot);
  queue_loss(slot);
}

void Keeper::leave_held(Lease& lease) {
  --held_;
  lease.starting = false;
  lease.say_extend = false;
  lease.say_stop = false;
}

void Keeper::end(Slot slot, Ending ending) {
  Lease& lease = leases_[slot];
  lease.state = State::ended;
  lease.ending = ending;
  rest(slot);
  queue_event(slot);
}

// ---- What to do ----

std::optional<Action> Keeper::poll(Now now) {
  // Every belief that has ended is told before anything else happens for anyone (S7): a process that was paused
  // must not go on where it was (F1).
  while (!timers_.empty() && timers_.top().at <= now.instant) fire(timers_.top().slot, now);
  if (auto action = take_loss()) return action;
  if (auto action = take_event()) return action;
  return take_write(now);
}

std::optional<Instant> Keeper::next() const {
  if (losses_.head != Fifo::none || events_.head != Fifo::none) return Instant{};
  if (in_flight_ < limits_.max_in_flight && !ready_.empty()) return Instant{};
  if (timers_.empty()) return std::nullopt;
  return timers_.top().at;
}

std::optional<Slot> Keeper::find(std::string_view key) const {
  const auto found = slots_.find(key);
  return found == slots_.end() ? std::nullopt : std::optional(found->second);
}

void Keeper::fire(Slot slot, Now now) {
  Lease& lease = leases_[slot];
  if (lease.state == State::held && now.instant >= lease.until) {
    lose(slot, LossReason::belief_expired, now);
  } else if (lease.pace == Pace::in_flight) {
    // The store owes an answer by the deadline. Should it fail to, the lease does not wait for ever (S10).
    settle(slot, Outcome::unknown, nullptr, now);
  } else if (now.instant >= lease.until) {
    if (lease.state == State::releasing) return give_up_release(slot);
    end(slot, lease.state == State::claiming ? Ending::claim_failed : Ending::released);
  } else {
    ask_write(slot);
  }
}

std::optional<Action> Keeper::take_loss() {
  while (losses_.head != Fifo::none) {
    const Slot slot = losses_.head;
    Lease& lease = leases_[slot];
    losses_.head = lease.next_loss;
    if (losses_.head == Fifo::none) losses_.tail = Fifo::none;
    lease.loss_queued = false;
    if (lease.state != State::lost || lease.resource_ended) continue;  // it ended by itself meanwhile
    Action action;
    action.kind = Action::Kind::lost;
    action.slot = slot;
    action.epoch = lease.epoch;
    action.reason = lease.reason;
    return action;
  }
  return std::nullopt;
}

std::optional<Action> Keeper::take_event() {
  while (events_.head != Fifo::none) {
    const Slot slot = events_.head;
    Lease& lease = leases_[slot];
    Action action;
    action.slot = slot;
    action.epoch = lease.epoch;
    action.until = lease.until;
    if (lease.state == State::held && std::exchange(lease.starting, false)) {
      action.kind = Action::Kind::start;
      action.last_seq = lease.checkpointed;
      lease.resource_ended = false;
      return action;
    }
    if (std::exchange(lease.say_extend, false)) {
      action.kind = Action::Kind::extend;
      return action;
    }
    if (std::exchange(lease.say_stop, false)) {
      action.kind = Action::Kind::stop;
      action.reason = lease.reason;
      return action;
    }
    events_.head = lease.next_event;
    if (events_.head == Fifo::none) events_.tail = Fifo::none;
    lease.event_queued = false;
    if (lease.state != State::ended) continue;
    action.kind = Action::Kind::gone;
    action.reason = lease.reason;
    action.ending = lease.ending;
    slots_.erase(lease.key);
    lease.state = State::free;
    free_.push_back(slot);
    --used_;
    return action;
  }
  return std::nullopt;
}

std::optional<Action> Keeper::take_write(Now now) {
  while (in_flight_ < limits_.max_in_flight && !ready_.empty()) {
    const Slot slot = ready_.top().slot;
    Lease& lease = leases_[slot];
    if (lease.state == State::claiming &&
        now.wall < claimable_from(lease.seen_owner, lease.seen_expires_at, terms_.skew)) {
      end(slot, Ending::claim_failed);  // our clock was set back: it was not ours to take yet
      return take_event();
    }
    ready_.remove(slot);
    Action action;
    action.kind = Action::Kind::write;
    action.slot = slot;
    action.epoch = lease.epoch;
    action.write = make_write(lease, now);
    action.write_id = lease.write_id = ++last_write_;
    action.until = lease.until;
    // Two tries that time out fit into the time in which somebody waits.
    if (now.instant >= lease.wanted_by) wait_until(lease, Instant::max(), now);
    const Duration limit = std::min(try_limit_, std::max(lease.wait / 5 * 2, try_least));
    action.deadline = std::min(now.instant + limit, lease.until);
    lease.give_up = action.deadline + limit;
    lease.pace = Pace::in_flight;
    ++in_flight_;
    schedule(slot);
    return action;
  }
  return std::nullopt;
}

LeaseWrite Keeper::make_write(Lease& lease, Now now) {
  LeaseWrite write;
  write.kind = lease.state == State::claiming    ? LeaseWrite::Kind::claim
               : lease.state == State::releasing ? LeaseWrite::Kind::release
                                                 : LeaseWrite::Kind::renew;
  if (!lease.attempt_open) {
    lease.attempt = random_.attempt();
    lease.attempt_open = true;
    // Kept even when this try is throttled: a duplicate of it may still arrive and be the one that is applied.
    lease.first_sent = now.instant;
  }
  write.key = lease.key;
  write.attempt = lease.attempt;
  write.epoch = lease.epoch;
  write.at = now.wall;
  if (write.kind == LeaseWrite::Kind::release) {
    write.expires_at = WallTime{};
  } else {
    // By the clock now, also where that was set back: what is promised is what our wall clock says now, and a row far
    // ahead would keep others out for as long after a crash of ours (docs/adr/0017).
    write.expires_at = now.wall + lease_;
    if (write.kind == LeaseWrite::Kind::renew && lease.renewal < INT64_MAX) ++lease.renewal;
    write.renewal = lease.renewal;
    lease.sent = now.instant;
  }
  if (write.kind == LeaseWrite::Kind::claim) {
    write.wanted = wanted_;
    write.row_exists = lease.row_exists;
    write.seen_owner = lease.seen_owner;
    write.seen_expires_at = lease.seen_expires_at;
    write.seen_released_at = lease.seen_released_at;
    write.free_before = now.wall - std::chrono::ceil<milliseconds>(terms_.skew);
  } else if (lease.acknowledged > lease.checkpointed) {
    write.last_seq = lease.acknowledged;
  }
  lease.carried = write.last_seq.value_or(lease.checkpointed);
  lease.sent_kind = write.kind;
  return write;
}

// ---- Bookkeeping ----

void Keeper::begin_write(Lease& lease) {
  lease.attempt_open = false;
  lease.maybe_applied = false;
  lease.tries = 0;
}

void Keeper::retry(Slot slot, Now now) {
  Lease& lease = leases_[slot];
  if (now.instant >= lease.wanted_by) wait_until(lease, Instant::max(), now);
  const Duration first = std::max<Duration>(std::min(terms_.lease, lease.wait) / 100, milliseconds(1));
  const Duration bound = std::min(terms_.renew_every / 2, first * (std::int64_t{1} << lease.tries));
  if (lease.tries < 16) ++lease.tries;
  // Never more than half of what is left, so that there is always another try, down to the least delay (S10).
  const Duration left = std::min(lease.until, lease.wanted_by) - now.instant;
  ask_write_at(slot, now.instant + random_.between(first / 4, std::min(bound, left / 2)));
}

void Keeper::wait_until(Lease& lease, Instant by, Now now) {
  lease.wanted_by = by;
  lease.wait = by == Instant::max() ? Duration::max() : by - now.instant;
}

void Keeper::ask_write(Slot slot) {
  Lease& lease = leases_[slot];
  lease.pace = Pace::ready;
  ready_.set(slot, lease.until);
  schedule(slot);
}

void Keeper::ask_write_at(Slot slot, Instant due) {
  Lease& lease = leases_[slot];
  lease.pace = Pace::waiting;
  lease.due = due;
  ready_.remove(slot);
  schedule(slot);
}

void Keeper::rest(Slot slot) {
  leases_[slot].pace = Pace::resting;
  ready_.remove(slot);
  schedule(slot);
}

/// One timer per lease: the earliest of what may happen to it next.
void Keeper::schedule(Slot slot) {
  const Lease& lease = leases_[slot];
  Instant at = Instant::max();
  const bool flying = lease.pace == Pace::in_flight;
  // The belief's end waits for no answer (S7); a claim or a release under way ends with its answer.
  if (lease.state == State::held) at = lease.until;
  if ((lease.state == State::claiming || lease.state == State::releasing) && !flying) at = lease.until;
  if (lease.pace == Pace::waiting) at = std::min(at, lease.due);
  if (flying) at = std::min(at, lease.give_up);
  if (at == Instant::max()) {
    timers_.remove(slot);
  } else {
    timers_.set(slot, at);
  }
}

void Keeper::queue_event(Slot slot) {
  Lease& lease = leases_[slot];
  if (std::exchange(lease.event_queued, true)) return;
  lease.next_event = Fifo::none;
  if (events_.tail == Fifo::none) {
    events_.head = slot;
  } else {
    leases_[events_.tail].next_event = slot;
  }
  events_.tail = slot;
}

void Keeper::queue_loss(Slot slot) {
  Lease& lease = leases_[slot];
  if (std::exchange(lease.loss_queued, true)) return;
  lease.next_loss = Fifo::none;
  if (losses_.tail == Fifo::none) {
    losses_.head = slot;
  } else {
    leases_[losses_.tail].next_loss = slot;
  }
  losses_.tail = slot;
}

bool Keeper::still_wanted(const Row* row) const {
  return wanted_.empty() || row == nullptr || row->text(attribute::desired_state) == wanted_;
}

bool Keeper::still_ours(const Lease& lease, const Row* row) const {
  return row != nullptr && row->text(attribute::owner) == owner_.value &&
         row->number(attribute::epoch) == lease.epoch.value;
}

bool Keeper::own_attempt(const Lease& lease, const Row* row) const {
  if (row == nullptr || row->text(attribute::attempt) != lease.attempt.to_string()) return false;
  if (row->number(attribute::epoch) != lease.epoch.value) return false;
  // A release leaves no owner behind, every other write ours.
  return lease.sent_kind == LeaseWrite::Kind::release ? row->text(attribute::owner).empty()
                                                      : row->text(attribute::owner) == owner_.value;
}

Instant Keeper::next_phase(const Lease& lease, Instant after) const {
  const Duration since = (after - Instant{} - lease.phase) % terms_.renew_every;
  return after + terms_.renew_every - (since < Duration::zero() ? since + terms_.renew_every : since);
}

}  // namespace holdfast
