#include <memory>

#include "cli/command_line.hpp"
#include "cli/coordination.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"

namespace holdfast::cli {

namespace {

struct RunSettings {
  RightSettings right;
  std::string task;
  std::vector<std::string> command;
  std::int64_t busy_exit = static_cast<int>(CoordExit::busy);
};

constexpr std::string_view exit_codes =
    "  the command's own where it ran (128 + n if signal n ended it)\n"
    "  75   busy: somebody else has the task (--busy-exit says another)\n"
    "  76   the right was lost while the command ran; it was ended\n"
    "  69   the store cannot be reached\n"
    "  64   the command line, a variable or the config file makes no sense\n"
    "  1    something else failed: the command could not be started, the table is damaged";

/// The lease, asked for and given back, with the command in between.
int run_task(Coordination& here, const RunSettings& settings, const coord::TaskOptions& options,
             coord::OnLost on_lost) {
  std::optional<Ended<std::shared_ptr<coord::Held>>> acquired;
  std::optional<coord::HoldEnd> ended;
  bool is_wanted = true;
  coord::TaskEvents events;
  events.is_wanted = [&] { return is_wanted; };
  events.acquired = [&](Ended<std::shared_ptr<coord::Held>> got) {
    if (got && !is_wanted) (*got)->release({});
    acquired = std::move(got);
    here.wake();
  };
  std::optional<LossReason> lost;
  events.lost = [&](LossReason reason) {
    lost = reason;
    here.lost();
  };
  events.ended = [&](coord::HoldEnd how, const Error&) {
    ended = how;
    here.wake();
  };
  here.coordinator().acquire(settings.task, options, std::move(events));
  if (const auto signal = here.run_until([&] { return acquired.has_value(); })) {
    is_wanted = false;
    if (!here.see_out(options.patience, [&] { return acquired && (!*acquired || ended); })) {
      complain(not_known_to_be_back(settings.task));
    }
    return 128 + *signal;
  }
  if (!*acquired) {
    const Failure& why = acquired->error();
    const int code = complain_of(why);
    return why.kind == Failure::Kind::busy ? static_cast<int>(settings.busy_exit) : code;
  }
  const std::shared_ptr<coord::Held>& held = **acquired;
  runtime::SpawnOptions command;
  command.arguments = settings.command;
  command.environment = right_environment(settings.task, *held);
  command.inherit_input = true;
  const CommandEnd end = here.run_command(held, std::move(command), options, on_lost);
  // It ran on, as asked for; that somebody else may have run it too is worth a word.
  const bool ran_on = on_lost == coord::OnLost::ignore && !held->guard()->holds(here.session().instant());
  held->release({});
  (void)here.settle(options.patience, [&] { return ended.has_value(); });
  if (ended.value_or(coord::HoldEnd::doubtful) == coord::HoldEnd::doubtful) {
    complain(not_known_to_be_back(settings.task));
  }
  if (end.not_started) return complain_of_start(*end.not_started);
  if (end.ending.was_lost) {
    complain(why_lost(settings.task, lost, options.renews));
    return static_cast<int>(CoordExit::lost);
  }
  if (ran_on) complain("the right to " + settings.task + " had ended before the command did");
  return end.ending.exit.code;
}

Result<int> run(const RunSettings& settings) {
  if (const auto fine = check_command(settings.command); !fine) return tl::unexpected<Error>(fine.error());
  const auto options = task_options(settings.right);
  if (!options) return tl::unexpected<Error>(options.error());
  const auto on_lost = on_lost_from(settings.right.on_lost);
  if (!on_lost) return tl::unexpected<Error>(on_lost.error());
  return coordinate(settings.right.store, settings.right.store_patience,
                    [&](Coordination& here) { return run_task(here, settings, *options, *on_lost); });
}

}  // namespace

void add_run(Setup setup) {
  const auto settings = std::make_shared<RunSettings>();
  CLI::App& app = add_command(
      setup,
      {.name = "run",
       .description = "run a command while holding a task: nobody else runs it at the same time; for what is to "
                      "happen once, there is 'once'",
       .example = "run nightly-report --ttl 30s --wait 5m -- ./report.sh",
       .exit_codes = std::string(exit_codes)},
      static_cast<int>(CoordExit::usage), [settings] { return run(*settings); });
  add_name(app, "TASK", settings->task, "its name: whoever uses the same one on the same table takes turns");
  add_command_argument(app, settings->command);
  add_right(app, settings->right, "whoever holds it");
  add_number(app, "--busy-exit", settings->busy_exit, 0, 255, "exit code where somebody else holds the task");
}

}  // namespace holdfast::cli
