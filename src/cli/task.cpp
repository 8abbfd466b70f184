#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <memory>

#include "cli/coordination.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/store_session.hpp"
#include "core/coord/names.hpp"
#include "core/coord/once.hpp"
#include "core/coord/task.hpp"
#include "runtime/units.hpp"

namespace holdfast::cli {

namespace {

struct TaskSettings {
  std::string store = "sqlite:holdfast.db", task;
  std::int64_t epoch = 0;
  bool json = false, is_once = false;
};

std::string key_of(const TaskSettings& settings) {
  return settings.is_once ? LookOnce::row_key(settings.task) : AwaitTask::row_key(settings.task);
}

/// What a row of a task or of a `once` says.
struct TaskView {
  std::string kind, name, owner, lease;
  std::int64_t epoch = 0, expires_at_ms = 0;
  std::optional<OnceResult> result;
};

TaskView view_of(const Row& row, WallTime now) {
  TaskView view;
  const bool is_once = row.key.starts_with(coord::once_prefix);
  view.kind = is_once ? "once" : "task";
  view.name = row.key.substr((is_once ? coord::once_prefix : key_prefix::task).size());
  view.owner = row.text(attribute::owner);
  view.epoch = row.number(attribute::epoch);
  view.expires_at_ms = row.number(attribute::expires_at);
  view.result = once_result_in(row);
  const auto left = std::chrono::milliseconds(view.expires_at_ms) - now.time_since_epoch();
  if (view.result) {
    view.lease = view.result->succeeded ? "done" : "failed";
  } else if (view.owner.empty()) {
    view.lease = "free";
  } else if (left > std::chrono::milliseconds(0)) {
    view.lease = runtime::describe_duration(left) + " left";
  } else {
    view.lease = "ended " + runtime::describe_duration(left) + " ago";
  }
  return view;
}

boost::json::object json_of(const TaskView& view) {
  boost::json::object object{{"kind", view.kind},   {"name", view.name},   {"owner", view.owner},
                             {"epoch", view.epoch}, {"lease", view.lease}, {"expires_at_ms", view.expires_at_ms}};
  if (view.result) {
    object["result"] = view.result->content;
    object["succeeded"] = view.result->succeeded;
    object["completed_at_ms"] = view.result->at.time_since_epoch().count();
  }
  return object;
}

Result<void> list(StoreSession& session, const TaskSettings& settings) {
  const auto rows = session.all(state::task);
  if (!rows) return tl::unexpected<Error>(rows.error());
  std::vector<TaskView> views;
  for (const Row& row : *rows) views.push_back(view_of(row, session.wall()));
  std::ranges::sort(views, {}, [](const TaskView& view) { return std::pair(view.kind, view.name); });
  if (settings.json) {
    boost::json::array array;
    for (const TaskView& view : views) array.push_back(json_of(view));
    return print(boost::json::serialize(array) + "\n");
  }
  Table table({{"KIND"}, {"NAME"}, {"EPOCH", Table::Align::right}, {"LEASE"}, {"OWNER"}});
  for (const TaskView& view : views) {
    table.add({view.kind, one_line(view.name), std::to_string(view.epoch), view.lease, one_line(view.owner)});
  }
  return print(table.render());
}

/// Nothing has this name; or what has it is of the other kind.
Error nothing_called(StoreSession& session, const TaskSettings& settings) {
  TaskSettings other = settings;
  other.is_once = !settings.is_once;
  const auto row = session.get(key_of(other));
  std::string detail = "nothing is called '" + settings.task + "': see 'holdfast task ls'";
  if (row && *row) {
    detail = "'" + settings.task + "' is " +
             (other.is_once ? "a key of 'holdfast once': add --once" : "a task of 'holdfast run': leave out --once");
  }
  return {Code::not_found, std::move(detail)};
}

Result<void> show(StoreSession& session, const TaskSettings& settings) {
  const auto row = session.get(key_of(settings));
  if (!row) return tl::unexpected<Error>(row.error());
  if (!*row) return tl::unexpected<Error>(nothing_called(session, settings));
  const TaskView view = view_of(**row, session.wall());
  if (settings.json) return print(boost::json::serialize(json_of(view)) + "\n");
  std::string text = "name    " + one_line(view.name) + "\nkind    " + view.kind + "\nlease   " + view.lease +
                     "\nepoch   " + std::to_string(view.epoch) + "\nowner   " +
                     (view.owner.empty() ? "-" : one_line(view.owner)) + "\n";
  if (view.result) text += "result  " + one_line(view.result->content) + "\n";
  return print(text);
}

/// Takes the lease away from whoever had it under this epoch, and no other: it is for a person who knows that nobody
/// acts under it any more.
Result<void> release(StoreSession& session, const TaskSettings& settings) {
  const Update update{key_of(settings),
                      {Change::remove(attribute::owner), Change::set(attribute::expires_at, std::int64_t{0})},
                      Condition::row_exists() && Condition::equals(attribute::epoch, settings.epoch) &&
                          !Condition::absent(attribute::owner)};
  const auto written = session.update(update);
  if (!written) return tl::unexpected<Error>(written.error());
  if (written->applied)
    return print("released " + settings.task + ", epoch " + std::to_string(settings.epoch) + "\n");
  if (!written->row) return tl::unexpected<Error>(nothing_called(session, settings));
  const TaskView view = view_of(*written->row, session.wall());
  if (view.owner.empty()) return fail(Code::not_found, "nobody holds " + settings.task);
  return fail(Code::denied, "the lease on " + settings.task + " has epoch " + std::to_string(view.epoch) +
                                " by now, and is " + view.owner + "'s: it was left alone");
}

CLI::App& add_one(Setup setup, CommandText text, const std::string& failed,
                  const std::shared_ptr<TaskSettings>& settings,
                  Result<void> (*action)(StoreSession&, const TaskSettings&)) {
  text.exit_codes = call_exit_codes(failed);
  return add_command(setup, text, static_cast<int>(CoordExit::usage), [settings, action] {
    return coordinate(
        settings->store, StoreSession::usual_patience,
        [&](Coordination& here) { return action(here.session(), *settings).map([] { return 0; }); },
        StoreSession::Create::never);
  });
}

void add_ls(Setup setup) {
  const auto settings = std::make_shared<TaskSettings>();
  CLI::App& app = add_one(setup,
                          {.name = "ls",
                           .description = "what is held, or was and can be taken; results of 'once' are not listed",
                           .example = "task ls"},
                          "something else failed", settings, list);
  add_store(app, settings->store);
  add_switch(app, "--json", settings->json, "print a JSON array");
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
  add_store(app, settings->store);
  add_switch(app, "--json", settings->json, "print a JSON object");
}

void add_release(Setup setup) {
  const auto settings = std::make_shared<TaskSettings>();
  CLI::App& app =
      add_one(setup,
              {.name = "release",
               .description = "take a lease away from who had it under this epoch; its holder is not asked",
               .example = "task release invoice-17 --once --epoch 1"},
              "nobody held it under this epoch; or something else failed", settings, release);
  add_name(app, "TASK", settings->task, "its name");
  add_number(app, "--epoch", settings->epoch, 1, INT64_MAX, "the epoch that 'holdfast task show' tells")
      .required()
      ->envname("")  // a command under 'holdfast run' finds the epoch of another task there
      ->configurable(false);
  add_switch(app, "--once", settings->is_once, "a key of 'holdfast once', not a task of 'holdfast run'");
  add_store(app, settings->store);
}

}  // namespace

void add_task(Setup setup) {
  add_ls(setup);
  add_show(setup);
  add_release(setup);
}

}  // namespace holdfast::cli
