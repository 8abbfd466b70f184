#include "coord/available.hpp"

#include <optional>
#include <utility>

namespace holdfast::coord {

namespace {

std::chrono::milliseconds whole(Duration time) {
  return std::chrono::ceil<std::chrono::milliseconds>(time);
}

template <class T>
const Ended<T>& result_in(const Replay& replay);
template <>
const Ended<Decided>& result_in(const Replay& replay) {
  return *replay.decided();
}
template <>
const Ended<Added>& result_in(const Replay& replay) {
  return *replay.added();
}
template <>
const Ended<Sent>& result_in(const Replay& replay) {
  return *replay.sent();
}

Intent draft_of(Wish wish, std::string ticket, const AvailableOptions& options, Now now, Random& random) {
  Intent draft;
  draft.ticket = ticket.empty() ? random.attempt().to_string() : std::move(ticket);
  draft.wish = std::move(wish);
  draft.accepted_at = now.wall;
  draft.expires_at = draft.accepted_at + whole(options.max_age);
  return draft;
}

Ended<Provisional> append(Journal& journal, Intent draft, std::string why, const AvailableOptions& options, Now now) {
  auto appended = journal.append(std::move(draft), {options.max_provisional, options.max_age}, now.wall);
  if (!appended) return tl::unexpected(std::move(appended.error()));
  const Intent& intent = appended->intent;
  if (intent.state == Intent::State::rejected) {
    return tl::unexpected(
        Failure{Failure::Kind::refused,
                Error(Code::exhausted, "the ticket " + intent.ticket + " was rejected: " + intent.note)});
  }
  return Provisional{intent.ticket, intent.expires_at, intent.wish, appended->was_there, std::move(why)};
}

/// What the journal failed to take down of something that the store has done, or may have done.
Failure not_noted(const Failure& failure) {
  return {Failure::Kind::unknown,
          Error(failure.error.code, "It may have happened, and is not in the journal: " + failure.error.detail)};
}

}  // namespace

Ended<Provisional> accept(Journal& journal, Wish wish, std::string ticket, std::string why,
                          const AvailableOptions& options, Now now, Random& random) {
  const bool is_new = ticket.empty();
  Intent draft = draft_of(std::move(wish), std::move(ticket), options, now, random);
  // As in Available::submit(): an earlier try under this ticket may have reached the store. No sale ever does.
  if (!is_new && !std::holds_alternative<DrawWish>(draft.wish)) {
    const auto waits = journal.has_unsettled(subject_of(draft.wish));
    if (!waits) return tl::unexpected(waits.error());
    if (!std::holds_alternative<DecideWish>(draft.wish) || !*waits) begin(draft, draft.accepted_at);
  }
  return append(journal, std::move(draft), std::move(why), options, now);
}

Result<void> check_set_aside(Duration ttl, Duration max_age) {
  if (ttl > max_age) return {};
  return fail(Code::usage, "Goods are set aside for longer than the tickets' max_age, or nothing could be sold.");
}

Ended<Provisional> sell(Journal& journal, Basket basket, std::string ticket, const AvailableOptions& options, Now now,
                        Random& random) {
  return accept(journal, DrawWish{std::move(basket), {}}, std::move(ticket), "goods are sold out of a quota", options,
                now, random);
}

Available::Available(Journal& journal, Store& store, Loop& loop, AvailableOptions options)
    : journal_(journal),
      loop_(loop),
      options_(std::move(options)),
      runner_(store, loop),
      reconciler_(journal, store, loop) {}

// ---- Store first, then the journal ----

template <class T>
void Available::submit(Wish wish, std::string ticket, Handler<T> handler) {
  const bool is_new = ticket.empty();
  Intent draft = draft_of(std::move(wish), std::move(ticket), options_, loop_.now(), loop_.random());
  const auto later = [this, handler](Ended<Accepted<T>> result) {
    loop_.post([handler, result = std::move(result)]() mutable { handler(std::move(result)); });
  };
  if (const auto fault = fault_in(draft.wish)) {
    return later(tl::unexpected(Failure{Failure::Kind::rejected, Error(Code::usage, *fault)}));
  }
  if (const auto fault = fault_in_ticket(draft.ticket)) {
    return later(tl::unexpected(Failure{Failure::Kind::rejected, Error(Code::usage, *fault)}));
  }
  const auto there = journal_.find(draft.ticket);
  const auto waits = there ? journal_.has_unsettled(subject_of(draft.wish)) : tl::unexpected(there.error());
  if (!waits) return later(tl::unexpected(waits.error()));
  // Who brings his ticket along may have asked before, and died before he heard: the store may know it already. Of a
  // decision he is given the proposal that stands here, if there is one.
  const bool is_given_another = std::is_same_v<T, Decided> && *waits;
  if (!is_new && !is_given_another) begin(draft, draft.accepted_at);
  // What is settled is asked of the store again: it tells what came of it.
  const bool was_rejected = *there && (*there)->state == Intent::State::rejected;
  if (*waits || was_rejected) {
    auto appended =
        append(journal_, std::move(draft), "something about the same waits in the journal", options_, loop_.now());
    if (!appended) return later(tl::unexpected(std::move(appended.error())));
    return later(Accepted<T>(*std::move(appended)));
  }
  auto tried =
      std::make_unique<Replay>(std::move(draft), loop_.now(), loop_.instant() + options_.patience, loop_.random());
  const Replay* done = tried.get();
  runner_.run(std::move(tried), [this, done, handler = std::move(handler)] { answered<T>(*done, handler); });
}

template <class T>
void Available::answered(const Replay& replay, const Handler<T>& handler) {
  Intent draft = replay.intent();
  const Ended<T>& result = result_in<T>(replay);
  if (result) {
    T value = *result;
    // Ours whichever of its tries it was, also one before a crash.
    if constexpr (std::is_same_v<T, Decided>) {
      value.was_ours = is_proposed_under(value.proposer, draft.ticket);
      if (value.was_ours && value.value != std::get<DecideWish>(draft.wish).proposal) {
        return handler(tl::unexpected(
            Failure{Failure::Kind::mismatch,
                    Error(Code::usage, "the ticket " + draft.ticket + " was used to propose another value")}));
      }
    }
    return handler(Accepted<T>(Committed<T>{std::move(value)}));
  }
  const Failure::Kind kind = result.error().kind;
  if (kind != Failure::Kind::unavailable && kind != Failure::Kind::unknown) {
    return handler(tl::unexpected(result.error()));
  }
  // It may have happened, or may still: the journal has to know.
  if (kind == Failure::Kind::unknown && draft.state == Intent::State::accepted) begin(draft, draft.accepted_at);
  auto appended = append(journal_, std::move(draft), result.error().error.detail, options_, loop_.now());
  if (!appended) {
    return handler(
        tl::unexpected(kind == Failure::Kind::unknown ? not_noted(appended.error()) : std::move(appended.error())));
  }
  handler(Accepted<T>(*std::move(appended)));
}

void Available::decide(const std::string& key, Value proposal, std::string ticket, Handler<Decided> handler) {
  submit<Decided>(DecideWish{key, std::move(proposal), options_.proposer}, std::move(ticket), std::move(handler));
}

void Available::add(AddWish wish, std::string ticket, Handler<Added> handler) {
  submit<Added>(std::move(wish), std::move(ticket), std::move(handler));
}

void Available::send(SendWish wish, std::string ticket, Handler<Sent> handler) {
  submit<Sent>(std::move(wish), std::move(ticket), std::move(handler));
}

// ---- Stock ----

void Available::set_aside(const std::string& id, Basket basket, Duration ttl,
                          std::function<void(Ended<Quota>)> handler) {
  const auto later = [this, handler](Ended<Quota> result) {
    loop_.post([handler, result = std::move(result)]() mutable { handler(std::move(result)); });
  };
  Quota wanted{id, basket, basket, loop_.wall() + whole(ttl), Quota::State::asked};
  if (const auto fault = fault_in(DrawWish{basket, id})) {
    return later(tl::unexpected(Failure{Failure::Kind::rejected, Error(Code::usage, *fault)}));
  }
  if (const auto fault = fault_in_ticket(id)) {  // a reservation's id, as tickets are
    return later(tl::unexpected(Failure{Failure::Kind::rejected, Error(Code::usage, *fault)}));
  }
  const auto journal = journal_.identity();
  if (!journal) return later(tl::unexpected(journal.error()));
  // Before the store is asked: what is set aside there is known here.
  const auto quota = journal_.ask_quota(wanted);
  if (!quota) return later(tl::unexpected(quota.error()));
  if (quota->basket != basket) {
    return later(tl::unexpected(
        Failure{Failure::Kind::mismatch, Error(Code::usage, "the quota " + id + " is there, of other goods")}));
  }
  if (quota->state == Quota::State::open) return later(*quota);
  if (quota->state != Quota::State::asked) {
    return later(tl::unexpected(
        Failure{Failure::Kind::refused,
                Error(Code::exhausted, "what was set aside under " + id + " was given back: use another id")}));
  }
  auto procedure = std::make_unique<Reserve>(ReserveOptions{id, basket, ttl, intent_remembered},
                                             loop_.instant() + options_.patience, loop_.random(), *journal);
  const Reserve* reserving = procedure.get();
  runner_.run(std::move(procedure), [this, quota = *quota, reserving, handler = std::move(handler)]() mutable {
    const Ended<Reservation>& result = *reserving->result();
    const bool is_held = result && result->state == Reservation::State::held;
    const bool is_final =
        result || result.error().kind == Failure::Kind::refused || result.error().kind == Failure::Kind::mismatch;
    if (!is_final) return handler(tl::unexpected(result.error()));  // asked again, it goes on
    const auto noted = is_held ? journal_.open_quota(quota.id, result->expires_at) : journal_.drop_quota(quota.id);
    if (!noted) return handler(tl::unexpected(is_held ? not_noted(noted.error()) : noted.error()));
    if (!result) return handler(tl::unexpected(result.error()));
    if (!is_held) {
      return handler(tl::unexpected(Failure{
          Failure::Kind::refused, Error(Code::exhausted, "the reservation " + quota.id + " has ended already")}));
    }
    quota.state = Quota::State::open;
    quota.expires_at = result->expires_at;
    handler(quota);
  });
}

}  // namespace holdfast::coord
