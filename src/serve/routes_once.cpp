// What is to happen once: begun here, run by the caller, finished here.
#include <boost/json/serialize.hpp>

#include "coord/fingerprint.hpp"
#include "core/coord/limits.hpp"
#include "serve/right.hpp"

namespace holdfast::serve {

namespace {

using Type = Field::Type;

OnceOptions::Abandoned abandoned_from(const std::string& word) {
  if (word == "hold") return OnceOptions::Abandoned::hold;
  if (word == "reconcile") return OnceOptions::Abandoned::reconcile;
  return OnceOptions::Abandoned::rerun;
}

void take_turn(const std::shared_ptr<Asking>& asking, Duration hold_for, bool reconciles,
               Ended<coord::Coordinator::Turn> turn) {
  if (!turn) return asking->fail(turn.error());
  if (turn->done) {
    return asking->answer(
        200, {{"turn", "replay"}, {"epoch", turn->done->epoch.value}, {"result", result_json(turn->done->result)}});
  }
  if (turn->hold) {
    return asking->fail(
        Problem{409,
                "held",
                asking->guard()->name + " was begun by " + turn->hold->owner + " under epoch " +
                    std::to_string(turn->hold->epoch.value) +
                    ", which left no result: find out what became of it. Then ask with \"abandoned\": "
                    "\"reconcile\" to record that, or have it run again by "
                    "POST /v1/once/{key}/release (or 'holdfast task release --once') with that epoch.",
                {}});
  }
  boost::json::object body{{"turn", reconciles && turn->was_abandoned ? "reconcile" : "run"},
                           {"was_abandoned", turn->was_abandoned}};
  asking->guard()->turn = *turn;
  asking->got(turn->held, hold_for, std::move(body));
}

void begin(Desk& desk, const CallPtr& call) {
  const Input& body = call->body();
  const auto right = right_from(desk, body, "once", call->path("key"));
  if (!right) return call->fail(right.error());
  if (body.has("fingerprint") && body.has("input")) {
    return call->fail(
        bad_request("There is a fingerprint and an input: one of them says what it is about.", "/input"));
  }
  const auto asking = Asking::begin(desk, call, "once", call->path("key"));
  if (!asking) return;
  OnceOptions what;
  what.key = call->path("key");
  what.abandoned = abandoned_from(body.text("abandoned"));
  if (body.has("fingerprint")) what.fingerprint = body.text("fingerprint");
  if (body.has("input")) what.fingerprint = coord::fingerprint_of(boost::json::serialize(body.any("input")));
  coord::Coordinator::OnceEvents events;
  const bool reconciles = what.abandoned == OnceOptions::Abandoned::reconcile;
  events.turn = [asking, hold_for = right->hold_for, reconciles](auto turn) {
    take_turn(asking, hold_for, reconciles, std::move(turn));
  };
  events.lost = [&desk, guard = asking->guard()](LossReason reason) { desk.guards.lost(guard, reason); };
  events.finished = [&desk, guard = asking->guard()](const auto& how) { desk.guards.finished(guard, how); };
  events.is_wanted = [asking] { return asking->is_wanted(); };
  desk.coordinator.once(std::move(what), right->options, std::move(events));
}

/// What two results have in common that are the same.
std::string digest_of(const OnceResult& result) {
  return coord::fingerprint_of((result.succeeded ? "done " : "failed ") + result.content);
}

void tell_finished(const CallPtr& call, const Guard& guard, const std::string& digest, bool was_repeat) {
  if (!guard.is_settled()) {
    return call->fail(Problem{503, "unknown", "The store did not say in time whether the result was recorded.", {}});
  }
  if (guard.failure) {
    if (guard.failure->kind == Failure::Kind::unknown) return call->fail(*guard.failure);
    return call->fail(Problem{410, "lost", guard.failure->error.detail, {}});
  }
  if (guard.result_digest != digest) return call->fail(gone(guard));
  call->answer(200, {{"key", guard.name}, {"was_repeat", was_repeat}});
}

/// When it is known what became of the write, or nobody waits for that any longer (S10).
void tell_finish(Desk& desk, const CallPtr& call, const GuardPtr& guard, const std::string& digest, bool was_repeat) {
  if (guard->is_settled()) return tell_finished(call, *guard, digest, was_repeat);
  desk.guards.wait(guard, desk.patience * 2,
                   [call, guard, digest, was_repeat] { tell_finished(call, *guard, digest, was_repeat); });
}

/// Records it although its right is over, or although it may have been recorded before: under its epoch, while nobody
/// else has had the key (F23).
void record(Desk& desk, const GuardPtr& guard, OnceResult result, Duration retention) {
  if (!Guards::ask_again(guard)) return;
  desk.coordinator.record(guard->name, Epoch{guard->epoch}, std::move(result), retention, desk.patience,
                          [&desk, guard](const Ended<OnceResult>& ended) {
                            if (ended) {
                              guard->end = GuardEnd::finished;
                              guard->result_digest = digest_of(*ended);
                            }
                            desk.guards.finished(guard, ended);
                          });
}

void finish(Desk& desk, const CallPtr& call) {
  const Input& body = call->body();
  const GuardPtr guard = desk.guards.find(body.text("guard"));
  if (!guard || guard->kind != "once" || guard->name != call->path("key")) {
    return call->fail(
        Problem{404, "not_found", "There is no such guard of this key, or it is no longer remembered.", {}});
  }
  OnceResult result{body.flag("succeeded"), body.text("content"), desk.loop.wall()};
  const Duration retention = body.duration("retention");
  const std::string digest = digest_of(result);
  if (guard->end == GuardEnd::finished && guard->result_digest == digest) {
    if (guard->is_settled() && guard->is_doubtful()) record(desk, guard, std::move(result), retention);
    return tell_finish(desk, call, guard, digest, true);
  }
  if (guard->end == GuardEnd::lost && (guard->is_settled() || guard->is_asked_again)) {
    record(desk, guard, std::move(result), retention);
    return tell_finish(desk, call, guard, digest, false);
  }
  if (!guard->is_held() || !guard->held->guard()->holds(desk.loop.instant())) return call->fail(gone(*guard));
  const auto taken = desk.coordinator.finish(guard->turn, std::move(result), retention);
  if (!taken && taken.error().code == Code::usage) {
    return call->fail(Problem{413, "too_large", taken.error().detail, "/content"});
  }
  if (!taken) return call->fail(Problem{410, "lost", taken.error().detail, {}});
  guard->result_digest = digest;
  desk.guards.leave(guard, GuardEnd::finished);
  tell_finish(desk, call, guard, digest, false);
}

Schema turn_schema() {
  Schema schema = acquired_schema();
  schema.name = "Turn";
  schema.about = "it is the caller's to run, under this guard";
  schema.fields.push_back(
      {.name = "turn",
       .about = "run it; or find out what became of the run that was abandoned, then finish with that",
       .is_required = true,
       .words = {"run", "reconcile"}});
  schema.fields.push_back({.name = "was_abandoned",
                           .type = Type::boolean,
                           .about = "somebody began before, and left no result",
                           .is_required = true});
  return schema;
}

void add_begin(std::vector<Route>& routes) {
  std::vector<Field> begin_fields = right_fields();
  begin_fields.push_back({.name = "fingerprint",
                          .about = "of the input: the same key with another one is refused (mismatch)",
                          .least = 1,
                          .most = 128});
  begin_fields.push_back(
      {.name = "input", .type = Type::any, .about = "the input itself, in place of its fingerprint"});
  begin_fields.push_back({.name = "abandoned",
                          .about = "what to do where somebody began and left no result",
                          .otherwise = "rerun",
                          .words = {"rerun", "hold", "reconcile"}});
  routes.push_back(
      {"POST",
       "/v1/once/{key}",
       "beginOnce",
       "Run something once for a key: whoever is first runs it, the others are given its result",
       {"Begin", "what is to happen once, and what is asked of the right to do it", begin_fields},
       {},
       {{201, "run it, then finish", turn_schema()},
        {200,
         "it has been run",
         {"Replay",
          "the recorded result",
          {{.name = "turn", .about = "there is none", .is_required = true, .words = {"replay"}},
           {.name = "epoch", .type = Type::integer, .about = "under which it was recorded", .is_required = true},
           {.name = "result",
            .type = Type::object,
            .about = "what it left behind",
            .is_required = true,
            .of = std::make_shared<const Schema>(result_schema())}}}}},
       {{409, "busy", "somebody is running it, for longer than the caller waits"},
        {409, "held", "it was begun and left no result, and abandoned is hold: a person decides"},
        {410, "lost", "the caller had hung up, so it was given back; or the guard that it names was lost"},
        {410, "let_go", "the guard that it names was let go: its deadline had passed"},
        {410, "released", "the guard that it names was given back"},
        {410, "drained", "this server stops, and gave it back"},
        {422, "mismatch", "the key was used with another input; or the guard that it names is of another right"}},
       begin});
}

void add_finish(std::vector<Route>& routes) {
  routes.push_back({"POST",
                    "/v1/once/{key}/finish",
                    "finishOnce",
                    "Record the result, in one write with the end of the right; again with the same is as once",
                    {"Finish",
                     "the result",
                     {{.name = "guard", .about = "the id that came with the turn", .is_required = true, .most = 64},
                      {.name = "content",
                       .about = "what later callers are given: at most 350000 bytes",
                       .is_required = true,
                       .most = static_cast<std::int64_t>(OnceResult::most)},
                      {.name = "succeeded",
                       .type = Type::boolean,
                       .about = "false: it failed for good, and is not to be run again",
                       .otherwise = "true"},
                      {.name = "retention",
                       .type = Type::duration,
                       .about = "how long the result is kept, at least",
                       .otherwise = "24h",
                       .least = coord::in_ms(coord::remembered.least),
                       .most = coord::in_ms(coord::remembered.most)}}},
                    {},
                    {{200,
                      "it stands",
                      {"Finished",
                       "the result is recorded",
                       {{.name = "key", .about = "what was run once", .is_required = true},
                        {.name = "was_repeat",
                         .type = Type::boolean,
                         .about = "it had been recorded before, by this guard",
                         .is_required = true}}}}},
                    {{404, "not_found", "there is no such guard of this key"},
                     {410, "lost", "the right was lost, and the result was not recorded"},
                     {410, "let_go", "the caller's own deadline had passed"},
                     {410, "released", "the caller had given it back, or finished with another result"},
                     {410, "drained", "this server stops, and gave it back"}},
                    finish});
}

}  // namespace

std::vector<Route> once_routes() {
  std::vector<Route> routes;
  add_begin(routes);
  add_finish(routes);
  return routes;
}

}  // namespace holdfast::serve
