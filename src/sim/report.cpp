#include "sim/report.hpp"

#include <boost/json.hpp>
#include <cstdarg>
#include <cstdio>

namespace holdfast::sim {
namespace {

[[gnu::format(printf, 1, 2)]] std::string format(const char* form, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, form);
  std::vsnprintf(text, sizeof text, form, arguments);
  va_end(arguments);
  return text;
}

double hours(Duration duration) {
  return std::chrono::duration<double, std::ratio<3600>>(duration).count();
}

double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

using U = unsigned long long;

}  // namespace

double speed(const Sum& sum, double cpu_seconds) {
  return cpu_seconds <= 0 ? 0 : hours(sum.virtual_time) * 60 / cpu_seconds;
}

std::string describe(const Sum& sum, double cpu_seconds) {
  std::string text =
      format("%llu seeds, %.1f fleet-hours in %.1f s of one core: %.0f fleet-hours per minute of core\n",
             U{sum.seeds}, hours(sum.virtual_time), cpu_seconds, speed(sum, cpu_seconds));
  text += format("%llu steps, %llu events, hash %016llx; all well again at the latest %.0f s after the last fault\n",
                 U{sum.steps}, U{sum.events}, U{sum.hash}, seconds(sum.longest_to_come_well));
  text += format("a margin below the skew in %llu seeds\n", U{sum.margins_below_skew});
  text += "\nscenarios     ";
  for (std::size_t i = 0; i < scenarios_count; ++i) {
    if (sum.by_scenario[i] == 0) continue;
    text += format("  %s %llu", std::string(name_of(static_cast<Scenario>(i))).c_str(), U{sum.by_scenario[i]});
  }
  text += "\n\nfaults injected\n";
  for (std::size_t i = 0; i < faults_count; ++i) {
    const auto fault = static_cast<Fault>(i);
    text += format("  %-16s %12llu%s", std::string(name_of(fault)).c_str(), U{sum.injected[fault]},
                   i % 3 == 2 || i + 1 == faults_count ? "\n" : "");
  }
  text += "\nsometimes (each must be reached in a nightly run)\n";
  for (std::size_t i = 0; i < marks_count; ++i) {
    const auto mark = static_cast<Mark>(i);
    const std::uint64_t count = sum.marks.count(mark);
    text += format("  %-28s %12llu%s%s", std::string(name_of(mark)).c_str(), U{count},
                   count == 0 ? " never" : "      ", i % 2 == 1 || i + 1 == marks_count ? "\n" : "");
  }
  return text;
}

std::string describe_broken(const Sum& sum, const std::string& commit) {
  const Shrunk& shrunk = *sum.broken;
  const Violation& violation = shrunk.result.violation ? *shrunk.result.violation : sum.first_violation;
  std::string text = "\nBROKEN: " + violation.rule + ": " + violation.what + "\n";
  text += "  seed " + std::to_string(sum.broken_seed) + ", scenario " + std::string(name_of(shrunk.plan.scenario)) +
          ", commit " + (commit.empty() ? "unknown" : commit) + "\n";
  text += "  again:    " + replay_command(shrunk) + "\n";
  text += "  at first: " + sum.first_violation.rule + ": " + sum.first_violation.what + "\n";
  text +=
      "  " + (shrunk.runs == 0 ? std::string() : "cut down in " + std::to_string(shrunk.runs) + " runs to ") +
      std::to_string(shrunk.plan.processes) + " processes, " + std::to_string(shrunk.plan.connections) +
      " connections, " +
      format("%.3f s; lease %.3g s, margin %.3g s, skew %.3g s; faults:", seconds(shrunk.plan.duration),
             seconds(shrunk.plan.terms.lease), seconds(shrunk.plan.terms.margin), seconds(shrunk.plan.terms.skew));
  for (std::size_t i = 0; i < faults_count; ++i) {
    const auto fault = static_cast<Fault>(i);
    if (shrunk.plan.on(fault)) text += " " + std::string(name_of(fault)) + format("=%.3g", shrunk.plan.rate[fault]);
  }
  text += "\n  the end of its trace" +
          (violation.connection < 0 ? std::string()
                                    : ", as far as it concerns " + connection_name(violation.connection)) +
          ":\n";
  for (const std::string& line : shrunk.result.tail) text += "    " + line + "\n";
  return text;
}

std::string to_json(const Sum& sum, double cpu_seconds, const std::string& commit) {
  namespace json = boost::json;
  json::object faults;
  for (std::size_t i = 0; i < faults_count; ++i) {
    faults[name_of(static_cast<Fault>(i))] = sum.injected[static_cast<Fault>(i)];
  }
  json::object marks;
  for (std::size_t i = 0; i < marks_count; ++i) {
    marks[name_of(static_cast<Mark>(i))] = sum.marks.count(static_cast<Mark>(i));
  }
  json::object scenarios;
  for (std::size_t i = 0; i < scenarios_count; ++i) scenarios[name_of(static_cast<Scenario>(i))] = sum.by_scenario[i];
  json::object document{{"commit", commit},
                        {"seeds", sum.seeds},
                        {"fleet_hours", hours(sum.virtual_time)},
                        {"cpu_seconds", cpu_seconds},
                        {"fleet_hours_per_core_minute", speed(sum, cpu_seconds)},
                        {"steps", sum.steps},
                        {"events", sum.events},
                        {"hash", format("%016llx", U{sum.hash})},
                        {"well_after_s_max", seconds(sum.longest_to_come_well)},
                        {"margins_below_skew", sum.margins_below_skew},
                        {"scenarios", std::move(scenarios)},
                        {"faults_injected", std::move(faults)},
                        {"sometimes", std::move(marks)}};
  if (sum.broken) {
    json::array tail;
    for (const std::string& line : sum.broken->result.tail) tail.emplace_back(line);
    document["broken"] = {{"rule", sum.first_violation.rule},
                          {"what", sum.first_violation.what},
                          {"seed", sum.broken_seed},
                          {"scenario", name_of(sum.broken->plan.scenario)},
                          {"replay", replay_command(*sum.broken)},
                          {"trace", std::move(tail)}};
  }
  return json::serialize(document) + "\n";
}

}  // namespace holdfast::sim
