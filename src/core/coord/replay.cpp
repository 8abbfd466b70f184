#include "core/coord/replay.hpp"

#include <algorithm>

#include "core/coord/memory.hpp"
#include "core/coord/names.hpp"
#include "holdfast/assert.hpp"

namespace holdfast {

namespace {

SendOptions send_options(const SendWish& wish, const Intent& intent, WallTime now) {
  SendOptions options;
  options.queue = wish.queue;
  options.group = wish.group;
  options.body = wish.body;
  options.dedup_id = intent.ticket;
  options.delay = std::max(intent.accepted_at + wish.delay - now, std::chrono::milliseconds::zero());
  options.dedup_window = intent_remembered;
  options.retention = wish.retention;
  return options;
}

std::unique_ptr<Procedure> operation_of(const Intent& intent, Now now, Instant deadline, Random& random) {
  if (const auto* decide = std::get_if<DecideWish>(&intent.wish)) {
    return std::make_unique<Decide>(decide->key, decide->proposal, decide->proposer, deadline, random, intent.ticket);
  }
  if (const auto* add = std::get_if<AddWish>(&intent.wish)) {
    return std::make_unique<Add>(
        AddOptions{add->key, add->delta, intent.ticket, add->floor, AddOptions::To::counter, intent_remembered},
        deadline, random);
  }
  if (const auto* draw = std::get_if<DrawWish>(&intent.wish)) {
    return std::make_unique<Draw>(DrawOptions{intent.ticket, draw->quota, draw->basket, intent_remembered}, deadline,
                                  random);
  }
  return std::make_unique<Send>(send_options(std::get<SendWish>(intent.wish), intent, now.wall), deadline, random);
}

template <class P>
const auto* result_of(const Procedure& procedure) {
  const auto* of_its_kind = dynamic_cast<const P*>(&procedure);
  return of_its_kind == nullptr ? nullptr : &of_its_kind->result().value();
}

Verdict verdict_of(const Failure& failure) {
  Verdict verdict;
  verdict.error = failure.error;
  switch (failure.kind) {
    case Failure::Kind::mismatch:  // the id is taken, by something else or because it was precluded
      verdict.kind = Verdict::Kind::rejected;
      verdict.note = failure.error.detail;
      break;
    case Failure::Kind::refused:
      verdict.kind = Verdict::Kind::rejected;
      verdict.note = failure.error.detail;
      verdict.may_arrive = true;
      break;
    case Failure::Kind::rejected:
    case Failure::Kind::unavailable:
    case Failure::Kind::unknown:
    case Failure::Kind::busy:
      verdict.kind = is_of_the_store(failure) ? Verdict::Kind::wait : Verdict::Kind::stuck;
      break;
  }
  return verdict;
}

Verdict confirmed(std::string note) {
  Verdict verdict;
  verdict.kind = Verdict::Kind::confirmed;
  verdict.note = std::move(note);
  return verdict;
}

Verdict stuck(Error why) {
  Verdict verdict;
  verdict.kind = Verdict::Kind::stuck;
  verdict.error = std::move(why);
  return verdict;
}

Verdict rejected(std::string why) {
  Verdict verdict;
  verdict.kind = Verdict::Kind::rejected;
  verdict.note = std::move(why);
  return verdict;
}

}  // namespace

bool merge_equal(const DecideWish& ours, const Decided& decided) {
  return ours.proposal == decided.value;
}

bool is_of_the_store(const Failure& failure) {
  switch (failure.error.code) {
    case Code::unavailable:  // away, too slow, over its rate
    case Code::not_found:    // there is no table, no index, no file
    case Code::denied:       // no permission, no credentials, a file that cannot be written
      return true;
    case Code::usage:      // the row would be too large, a number out of range, an attribute of another type
    case Code::corrupt:    // the row is damaged
    case Code::exhausted:  // a local index has no room for more of this key
    case Code::internal:   // nobody knows: the others are tried
      return false;
  }
  HOLDFAST_ASSERT(false, "every code is one of them");
  return false;
}

Replay::Replay(Intent intent, Now now, Instant deadline, Random& random, Way way)
    : intent_(std::move(intent)), way_(way), operation_(operation_of(intent_, now, deadline, random)) {}

std::optional<Ask> Replay::next(Now now) {
  auto ask = operation_->next(now);
  const bool is_write = ask && (std::holds_alternative<WriteRow>(*ask) || std::holds_alternative<WriteRows>(*ask));
  if (way_ == Way::carry_out || !is_write) return ask;
  is_missing_ = true;
  return std::nullopt;
}

const Ended<Decided>* Replay::decided() const {
  return result_of<Decide>(*operation_);
}
const Ended<Added>* Replay::added() const {
  return result_of<Add>(*operation_);
}
const Ended<Sent>* Replay::sent() const {
  return result_of<Send>(*operation_);
}

Verdict Replay::verdict(const Judge& judge) const {
  Verdict verdict;
  if (!is_missing_) verdict = carried_out(judge);
  if (way_ == Way::look && (is_missing_ || verdict.may_arrive)) {
    return stuck(Error(Code::internal, "what stood in the store under this ticket has gone since: again"));
  }
  return verdict;
}

Verdict Replay::carried_out(const Judge& judge) const {
  if (const auto* result = decided()) {
    if (!*result) return verdict_of(result->error());
    const auto& ours = std::get<DecideWish>(intent_.wish);
    const bool is_under_ours = is_proposed_under((*result)->proposer, intent_.ticket);
    if (is_under_ours && (*result)->value == ours.proposal) return confirmed("ours is what was decided");
    const std::string who = is_under_ours ? "under this ticket another value was proposed, and decided"
                                          : "what " + (*result)->proposer + " proposed was decided";
    const Result<bool> is_good = judge(ours, **result);
    if (!is_good) return stuck(is_good.error());
    return *is_good ? confirmed(who) : rejected(who);
  }
  if (const auto* result = added()) {
    return *result ? confirmed("the counter is " + std::to_string((*result)->value)) : verdict_of(result->error());
  }
  if (const auto* result = sent()) {
    if (!*result) return verdict_of(result->error());
    return confirmed("message " + std::to_string((*result)->seq) + " of its group");
  }
  const auto* result = result_of<Draw>(*operation_);
  HOLDFAST_ASSERT(result != nullptr, "one of the four");
  if (*result) return confirmed("drawn");
  Verdict verdict = verdict_of(result->error());
  if (verdict.kind == Verdict::Kind::rejected && result->error().error.code == Code::not_found) {
    // It was set aside in the store, which remembers that for longer than the journal waits.
    verdict.kind = Verdict::Kind::stuck;
    verdict.error.detail += " It was set aside there: is this the same table?";
  }
  return verdict;
}

std::optional<std::string> memory_key(const Wish& wish, std::string_view ticket) {
  if (const auto* add = std::get_if<AddWish>(&wish))
    return operation_key(Add::row_key(AddOptions::To::counter, add->key), ticket);
  if (std::holds_alternative<DrawWish>(wish)) return Reserve::row_key(ticket);
  if (const auto* send = std::get_if<SendWish>(&wish)) return dedup_key(send->queue, ticket);
  return std::nullopt;
}

Preclude::Plan Preclude::plan(Now now) {
  const Row* row = find(key());
  // The id of a message that is no longer remembered is free for another.
  const bool is_message = key().starts_with(coord::dedup_prefix);
  if (row != nullptr && (!is_message || is_remembered(*row, intent_remembered, now.wall))) {
    return Precluded{!was_precluded(*row)};
  }
  std::vector<Change> note = remembered(now.wall, intent_remembered);
  note.push_back(Change::set(coord::outcome, coord::precluded));
  // Of a message: as the number of none (what was sent under this id, and when).
  note.push_back(Change::set(coord::seq, std::int64_t{0}));
  note.push_back(Change::set(coord::sent_at, std::int64_t{now.wall.time_since_epoch().count()}));
  Condition unused =
      row == nullptr ? Condition::row_missing() : Condition::equals(coord::sent_at, row->number(coord::sent_at));
  return std::vector{Update{key(), std::move(note), std::move(unused)}};
}

}  // namespace holdfast
