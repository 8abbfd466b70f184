// Who believes what, and what comes out at the other end: S1, S4, S6, S7, S9, S11.
#include <algorithm>
#include <utility>

#include "sim/rules.hpp"

namespace holdfast::sim {
namespace {

constexpr std::size_t remembered = 6;

}  // namespace

bool Rules::believes(const Holding& one) const {
  const Known& known = processes_[static_cast<std::size_t>(one.process)];
  return known.alive && one.guard->holds(known.clock->instant(world_.now()));
}

Rules::Holding* Rules::holding(std::int32_t connection, std::int16_t process, Epoch epoch) {
  for (Holding& one : conn(connection).holdings) {
    if (one.process == process && one.epoch == epoch) return &one;
  }
  return nullptr;
}

/// S1 and S4, at a moment at which something has changed.
void Rules::look_at_believers(std::int32_t connection) {
  Conn& at = conn(connection);
  std::int16_t first = -1;
  if (at.plain_process >= 0 && world_.now() < at.plain_until && process(at.plain_process).alive) {
    first = at.plain_process;
  }
  for (Holding& one : at.holdings) {
    if (!believes(one)) {
      if (!std::exchange(one.ended, true)) look_at_renewals(connection, one);
      continue;
    }
    if (one.ended) broken("S7", who(one.process) + " believes again after its belief had ended", connection);
    look_at_promise(at, one, connection);
    if (first >= 0 && world_.plan.clocks_keep_promise()) {
      broken("S1", who(first) + " and " + who(one.process) + " believe at the same time", connection);
    }
    first = one.process;
    for (const Ownership& ownership : at.ownerships) {
      if (ownership.process != one.process || ownership.epoch != one.epoch.value) continue;
      const Instant most = ownership.sent_own + world_.plan.terms.lease - world_.plan.terms.margin;
      if (one.guard->until() > most) {
        broken("S4",
               who(one.process) + " believes for longer than its latest request that was applied allows, by " +
                   std::to_string((one.guard->until() - most).count()) + " ns",
               connection);
      }
    }
  }
}

/// S4, the other half: what the row promises lasts until the belief has ended, by the clock of whoever would take
/// over.
void Rules::look_at_promise(const Conn& at, const Holding& one, std::int32_t connection) {
  const Known& known = processes_[static_cast<std::size_t>(one.process)];
  if (!world_.plan.clocks_keep_promise() || at.row.owner != known.owner || at.row.epoch != one.epoch.value) return;
  const auto expires = WallTime(std::chrono::milliseconds(at.row.expires_at)) - NodeClock::wall_start;
  const Instant taken_earliest = Instant(expires + world_.plan.terms.skew - world_.plan.wall_error_most());
  const Instant until = known.clock->truth_at(one.guard->until());
  if (until <= taken_earliest) return;
  broken("S4",
         who(one.process) + " believes for longer than its row keeps others out, by " +
             std::to_string((until - taken_earliest).count()) + " ns",
         connection);
}

void Rules::granted(std::int16_t process, std::int32_t connection, std::shared_ptr<LeaseGuard> guard,
                    std::int64_t last_seq) {
  Conn& at = conn(connection);
  world_.note(Happening::Kind::granted, process, connection, 0, guard->epoch().value, last_seq);
  for (const Holding& one : at.holdings) {
    if (one.process == process && one.epoch == guard->epoch()) {
      broken("S3", who(process) + " starts twice under one epoch", connection);
    }
  }
  Holding one;
  one.process = process;
  one.epoch = guard->epoch();
  one.guard = std::move(guard);
  if (last_seq > 0) one.next = last_seq + 1;
  one.granted_at = world_.now();
  one.confirmed = own_time(process);
  if (at.holdings.size() >= remembered) at.holdings.erase(at.holdings.begin());
  at.holdings.push_back(std::move(one));
  if (!believes(at.holdings.back())) {
    broken("S7", who(process) + " starts under a belief that has ended", connection);
  }
  look_at_believers(connection);
}

void Rules::told_to_stop(std::int16_t process, std::int32_t connection, Epoch epoch, LossReason reason) {
  world_.note(Happening::Kind::told_to_stop, process, connection, static_cast<std::int64_t>(reason), epoch.value);
  Holding* one = holding(connection, process, epoch);
  if (one == nullptr) return;
  if (std::exchange(one->stopped, true))
    broken("S7", who(process) + " tells one resource twice of its end", connection);
  const Conn& at = conn(connection);
  const bool ours = at.row.owner == this->process(process).owner && at.row.epoch == epoch.value;
  switch (reason) {
    case LossReason::taken_over:
      world_.marks.hit(Mark::lost_taken_over);
      if (ours) broken("S6", who(process) + " takes its lease for lost, but the row is still its own", connection);
      break;
    case LossReason::belief_expired:
      world_.marks.hit(Mark::lost_belief_expired);
      if (world_.outage) world_.marks.hit(Mark::believers_changed_in_outage);
      if (one->guard->holds(this->process(process).clock->instant(world_.now()))) {
        broken("S6", who(process) + " says that its belief has ended, but its guard still holds", connection);
      }
      look_at_renewals(connection, *one);
      break;
    case LossReason::row_missing:
      if (at.row.exists) broken("S6", who(process) + " says that the row is missing, but it is there", connection);
      break;
    case LossReason::stopped:
      world_.marks.hit(Mark::ended_stopped);
      if (at.not_started_at < one->granted_at - 2 * world_.plan.terms.lease) {
        broken("S6", who(process) + " stops it although nobody wanted it stopped", connection);
      }
      break;
    case LossReason::drained:
      world_.marks.hit(Mark::ended_drained);
      if (!this->process(process).draining_since) {
        broken("S6", who(process) + " says that it is draining, but nobody asked it to", connection);
      }
      break;
    case LossReason::sink_failed:
      world_.marks.hit(Mark::ended_sink_failed);
      break;
  }
}

void Rules::let_go(std::int16_t process, std::int32_t connection, Epoch epoch) {
  world_.note(Happening::Kind::let_go, process, connection, 0, epoch.value);
  if (Holding* one = holding(connection, process, epoch); one != nullptr) {
    if (!believes(*one)) look_at_renewals(connection, *one);
    one->gone = true;
    one->open = false;
  }
}

void Rules::offered(std::int16_t process, std::int32_t connection, const Record& record, Instant own_now) {
  const LeaseGuard& guard = **record.guard;
  if (!guard.holds(own_now)) {
    broken("S7", who(process) + " gives its sink a record after its belief has ended", connection);
  }
  if (record.epoch != guard.epoch()) {
    broken("S2",
           who(process) + " gives its sink a record with epoch " + std::to_string(record.epoch.value) +
               " under epoch " + std::to_string(guard.epoch().value),
           connection);
  }
  const Holding* one = holding(connection, process, guard.epoch());
  if (one == nullptr) return;
  if (one->stopped) broken("S11", who(process) + " still reads after its resource was told to stop", connection);
  if (one->gone) broken("S7", who(process) + " gives its sink a record of a resource that is gone", connection);
}

void Rules::durable(std::int16_t process, std::int32_t connection, Epoch epoch, std::int64_t from, std::int64_t to,
                    bool gap) {
  Conn& at = conn(connection);
  look_at_believers(connection);
  if (world_.plan.clocks_keep_promise() && epoch.value < at.highest_durable_epoch) {
    broken("S1",
           who(process) + " had an effect under epoch " + std::to_string(epoch.value) + " after one under " +
               std::to_string(at.highest_durable_epoch),
           connection);
  }
  at.highest_durable_epoch = std::max(at.highest_durable_epoch, epoch.value);
  at.flowed_at = world_.now();
  Holding* one = holding(connection, process, epoch);
  if (one == nullptr) return;
  if (one->next && from != *one->next) {
    const bool again = from < *one->next;
    broken("S9",
           who(process) + (again ? " delivers number " : " leaves out numbers without a record: after ") +
               std::to_string(again ? from : *one->next - 1) +
               (again ? " twice under one epoch" : " comes " + std::to_string(from)),
           connection);
  }
  if (gap) world_.marks.hit(Mark::gap_recorded);
  // With no number yet the sequence begins wherever it is.
  at.covered.add(one->next ? from : 1, to);
  one->next = to + 1;
}

void Rules::reading(std::int16_t process, std::int32_t connection, bool is_open) {
  const bool by_timer = !is_open && this->process(process).control_stands_still;
  for (Holding& one : conn(connection).holdings) {
    if (one.process != process || one.gone) continue;
    if (by_timer && one.open && !believes(one)) world_.marks.hit(Mark::closed_by_timer);
    one.open = is_open;
  }
}

void Rules::told_to_wait(std::int16_t process, std::int32_t connection, Instant until) {
  for (Holding& one : conn(connection).holdings) {
    if (one.process == process && !one.gone) one.wait_until = until;
  }
}

void Rules::connects(std::int16_t process, std::int32_t connection, Instant own_now) {
  for (Holding& one : conn(connection).holdings) {
    if (one.process != process || one.gone || one.wait_until == Instant{}) continue;
    if (own_now >= one.wait_until) {
      one.wait_until = Instant{};
      world_.marks.hit(Mark::retry_after_honoured);
      continue;
    }
    broken("F37",
           who(process) + " connects although its upstream asked it to wait, " +
               std::to_string((one.wait_until - own_now).count()) + " ns too early",
           connection);
  }
}

void Rules::edited(std::int16_t process, std::int32_t connection) {
  told_to_wait(process, connection, Instant{});
}

void Rules::plain_believes(std::int16_t process, std::int32_t connection, Instant until_truth) {
  Conn& at = conn(connection);
  world_.note(Happening::Kind::plain, process, connection, 0, 0, until_truth.time_since_epoch().count());
  at.plain_process = process;
  at.plain_until = until_truth;
  if (until_truth > world_.now()) at.flowed_at = world_.now();
  look_at_believers(connection);
}

}  // namespace holdfast::sim
