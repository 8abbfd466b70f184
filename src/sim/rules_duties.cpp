// What a process has to do and may have left undone: S5, S6, S7, S10, S11.
#include <algorithm>
#include <utility>

#include "sim/rules.hpp"

namespace holdfast::sim {
namespace {

using namespace std::chrono_literals;

/// The lease that a claim goes by, from the parts of its condition that all have to hold.
void add_lease_seen(const Condition& condition, std::string& seen) {
  if (condition.kind == Condition::Kind::all) {
    for (const Condition& operand : condition.operands) add_lease_seen(operand, seen);
  } else if (condition.kind == Condition::Kind::compare && condition.compare == Condition::Compare::equal &&
             (condition.attribute == attribute::owner || condition.attribute == attribute::expires_at)) {
    const std::string* const text = condition.value.as_string();
    const std::int64_t* const number = condition.value.as_int();
    seen += (text != nullptr ? *text : number != nullptr ? std::to_string(*number) : std::string()) + " ";
  }
}

std::string lease_seen(const Update& update, const Intent& intent) {
  std::string seen = std::to_string(intent.epoch) + " ";
  add_lease_seen(update.condition, seen);
  return seen;
}

std::string epoch_and_owner(const holdfast::Row& row) {
  return std::to_string(row.number(attribute::epoch)) + " " + std::string(row.text(attribute::owner));
}

}  // namespace

Writing& Rules::writing(std::int16_t process, std::int32_t connection) {
  std::vector<Writing>& all = this->process(process).writing;
  all.resize(conns_.size());
  return all[static_cast<std::size_t>(connection)];
}

Instant Rules::own_time(std::int16_t process) const {
  return processes_[static_cast<std::size_t>(process)].clock->instant(world_.now());
}

/// Of a thread that stands still nothing can be asked; where it is one of the streams, their leases are left to end.
bool Rules::stood_still(const Known& known, Instant since) const {
  return known.control_stands_still || known.streams_stand_still ||
         known.clock->instant(known.stood_still_until) > since;
}

void Rules::asked_duties(std::int16_t process, std::int32_t connection, const Update& update, const Intent& intent) {
  const Instant now = own_time(process);
  Writing& written = writing(process, connection);
  asked_again(written, process, connection, intent);
  Holding* const held = holding(connection, process, {intent.epoch});
  if (intent.kind != Intent::Kind::claim) {
    written.renewed_epoch = intent.epoch;
    written.renewed_at = now;
  }
  if (held != nullptr && intent.kind == Intent::Kind::renew) {
    // Of two tries that arrive in the wrong order the table takes the newer one: it tells them by their numbers.
    if (intent.renewal <= held->renewal) {
      broken("S5", who(process) + " gives two tries of its renewals the number " + std::to_string(intent.renewal),
             connection);
    }
    held->renewal = intent.renewal;
  }
  if (intent.kind != Intent::Kind::claim || !written.struck || world_.plan.on(Fault::wall_step)) return;
  const Duration least = std::clamp<Duration>(world_.plan.terms.reconcile_every / 10, 50ms, 250ms) / 2;
  if (*written.struck == lease_seen(update, intent) && now - written.struck_at < least) {
    broken("S10", who(process) + " claims a row again at once although it has not changed", connection);
  }
}

/// S5: what is made again, as nobody said what became of it, is the same attempt.
void Rules::asked_again(Writing& written, std::int16_t process, std::int32_t connection, const Intent& intent) {
  if (written.attempt == intent.attempt) {
    written.owed_until.reset();
    return;
  }
  if (written.owed_until && intent.kind != Intent::Kind::release && own_time(process) < *written.owed_until) {
    broken("S5", who(process) + " begins another write although nobody has said what became of the last one",
           connection);
  }
  written.owed_until.reset();
  written.attempt = intent.attempt;
  written.first_asked = own_time(process);
}

void Rules::answered_duties(std::int16_t process, std::int32_t connection, const Update& update, const Intent& intent,
                            const RowReply& reply) {
  Writing& written = writing(process, connection);
  --written.under_way;
  if (intent.kind == Intent::Kind::other) return;
  const bool is_own = reply.outcome == Outcome::applied || (reply.outcome == Outcome::conflict && reply.value &&
                                                            reply.value->text(attribute::attempt) == intent.attempt);
  Holding* const held = holding(connection, process, {intent.epoch});
  if (is_own && held != nullptr) held->confirmed = own_time(process);
  // It surely did nothing, so that its number may be used by a simpler one in its place.
  if (reply.outcome == Outcome::rejected && held != nullptr) --held->renewal;
  if (reply.outcome == Outcome::unknown) owe(written, process, connection, intent);
  if (reply.outcome == Outcome::conflict && !is_own && intent.kind == Intent::Kind::claim) {
    // What a claim was told may make another one worth a try, and so may what it was told the last time.
    std::string holder = reply.value ? epoch_and_owner(*reply.value) : std::string();
    written.struck.reset();
    // Who stood still had given the claim up by then.
    const bool heard = !stood_still(this->process(process), written.first_asked);
    if (heard && (written.told.empty() || written.told == holder)) written.struck = lease_seen(update, intent);
    written.told = std::move(holder);
    written.struck_at = own_time(process);
  }
}

/// S5: an unknown write is made again for as long as that is of use.
void Rules::owe(Writing& written, std::int16_t process, std::int32_t connection, const Intent& intent) {
  const LeaseTerms& terms = world_.plan.terms;
  const Known& known = this->process(process);
  const Holding* const held = holding(connection, process, {intent.epoch});
  Instant until{};
  Duration pause_most = terms.lease / 20;
  switch (intent.kind) {
    case Intent::Kind::claim:
      // Not where it drains, or where its wall clock may say by now that it is too early.
      if (known.draining_since || world_.plan.on(Fault::wall_step)) return;
      until = written.first_asked + terms.lease - terms.margin;
      break;
    case Intent::Kind::renew:
      if (held == nullptr || held->gone || held->stopped || !believes(*held)) return;
      until = held->guard->until();
      break;
    case Intent::Kind::release:
      if (held == nullptr || known.ended) return;
      // Well before others take it by themselves: a time of ours, by which the Keeper's pauses do not go.
      until = held->confirmed + terms.lease / 2;
      pause_most = terms.renew_every / 2 + 1s;
      break;
    case Intent::Kind::other:
      return;
  }
  if (until - own_time(process) > pause_most) written.owed_until = until;
}

void Rules::look_at_what_is_owed(std::int16_t process, std::int32_t connection) {
  const Known& known = this->process(process);
  Writing& written = writing(process, connection);
  if (!written.owed_until) return;
  if (stood_still(known, written.first_asked) || known.ended || known.draining_since) {
    written.owed_until.reset();
  } else if (own_time(process) > *written.owed_until) {
    broken("S5", who(process) + " does not ask again although nobody has said what became of its last write",
           connection);
  }
}

/// S6, S11: no belief ends for want of a try to renew it.
void Rules::look_at_renewals(std::int32_t connection, const Holding& one) {
  const Known& known = process(one.process);
  if (one.gone || known.ended || one.guard->revoked() || stood_still(known, one.confirmed)) return;
  const Writing& written = writing(one.process, connection);
  if (written.renewed_epoch == one.epoch.value && written.renewed_at >= one.confirmed) return;
  if (one.guard->until() - one.confirmed < 1ms) return;
  broken(one.stopped ? "S11" : "S6",
         who(one.process) + " let its belief end without having tried to renew it" +
             (one.stopped ? " while its resource was stopping" : ""),
         connection);
}

/// S7: the socket closes by itself when the belief ends, whatever the thread of the leases does.
void Rules::look_at_socket(std::int32_t connection, Holding& one) {
  const Known& known = process(one.process);
  if (!one.open || one.gone || known.ended || known.streams_stand_still || believes(one)) {
    one.open_since_end.reset();
    return;
  }
  if (!one.open_since_end) one.open_since_end = world_.now();
  if (world_.now() - std::max(*one.open_since_end, known.stood_still_until) < 50ms) return;
  broken("S7", who(one.process) + "'s connection is still open although its belief has ended", connection);
}

void Rules::look_at_duties() {
  for (std::size_t i = 0; i < conns_.size(); ++i) {
    const auto connection = static_cast<std::int32_t>(i);
    for (Holding& one : conns_[i].holdings) look_at_socket(connection, one);
    for (std::size_t j = 0; j < processes_.size(); ++j) {
      if (processes_[j].alive && !processes_[j].plain) look_at_what_is_owed(static_cast<std::int16_t>(j), connection);
    }
  }
}

}  // namespace holdfast::sim
