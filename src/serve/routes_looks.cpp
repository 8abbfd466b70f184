// What is held, and by whom, for people; and a lease that is taken away by hand.
#include <boost/json/array.hpp>
#include <boost/json/value_from.hpp>

#include "core/coord/task_look.hpp"
#include "serve/desk.hpp"
#include "serve/right.hpp"

namespace holdfast::serve {

namespace {

using Type = Field::Type;
using Kind = TaskView::Kind;
constexpr std::int64_t page_most = 500;

boost::json::object task_json(const TaskView& task) {
  boost::json::object json{{"kind", to_string(task.kind)},   {"name", task.name},
                           {"state", to_string(task.state)}, {"owner", task.owner},
                           {"epoch", task.epoch.value},      {"expires_at_ms", ms(task.expires_at)}};
  if (task.result) json["result"] = result_json(*task.result);
  return json;
}

Schema task_schema() {
  return {
      "TaskView",
      "a task, or a key that is run once, as its row is",
      {{.name = "kind", .about = "which of the two", .is_required = true, .words = {"task", "once"}},
       {.name = "name", .about = "of the task; the key", .is_required = true},
       {.name = "state",
        .about = "free: nobody has it; held; ended: its lease has run out, and nobody has taken it since; done, "
                 "failed: of a key, its result stands",
        .is_required = true,
        .words = {"free", "held", "ended", "done", "failed"}},
       {.name = "owner", .about = "who has it, or had it when its lease ran out; empty: nobody", .is_required = true},
       {.name = "epoch",
        .type = Type::integer,
        .about = "the latest fencing token that was given out; 0: none",
        .is_required = true},
       {.name = "expires_at_ms",
        .type = Type::integer,
        .about = "when its lease ends, or ended, in milliseconds since 1970",
        .is_required = true},
       {.name = "result",
        .type = Type::object,
        .about = "of a key that was run, while it stands",
        .of = std::make_shared<const Schema>(result_schema())}}};
}

void list(Desk& desk, const CallPtr& call) {
  const Input& query = call->query();
  const std::string page = query.has("page") ? query.text("page") : "";
  run(desk,
      std::make_unique<ListTasks>(static_cast<std::size_t>(query.integer("max")), page, desk.deadline(),
                                  desk.loop.random()),
      [call](const Ended<TaskPage>& found) {
        if (!found && found.error().error.code == Code::usage) {
          return call->fail(bad_request("The parameter 'page' is no 'next' of an answer of this table.", "/page"));
        }
        if (!found) return call->fail(found.error());
        boost::json::array tasks;
        for (const TaskView& each : found->tasks) tasks.push_back(task_json(each));
        boost::json::object body{{"tasks", std::move(tasks)}};
        body["next"] = found->next.empty() ? boost::json::value() : boost::json::value(found->next);
        body["damaged"] = boost::json::value_from(found->damaged);
        call->answer(200, body);
      });
}

void show(Desk& desk, const CallPtr& call, Kind kind, std::string_view name) {
  run_for(desk, call, std::make_unique<ReadTask>(kind, call->path(name), desk.deadline(), desk.loop.random()),
          [call](const std::optional<TaskView>& task) {
            if (!task) return call->fail(Problem{404, "not_found", "Nobody has ever had one of this name.", {}});
            call->answer(200, task_json(*task));
          });
}

void release(Desk& desk, const CallPtr& call, Kind kind, std::string_view name) {
  find_for(desk, call,
           std::make_unique<ReleaseTask>(kind, call->path(name), Epoch{call->body().integer("epoch")},
                                         desk.deadline(), desk.loop.random()),
           [call](const ReleasedTask& released) {
             boost::json::object body = task_json(released.task);
             body["was_repeat"] = released.was_repeat;
             call->answer(200, body);
           });
}

void show_task(Desk& desk, const CallPtr& call) {
  show(desk, call, Kind::task, "task");
}
void show_once(Desk& desk, const CallPtr& call) {
  show(desk, call, Kind::once, "key");
}
void release_task(Desk& desk, const CallPtr& call) {
  release(desk, call, Kind::task, "task");
}
void release_once(Desk& desk, const CallPtr& call) {
  release(desk, call, Kind::once, "key");
}

// ---- The table ----

Route listing() {
  return {
      "GET",
      "/v1/tasks",
      "listTasks",
      "Tasks, and keys that are run once, that are held, or were and can be taken; those whose lease ends first come "
      "first. What is renewed meanwhile may be on two pages, or on none",
      {},
      {{.name = "page", .about = "the next of the answer before", .least = 1, .most = 8192},
       {.name = "max",
        .type = Type::integer,
        .about = "how many at most",
        .otherwise = "100",
        .least = 1,
        .most = page_most}},
      {{200,
        "some of them",
        {"TaskPage",
         "a page",
         {{.name = "tasks",
           .type = Type::list,
           .about = "as the index has them",
           .is_required = true,
           .of = std::make_shared<const Schema>(task_schema())},
          {.name = "next",
           .type = Type::any,
           .about = "a text, for page, where there may be more; or null",
           .is_required = true},
          damaged_field()}}}},
      {},
      list};
}

Route showing(std::string_view path, std::string_view operation, std::string_view about,
              void (*handler)(Desk&, const CallPtr&)) {
  return {"GET",
          path,
          operation,
          about,
          {},
          {},
          {{200, "as it is now", task_schema()}},
          {{404, "not_found", "nobody has ever had one of this name"}},
          handler};
}

Route releasing(std::string_view path, std::string_view operation, std::string_view about,
                void (*handler)(Desk&, const CallPtr&)) {
  Schema released = task_schema();
  released.name = "TaskReleased";
  released.about = "as it is afterwards";
  released.fields.push_back({.name = "was_repeat",
                             .type = Type::boolean,
                             .about = "nobody had it under this epoch any more",
                             .is_required = true});
  return {"POST",
          path,
          operation,
          about,
          {"TakeAway",
           "whose lease",
           {{.name = "epoch",
             .type = Type::integer,
             .about = "as a look at it has told: no other's lease is taken away",
             .is_required = true,
             .least = 1}}},
          {},
          {{200, "nobody has it under this epoch", std::move(released)}},
          {{404, "not_found", "nobody has ever had one of this name"},
           {409, "refused", "it has another epoch by now, and was left alone"}},
          handler};
}

}  // namespace

std::vector<Route> look_routes() {
  std::vector<Route> routes;
  routes.push_back(listing());
  routes.push_back(showing("/v1/tasks/{task}", "showTask", "Who has a task, and until when", show_task));
  routes.push_back(releasing("/v1/tasks/{task}/release", "releaseTask",
                             "Take a task's lease away from who has it under this epoch: for a person who knows that "
                             "nobody acts under it any more. Who gives his own back says so to his guard",
                             release_task));
  routes.push_back(showing("/v1/once/{key}", "showOnce",
                           "Who runs what is run once for a key, or the result that stands", show_once));
  routes.push_back(releasing("/v1/once/{key}/release", "releaseOnce",
                             "Take the lease away from who began it under this epoch, so that it is run again: for a "
                             "person who has found out what became of it",
                             release_once));
  return routes;
}

}  // namespace holdfast::serve
