#include "core/coord/journal.hpp"

#include <algorithm>

#include "core/coord/counter.hpp"
#include "core/coord/decision.hpp"
#include "core/coord/limits.hpp"
#include "core/coord/names.hpp"
#include "core/coord/queue.hpp"
#include "holdfast/assert.hpp"

namespace holdfast {

static_assert(coord::waiting.most <= intent_remembered, "or what is too old could not be precluded any more");

namespace {

using State = Intent::State;
using Compensation = Intent::Compensation;

// As arguments are named in a journal.
constexpr std::string_view key_name = "key";
constexpr std::string_view proposal_name = "proposal";
constexpr std::string_view proposer_name = "proposer";
constexpr std::string_view delta_name = "delta";
constexpr std::string_view floor_name = "floor";
constexpr std::string_view basket_name = "basket";
constexpr std::string_view quota_name = "quota";
constexpr std::string_view queue_name = "queue";
constexpr std::string_view group_name = "group";
constexpr std::string_view body_name = "body";
constexpr std::string_view delay_name = "delay_ms";
constexpr std::string_view retention_name = "retention_ms";

const Value* find(const Attributes& arguments, std::string_view name) {
  const auto found = arguments.find(name);
  return found == arguments.end() ? nullptr : &found->second;
}

std::optional<std::string> text(const Attributes& arguments, std::string_view name) {
  const Value* value = find(arguments, name);
  if (value == nullptr || value->as_string() == nullptr) return std::nullopt;
  return *value->as_string();
}

std::optional<std::int64_t> number(const Attributes& arguments, std::string_view name) {
  const Value* value = find(arguments, name);
  if (value == nullptr || value->as_int() == nullptr) return std::nullopt;
  return *value->as_int();
}

struct Arguments {
  Attributes operator()(const DecideWish& wish) const {
    Attributes all;
    all.insert_or_assign(std::string(key_name), wish.key);
    all.insert_or_assign(std::string(proposal_name), wish.proposal);
    all.insert_or_assign(std::string(proposer_name), wish.proposer);
    return all;
  }
  Attributes operator()(const AddWish& wish) const {
    Attributes all;
    all.insert_or_assign(std::string(key_name), wish.key);
    all.insert_or_assign(std::string(delta_name), wish.delta);
    if (wish.floor) all.insert_or_assign(std::string(floor_name), *wish.floor);
    return all;
  }
  Attributes operator()(const DrawWish& wish) const {
    Attributes all;
    all.insert_or_assign(std::string(basket_name), value_of(wish.basket));
    all.insert_or_assign(std::string(quota_name), wish.quota);
    return all;
  }
  Attributes operator()(const SendWish& wish) const {
    Attributes all;
    all.insert_or_assign(std::string(queue_name), wish.queue);
    all.insert_or_assign(std::string(group_name), wish.group);
    all.insert_or_assign(std::string(body_name), wish.body);
    all.insert_or_assign(std::string(delay_name), std::int64_t{wish.delay.count()});
    all.insert_or_assign(std::string(retention_name), std::int64_t{wish.retention.count()});
    return all;
  }
};

/// The end of the year 9999. Beyond that sums overflow.
constexpr WallTime latest{std::chrono::milliseconds(253'402'300'799'000)};

template <class Enum, std::size_t size>
std::optional<Enum> named(const Enum (&all)[size], std::string_view text) {
  const auto* found = std::ranges::find_if(all, [&](Enum each) { return to_string(each) == text; });
  return found == std::end(all) ? std::nullopt : std::optional(*found);
}

}  // namespace

// ---- Wishes ----

std::string_view kind_of(const Wish& wish) {
  static constexpr std::string_view names[] = {"decide", "add", "draw", "send"};
  static_assert(std::size(names) == std::variant_size_v<Wish>);
  return names[wish.index()];
}

std::string subject_of(const Wish& wish) {
  if (const auto* decide = std::get_if<DecideWish>(&wish)) return Decide::row_key(decide->key);
  if (const auto* add = std::get_if<AddWish>(&wish)) return Add::row_key(AddOptions::To::counter, add->key);
  if (const auto* draw = std::get_if<DrawWish>(&wish)) return Reserve::row_key(draw->quota);
  const auto& send = std::get<SendWish>(wish);
  return group_key(send.queue, send.group);
}

Attributes arguments_of(const Wish& wish) {
  return std::visit(Arguments(), wish);
}

std::optional<Wish> wish_from(std::string_view kind, const Attributes& arguments) {
  if (kind == "decide") {
    const auto key = text(arguments, key_name);
    const auto proposer = text(arguments, proposer_name);
    const Value* proposal = find(arguments, proposal_name);
    if (!key || !proposer || proposal == nullptr) return std::nullopt;
    return DecideWish{*key, *proposal, *proposer};
  }
  if (kind == "add") {
    const auto key = text(arguments, key_name);
    const auto delta = number(arguments, delta_name);
    if (!key || !delta) return std::nullopt;
    return AddWish{*key, *delta, number(arguments, floor_name)};
  }
  if (kind == "draw") {
    const Value* items = find(arguments, basket_name);
    const auto basket = items == nullptr ? std::nullopt : basket_from(*items);
    const auto quota = text(arguments, quota_name);
    if (!basket || !quota) return std::nullopt;
    return DrawWish{*basket, *quota};
  }
  if (kind == "send") {
    const auto queue = text(arguments, queue_name);
    const auto group = text(arguments, group_name);
    const auto body = text(arguments, body_name);
    const auto delay = number(arguments, delay_name);
    if (!queue || !group || !body || !delay) return std::nullopt;
    SendWish wish{*queue, *group, *body, std::chrono::milliseconds(*delay)};
    // What an older program has written says nothing of it.
    if (const auto retention = number(arguments, retention_name))
      wish.retention = std::chrono::milliseconds(*retention);
    return wish;
  }
  return std::nullopt;
}

namespace {

Result<void> check(const DecideWish& wish) {
  return coord::check_name("A decision's key", wish.key);
}
Result<void> check(const AddWish& wish) {
  return coord::check_name("A counter's key", wish.key);
}
Result<void> check(const DrawWish& wish) {
  return check_basket(wish.basket);
}
Result<void> check(const SendWish& wish) {
  if (wish.body.size() > SendOptions::body_most) {
    return fail(Code::usage, "A message has at most " + std::to_string(SendOptions::body_most) + " bytes.");
  }
  if (!is_within(wish.delay, coord::delayed)) {
    return fail(Code::usage, "A delay is not negative, and 15 days at most.");
  }
  if (!is_within(wish.retention, coord::remembered)) {
    return fail(Code::usage, "A message is kept for a second at least, and for 366 days at most.");
  }
  return check_names(wish.queue, wish.group);
}

}  // namespace

std::optional<std::string> fault_in(const Wish& wish) {
  const auto good = std::visit([](const auto& each) { return check(each); }, wish);
  if (good) return std::nullopt;
  return good.error().detail;
}

std::optional<std::string> fault_in_ticket(std::string_view ticket) {
  const auto good = coord::check_name("A ticket", ticket);
  if (good) return std::nullopt;
  return good.error().detail;
}

bool same_wish(const Wish& left, const Wish& right) {
  const auto* one = std::get_if<DrawWish>(&left);
  const auto* other = std::get_if<DrawWish>(&right);
  if (one != nullptr && other != nullptr) return one->basket == other->basket;
  const auto* ours = std::get_if<DecideWish>(&left);
  const auto* theirs = std::get_if<DecideWish>(&right);
  if (ours != nullptr && theirs != nullptr) return ours->key == theirs->key && ours->proposal == theirs->proposal;
  return left == right;
}

// ---- Intents ----

std::string_view to_string(State state) {
  static constexpr std::string_view names[] = {"accepted", "begun", "confirmed", "rejected"};
  return names[static_cast<std::size_t>(state)];
}

std::string_view to_string(Compensation compensation) {
  static constexpr std::string_view names[] = {"none", "due", "begun", "done"};
  return names[static_cast<std::size_t>(compensation)];
}

std::optional<State> intent_state_from(std::string_view text) {
  static constexpr State all[] = {State::accepted, State::begun, State::confirmed, State::rejected};
  return named(all, text);
}

std::optional<Compensation> compensation_from(std::string_view text) {
  static constexpr Compensation all[] = {Compensation::none, Compensation::due, Compensation::begun,
                                         Compensation::done};
  return named(all, text);
}

bool is_sound(const Intent& intent) {
  const auto times = {intent.accepted_at, intent.expires_at, intent.begun_at, intent.settled_at};
  if (std::ranges::any_of(times, [](WallTime time) { return time < WallTime{} || time > latest; })) return false;
  const bool is_compensated = intent.compensation != Compensation::none;
  return !intent.ticket.empty() && is_compensated == (intent.state == State::rejected) && !fault_in(intent.wish);
}

IntentStep next_step(const Intent& intent, WallTime now) {
  switch (intent.state) {
    case State::accepted:
      return now >= intent.expires_at ? IntentStep::expire : IntentStep::begin;
    case State::begun:
      if (now - intent.begun_at >= intent_remembered) return IntentStep::give_up;
      return now >= intent.expires_at ? IntentStep::preclude : IntentStep::carry_out;
    case State::confirmed:
      return IntentStep::nothing;
    case State::rejected:
      return intent.compensation == Compensation::done ? IntentStep::nothing : IntentStep::compensate;
  }
  HOLDFAST_ASSERT(false, "every state has a next step");
  return {};
}

void begin(Intent& intent, WallTime now) {
  HOLDFAST_ASSERT(intent.state == State::accepted, "begun once");
  intent.state = State::begun;
  intent.begun_at = now;
}

void confirm(Intent& intent, std::string note, WallTime now) {
  HOLDFAST_ASSERT(intent.state == State::begun, "only what was begun can have happened");
  intent.state = State::confirmed;
  intent.settled_at = now;
  intent.note = std::move(note);
}

void reject(Intent& intent, std::string why, WallTime now) {
  HOLDFAST_ASSERT(!intent.is_settled(), "a ticket ends once");
  intent.state = State::rejected;
  intent.compensation = Compensation::due;
  intent.settled_at = now;
  intent.note = std::move(why);
}

void begin_compensation(Intent& intent) {
  HOLDFAST_ASSERT(intent.compensation == Compensation::due || intent.compensation == Compensation::begun,
                  "what is due, or was broken off");
  intent.compensation = Compensation::begun;
}

void end_compensation(Intent& intent) {
  HOLDFAST_ASSERT(intent.compensation == Compensation::begun, "what was begun");
  intent.compensation = Compensation::done;
}

// ---- Quotas ----

std::string_view to_string(Quota::State state) {
  static constexpr std::string_view names[] = {"asked", "open", "closing", "returned"};
  return names[static_cast<std::size_t>(state)];
}

std::optional<Quota::State> quota_state_from(std::string_view text) {
  static constexpr Quota::State all[] = {Quota::State::asked, Quota::State::open, Quota::State::closing,
                                         Quota::State::returned};
  return named(all, text);
}

bool may_draw(const Quota& quota, const Basket& basket, WallTime now, Duration max_age) {
  if (quota.state != Quota::State::open ||
      now + std::chrono::ceil<std::chrono::milliseconds>(max_age) > quota.expires_at)
    return false;
  return std::ranges::all_of(basket, [&](const auto& item) {
    const auto found = quota.left.find(item.first);
    return found != quota.left.end() && found->second >= item.second;
  });
}

void draw(Quota& quota, const Basket& basket) {
  for (const auto& [sku, count] : basket) {
    std::int64_t& left = quota.left[sku];
    HOLDFAST_ASSERT(left >= count, "it was looked whether there is enough");
    left -= count;
    if (left == 0) quota.left.erase(sku);
  }
}

void undraw(Quota& quota, const Basket& basket) {
  for (const auto& [sku, count] : basket) quota.left[sku] += count;
}

}  // namespace holdfast
