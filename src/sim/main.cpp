// holdfast_sim: runs seeds and says what they came to. `./dev sim` builds and starts it.
#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdio>
#include <string>
#include <vector>

#include "runtime/clock.hpp"
#include "runtime/environment.hpp"
#include "sim/campaign.hpp"
#include "sim/report.hpp"

namespace {

using namespace holdfast;

constexpr std::uint64_t nightly_seeds = 20'000;

struct Options {
  std::string seeds = "1..200";
  double hours = 0;
  double seconds = 0;
  double lease = 0;
  std::size_t processes = 0;
  std::size_t connections = 0;
  std::string scenario;
  std::vector<std::string> without;
  std::string json;
  std::string commit;
  bool nightly = false;
  bool no_shrink = false;
  bool quiet = false;
  bool histories = false;
};

std::string list_of_scenarios() {
  std::string list;
  for (std::size_t i = 0; i < sim::scenarios_count; ++i) {
    list += (i == 0 ? "" : ", ") + std::string(sim::name_of(static_cast<sim::Scenario>(i)));
  }
  return list;
}

/// Above 0, and no more than a machine can do in a day.
CLI::Validator within(double most) {
  const auto check = [most](const std::string& text) -> std::string {
    double value = 0;
    if (CLI::detail::lexical_cast(text, value) && value > 0 && value <= most) return {};
    return "takes a number above 0, up to " + std::to_string(static_cast<long>(most)) + ", not '" + text + "'";
  };
  return {check, ""};
}

void describe(CLI::App& app, Options& options) {
  auto* const seeds = app.add_option("--seeds", options.seeds, "One seed, or A..B")->capture_default_str();
  auto* const hours = app.add_option("--hours", options.hours,
                                     "Virtual hours with faults, for each seed (default: drawn, 20 to 80 leases)")
                          ->check(within(1000));
  app.add_option("--seconds", options.seconds, "The same in seconds")->check(within(3'600'000))->excludes(hours);
  app.add_option("--scenario", options.scenario, "One of " + list_of_scenarios() + " (default: drawn)");
  // At most a quarter of what a lease may be: some look for orphans only every four leases.
  app.add_option("--lease", options.lease, "Lease in seconds (default: drawn)")->check(within(21'600));
  app.add_option("--processes", options.processes, "Workers (default: drawn)")->check(within(100));
  app.add_option("--connections", options.connections, "Connections in all (default: drawn)")->check(within(10'000));
  app.add_option("--without", options.without, "Faults to leave out, by name")->delimiter(',');
  app.add_flag("--nightly", options.nightly, "20,000 seeds; fails, too, where a rare path was never reached")
      ->excludes(seeds);
  app.add_flag("--no-shrink", options.no_shrink,
               "Run what is asked for and nothing else: no shorter trace of a broken rule is looked for");
  app.add_flag("--histories", options.histories,
               "Also record every update and have the checkers of histories judge it (slow)");
  app.add_flag("--quiet", options.quiet, "No progress, no tables: only what is broken");
  app.add_option("--json", options.json, "Also write what came out to this file");
  app.add_option("--commit", options.commit, "What to call the code in reports")->group("");
  app.footer(
      "Exit code: 0 every rule held, 1 one was broken (or a rare path never reached), 2 usage.\n"
      "Example: holdfast_sim --seeds 1..1000 --scenario crashes");
}

bool parse_seeds(const std::string& text, sim::Campaign& campaign) {
  const char* const end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data(), end, campaign.first);
  if (error != std::errc()) return false;
  campaign.last = campaign.first;
  if (rest == end) return true;
  if (end - rest < 3 || rest[0] != '.' || rest[1] != '.') return false;
  const auto second = std::from_chars(rest + 2, end, campaign.last);
  return second.ec == std::errc() && second.ptr == end && campaign.last >= campaign.first;
}

Duration in_seconds(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

/// A sentence where something makes no sense.
std::string fill(sim::Campaign& campaign, const Options& options) {
  if (!parse_seeds(options.seeds, campaign)) return "--seeds takes a number or A..B, not '" + options.seeds + "'";
  if (options.nightly) {
    campaign.first = 1;
    campaign.last = nightly_seeds;
  }
  if (!options.scenario.empty()) {
    campaign.scenario = sim::scenario_named(options.scenario);
    if (!campaign.scenario) return "there is no scenario '" + options.scenario + "': " + list_of_scenarios();
  }
  for (const std::string& name : options.without) {
    const auto fault = sim::fault_named(name);
    if (!fault) return "there is no fault '" + name + "'";
    campaign.cuts.without.push_back(*fault);
  }
  if (options.hours > 0) campaign.cuts.duration = in_seconds(options.hours * 3600);
  if (options.seconds > 0) campaign.cuts.duration = in_seconds(options.seconds);
  if (options.lease > 0) campaign.cuts.lease = in_seconds(options.lease);
  if (options.processes > 0) campaign.cuts.processes = options.processes;
  if (options.connections > 0) campaign.cuts.connections = options.connections;
  campaign.shrinks = !options.no_shrink;
  campaign.judges_histories = options.histories;
  if (options.lease > 0) {
    LeaseOptions lease;
    lease.lease = *campaign.cuts.lease;
    if (const auto terms = make_terms(lease); !terms) return terms.error().detail;
  }
  return {};
}

bool write_file(const std::string& name, const std::string& text) {
  std::FILE* const file = std::fopen(name.c_str(), "w");
  if (file == nullptr) return false;
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  return std::fclose(file) == 0 && written;
}

int run(const Options& options) {
  sim::Campaign campaign;
  if (const std::string problem = fill(campaign, options); !problem.empty()) {
    std::fprintf(stderr, "holdfast_sim: %s\n", problem.c_str());
    return 2;
  }
  // Before the run, not after it: a night's work would be lost.
  if (!options.json.empty() && !write_file(options.json, "")) {
    std::fprintf(stderr, "holdfast_sim: cannot write %s\n", options.json.c_str());
    return 2;
  }
  const bool shows = !options.quiet && runtime::terminal(2).present;
  const Duration started = runtime::cpu_time();
  const auto cpu_seconds = [&] { return std::chrono::duration<double>(runtime::cpu_time() - started).count(); };
  const sim::Sum sum = sim::run(campaign, [&](const sim::Sum& so_far) {
    if (shows && so_far.seeds % 20 == 0) {
      std::fprintf(stderr, "\r%llu of %llu seeds, %.0f fleet-hours per minute of core ",
                   static_cast<unsigned long long>(so_far.seeds),
                   static_cast<unsigned long long>(campaign.last) - campaign.first + 1,
                   sim::speed(so_far, cpu_seconds()));
    }
  });
  if (shows) std::fprintf(stderr, "\r%60s\r", "");
  const double spent = cpu_seconds();
  if (!options.quiet) std::fputs(sim::describe(sum, spent).c_str(), stdout);
  if (sum.broken) std::fputs(sim::describe_broken(sum, options.commit).c_str(), stdout);
  if (!options.json.empty() && !write_file(options.json, sim::to_json(sum, spent, options.commit))) {
    std::fprintf(stderr, "holdfast_sim: cannot write %s\n", options.json.c_str());
    return 1;
  }
  if (sum.broken) return 1;
  bool all_reached = true;
  for (std::size_t i = 0; options.nightly && i < sim::marks_count; ++i) {
    if (sum.marks.count(static_cast<sim::Mark>(i)) > 0) continue;
    std::printf("never reached: %s\n", std::string(sim::name_of(static_cast<sim::Mark>(i))).c_str());
    all_reached = false;
  }
  return all_reached ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Simulates fleets of workers on virtual time and looks at every rule while they run.", "holdfast_sim");
  describe(app, options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return run(options);
}
