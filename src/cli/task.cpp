#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <map>
#include <memory>
#include <utility>

#include "cli/coordination.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "core/coord/task_look.hpp"
#include "runtime/units.hpp"

namespace holdfast::cli {

namespace {

using Kind = TaskView::Kind;
using State = TaskView::State;

struct TaskSettings {
  CallSettings call;
  std::string task;
  std::int64_t epoch = 0;
  bool is_once = false;

  [[nodiscard]] Kind kind() const { return is_once ? Kind::once : Kind::task; }
};

std::string lease_words(const TaskView& view, WallTime now) {
  const auto left = time_until(view.expires_at, now);
  switch (view.state) {
    case State::held:
      return runtime::describe_duration(left) + " left";
    case State::ended:
      // For who would run a key, that it was begun and left no result is what counts.
      return (view.kind == Kind::once ? "abandoned, ended " : "ended ") + runtime::describe_duration(left) + " ago";
    case State::free:
    case State::done:
    case State::failed:
      break;
  }
  return std::string(to_string(view.state));
}

boost::json::object json_of(const TaskView& view) {
  boost::json::object object{
      {"kind", to_string(view.kind)},   {"name", view.name},
      {"state", to_string(view.state)}, {"owner", view.owner},
      {"epoch", view.epoch.value},      {"expires_at_ms", view.expires_at.time_since_epoch().count()}};
  if (view.result) {
    object["result"] = view.result->content;
    object["succeeded"] = view.result->succeeded;
    object["completed_at_ms"] = view.result->at.time_since_epoch().count();
  }
  return object;
}

constexpr std::size_t page_rows = 500;

Result<int> list(Coordination& here, const TaskSettings& settings) {
  // What was renewed between two pages was seen twice: as it was seen later.
  std::map<std::pair<Kind, std::string>, TaskView> views;
  TaskPage page;
  do {
    auto found = here.carry_out<TaskPage, ListTasks>(settings.call.store_patience, page_rows, page.next);
    if (!found) return found.error();
    page = *std::move(found);
    complain_of_damaged(page.damaged);
    for (TaskView& view : page.tasks) views.insert_or_assign({view.kind, view.name}, std::move(view));
  } while (!page.next.empty());
  if (settings.call.json) {
    boost::json::array array;
    for (const auto& [name, view] : views) array.push_back(json_of(view));
    return answer(boost::json::serialize(array) + "\n");
  }
  Table table({{"KIND"}, {"NAME"}, {"EPOCH", Table::Align::right}, {"LEASE"}, {"OWNER"}});
  for (const auto& [name, view] : views) {
    table.add({std::string(to_string(view.kind)), one_line(view.name), std::to_string(view.epoch.value),
               lease_words(view, here.session().wall()), one_line(view.owner)});
  }
  return answer(table.render());
}

/// Nothing has this name; or what has it is of the other kind.
Result<int> nothing_called(Coordination& here, const TaskSettings& settings) {
  const auto other = here.carry_out<std::optional<TaskView>, ReadTask>(
      settings.call.store_patience, settings.is_once ? Kind::task : Kind::once, settings.task);
  if (!other) return other.error();
  if (!*other) return fail(Code::not_found, "nothing is called '" + settings.task + "': see 'holdfast task ls'");
  return fail(Code::not_found, "'" + settings.task + "' is " +
                                   (settings.is_once ? "a task of 'holdfast run': leave out --once"
                                                     : "a key of 'holdfast once': add --once"));
}

Result<int> show(Coordination& here, const TaskSettings& settings) {
  const auto found =
      here.carry_out<std::optional<TaskView>, ReadTask>(settings.call.store_patience, settings.kind(), settings.task);
  if (!found) return found.error();
  if (!*found) return nothing_called(here, settings);
  const TaskView& view = **found;
  if (settings.call.json) return answer(boost::json::serialize(json_of(view)) + "\n");
  std::string text = "name    " + one_line(view.name) + "\nkind    " + std::string(to_string(view.kind)) +
                     "\nlease   " + lease_words(view, here.session().wall()) + "\nepoch   " +
                     std::to_string(view.epoch.value) + "\nowner   " +
                     (view.owner.empty() ? "-" : one_line(view.owner)) + "\n";
  if (view.result) text += "result  " + one_line(view.result->content) + "\n";
  return answer(text);
}

Result<int> release(Coordination& here, const TaskSettings& settings) {
  const auto found =
      here.carry_out<std::optional<TaskView>, ReadTask>(settings.call.store_patience, settings.kind(), settings.task);
  if (!found) return found.error();
  if (!*found) return nothing_called(here, settings);
  const auto released = here.carry_out<ReleasedTask, ReleaseTask>(settings.call.store_patience, settings.kind(),
                                                                  settings.task, Epoch{settings.epoch});
  if (!released) return released.error();
  if (released->was_repeat) return fail(Code::not_found, "nobody holds " + settings.task);
  if (settings.call.json) return answer(boost::json::serialize(json_of(released->task)) + "\n");
  const bool was_held = (*found)->state == State::held;
  return answer("released " + settings.task + ", epoch " + std::to_string(settings.epoch) +
                (was_held ? "; its holder finds out at its next renewal, and may run on until then\n" : "\n"));
}

CLI::App& add_one(Setup setup, CommandText text, const std::string& failed,
                  const std::shared_ptr<TaskSettings>& settings,
                  Result<int> (*action)(Coordination&, const TaskSettings&)) {
  text.exit_codes = call_exit_codes(failed);
  return add_command(setup, text, static_cast<int>(CoordExit::usage), [settings, action] {
    return coordinate(
        settings->call.store, settings->call.store_patience,
        [&](Coordination& here) { return action(here, *settings); }, StoreSession::Create::never);
  });
}

void add_ls(Setup setup) {
  const auto settings = std::make_shared<TaskSettings>();
  CLI::App& app = add_one(setup,
                          {.name = "ls",
                           .description = "what is held, or was and can be taken; results of 'once' are not listed",
                           .example = "task ls"},
                          "something else failed", settings, list);
  add_call(app, settings->call, "an array");
}

void add_show(Setup setup) {
  const auto settings = std::make_shared<TaskSettings>();
  CLI::App& app = add_one(setup,
                          {.name = "show",
                           .description = "all about one task",
                           .example = "task show nightly-report\ntask show invoice-17 --once"},
                          "there is no such task; or something else failed", settings, show);
  add_name(app, "TASK", settings->task, "its name");
  add_switch(app, "--once", settings->is_once, "a key of 'holdfast once', not a task of 'holdfast run'");
  add_call(app, settings->call, "an object");
}

void add_release(Setup setup) {
  const auto settings = std::make_shared<TaskSettings>();
  CLI::App& app = add_one(
      setup,
      {.name = "release",
       .description = "take a lease away from who had it under this epoch, who may run on until its next renewal",
       .example = "task release invoice-17 --once --epoch 1"},
      "nobody held it under this epoch; or something else failed", settings, release);
  add_name(app, "TASK", settings->task, "its name");
  add_number(app, "--epoch", settings->epoch, 1, INT64_MAX, "the epoch that 'holdfast task show' tells")
      .required()
      ->envname("")  // a command under 'holdfast run' finds the epoch of another task there
      ->configurable(false);
  add_switch(app, "--once", settings->is_once, "a key of 'holdfast once', not a task of 'holdfast run'");
  add_call(app, settings->call, "the task as it was left");
}

}  // namespace

void add_task(Setup setup) {
  add_ls(setup);
  add_show(setup);
  add_release(setup);
}

}  // namespace holdfast::cli
