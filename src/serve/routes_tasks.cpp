// Tasks, and the guards of their callers.
#include "core/coord/task_look.hpp"
#include "serve/right.hpp"

namespace holdfast::serve {

namespace {

using Type = Field::Type;

void acquire(Desk& desk, const CallPtr& call) {
  const auto right = right_from(desk, call->body(), "task", call->path("task"));
  if (!right) return call->fail(right.error());
  const auto asking = Asking::begin(desk, call, "task", call->path("task"));
  if (!asking) return;
  coord::TaskEvents events;
  events.acquired = [asking, hold_for = right->hold_for](Ended<std::shared_ptr<coord::Held>> got) {
    if (!got) return asking->fail(got.error());
    asking->got(*std::move(got), hold_for, {});
  };
  events.lost = [&desk, guard = asking->guard()](LossReason reason) { desk.guards.lost(guard, reason); };
  events.ended = [&desk, guard = asking->guard()](coord::HoldEnd how, const Error&) {
    desk.guards.ended(guard, how);
  };
  events.is_wanted = [asking] { return asking->is_wanted(); };
  desk.coordinator.acquire(call->path("task"), right->options, std::move(events));
}

GuardPtr guard_of(const Desk& desk, const CallPtr& call) {
  GuardPtr guard = desk.guards.find(call->path("guard"));
  if (!guard) call->fail(Problem{404, "not_found", "There is no such guard, or it is no longer remembered.", {}});
  return guard;
}

bool is_believed(const Desk& desk, const Guard& guard) {
  return guard.is_held() && guard.held->guard()->holds(desk.loop.instant());
}

void tell(const Desk& desk, const CallPtr& call, const Guard& guard) {
  if (!is_believed(desk, guard)) return call->fail(gone(guard));
  call->answer(200, guard_json(desk, guard));
}

void show(Desk& desk, const CallPtr& call) {
  const GuardPtr guard = guard_of(desk, call);
  if (!guard) return;
  const Duration wait = call->query().duration("wait");
  if (wait == Duration::zero() || !is_believed(desk, *guard)) return tell(desk, call, *guard);
  const auto place = desk.places.take(wait);
  if (!place) return call->fail(no_place());
  const Guards::WaitId id = desk.guards.wait(guard, wait, [&desk, call, guard, place] { tell(desk, call, *guard); });
  call->on_hang_up([guard, id] { Guards::end_wait(guard, id); });
}

void extend(Desk& desk, const CallPtr& call) {
  const GuardPtr guard = guard_of(desk, call);
  if (!guard) return;
  (void)desk.guards.extend(guard, call->body().duration("hold_for"));
  tell(desk, call, *guard);
}

void tell_released(const CallPtr& call, const Guard& guard, bool was_repeat) {
  if (guard.came_to.value_or(coord::HoldEnd::doubtful) == coord::HoldEnd::doubtful) {
    return call->fail(
        Problem{503,
                "unknown",
                "The store did not say in time whether it was given back; if not, it runs out by itself.",
                {}});
  }
  if (guard.end == GuardEnd::released && guard.came_to == coord::HoldEnd::released) {
    return call->answer(200, {{"guard", guard.id}, {"was_repeat", was_repeat}});
  }
  if (guard.end != GuardEnd::released) return call->fail(gone(guard));
  call->fail(Problem{
      410, "lost", "The guard of " + guard.kind + " " + guard.name + " was lost before it was given back.", {}});
}

/// When it is known what became of the write, or nobody waits for that any longer (S10).
void tell_release(Desk& desk, const CallPtr& call, const GuardPtr& guard, bool was_repeat) {
  if (guard->is_settled()) return tell_released(call, *guard, was_repeat);
  desk.guards.wait(guard, desk.patience * 2, [call, guard, was_repeat] { tell_released(call, *guard, was_repeat); });
}

/// Whether it was given back was not known: the store is asked again, under its epoch (S5).
void release_again(Desk& desk, const GuardPtr& guard) {
  if (!Guards::ask_again(guard)) return;
  const auto kind = guard->kind == "once" ? TaskView::Kind::once : TaskView::Kind::task;
  const auto asked = [&desk, guard](const Ended<ReleasedTask>& ended) {
    const auto end = [&] {
      if (ended) return coord::HoldEnd::released;
      return ended.error().kind == Failure::Kind::refused ? coord::HoldEnd::lost : coord::HoldEnd::doubtful;
    }();
    desk.guards.ended(guard, end);
  };
  desk.coordinator.run(std::make_unique<ReleaseTask>(kind, guard->name, Epoch{guard->epoch},
                                                     desk.loop.instant() + desk.patience, desk.loop.random()),
                       asked);
}

void release(Desk& desk, const CallPtr& call) {
  const GuardPtr guard = guard_of(desk, call);
  if (!guard) return;
  const bool was_repeat = guard->end == GuardEnd::released;
  if (guard->end && !was_repeat) return call->fail(gone(*guard));
  desk.guards.let_go(guard, GuardEnd::released);
  if (was_repeat && guard->is_settled() && guard->is_doubtful()) release_again(desk, guard);
  tell_release(desk, call, guard, was_repeat);
}

}  // namespace

std::vector<Route> task_routes() {
  const Route::Refusal no_guard{404, "not_found", "there is no such guard"};
  const Route::Refusal lost{410, "lost", "the right was lost: another may have it"};
  const Route::Refusal let_go{410, "let_go", "the caller's own deadline had passed"};
  const Route::Refusal released{410, "released", "the caller had given it back"};
  const Route::Refusal drained{410, "drained", "this server stops, and gave it back"};
  std::vector<Route> routes;
  routes.push_back(
      {"POST",
       "/v1/tasks/{task}/acquire",
       "acquireTask",
       "Take an exclusive right, which is kept alive for the caller until its own deadline",
       {"Acquire", "what is asked of the right", right_fields()},
       {},
       {{201, "it is the caller's", acquired_schema()}},
       {{409, "busy", "somebody else has it, for longer than the caller waits"},
        {410, "lost", "the caller had hung up, so it was given back; or the guard that it names was lost"},
        {410, "let_go", "the guard that it names was let go: its deadline had passed"},
        {410, "released", "the guard that it names was given back"},
        {410, "drained", "this server stops, and gave it back"},
        {422, "mismatch", "the guard that it names is of another right"}},
       acquire});
  routes.push_back({"GET",
                    "/v1/guards/{guard}",
                    "showGuard",
                    "Whether a right is still the caller's; to be asked before each effect",
                    {},
                    {{.name = "wait",
                      .type = Type::duration,
                      .about = "answer when it is lost, at the latest after this",
                      .otherwise = "0",
                      .most = 300'000}},
                    {{200, "it is the caller's", guard_schema()}},
                    {no_guard, lost, let_go, released, drained},
                    show});
  routes.push_back({"POST",
                    "/v1/guards/{guard}/extend",
                    "extendGuard",
                    "Set another deadline of the caller's own, counted from now",
                    {"Extend",
                     "the new deadline",
                     {{.name = "hold_for",
                       .type = Type::duration,
                       .about = "how long it is kept alive for the caller, from now on",
                       .is_required = true,
                       .least = 100,
                       .most = 86'400'000}}},
                    {},
                    {{200, "it is the caller's until then", guard_schema()}},
                    {no_guard, lost, let_go, released, drained},
                    extend});
  routes.push_back({"POST",
                    "/v1/guards/{guard}/release",
                    "releaseGuard",
                    "Give a right back; again is the same as once",
                    {"Release", "nothing", {}},
                    {},
                    {{200,
                      "it is given back",
                      {"Released",
                       "what became of a right",
                       {{.name = "guard", .about = "its id", .is_required = true},
                        {.name = "was_repeat",
                         .type = Type::boolean,
                         .about = "it had been given back before",
                         .is_required = true}}}}},
                    {no_guard, lost, let_go, released, drained},
                    release});
  return routes;
}

}  // namespace holdfast::serve
