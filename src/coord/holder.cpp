#include "coord/holder.hpp"

#include <utility>

#include "core/lease_write.hpp"
#include "holdfast/assert.hpp"

namespace holdfast::coord {

namespace {

constexpr KeeperLimits limits{.max_leases = 100'000, .max_in_flight = 256};

}  // namespace

Holder::Holder(WorkerId owner, LeaseTerms terms, bool renews, Store& store, Loop& loop)
    : store_(store), loop_(loop), renews_(renews), keeper_(std::move(owner), terms, limits, loop.random(), "") {}

Holder::~Holder() {
  if (timer_ != 0) loop_.cancel(timer_);
  for (auto& [slot, place] : places_) {
    if (place.patience != 0) loop_.cancel(place.patience);
    if (place.guard) place.guard->revoke();
  }
}

bool Holder::claim(const Candidate& candidate, Instant by, std::vector<Change> extra, bool was_left,
                   HoldEvents events) {
  if (!keeper_.claim(candidate, loop_.now(), by)) return false;
  Place& place = places_[keeper_.find(candidate.key).value()];
  place = Place{};
  place.events = std::move(events);
  place.with_claim = std::move(extra);
  place.is_left = was_left;
  soon();
  return true;
}

void Holder::release(const std::string& key, std::vector<Change> extra, Duration patience) {
  const std::optional<Slot> slot = keeper_.find(key);
  if (!slot) return;
  Place& place = places_.at(*slot);
  if (!place.guard || place.release_asked) return;
  place.release_asked = true;
  place.is_left = false;
  place.with_release = std::move(extra);
  // Effects are over: who still looks at the guard is to see that.
  place.guard->revoke();
  const Now now = loop_.now();
  place.patience = loop_.call_at(now.instant + patience, [this, slot = *slot] {
    Place& late = places_.at(slot);
    late.patience = 0;
    tell_end(late, late.lost ? HoldEnd::lost : HoldEnd::doubtful);
  });
  if (!place.lost) keeper_.stopped(*slot, 0, now, now.instant + patience);
  soon();
}

void Holder::leave(const std::string& key, Duration patience) {
  release(key, {}, patience);
  if (const std::optional<Slot> slot = keeper_.find(key)) places_.at(*slot).is_left = true;
}

/// Never inside the caller's call.
void Holder::soon() {
  if (std::exchange(soon_, true)) return;
  loop_.post([this, alive = std::weak_ptr(alive_)] {
    if (alive.expired()) return;
    soon_ = false;
    pump();
  });
}

void Holder::pump() {
  const std::weak_ptr alive(alive_);
  // The clocks are read anew for each action: belief counts from before its request leaves (S4).
  while (const std::optional<Action> action = keeper_.poll(loop_.now())) {
    carry_out(*action);
    if (alive.expired()) return;  // an event's handler ended us
  }
  arm();
}

void Holder::arm() {
  if (timer_ != 0) loop_.cancel(std::exchange(timer_, 0));
  const std::optional<Instant> next = keeper_.next();
  if (!next) return;
  timer_ = loop_.call_at(*next, [this] {
    timer_ = 0;
    pump();
  });
}

void Holder::carry_out(const Action& action) {
  switch (action.kind) {
    case Action::Kind::write:
      return write(action);
    case Action::Kind::start:
      return won(action);
    case Action::Kind::extend:
      // Revoked: the lease is on its way back, or ended for its holder. A belief once ended stays so.
      (void)places_.at(action.slot).guard->extend(action.until);
      return;
    case Action::Kind::stop:
      HOLDFAST_ASSERT(false, "nobody wants a task, so nobody stops wanting it");
      return;
    case Action::Kind::lost:
      return lose(action);
    case Action::Kind::gone:
      return forget(action);
  }
}

void Holder::write(const Action& action) {
  const LeaseWrite::Kind kind = action.write.kind;
  if (kind == LeaseWrite::Kind::renew && !renews_) {
    return keeper_.on_write(action.slot, action.write_id, Outcome::rejected, nullptr, loop_.now());
  }
  Update update = render(action.write, keeper_.owner());
  Place& place = places_.at(action.slot);
  if (kind == LeaseWrite::Kind::release) place.release = action.write.attempt;
  const std::vector<Change>* extra = kind == LeaseWrite::Kind::claim     ? &place.with_claim
                                     : kind == LeaseWrite::Kind::release ? &place.with_release
                                                                         : nullptr;
  if (kind == LeaseWrite::Kind::release && place.is_left) {
    // Effects are over, as after any release: nobody has to wait for the skew.
    const WallTime ended = loop_.wall() - std::chrono::ceil<std::chrono::milliseconds>(keeper_.terms().skew);
    place.with_release = {Change::set(attribute::owner, keeper_.owner().value),
                          Change::set(attribute::expires_at, std::int64_t{ended.time_since_epoch().count()})};
  }
  if (extra != nullptr) {
    for (const Change& change : *extra) {
      // What the caller says about an attribute counts, e.g. the state that a result leaves.
      std::erase_if(update.changes, [&](const Change& own) { return own.attribute == change.attribute; });
      update.changes.push_back(change);
    }
  }
  store_.update(
      std::move(update), action.deadline,
      [this, slot = action.slot, id = action.write_id, kind, alive = std::weak_ptr(alive_)](RowReply reply) {
        if (!alive.expired()) written(slot, id, kind, std::move(reply));
      });
}

void Holder::written(Slot slot, WriteId id, LeaseWrite::Kind kind, RowReply&& reply) {
  const auto found = places_.find(slot);
  if (found != places_.end()) {
    Place& place = found->second;
    if (kind == LeaseWrite::Kind::release) note_release(slot, place, reply);
    if (kind == LeaseWrite::Kind::claim && reply.outcome == Outcome::unknown) place.may_arrive = true;
    if (!reply.error.detail.empty()) place.error = std::move(reply.error);
    if (reply.value) place.row = *reply.value;
  }
  keeper_.on_write(slot, id, reply.outcome, reply.value ? &*reply.value : nullptr, loop_.now());
  pump();
}

/// The Keeper does not care how a release ended; who sent a result with it does.
void Holder::note_release(Slot slot, Place& place, const RowReply& reply) const {
  if (reply.outcome == Outcome::applied) place.release_came_to = HoldEnd::released;
  if (reply.outcome != Outcome::conflict) return;
  const std::string_view attempt = reply.value ? reply.value->text(attribute::attempt) : std::string_view();
  if (attempt == place.release.to_string()) {
    place.release_came_to = HoldEnd::released;  // an earlier try (S5)
  } else if (!reply.value || !holds(fence(keeper_.owner(), keeper_.epoch(slot)), &*reply.value)) {
    place.release_came_to = HoldEnd::lost;
  }
}

void Holder::won(const Action& action) {
  Place& place = places_.at(action.slot);
  place.guard = std::make_shared<LeaseGuard>(action.epoch, action.until);
  place.error = {};
  place.events.won(place.guard, place.row);
}

void Holder::lose(const Action& action) {
  Place& place = places_.at(action.slot);
  place.guard->revoke();
  place.lost = true;
  const auto lost = place.events.lost;
  keeper_.stopped(action.slot, 0, loop_.now());
  if (lost) lost(action.reason);
}

void Holder::forget(const Action& action) {
  auto node = places_.extract(action.slot);
  Place& place = node.mapped();
  const auto how = [&] {
    switch (action.ending) {
      case Ending::claim_conflict:
        return HoldEnd::beaten;
      case Ending::claim_failed:
        return place.may_arrive ? HoldEnd::unanswered : HoldEnd::unavailable;
      case Ending::claim_refused:
        return HoldEnd::rejected;
      case Ending::lost:
        return HoldEnd::lost;
      case Ending::released:
        break;
    }
    if (place.guard) return place.release_came_to.value_or(HoldEnd::doubtful);
    // Won too late, and given back before anybody was told.
    return place.release_came_to ? HoldEnd::unavailable : HoldEnd::unanswered;
  }();
  tell_end(place, how);
}

/// Once. What is told may end us.
void Holder::tell_end(Place& place, HoldEnd how) {
  if (place.patience != 0) loop_.cancel(std::exchange(place.patience, 0));
  const auto ended = std::exchange(place.events.ended, {});
  const Error error = place.error;
  if (ended) ended(how, error);
}

}  // namespace holdfast::coord
