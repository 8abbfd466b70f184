// What the table is asked for and does: S2, S3, S5, S8, S9, S11.
#include <algorithm>
#include <utility>

#include "sim/rules.hpp"

namespace holdfast::sim {
namespace {

constexpr std::size_t remembered = 6;

std::string epoch_words(std::int64_t epoch) {
  return "epoch " + std::to_string(epoch);
}

template <class T>
void remember(std::vector<T>& list, T value) {
  if (list.size() >= remembered) list.erase(list.begin());
  list.push_back(std::move(value));
}

}  // namespace

void Rules::asked(std::int16_t process, const Update& update) {
  const std::int32_t connection = connection_of_key(update.key);
  const Intent intent = intent_of(update);
  world_.note(Happening::Kind::asked, process, connection,
              connection < 0
                  ? 4
                  : static_cast<std::int64_t>(intent.kind == Intent::Kind::other ? 5 : static_cast<int>(intent.kind)),
              intent.epoch);
  Known& known = this->process(process);
  if (connection >= 0) {
    Writing& written = writing(process, connection);
    // Who stood still may find out that an answer is overdue before it finds out that there is none.
    if (written.under_way++ > 0 && !stood_still(known, written.first_asked)) {
      broken("S11", who(process) + " has two writes of one lease under way", connection);
    }
    asked_duties(process, connection, update, intent);
  }
  if (intent.kind == Intent::Kind::claim && known.draining_since && *known.draining_since < world_.now()) {
    broken("S11", who(process) + " asks for a claim although it is draining", connection);
  }
  if (connection < 0 || intent.kind != Intent::Kind::release) return;
  const Holding* held = holding(connection, process, {intent.epoch});
  if (held != nullptr && held->open) {
    broken("S11", who(process) + " gives the lease back while its connection is still open", connection);
  }
  if (held != nullptr && !held->gone && !held->stopped) {
    broken("S11", who(process) + " gives the lease back without having told its resource to stop", connection);
  }
}

void Rules::carried_out(const Update& update, const RowReply& reply, const Origin& origin) {
  const std::int32_t connection = connection_of_key(update.key);
  if (update.key.starts_with(key_prefix::feed)) feed_carried_out(update, reply, origin);
  if (connection < 0) return;
  if (reply.ok()) {
    applied(connection, update, *reply.value, origin);
  } else {
    refused(connection, update, reply, origin);
  }
  const Row& row = conn(connection).row;
  world_.note(Happening::Kind::carried_out, origin.process, connection, static_cast<std::int64_t>(reply.outcome),
              row.epoch, row.last_seq);
  look_at_believers(connection);
}

void Rules::applied(std::int32_t connection, const Update& update, const holdfast::Row& written,
                    const Origin& origin) {
  Conn& at = conn(connection);
  Row after;
  after.exists = true;
  after.was_removed = at.row.was_removed;
  after.owner = written.text(attribute::owner);
  after.state = written.text(attribute::desired_state);
  after.epoch = written.number(attribute::epoch);
  after.expires_at = written.number(attribute::expires_at);
  after.last_seq = written.number(attribute::last_seq);
  if (after.epoch < at.row.epoch) {
    broken("S3",
           epoch_words(after.epoch) + " was written over " + epoch_words(at.row.epoch) + " by " + who(origin.process),
           connection);
  }
  if (origin.process >= 0 && !process(origin.process).plain) worker_wrote(at, connection, update, after, origin);
  if (origin.process < 0) at.edited_epoch = after.epoch;
  if (at.row.state != after.state && after.state != state::started) at.not_started_at = world_.now();
  if (after.state != state::started) at.not_started_at = world_.now();
  if (after.state == state::removed) after.was_removed = true;
  // A removed connection that is added again begins its numbers anew.
  if (at.row.state == state::removed && after.state == state::started) at.covered.clear();
  at.row = std::move(after);
}

void Rules::worker_wrote(Conn& at, std::int32_t connection, const Update& update, const Row& after,
                         const Origin& origin) {
  const Intent intent = intent_of(update);
  const std::string& self = process(origin.process).owner;
  if (origin.again) world_.marks.hit(Mark::duplicate_applied);
  if (!process(origin.process).alive) world_.marks.hit(Mark::late_write_of_dead);
  if (!at.row.exists) broken("S8", who(origin.process) + " made a row that was not there", connection);
  if (after.last_seq < at.row.last_seq) {
    broken("S9",
           "last_seq fell from " + std::to_string(at.row.last_seq) + " to " + std::to_string(after.last_seq) +
               ", written by " + who(origin.process),
           connection);
  }
  switch (intent.kind) {
    case Intent::Kind::claim:
      claimed(at, connection, intent, after, origin);
      break;
    case Intent::Kind::renew:
    case Intent::Kind::release:
      if (at.row.owner != self || at.row.epoch != intent.epoch) {
        broken("S2",
               who(origin.process) + " wrote under " + epoch_words(intent.epoch) + ", but the row was " +
                   (at.row.owner.empty() ? "nobody's" : at.row.owner + "'s") + " under " + epoch_words(at.row.epoch),
               connection);
      }
      if (intent.kind == Intent::Kind::renew && after.owner != self) {
        broken("S3", who(origin.process) + "'s renewal left the row to '" + after.owner + "'", connection);
      }
      break;
    case Intent::Kind::other:
      broken("S8", who(origin.process) + " wrote a connection's row in a way that is no claim, renewal or release",
             connection);
      break;
  }
  if (after.last_seq > at.row.last_seq) checkpointed(at, connection, after);
  if (intent.kind == Intent::Kind::release) return;
  for (Ownership& one : at.ownerships) {
    if (one.process == origin.process && one.epoch == after.epoch) {
      one.sent_own = std::max(one.sent_own, origin.sent);
      return;
    }
  }
  remember(at.ownerships, Ownership{origin.process, after.epoch, origin.sent});
}

void Rules::claimed(Conn& at, std::int32_t connection, const Intent& intent, const Row& after, const Origin& origin) {
  if (after.epoch <= at.row.epoch) {
    broken("S3",
           who(origin.process) + " claimed under " + epoch_words(after.epoch) + " after " + epoch_words(at.row.epoch),
           connection);
  }
  for (const auto& [epoch, owner] : at.epoch_owner) {
    if (epoch == after.epoch && owner != after.owner) {
      broken("S3", epoch_words(epoch) + " belongs to " + owner + " and now also to " + after.owner, connection);
    }
  }
  remember(at.epoch_owner, std::pair(after.epoch, after.owner));
  at.claim_attempt = intent.attempt;
  if (at.row.state != state::started) {
    broken("S8", who(origin.process) + " claimed a row whose desired state is '" + at.row.state + "'", connection);
  }
  if (!process(origin.process).alive) world_.marks.hit(Mark::dead_claim_won);
  if (!at.row.owner.empty() && at.row.owner.starts_with("plain")) world_.marks.hit(Mark::taken_from_plain);
  if (at.row.owner.empty() || at.row.expires_at == 0) return;
  for (const Holding& one : at.holdings) {
    if (one.process != origin.process && believes(one)) world_.marks.hit(Mark::taken_early_by_clock);
  }
}

void Rules::checkpointed(const Conn& at, std::int32_t connection, const Row& after) {
  const std::int64_t missing = at.covered.first_missing(at.row.last_seq + 1);
  if (missing > after.last_seq) return;
  broken("S9",
         "last_seq moved from " + std::to_string(at.row.last_seq) + " to " + std::to_string(after.last_seq) +
             ", but number " + std::to_string(missing) + " is safe in no sink, nor recorded as missing",
         connection);
}

/// S5: who claimed and heard nothing finds in the row that it was itself who was quicker.
void Rules::own_claim_refused(std::int16_t process, std::int32_t connection, const Intent& intent,
                              const holdfast::Row& row) {
  if (conn(connection).claim_attempt != intent.attempt || row.number(attribute::epoch) != intent.epoch) return;
  if (row.text(attribute::owner) != this->process(process).owner) return;
  broken("S5",
         who(process) + " is told of a conflict with its own claim, and the row does not say that it was its own",
         connection);
}

void Rules::gave_back(std::int16_t process, std::int32_t connection) {
  const Conn& at = conn(connection);
  // Not what former owners had made durable under older epochs: nobody owes a checkpoint of that any more.
  const auto its = std::find_if(at.holdings.rbegin(), at.holdings.rend(),
                                [&](const Holding& one) { return one.process == process; });
  if (its == at.holdings.rend() || !its->next || *its->next <= at.row.last_seq + 1) return;
  broken("S11",
         who(process) + " gave back with last_seq " + std::to_string(at.row.last_seq) +
             ", but later numbers are safe in its sink",
         connection);
}

void Rules::refused(std::int32_t connection, const Update& update, const RowReply& reply, const Origin& origin) {
  if (reply.outcome != Outcome::conflict || origin.process < 0 || process(origin.process).plain) return;
  const Intent intent = intent_of(update);
  const Row& row = conn(connection).row;
  if (origin.again) world_.marks.hit(Mark::duplicate_refused);
  if (intent.kind == Intent::Kind::claim) {
    world_.marks.hit(row.state == state::started ? Mark::claim_stale : Mark::claim_of_stopped);
  } else if (row.owner != process(origin.process).owner || row.epoch != intent.epoch) {
    world_.marks.hit(Mark::late_write_refused);
    if (row.epoch >= intent.epoch + 2) world_.marks.hit(Mark::epoch_two_behind);
  }
}

void Rules::answered(std::int16_t process, const Update& update, const RowReply& reply, bool late) {
  const std::int32_t connection = connection_of_key(update.key);
  if (late) {
    world_.marks.hit(Mark::late_answer);
    return;
  }
  world_.note(Happening::Kind::answered, process, connection, static_cast<std::int64_t>(reply.outcome));
  if (connection < 0) {
    const bool is_worker = update.key.starts_with(key_prefix::worker);
    if (is_worker && reply.outcome == Outcome::conflict) world_.marks.hit(Mark::name_clash);
    return;
  }
  const Intent intent = intent_of(update);
  if (!this->process(process).plain) answered_duties(process, connection, update, intent, reply);
  look_at_believers(connection);  // what may bring a belief back is an answer that comes after its end
  if (reply.outcome != Outcome::conflict || !reply.value) return;
  if (reply.value->text(attribute::attempt) == intent.attempt) {
    world_.marks.hit(intent.kind == Intent::Kind::claim   ? Mark::claim_settled
                     : intent.kind == Intent::Kind::renew ? Mark::renewal_settled
                                                          : Mark::release_settled);
  } else if (intent.kind == Intent::Kind::claim) {
    own_claim_refused(process, connection, intent, *reply.value);
  } else if (intent.kind == Intent::Kind::renew &&
             reply.value->text(attribute::owner) == this->process(process).owner &&
             reply.value->number(attribute::epoch) == intent.epoch) {
    world_.marks.hit(Mark::renewal_adopted);
    if (conn(connection).edited_epoch != intent.epoch) {
      broken("S6", who(process) + "'s renewal is refused although the row is its own and nobody has edited it",
             connection);
    }
  }
}

}  // namespace holdfast::sim
