// Finding a group that is due, leasing it, reading the first of its messages.
#include <algorithm>
#include <utility>

#include "core/coord/damage.hpp"
#include "core/coord/names.hpp"
#include "core/coord/queue.hpp"
#include "holdfast/assert.hpp"

namespace holdfast {

namespace {

using std::chrono::milliseconds;

constexpr std::size_t look_limit = 20;
/// Between two looks where there is nothing: as AwaitTask's.
constexpr Duration least_look = milliseconds(25);
constexpr Duration most_look = std::chrono::seconds(1);
/// Who waits for ever is told all the same that rows are damaged.
constexpr Duration untold_most = std::chrono::seconds(10);

}  // namespace

Instant believed_until(Instant sent, Duration visibility) {
  return sent + visibility - visibility / 10;
}

Error parked_for_damage(std::string_view queue, std::string_view group, const Error& why) {
  return {why.code, "The group " + std::string(group) + " of " + std::string(queue) +
                        " was parked, since its first message cannot be given out: " + why.detail};
}

Receive::Receive(ReceiveOptions options, WorkerId owner, Instant deadline, Random& random, IsWanted is_wanted)
    : options_(std::move(options)),
      is_wanted_(std::move(is_wanted)),
      owner_(std::move(owner)),
      random_(random),
      attempt_(random.attempt()),
      tries_(deadline, random) {
  HOLDFAST_ASSERT(options_.max >= 1 && options_.max <= 100, "looked at by who was given it");
}

void Receive::end(Ended<std::optional<Batch>> result) {
  result_ = std::move(result);
}

std::optional<Ask> Receive::next(Now now) {
  if (result_) return std::nullopt;
  if (tries_.is_over(now)) {
    end(tl::unexpected(tries_.failure()));
    return std::nullopt;
  }
  if ((step_ == Step::look || step_ == Step::claim) && is_wanted_ && !is_wanted_()) {
    end(std::optional<Batch>());
    return std::nullopt;
  }
  if (auto pause = tries_.pause(now, rest_until_.value_or(Instant{}))) {
    pausing_ = true;
    pause->until_changed = rest_until_.has_value();
    return *pause;
  }
  rest_until_.reset();
  switch (step_) {
    case Step::look: {
      if (!options_.group.empty()) {
        due_ = {group_key(options_.queue, options_.group)};
        step_ = Step::read_group;
        return ReadRow{due_.back()};
      }
      QueryDue query;
      query.state = ready_state(options_.queue);
      query.before = now.wall + milliseconds(1);  // due now is due
      query.limit = look_limit;
      query.page = next_page_;
      return LookDue{std::move(query)};
    }
    case Step::read_group:
      return ReadRow{due_.back()};
    case Step::claim:
      return WriteRow{claim(now)};
    case Step::read_messages: {
      ReadRows read;
      for (std::int64_t seq = chosen_.group.head; seq <= chosen_.read_to; ++seq) {
        read.keys.push_back(message_key(options_.queue, chosen_.group.group, seq));
      }
      return read;
    }
    case Step::give_back:
      return WriteRow{give_back(now)};
    case Step::shorten:
      return WriteRow{shorten()};
  }
  return std::nullopt;
}

/// The first of the group: it is poison, or would be after this time, or was given out in vain with others behind it.
bool Receive::goes_alone() const {
  return options_.receives_most && (chosen_.group.receives > 0 || *options_.receives_most <= 1);
}

Update Receive::claim(Now now) {
  chosen_.latest_try = now.instant;
  if (!chosen_.first_try) chosen_.first_try = now.instant;
  LeaseWrite write;
  write.wanted = "";
  write.key = chosen_.row.key;
  write.attempt = attempt_;
  write.epoch = {chosen_.group.epoch.value + 1};
  write.expires_at = now.wall + std::chrono::ceil<milliseconds>(options_.visibility);
  write.seen_owner = chosen_.group.owner;
  write.seen_expires_at = chosen_.group.due;
  write.free_before = now.wall - std::chrono::ceil<milliseconds>(options_.skew);
  Update update = render(write, owner_);
  std::erase_if(update.changes, [](const Change& each) { return each.attribute == attribute::desired_state; });
  // What is poison is leased to be put away, not given out once more.
  chosen_.is_poison = options_.receives_most && chosen_.group.receives >= *options_.receives_most;
  update.changes.push_back(Change::set(coord::receives, chosen_.group.receives + (chosen_.is_poison ? 0 : 1)));
  const auto most = goes_alone() ? 1 : static_cast<std::int64_t>(options_.max);
  chosen_.last = std::min(chosen_.group.tail, chosen_.group.head + most - 1);
  update.changes.push_back(Change::set(coord::leased_last, chosen_.last));
  update.condition = std::move(update.condition) &&
                     Condition::equals(attribute::desired_state, ready_state(options_.queue)) &&
                     Condition::equals(coord::head, chosen_.group.head);
  return update;
}

/// What cannot be given out is not kept leased, and was not received either. Yet: it is due again. At all: only a
/// person can put it right.
Update Receive::give_back(Now now) const {
  std::vector<Change> changes{Change::remove(attribute::owner),
                              Change::set(coord::receives, chosen_.group.receives - 1)};
  const WallTime due = chosen_.damage ? now.wall : due_again_;
  changes.push_back(Change::set(attribute::expires_at, std::int64_t{due.time_since_epoch().count()}));
  if (chosen_.damage) {
    changes.push_back(Change::set(attribute::desired_state, parked_state(options_.queue)));
    changes.push_back(Change::set(coord::parked_because, chosen_.damage->detail));
  }
  return {chosen_.row.key, std::move(changes), fence(owner_, chosen_.group.epoch)};
}

/// What is not given out after all is nobody's to acknowledge.
Update Receive::shorten() const {
  return {
      chosen_.row.key, {Change::set(coord::leased_last, batch_->receipt.last)}, fence(owner_, chosen_.group.epoch)};
}

void Receive::on(Answer answer, Now now) {
  if (std::exchange(pausing_, false)) {
    rest_until_.reset();  // also where a change ended it early
    return;
  }
  switch (answer.outcome) {
    case Outcome::rejected: {
      if (step_ == Step::read_group && answer.error.code == Code::corrupt && !tries_.in_doubt()) {
        seen_damage_ = std::move(answer.error);  // by a store that cannot read it: the others can be had
        return look_on(now);
      }
      const auto kind = tries_.in_doubt() ? Failure::Kind::unknown : Failure::Kind::rejected;
      return end(tl::unexpected(Failure{kind, std::move(answer.error)}));
    }
    case Outcome::throttled:
    case Outcome::unknown:
      tries_.failed(std::move(answer.error), now);
      if (step_ != Step::claim) return;
      // Whether it was applied is in the row (S5).
      if (answer.outcome == Outcome::unknown) tries_.leave_in_doubt();
      step_ = Step::read_group;
      return;
    case Outcome::applied:
    case Outcome::conflict:
      break;
  }
  tries_.succeeded();
  switch (step_) {
    case Step::look:
      return looked(std::move(answer), now);
    case Step::claim:
      if (answer.outcome == Outcome::applied) return claimed(*answer.row(), chosen_.latest_try);
      step_ = Step::read_group;
      return saw_group(answer.row(), now);
    case Step::read_group:
      return saw_group(answer.row(), now);
    case Step::read_messages:
      return got_messages(answer, now);
    case Step::give_back:
      if (chosen_.damage) damage_ = parked_for_damage(options_.queue, chosen_.group.group, *chosen_.damage);
      return look_on(now);
    case Step::shorten:
      if (answer.outcome == Outcome::conflict || now.instant >= until_) return look_on(now);  // no longer ours
      return end(std::move(batch_));
  }
}

void Receive::looked(Answer answer, Now now) {
  if (answer.lacks_damaged()) seen_damage_ = std::move(answer.error);
  next_page_ = std::move(answer.next);
  due_.clear();
  for (Row& row : answer.rows) due_.push_back(std::move(row.key));
  // Consumers that look at the same moment begin with different groups.
  for (std::size_t i = due_.size(); i > 1; --i) std::swap(due_[i - 1], due_[random_.below(i)]);
  if (due_.empty()) return look_again(now);
  step_ = Step::read_group;
}

/// Not this one: the next that was found.
void Receive::look_on(Now now) {
  due_.pop_back();
  step_ = Step::read_group;
  if (due_.empty()) look_again(now);
}

void Receive::look_again(Now now) {
  step_ = Step::look;
  if (!next_page_.empty()) return;
  const std::optional<Error> seen = std::exchange(seen_damage_, {});  // it may be mended by the next look
  const std::optional<Error>& damage = damage_ ? damage_ : seen;
  tell_by_ = damage ? std::optional(tell_by_.value_or(now.instant + untold_most)) : std::nullopt;
  const Instant wait_until = std::min(options_.wait_until, tell_by_.value_or(options_.wait_until));
  if (now.instant >= wait_until) {
    if (damage) return end(tl::unexpected(Failure{Failure::Kind::rejected, *damage}));
    return end(std::optional<Batch>());
  }
  rest_until_ = std::min(now.instant + random_.between(least_look, most_look), wait_until);
}

void Receive::saw_group(const Row* row, Now now) {
  std::optional<Group> group = row == nullptr ? std::nullopt : group_in(*row);
  if (row != nullptr && !group) seen_damage_ = damaged_row(*row).error;
  if (!group) return look_on(now);
  const bool is_chosen = chosen_.row.key == row->key && chosen_.first_try;
  if (row->text(attribute::attempt) == attempt_.to_string() && group->owner == owner_.value && is_chosen &&
      group->epoch.value == chosen_.group.epoch.value + 1) {
    return claimed(*row, *chosen_.first_try);  // our own lost success: nothing tells which of our tries it was
  }
  const bool is_free = group->state == Group::State::ready && group->due <= now.wall &&
                       (group->owner.empty() || claimable_from(group->owner, group->due, options_.skew) <= now.wall);
  if (!is_free) return look_on(now);  // the index was late, or somebody was faster
  const bool is_same = is_chosen && group->epoch == chosen_.group.epoch;
  chosen_ = {*row, *std::move(group), is_same ? chosen_.first_try : std::nullopt};
  step_ = Step::claim;
}

void Receive::claimed(const Row& row, Instant sent_at) {
  const bool is_poison = chosen_.is_poison;
  chosen_ = {row, group_in(row).value()};
  chosen_.last = row.number(coord::leased_last);  // of that one of our tries which was applied
  chosen_.read_to = chosen_.last;
  tries_.leave_in_doubt();  // whatever comes now: it is leased, and counts as received (S5)
  until_ = believed_until(sent_at, options_.visibility);
  const Group& group = chosen_.group;
  if (is_poison) {
    Batch batch;
    batch.receipt = {group.queue, group.group, owner_, group.epoch, group.head, group.head};
    batch.receives = group.receives;
    batch.until = until_;
    batch.is_poison = true;
    return end(std::optional(std::move(batch)));
  }
  step_ = Step::read_messages;
}

void Receive::got_messages(const Answer& answer, Now now) {
  const Group& group = chosen_.group;
  if (now.instant >= until_) return look_on(now);  // it took too long, and is no longer ours
  Batch batch;
  std::int64_t last = chosen_.read_to;
  for (std::int64_t seq = group.head; seq <= last; ++seq) {
    const auto row = std::ranges::find(answer.rows, message_key(options_.queue, group.group, seq), &Row::key);
    const bool is_there = row != answer.rows.end();
    if (!is_there && !answer.lacks_damaged()) continue;  // past its retention
    std::optional<Message> message = is_there ? message_in(*row) : std::nullopt;
    if (message && message->deliver_at <= now.wall) {
      batch.messages.push_back(*std::move(message));
      continue;
    }
    // What cannot be given out holds up what comes after it.
    last = seq - 1;
    if (seq > group.head) break;
    if (is_there && !message) return first_is_damaged(damaged_row(*row).error);
    if (!is_there && chosen_.read_to == group.head) return first_is_damaged(answer.error);
    if (!is_there) {  // perhaps it is another one that is damaged: the first, alone
      chosen_.read_to = group.head;
      return;
    }
    due_again_ = message->deliver_at;
    step_ = Step::give_back;
    return;
  }
  batch.receipt = {group.queue, group.group, owner_, group.epoch, group.head, last};
  batch.receives = group.receives;
  batch.until = until_;
  if (last == chosen_.last) return end(std::optional(std::move(batch)));
  batch_ = std::move(batch);
  step_ = Step::shorten;
}

void Receive::first_is_damaged(Error why) {
  chosen_.damage = std::move(why);
  step_ = Step::give_back;
}

}  // namespace holdfast
