#include "serve/right.hpp"

#include <utility>

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
       .most = 3'600'000},
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

boost::json::object guard_json(const Desk& desk, const Guard& guard) {
  const Duration left = guard.held->guard()->until() - desk.loop.instant();
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
  switch (guard.end.value_or(GuardEnd::lost)) {
    case GuardEnd::released:
    case GuardEnd::finished:
      return {410, "released", it + ", was given back by its caller.", {}};
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

tl::expected<Right, Problem> right_from(const Desk& desk, const Input& body) {
  LeaseOptions lease{.lease = body.duration("ttl")};
  if (body.has("skew")) lease.skew = body.duration("skew");
  const auto terms = make_terms(lease);
  if (!terms) return tl::unexpected(bad_request(terms.error().detail, body.has("skew") ? "/skew" : "/ttl"));
  Right right;
  right.options.terms = *terms;
  right.options.renews = body.flag("renew");
  right.options.wait = body.duration("wait");
  right.options.patience = desk.patience;
  right.hold_for = body.duration("hold_for");
  return right;
}

// ---- Asking ----

std::shared_ptr<Asking> Asking::begin(Desk& desk, const CallPtr& call, const char* kind, std::string name) {
  if (desk.is_draining) {
    call->fail(draining());
    return nullptr;
  }
  if (is_of_ended_invocation(desk, *call)) {
    call->fail(invocation_over());
    return nullptr;
  }
  GuardPtr guard = desk.guards.expect(kind, std::move(name));
  if (!guard) {
    call->fail(Problem{503, "overloaded", "This server holds as many guards as it may.", {}});
    return nullptr;
  }
  guard->invocation = call->invocation();
  std::shared_ptr<Asking> asking(new Asking(desk, call, std::move(guard)));
  // The guard has no place here then, unless a claim that is under way brings it.
  asking->waiting_ = desk.waiting.add(call, [&desk, guard = asking->guard_] {
    desk.guards.forget(guard);
    desk.coordinator.recheck();
  });
  return asking;
}

void Asking::got(std::shared_ptr<coord::Held> held, Duration hold_for, int status, boost::json::object body) {
  desk_.guards.hold(guard_, std::move(held), hold_for);
  if (!desk_.waiting.remove(waiting_)) return desk_.guards.let_go(guard_, GuardEnd::undelivered);
  // A claim that was under way while the machine stood still may have run out since (S7).
  if (desk_.stops() != stops_) {
    desk_.guards.let_go(guard_, GuardEnd::undelivered);
    return call_->fail(gone(*guard_));
  }
  for (auto& member : guard_json(desk_, *guard_)) body.insert(std::move(member));
  call_->answer(status, body, "/v1/guards/" + guard_->id, [desk = &desk_, guard = guard_](bool was_sent) {
    if (!was_sent) desk->guards.let_go(guard, GuardEnd::undelivered);
  });
}

void Asking::answer(int status, const boost::json::object& body) {
  desk_.guards.forget(guard_);
  if (desk_.waiting.remove(waiting_)) call_->answer(status, body);
}

void Asking::fail(const Failure& failure) {
  desk_.guards.forget(guard_);
  if (desk_.waiting.remove(waiting_)) call_->fail(failure);
}

}  // namespace holdfast::serve
