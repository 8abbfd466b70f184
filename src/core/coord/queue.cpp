#include "core/coord/queue.hpp"

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "core/coord/counter.hpp"
#include "core/coord/damage.hpp"
#include "core/coord/memory.hpp"
#include "core/coord/names.hpp"
#include "core/hexadecimal.hpp"
#include "core/stable_hash.hpp"
#include "holdfast/assert.hpp"

namespace holdfast {

namespace {

using std::chrono::milliseconds;

Value number(WallTime time) {
  return Value(std::int64_t{time.time_since_epoch().count()});
}

std::string empty_state(std::string_view queue) {
  return std::string(coord::queue_prefix) + std::string(queue) + "#EMPTY";
}

/// A consumer that comes too late, whatever it wants (F31). `in_doubt`: an earlier try of the same may have been in
/// time.
Failure no_longer(const Receipt& receipt, bool in_doubt) {
  return {in_doubt ? Failure::Kind::unknown : Failure::Kind::refused,
          Error(Code::unavailable, "The group " + receipt.group + " of " + receipt.queue +
                                       " is no longer leased under epoch " + std::to_string(receipt.epoch.value) +
                                       ": its lease ran out, or it was given back" +
                                       (in_doubt ? ", perhaps by this very request." : "."))};
}

/// The lease of the receipt, and the group as it was seen: whether it becomes empty depends on both ends, and a late
/// duplicate of an earlier acknowledgement must not bring back what was acknowledged since.
Condition held_as_seen(const Receipt& receipt, const Group& group) {
  return fence(receipt.owner, receipt.epoch) && Condition::equals(coord::head, group.head) &&
         Condition::equals(coord::tail, group.tail);
}

/// Whether this can be what was given out under the lease in the row, of which some may be acknowledged by now. A row
/// that was leased before it told how far: up to its end.
bool is_within_lease(const Receipt& receipt, const Row& row, const Group& group) {
  const std::int64_t last = std::min(group.tail, row.number(coord::leased_last, group.tail));
  return receipt.first <= group.head && receipt.last <= last;
}

/// The group without its lease, due at `due` if there is something left in it.
void give_back(const Group& group, std::int64_t head, WallTime due, std::vector<Change>& changes) {
  const bool is_empty = head > group.tail;
  changes.push_back(Change::remove(attribute::owner));
  changes.push_back(
      Change::set(attribute::desired_state, is_empty ? empty_state(group.queue) : ready_state(group.queue)));
  changes.push_back(Change::set(attribute::expires_at, is_empty ? number(WallTime{}) : number(due)));
}

Update new_message(std::string_view queue, std::string_view group, const Message& message, Duration retention,
                   Now now) {
  // Kept that long from when it can be had.
  const WallTime from = std::max(now.wall, message.deliver_at);
  Update update{message_key(queue, group, message.seq), remembered(from, retention), Condition::row_missing()};
  update.changes.push_back(Change::set(coord::seq, message.seq));
  update.changes.push_back(Change::set(coord::body, message.body));
  update.changes.push_back(Change::set(coord::dedup_id, message.dedup_id));
  update.changes.push_back(Change::set(coord::sent_at, number(message.sent_at)));
  update.changes.push_back(Change::set(coord::deliver_at, number(message.deliver_at)));
  return update;
}

/// One message more at the end of a group, which may not be there yet.
Update longer_group(const Row* row, const Group& group, std::int64_t seq, WallTime deliver_at) {
  Update update;
  update.key = group_key(group.queue, group.group);
  // Also in the state that was seen: one that becomes empty meanwhile is to be woken up.
  update.condition = row == nullptr
                         ? Condition::row_missing()
                         : Condition::equals(coord::tail, group.tail) &&
                               Condition::equals(attribute::desired_state, row->text(attribute::desired_state));
  update.changes = {Change::set(coord::tail, seq)};
  if (row == nullptr) {
    update.changes.push_back(Change::set(coord::queue, group.queue));
    update.changes.push_back(Change::set(coord::group, group.group));
    update.changes.push_back(Change::set(coord::head, group.head));
  }
  if (group.state == Group::State::empty) {  // it wakes up
    update.changes.push_back(Change::set(attribute::desired_state, ready_state(group.queue)));
    update.changes.push_back(Change::set(attribute::expires_at, number(deliver_at)));
  }
  return update;
}

}  // namespace

// ---- Rows ----

Result<void> check_names(std::string_view queue, std::string_view group) {
  for (const auto& [what, name] : {std::pair("queue", queue), std::pair("group", group)}) {
    if (name.empty()) return fail(Code::usage, std::string("the ") + what + " has no name");
    if (auto good = coord::check_name(std::string("the name of the ") + what, name); !good) return good;
  }
  if (queue.find('#') != std::string_view::npos) {
    return fail(Code::usage, "the name of a queue has no '#': " + std::string(queue));
  }
  return {};
}

Result<void> check_redrive(std::string_view queue, std::string_view group, std::string_view to) {
  if (auto good = check_names(queue, group); !good) return good;
  if (auto good = check_names(to, group); !good) return good;
  if (to == queue) return fail(Code::usage, "the messages are in the queue " + std::string(to) + " already");
  return {};
}

std::string group_key(std::string_view queue, std::string_view group) {
  return std::string(coord::queue_prefix) + std::string(queue) + "#" + std::string(group);
}

std::string message_key(std::string_view queue, std::string_view group, std::int64_t seq) {
  char digits[24];
  std::snprintf(digits, sizeof digits, "%020lld", static_cast<long long>(seq));
  return std::string(coord::message_prefix) + std::string(queue) + "#" + std::string(group) + "#" + digits;
}

std::string dedup_key(std::string_view queue, std::string_view dedup_id) {
  return std::string(coord::dedup_prefix) + std::string(queue) + "#" + std::string(dedup_id);
}

bool is_remembered(const Row& sent, Duration window, WallTime now) {
  // As times, not as how long ago: what a row says may be longer ago than fits.
  const WallTime sent_at(milliseconds(sent.number(coord::sent_at)));
  return sent_at > now - std::chrono::ceil<milliseconds>(window) || !is_past_retention(sent, now);
}

std::string ready_state(std::string_view queue) {
  return std::string(coord::queue_prefix) + std::string(queue);
}

std::string parked_state(std::string_view queue) {
  return std::string(coord::queue_prefix) + std::string(queue) + "#PARKED";
}

std::optional<Group> group_in(const Row& row) {
  Group group;
  group.queue = row.text(coord::queue);
  group.group = row.text(coord::group);
  if (group.queue.empty() || row.key != group_key(group.queue, group.group) || damage_in(row)) return std::nullopt;
  const std::string_view state = row.text(attribute::desired_state);
  if (state == ready_state(group.queue)) {
    group.state = Group::State::ready;
  } else if (state == parked_state(group.queue)) {
    group.state = Group::State::parked;
  } else if (state != empty_state(group.queue)) {
    return std::nullopt;
  }
  group.head = row.number(coord::head, -1);
  group.tail = row.number(coord::tail, -1);
  if (group.head < 1 || group.tail < group.head - 1) return std::nullopt;
  group.receives = row.number(coord::receives);
  group.owner = row.text(attribute::owner);
  group.epoch = {row.number(attribute::epoch)};
  group.due = WallTime(milliseconds(row.number(attribute::expires_at)));
  group.parked_because = row.text(coord::parked_because);
  return group;
}

std::optional<Message> message_in(const Row& row) {
  Message message;
  message.seq = row.number(coord::seq);
  const Value* body = row.find(coord::body);
  if (damage_in(row) || message.seq < 1 || body == nullptr) return std::nullopt;
  message.body = *body->as_string();
  message.dedup_id = row.text(coord::dedup_id);
  message.sent_at = WallTime(milliseconds(row.number(coord::sent_at)));
  message.deliver_at = WallTime(milliseconds(row.number(coord::deliver_at)));
  return message;
}

// ---- Sending ----

namespace {

/// What is sent under an id, to be told from something else under the same. Not for who would have two texts look
/// alike: he would lose a message of his own.
std::string fingerprint_of(const SendOptions& options) {
  return std::to_string(options.group.size()) + "." + std::to_string(stable_hash(options.group + options.body)) +
         "." + std::to_string(options.body.size());
}

/// Where the sender gives none, an id of its own: then at least its own tries are one.
SendOptions with_dedup_id(SendOptions options, Random& random) {
  if (options.dedup_id.empty()) options.dedup_id = random.attempt().to_string();
  return options;
}

}  // namespace

Send::Send(SendOptions options, Instant deadline, Random& random)
    : Send(with_dedup_id(std::move(options), random), deadline, random, Prepared{}) {}

Send::Send(SendOptions options, Instant deadline, Random& random, Prepared)
    : RowProcedure(std::vector{group_key(options.queue, options.group), dedup_key(options.queue, options.dedup_id)},
                   deadline, random),
      options_(std::move(options)) {
  HOLDFAST_ASSERT(options_.body.size() <= SendOptions::body_most, "looked at by who was given it");
}

/// What was sent under this id before.
bool Send::is_same(const Row& sent) const {
  const std::string_view there = sent.text(coord::fingerprint);
  return there.empty() || there == fingerprint_of(options_);
}

Send::Plan Send::plan(Now now) {
  if (was_applied()) return Sent{seq_, false};
  const Row* row = find(keys()[0]);
  const Row* sent = find(keys()[1]);
  if (sent != nullptr) {
    const bool is_ours = sent->text(attribute::attempt) == attempt().to_string();
    const bool is_known = is_remembered(*sent, options_.dedup_window, now.wall);
    if (!is_ours && is_known && was_precluded(*sent)) {
      return Failure{Failure::Kind::mismatch, Error(Code::usage, "What had the id " + options_.dedup_id +
                                                                     " was given up, and was never sent to " +
                                                                     options_.queue + ". Use another id.")};
    }
    if (!is_ours && is_known && !is_same(*sent)) {
      return Failure{Failure::Kind::mismatch,
                     Error(Code::usage, "The id " + options_.dedup_id + " was used before for another message of " +
                                            options_.queue + ". Use another id for another message.")};
    }
    if (is_ours || is_known) return Sent{sent->number(coord::seq), !is_ours};
  }
  Group group;
  group.queue = options_.queue;
  group.group = options_.group;
  if (row != nullptr) {
    const std::optional<Group> there = group_in(*row);
    if (!there) return damaged_row(*row);
    group = *there;
  }
  seq_ = group.tail + 1;
  const WallTime deliver_at = now.wall + std::chrono::ceil<milliseconds>(options_.delay);
  std::vector<Change> note = remembered(now.wall, options_.dedup_window);
  note.push_back(Change::set(coord::seq, seq_));
  note.push_back(Change::set(coord::sent_at, number(now.wall)));
  note.push_back(Change::set(coord::fingerprint, fingerprint_of(options_)));
  note.push_back(Change::set(attribute::attempt, attempt().to_string()));
  Condition unused =
      sent == nullptr ? Condition::row_missing() : Condition::equals(coord::sent_at, sent->number(coord::sent_at));
  return std::vector{
      longer_group(row, group, seq_, deliver_at),
      new_message(options_.queue, options_.group, {seq_, options_.body, options_.dedup_id, now.wall, deliver_at},
                  options_.retention, now),
      Update{keys()[1], std::move(note), std::move(unused)}};
}

// ---- What a consumer does with what it was given ----

Settle::Settle(Receipt receipt, Settlement settlement, Instant deadline, Random& random)
    : RowProcedure(group_key(receipt.queue, receipt.group), deadline, random),
      receipt_(std::move(receipt)),
      settlement_(std::move(settlement)) {}

/// The lease was given back by who had it, and nobody has had one since: what its holder asked for stands, so that he
/// may ask again after an answer that got lost.
bool Settle::was_done_before(const Group& group) const {
  if (group.epoch != receipt_.epoch || !group.owner.empty()) return false;
  switch (settlement_.kind) {
    case Settlement::Kind::ack:
      return group.head - receipt_.first >= settlement_.count;
    case Settlement::Kind::nack:
      return group.state == Group::State::ready && group.head <= receipt_.last;
    case Settlement::Kind::park:
      return group.state == Group::State::parked;
    case Settlement::Kind::extend:
      return false;
  }
  return false;
}

Settle::Plan Settle::plan(Now now) {
  const Row* row = find(key());
  const std::optional<Group> group = row == nullptr ? std::nullopt : group_in(*row);
  if (row != nullptr && !group) return damaged_row(*row);
  if (group && row->text(attribute::attempt) == attempt().to_string()) return Settled{group->size(), group->due};
  if (group && was_done_before(*group)) return Settled{group->size(), group->due};
  if (!group || group->owner != receipt_.owner.value || group->epoch != receipt_.epoch)
    return no_longer(receipt_, in_doubt());

  if (!is_within_lease(receipt_, *row, *group)) {
    return Failure{
        Failure::Kind::rejected,
        Error(Code::usage, "The receipt is not as it was given out: the lease on the group " + receipt_.group +
                               " of " + receipt_.queue + " does not hold the messages that it names.")};
  }
  const bool acks = settlement_.kind == Settlement::Kind::ack;
  const std::int64_t size = receipt_.last - receipt_.first + 1;
  if (acks && settlement_.count > size) {
    return Failure{Failure::Kind::rejected, Error(Code::usage, "The receipt is for " + std::to_string(size) +
                                                                   " messages: more cannot be acknowledged.")};
  }
  const std::int64_t head = acks ? receipt_.first + settlement_.count : group->head;
  if (acks && head <= group->head) return Settled{group->size(), group->due};  // nothing is left to do
  Update update{key(), {Change::set(attribute::attempt, attempt().to_string())}, held_as_seen(receipt_, *group)};
  switch (settlement_.kind) {
    case Settlement::Kind::ack:
      update.changes.push_back(Change::set(coord::head, head));
      update.changes.push_back(Change::set(coord::receives, std::int64_t{0}));
      if (head > receipt_.last) give_back(*group, head, now.wall, update.changes);
      break;
    case Settlement::Kind::nack:
      if (settlement_.is_undelivered && group->receives > 0) {
        update.changes.push_back(Change::set(coord::receives, group->receives - 1));
      }
      give_back(*group, head, now.wall + std::chrono::ceil<milliseconds>(settlement_.delay), update.changes);
      break;
    case Settlement::Kind::extend: {
      const WallTime until = now.wall + std::chrono::ceil<milliseconds>(settlement_.visibility);
      if (until <= group->due) return Settled{group->size(), group->due};
      // Nor does a late duplicate take back what a later one has promised.
      update.condition = std::move(update.condition) &&
                         Condition::is(attribute::expires_at, Condition::Compare::less_equal, number(until));
      update.changes.push_back(Change::set(attribute::expires_at, number(until)));
      break;
    }
    case Settlement::Kind::park:
      update.changes.push_back(Change::remove(attribute::owner));
      update.changes.push_back(Change::set(attribute::desired_state, parked_state(receipt_.queue)));
      update.changes.push_back(Change::set(attribute::expires_at, number(now.wall)));
      update.changes.push_back(Change::set(coord::parked_because, settlement_.reason));
      break;
  }
  return std::vector{std::move(update)};
}

MoveAway::MoveAway(Receipt receipt, std::string to_queue, Instant deadline, Random& random)
    : RowProcedure(
          std::vector{group_key(receipt.queue, receipt.group),
                      message_key(receipt.queue, receipt.group, receipt.first), group_key(to_queue, receipt.group)},
          deadline, random),
      receipt_(std::move(receipt)),
      to_queue_(std::move(to_queue)) {
  HOLDFAST_ASSERT(to_queue_ != receipt_.queue, "looked at by who was given them");
}

MoveAway::Plan MoveAway::plan(Now now) {
  const Row* row = find(keys()[0]);
  if (was_applied() && row == nullptr) return Settled{};
  const std::optional<Group> group = row == nullptr ? std::nullopt : group_in(*row);
  if (row != nullptr && !group) return damaged_row(*row);
  if (group && row->text(attribute::attempt) == attempt().to_string()) return Settled{group->size(), group->due};
  if (was_applied()) return Settled{};
  if (!group || group->owner != receipt_.owner.value || group->epoch != receipt_.epoch)
    return no_longer(receipt_, in_doubt());
  if (group->head > receipt_.first) return Settled{group->size(), group->due};

  Update from{keys()[0],
              {Change::set(attribute::attempt, attempt().to_string()), Change::set(coord::head, group->head + 1),
               Change::set(coord::receives, std::int64_t{0})},
              held_as_seen(receipt_, *group)};
  if (group->head == receipt_.last) give_back(*group, group->head + 1, now.wall, from.changes);
  std::vector<Update> updates{std::move(from)};
  const Row* message_row = find(keys()[1]);
  if (message_row == nullptr) return updates;  // past its retention: there is nothing to move
  std::optional<Message> message = message_in(*message_row);
  if (!message) return damaged_row(*message_row);

  const Row* to_row = find(keys()[2]);
  Group to;
  to.queue = to_queue_;
  to.group = receipt_.group;
  if (to_row != nullptr) {
    const std::optional<Group> there = group_in(*to_row);
    if (!there) return damaged_row(*to_row);
    to = *there;
  }
  message->seq = to.tail + 1;
  message->deliver_at = now.wall;
  updates.push_back(longer_group(to_row, to, message->seq, now.wall));
  updates.push_back(new_message(to_queue_, receipt_.group, *message, SendOptions{}.retention, now));
  return updates;
}

Redrive::Redrive(std::string_view queue, std::string_view group, bool skip, Instant deadline, Random& random)
    : RowProcedure(group_key(queue, group), deadline, random), skip_(skip) {}

Redrive::Plan Redrive::plan(Now now) {
  const Row* row = find(key());
  const std::optional<Group> group = row == nullptr ? std::nullopt : group_in(*row);
  if (row != nullptr && !group) return damaged_row(*row);
  if (group && row->text(attribute::attempt) == attempt().to_string()) return Settled{group->size(), group->due};
  if (!group || group->state != Group::State::parked) {
    const std::string name = key().substr(coord::queue_prefix.size());
    const std::size_t at = name.find('#');
    // In doubt: it may have gone on, and even have been parked and released again since.
    return Failure{in_doubt() ? Failure::Kind::unknown : Failure::Kind::refused,
                   Error(Code::not_found,
                         "The queue " + name.substr(0, at) + " has no parked group " + name.substr(at + 1) + ".")};
  }
  const std::int64_t head = group->head + (skip_ && group->head <= group->tail ? 1 : 0);
  Update update{key(),
                {Change::set(attribute::attempt, attempt().to_string()), Change::set(coord::head, head),
                 Change::set(coord::receives, std::int64_t{0}), Change::remove(coord::parked_because)},
                // The epoch: it may have been parked again since.
                Condition::equals(attribute::desired_state, parked_state(group->queue)) &&
                    Condition::equals(attribute::epoch, group->epoch.value) &&
                    Condition::equals(coord::tail, group->tail)};
  give_back(*group, head, now.wall, update.changes);
  return std::vector{std::move(update)};
}

// ---- Receipts ----

std::string Receipt::to_string() const {
  // The names may hold anything.
  return std::to_string(epoch.value) + "." + std::to_string(first) + "." + std::to_string(last) + "/" +
         percent_encoded(queue) + "/" + percent_encoded(group) + "/" + percent_encoded(owner.value);
}

std::optional<Receipt> Receipt::from_string(std::string_view text) {
  std::int64_t numbers[3];
  for (std::int64_t& each : numbers) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), each);
    const char after = &each == &numbers[2] ? '/' : '.';
    if (error != std::errc() || end == text.data() + text.size() || *end != after) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  }
  std::string names[3];
  for (std::string& each : names) {
    const bool is_last = &each == &names[2];
    const std::size_t end = is_last ? text.size() : text.find('/');
    auto name = end == std::string_view::npos ? std::nullopt : percent_decoded(text.substr(0, end));
    if (!name || name->empty() || name->size() > 1024) return std::nullopt;
    each = *std::move(name);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  const auto [epoch, first, last] = numbers;
  if (epoch < 1 || first < 1 || last < first - 1) return std::nullopt;
  return Receipt{std::move(names[0]), std::move(names[1]), WorkerId(std::move(names[2])), {epoch}, first, last};
}

}  // namespace holdfast
