#include "serve/right.hpp"

#include <algorithm>
#include <utility>

#include "core/coord/limits.hpp"
#include "runtime/units.hpp"

namespace holdfast::serve {

namespace {

using Type = Field::Type;

}  // namespace

std::vector<Field> right_fields() {
  return {
      {.name = "ttl",
       .type = Type::duration,
       .about = "how long the lease lasts without being renewed: who dies is followed by another after that",
       .otherwise = "10s",
       .least = 100,
       .most = 3'600'000},
      {.name = "skew",
       .type = Type::duration,
       .about = "what the clocks of two machines may differ by; without it a twentieth of ttl",
       .least = 1,
       .most = coord::in_ms(coord::skewed.most)},
      {.name = "wait",
       .type = Type::duration,
       .about = "how long somebody else who has it is waited for; hanging up ends it",
       .otherwise = "0",
       .most = 300'000},
      {.name = "hold_for",
       .type = Type::duration,
       .about =
           "the caller's own deadline, from the answer on: until then the lease is renewed for it, and then let go",
       .otherwise = "1m",
       .least = 100,
       .most = 86'400'000},
      {.name = "renew",
       .type = Type::boolean,
       .about = "false: the lease is not renewed, so that it lasts ttl at most",
       .otherwise = "true"},
      {.name = "guard",
       .about =
           "the guard's id, where the caller chooses it: random, of letters, digits, '-' and '_'. Asked again with "
           "the same, at this server, it is the same right, while it is waited for and while it is held",
       .least = 16,
       .most = 64},
  };
}

Schema guard_schema() {
  return {"Guard",
          "a right that this server holds for a caller",
          {{.name = "guard", .about = "its id, which the other calls are made with", .is_required = true},
           {.name = "kind", .about = "what it is for", .is_required = true, .words = {"task", "once"}},
           {.name = "name", .about = "of the task, or the key", .is_required = true},
           {.name = "epoch",
            .type = Type::integer,
            .about = "the fencing token: to be given to whatever can refuse a lower one",
            .is_required = true,
            .least = 1},
           {.name = "attempt", .about = "the random id of this ownership", .is_required = true},
           {.name = "owner", .about = "this server, as the row names it", .is_required = true},
           {.name = "deadline_ms",
            .type = Type::integer,
            .about = "the caller's own deadline, by this server's clock, in milliseconds since 1970",
            .is_required = true},
           {.name = "believed_until_ms",
            .type = Type::integer,
            .about = "until when it is the caller's whatever happens, this server's death included",
            .is_required = true}}};
}

Schema result_schema() {
  return {"OnceResult",
          "what a run left behind",
          {{.name = "succeeded",
            .type = Type::boolean,
            .about = "false: it failed for good, and is not to be run again",
            .is_required = true},
           {.name = "content", .about = "what the runner recorded", .is_required = true},
           {.name = "completed_at_ms",
            .type = Type::integer,
            .about = "when, by the clock of the server it was recorded at",
            .is_required = true}}};
}

boost::json::object result_json(const OnceResult& result) {
  return {{"succeeded", result.succeeded}, {"content", result.content}, {"completed_at_ms", ms(result.at)}};
}

Schema acquired_schema() {
  Schema schema = guard_schema();
  schema.name = "Acquired";
  schema.about = "a right that is the caller's from now on";
  schema.fields.push_back({.name = "was_repeat",
                           .type = Type::boolean,
                           .about = "it had been asked for under this id before",
                           .is_required = true});
  return schema;
}

boost::json::object guard_json(const Desk& desk, const Guard& guard) {
  const Duration left = guard.held->guard()->left(desk.loop.instant());
  const WallTime believed = desk.loop.wall() + std::chrono::floor<std::chrono::milliseconds>(left);
  return {{"guard", guard.id},
          {"kind", guard.kind},
          {"name", guard.name},
          {"epoch", guard.epoch},
          {"attempt", guard.attempt},
          {"owner", desk.coordinator.owner().value},
          {"deadline_ms", ms(guard.deadline)},
          {"believed_until_ms", ms(std::min(believed, guard.deadline))}};
}

Problem gone(const Guard& guard) {
  const std::string it = "The guard of " + guard.kind + " " + guard.name + ", epoch " + std::to_string(guard.epoch);
  const bool is_finished = guard.end == GuardEnd::finished;
  if (guard.is_doubtful()) {
    return {503,
            "unknown",
            it + ", was ended by its caller, and the store has not said in time whether " +
                (is_finished ? "its result was recorded: finish again." : "it was given back: release it again."),
            {}};
  }
  switch (guard.end.value_or(GuardEnd::lost)) {
    case GuardEnd::released:
    case GuardEnd::finished:
      if (guard.came_to == coord::HoldEnd::lost) {
        return {410,
                "lost",
                it + ", was lost before " + (is_finished ? "its result was recorded." : "it was given back."),
                {}};
      }
      return {410,
              "released",
              it + (is_finished ? ", was finished by its caller." : ", was given back by its caller."),
              {}};
    case GuardEnd::let_go:
      return {410,
              "let_go",
              it + ", was let go when its caller's " +
                  (guard.reason.empty() ? "deadline had passed." : guard.reason + "."),
              {}};
    case GuardEnd::drained:
      return {410, "drained", it + ", was given back because this server stops.", {}};
    case GuardEnd::lost:
    case GuardEnd::undelivered:
      break;
  }
  return {410, "lost", it + ", was lost" + (guard.reason.empty() ? "" : ": " + guard.reason) + ".", {}};
}

tl::expected<Right, Problem> right_from(const Desk& desk, const Input& body, std::string_view kind,
                                        std::string_view name) {
  LeaseOptions lease{.lease = body.duration("ttl")};
  if (body.has("skew")) lease.skew = body.duration("skew");
  const auto terms = make_terms(lease);
  if (!terms) return tl::unexpected(bad_request(terms.error().detail, body.has("skew") ? "/skew" : "/ttl"));
  Right right;
  right.options.terms = *terms;
  right.options.renews = body.flag("renew");
  right.options.wait = body.duration("wait");
  // Who asks again because he was not told would find what is still on its way back.
  const bool may_be_his = body.has("guard") && desk.guards.is_returning(kind, name);
  if (may_be_his) right.options.wait = std::max(right.options.wait, desk.patience);
  right.options.patience = desk.patience;
  right.hold_for = body.duration("hold_for");
  return right;
}

// ---- Asking ----

namespace {

bool is_good_id(const std::string& id) {
  return std::ranges::all_of(id, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' || c == '_';
  });
}

/// For as long as he waits; nothing: there is none, and he is told.
std::optional<Place> place_for(Desk& desk, const CallPtr& call) {
  auto place = desk.places.take(call->body().duration("wait"));
  if (!place) call->fail(no_place());
  return place;
}

void hand_over(Desk& desk, const CallPtr& call, const Guard& guard, bool was_repeat, std::function<void(bool)> sent) {
  boost::json::object body = guard.told;
  for (auto& member : guard_json(desk, guard)) body.insert(std::move(member));
  body["was_repeat"] = was_repeat;
  call->answer(201, body, "/v1/guards/" + guard.id, std::move(sent));
}

}  // namespace

std::shared_ptr<Asking> Asking::begin(Desk& desk, const CallPtr& call, const char* kind, std::string name) {
  if (is_of_ended_invocation(desk, *call)) {
    call->fail(invocation_over());
    return nullptr;
  }
  std::string id = call->body().has("guard") ? call->body().text("guard") : "";
  if (!is_good_id(id)) {
    call->fail(bad_request("The member 'guard' is of letters, digits, '-' and '_'.", "/guard"));
    return nullptr;
  }
  if (const GuardPtr known = id.empty() ? nullptr : desk.guards.known(id)) {
    if (answer_repeat(desk, call, known, kind, name)) return nullptr;
    id.clear();
  }
  if (desk.is_draining) {
    call->fail(draining());
    return nullptr;
  }
  auto place = place_for(desk, call);
  if (!place) return nullptr;
  GuardPtr guard = desk.guards.expect(kind, std::move(name), std::move(id));
  if (!guard) {
    call->fail(Problem{503, "overloaded", "This server holds as many guards as it may.", {}});
    return nullptr;
  }
  guard->invocation = call->invocation();
  std::shared_ptr<Asking> asking(new Asking(desk, guard));
  guard->asking = asking;
  asking->join(call, *std::move(place));
  return asking;
}

bool Asking::answer_repeat(Desk& desk, const CallPtr& call, const GuardPtr& guard, const char* kind,
                           const std::string& name) {
  if (guard->kind != kind || guard->name != name) {
    call->fail(Problem{422, "mismatch",
                       "This guard was asked for before, of " + guard->kind + " " + guard->name + ".", "/guard"});
  } else if (guard->end == GuardEnd::finished) {
    return false;  // the store tells what it came to
  } else if (const auto asking = guard->asking.lock(); asking && guard->epoch == 0) {
    if (auto place = place_for(desk, call)) asking->join(call, *std::move(place));
  } else if (guard->is_held() && guard->held->guard()->holds(desk.loop.instant())) {
    hand_over(desk, call, *guard, true, {});  // he may have it already: it is not given back where this is not told
  } else {
    call->fail(gone(*guard));
  }
  return true;
}

void Asking::join(const CallPtr& call, Place place) {
  const Waiting::Id id = desk_.waiting.add(call, std::move(place), [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (!self || self->is_wanted()) return;
    // The guard has no place here any more, unless a claim that is under way brings it.
    self->desk_.guards.forget(self->guard_);
    self->desk_.coordinator.recheck();
  });
  calls_.emplace_back(id, call);
}

bool Asking::is_wanted() const {
  return std::ranges::any_of(calls_, [this](const auto& each) { return desk_.waiting.has(each.first); });
}

std::vector<CallPtr> Asking::take_calls() {
  std::vector<CallPtr> there;
  for (const auto& [id, call] : std::exchange(calls_, {})) {
    if (desk_.waiting.remove(id)) there.push_back(call);
  }
  return there;
}

void Asking::got(std::shared_ptr<coord::Held> held, Duration hold_for, boost::json::object told) {
  desk_.guards.hold(guard_, std::move(held), hold_for);
  guard_->told = std::move(told);
  const std::vector<CallPtr> calls = take_calls();
  if (calls.empty()) return desk_.guards.let_go(guard_, GuardEnd::undelivered);
  // A claim that was under way while the machine stood still may have run out since (S7).
  if (desk_.stops() != stops_) {
    desk_.guards.let_go(guard_, GuardEnd::undelivered);
    for (const CallPtr& call : calls) call->fail(gone(*guard_));
    return;
  }
  const auto untold = std::make_shared<std::size_t>(calls.size());
  for (const CallPtr& call : calls) {
    hand_over(desk_, call, *guard_, call != calls.front(), [desk = &desk_, guard = guard_, untold](bool was_sent) {
      if (!was_sent && --*untold == 0) desk->guards.let_go(guard, GuardEnd::undelivered);
    });
  }
}

void Asking::answer(int status, const boost::json::object& body) {
  desk_.guards.forget(guard_);
  for (const CallPtr& call : take_calls()) call->answer(status, body);
}

void Asking::fail(const Problem& problem) {
  desk_.guards.forget(guard_);
  for (const CallPtr& call : take_calls()) call->fail(problem);
}

}  // namespace holdfast::serve
