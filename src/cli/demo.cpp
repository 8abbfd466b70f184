#include <unistd.h>

#include <algorithm>
#include <memory>

#include "cli/demo_run.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "runtime/environment.hpp"
#include "runtime/units.hpp"

namespace holdfast::cli {

namespace {

struct DemoSettings {
  DemoOptions demo;
  std::int64_t workers = 3, connections = 30;
  double seconds = 20;
  bool json = false;
};

std::string ms(std::int64_t milliseconds) {
  return with_commas(milliseconds) + " ms";
}

// One line per failover: what it proves is above it.
std::string failover_line(const DemoFailover& each) {
  const auto& measured = each.measured;
  const std::string what = each.kind == "crash" ? "crash (SIGKILL):   " : "stop (SIGTERM):    ";
  if (measured.resumed < measured.connections) {
    return "  " + what + std::to_string(measured.connections - measured.resumed) + " of " +
           std::to_string(measured.connections) + " connections were never taken over";
  }
  return "  " + what + std::to_string(measured.connections) + " connections streaming again after " +
         ms(measured.ms_median) + " (median), " + ms(measured.ms_max) + " (slowest)";
}

std::vector<std::string> summary(const DemoSettings& settings, const DemoResult& result) {
  const auto& verdict = result.verdict;
  std::vector<std::string> lines{"", "From the files of " + std::to_string(result.workers) + " workers:"};
  const std::int64_t asked = verdict.delivered + verdict.missing;
  lines.push_back("  messages:          " + with_commas(verdict.delivered) + " of " + with_commas(asked) +
                  " arrived, " + with_commas(verdict.repeats) + " repeats, " + with_commas(verdict.gaps) + " gaps");
  lines.push_back("  ownership:         " +
                  (verdict.overlaps == 0
                       ? std::string("one owner per epoch, epochs rise, nothing under an old one "
                                     "after a newer began")
                       : with_commas(verdict.overlaps) + " records that another owner had a right to"));
  for (const DemoFailover& each : result.failovers) lines.push_back(failover_line(each));
  lines.push_back("  lease:             " + runtime::write_duration(settings.demo.lease));
  for (const std::string& problem : verdict.problems) lines.push_back("  problem: " + one_line(problem));
  lines.emplace_back("");
  if (!settings.demo.store.empty()) {
    lines.push_back("The table " + settings.demo.store + " is still there: it is yours to delete.");
  }
  if (!settings.demo.keep.empty()) lines.push_back("Everything is in " + settings.demo.keep + ".");
  if (result.holds()) {
    const std::string us = runtime::program_called();
    lines.push_back("Next: " + us + " demo --connections 300    the same with more");
    lines.push_back("      " + us + " feed --port 8080          an upstream for connections of your own");
    lines.push_back("      " + us + " conn add --help           how to add them");
  }
  return lines;
}

DemoView make_view(const DemoSettings& settings) {
  // With --json standard output is for the program that reads it; a person may still watch on standard error.
  const int descriptor = settings.json ? STDERR_FILENO : STDOUT_FILENO;
  const auto terminal = runtime::terminal(descriptor);
  const auto where = !settings.json     ? DemoView::Where::standard_output
                     : terminal.present ? DemoView::Where::standard_error
                                        : DemoView::Where::nowhere;
  return {where, terminal.present, terminal.colours, terminal.columns};
}

Result<void> run_demo_command(DemoSettings& settings) {
  settings.demo.workers = static_cast<std::size_t>(settings.workers);
  settings.demo.connections = static_cast<std::size_t>(settings.connections);
  settings.demo.seconds = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(settings.seconds));
  DemoView view = make_view(settings);
  if (auto checked = check_demo(settings.demo); !checked) return checked;
  const auto result = run_demo(settings.demo, view);
  if (!result) return tl::unexpected<Error>(result.error());
  for (const std::string& line : summary(settings, *result)) view.line(line);
  if (settings.json) {
    if (auto printed = print(demo_json(*result)); !printed) return printed;
  }
  if (result->holds()) return {};
  return fail(Code::internal, "the demo failed: " + (result->verdict.problems.empty()
                                                         ? std::string("not every connection was taken over")
                                                         : result->verdict.problems.front()));
}

}  // namespace

void add_demo(Setup setup) {
  const auto settings = std::make_shared<DemoSettings>();
  CLI::App& app = add_command(
      setup,
      {.name = "demo",
       .description = "watch workers share connections while one is killed and one is stopped, and have it checked",
       .example = "demo --workers 3 --connections 30 --lease 3s",
       .exit_codes = "a message was lost, two owned one connection, or the demo could not run"},
      [settings] { return run_demo_command(*settings); });
  DemoOptions& demo = settings->demo;
  add_number(app, "--workers", settings->workers, 1, 20, "how many to begin with; at least one more joins later");
  add_number(app, "--connections", settings->connections, 1, 5'000, "how many they share");
  add_decimal(app, "--rate", demo.rate, 1, 1'000, "messages per second of each");
  add_duration(app, "--lease", demo.lease, "how long a lease lasts: a crash takes that long to be noticed");
  add_decimal(app, "--seconds", settings->seconds, 1, 3'600, "how long the feed speaks");
  add_switch(app, "--json", settings->json, "print the result as one JSON object");
  // Neither from HOLDFAST_STORE nor from a file: what is set there is the table that somebody works with.
  app.add_option("--store", demo.store, "a table to share instead of a SQLite file: a new one, which stays")
      ->type_name("URL")
      ->configurable(false);
  add_text(app, "--keep", "DIR", demo.keep, "a new folder in which the table, the messages and the logs stay");
}

}  // namespace holdfast::cli
