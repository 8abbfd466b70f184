// holdfast_bench: runs the benches, prints the table, writes the report. See harness.hpp.
#include <openssl/crypto.h>
#include <simdjson.h>
#include <spdlog/version.h>
#include <sqlite3.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/json.hpp>
#include <boost/version.hpp>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <thread>

#include "harness.hpp"

namespace holdfast::bench {
namespace {

struct Options {
  std::vector<std::string> names;
  std::string json;
  int rounds = 0;
  bool list = false;
  bool quick = false;
};

struct Spread {
  double median = 0;
  double min = 0;
  double max = 0;
};

Spread spread(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  const double median = values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
  return {median, values.front(), values.back()};
}

// Three digits that count, and a thousands' letter: 0.0123, 4.56, 789, 12.3k, 4.56M.
std::string brief(double value) {
  static constexpr const char* letters[] = {"", "k", "M", "G", "T"};
  std::size_t letter = 0;
  while (std::abs(value) >= 9999.5 && letter < 4) {
    value /= 1000;
    ++letter;
  }
  char text[64];
  const double size = std::abs(value);
  const int decimals = size >= 99.95 || size == 0 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 4;
  std::snprintf(text, sizeof text, "%.*f%s", decimals, value, letters[letter]);
  return text;
}

std::string bound_text(const Goal& goal) {
  return (goal.lower ? "≥ " : "≤ ") + brief(goal.bound);
}
bool reached(const Goal& goal, double value) {
  return goal.lower ? value >= goal.bound : value <= goal.bound;
}

// Pads by characters, not bytes: the table has a few signs of more than one byte.
std::string pad(std::string text, std::size_t width, bool right = false) {
  const auto characters = static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
  if (characters >= width) return text;
  const std::string fill(width - characters, ' ');
  return right ? fill + text : text + fill;
}

struct Line {
  std::string what;
  std::string ratio;
  std::string range{};
  std::string medians{};  // of the two figures
  std::string goal{};
  std::string verdict{};
};

void print(const Line& line) {
  std::printf("  %s %s  %s  %s  %s  %s\n", pad(line.what, 56).c_str(), pad(line.ratio, 8, true).c_str(),
              pad(line.range, 13).c_str(), pad(line.medians, 15).c_str(), pad(line.goal, 7).c_str(),
              line.verdict.c_str());
  std::fflush(stdout);
}

std::vector<double> values_of(const std::vector<Figures>& rounds, const std::string& figure) {
  std::vector<double> values;
  for (const Figures& round : rounds) {
    const auto found = round.find(figure);
    if (found == round.end()) throw std::runtime_error("a subject gave no figure '" + figure + "'");
    values.push_back(found->second);
  }
  return values;
}

/// One bench being run: measures, prints, and collects its part of the report.
class BenchRun final : public Run {
 public:
  explicit BenchRun(const Options& options) : options_(options) {}

  void compare(const Comparison& comparison) override;
  void version(std::string_view what, std::string_view version) override {
    versions_[what] = version.empty() ? std::string_view("unknown") : version;
  }
  void note(std::string_view sentence) override {
    notes_.emplace_back(boost::json::string(sentence));
    std::printf("  note: %.*s\n", static_cast<int>(sentence.size()), sentence.data());
  }
  [[nodiscard]] bool quick() const override { return options_.quick; }

  [[nodiscard]] boost::json::object report(const Bench& bench) const {
    return {{"name", bench.name}, {"compares", bench.compares}, {"method", bench.method}, {"versions", versions_},
            {"notes", notes_},    {"comparisons", comparisons_}};
  }
  [[nodiscard]] int goals_reached() const { return goals_reached_; }
  [[nodiscard]] int goals_missed() const { return goals_missed_; }

 private:
  using Rounds = std::map<std::string, std::vector<Figures>>;  // by subject

  [[nodiscard]] Rounds run_rounds(const Comparison& comparison, int rounds, boost::json::object& not_here) const;
  void judge(const Ratio& ratio, const Rounds& results, boost::json::array& ratios);

  const Options& options_;
  boost::json::object versions_;
  boost::json::array notes_;
  boost::json::array comparisons_;
  int goals_reached_ = 0;
  int goals_missed_ = 0;
};

BenchRun::Rounds BenchRun::run_rounds(const Comparison& comparison, int rounds, boost::json::object& not_here) const {
  Rounds results;
  const bool terminal = isatty(STDERR_FILENO) != 0;
  for (int round = comparison.warm_up ? -1 : 0; round < rounds; ++round) {
    for (const Subject& subject : comparison.subjects) {
      if (not_here.contains(subject.name)) continue;
      if (terminal) {
        std::fprintf(stderr, "\r\033[K  %s: round %d of %d, %s", comparison.name.c_str(), std::max(round + 1, 0),
                     rounds, subject.name.c_str());
      }
      try {
        Figures figures = subject.run();
        if (round >= 0) results[subject.name].push_back(std::move(figures));
      } catch (const NotHere& why) {
        not_here[subject.name] = why.what();
      }
    }
  }
  if (terminal) std::fprintf(stderr, "\r\033[K");
  return results;
}

void BenchRun::compare(const Comparison& comparison) {
  int rounds = options_.rounds > 0 ? options_.rounds : comparison.rounds;
  if (options_.quick) rounds = std::min(rounds, 1);
  boost::json::object not_here;
  const Rounds results = run_rounds(comparison, rounds, not_here);

  std::printf(" %s\n", comparison.name.c_str());
  for (const auto& [subject, why] : not_here) {
    std::printf("  %s was not measured: %s\n", std::string(subject).c_str(), why.as_string().c_str());
  }
  boost::json::array ratios;
  for (const Ratio& ratio : comparison.ratios) judge(ratio, results, ratios);

  boost::json::object subjects;
  for (const auto& [subject, figures_by_round] : results) {
    boost::json::object figures;
    for (const auto& entry : figures_by_round.front()) {
      std::vector<double> values;
      for (const Figures& round : figures_by_round) {
        if (const auto found = round.find(entry.first); found != round.end()) values.push_back(found->second);
      }
      const Spread over = spread(values);
      figures[entry.first] = {{"median", over.median}, {"min", over.min}, {"max", over.max}};
    }
    subjects[subject] = std::move(figures);
  }
  comparisons_.push_back(boost::json::object{{"name", comparison.name},
                                             {"rounds", rounds},
                                             {"warm_up_rounds", comparison.warm_up ? 1 : 0},
                                             {"subjects", std::move(subjects)},
                                             {"not_measured", std::move(not_here)},
                                             {"ratios", std::move(ratios)}});
}

void BenchRun::judge(const Ratio& ratio, const Rounds& results, boost::json::array& ratios) {
  const auto subject = results.find(ratio.subject);
  const auto to = results.find(ratio.to);
  const bool divided = !ratio.to.empty();
  Line line{ratio.subject + (divided ? " / " + ratio.to : "") + ", " + ratio.figure, "-"};
  boost::json::object entry{{"subject", ratio.subject}, {"to", ratio.to}, {"figure", ratio.figure}};
  if (ratio.goal) {
    line.goal = bound_text(*ratio.goal);
    entry["goal"] = {{ratio.goal->lower ? "at_least" : "at_most", ratio.goal->bound}};
  }
  const bool measured = subject != results.end() && (!divided || to != results.end());
  entry["measured"] = measured;
  if (!measured) {
    line.verdict = "not measured";
  } else {
    std::vector<double> values = values_of(subject->second, ratio.figure);
    line.medians = brief(spread(values).median);
    if (divided) {
      const std::vector<double> others = values_of(to->second, ratio.figure);
      line.medians += " / " + brief(spread(others).median);
      for (std::size_t round = 0; round < values.size(); ++round) values[round] /= others.at(round);
    }
    const Spread over = spread(values);
    line.ratio = brief(over.median) + (divided ? "x" : "");
    line.range = brief(over.min) + "–" + brief(over.max);
    entry["median"] = over.median;
    entry["min"] = over.min;
    entry["max"] = over.max;
    if (ratio.goal) {
      const bool good = reached(*ratio.goal, over.median);
      (good ? goals_reached_ : goals_missed_) += 1;
      line.verdict = good ? "reached" : "MISSED";
      entry["reached"] = good;
    }
  }
  print(line);
  ratios.push_back(std::move(entry));
}

std::string file_field(const char* path, std::string_view field) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (!std::string_view(line).starts_with(field)) continue;
    const std::size_t colon = line.find_first_of(":=");
    if (colon == std::string::npos) continue;
    const std::size_t first = line.find_first_not_of(" \t\"", colon + 1);
    const std::size_t last = line.find_last_not_of(" \t\"");
    return first == std::string::npos ? "" : line.substr(first, last - first + 1);
  }
  return "unknown";
}

boost::json::object machine() {
  utsname system{};
  uname(&system);
  return {{"cpu", file_field("/proc/cpuinfo", "model name")},
          {"cores", std::thread::hardware_concurrency()},
          {"memory", file_field("/proc/meminfo", "MemTotal")},
          {"kernel", std::string(system.sysname) + " " + system.release},
          {"system", file_field("/etc/os-release", "PRETTY_NAME")}};
}

boost::json::object versions() {
  const std::string source = source_path("");
  std::string commit =
      first_line({"git", "-C", source, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"});
  if (commit.empty()) commit = "unknown";
#if defined(__clang__)
  const std::string compiler = std::string("clang ") + __VERSION__;
#else
  const std::string compiler = std::string("g++ ") + __VERSION__;
#endif
  return {{"holdfast", commit},
          {"compiler", compiler},
          {"build", HOLDFAST_BUILD_TYPE},
          {"boost", BOOST_LIB_VERSION},
          {"openssl", OpenSSL_version(OPENSSL_VERSION)},
          {"sqlite", sqlite3_libversion()},
          {"simdjson", std::to_string(simdjson::SIMDJSON_VERSION_MAJOR) + "." +
                           std::to_string(simdjson::SIMDJSON_VERSION_MINOR) + "." +
                           std::to_string(simdjson::SIMDJSON_VERSION_REVISION)},
          {"spdlog", std::to_string(SPDLOG_VER_MAJOR) + "." + std::to_string(SPDLOG_VER_MINOR) + "." +
                         std::to_string(SPDLOG_VER_PATCH)}};
}

std::string timestamp() {
  const std::time_t now = std::time(nullptr);
  char text[32];
  std::tm parts{};
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &parts));
  return text;
}

int list() {
  for (const Bench& bench : registered()) std::printf("%-16s %s\n", bench.name.c_str(), bench.compares.c_str());
  return 0;
}

const Bench* find(const std::string& name) {
  const auto found =
      std::find_if(registered().begin(), registered().end(), [&](const Bench& bench) { return bench.name == name; });
  return found == registered().end() ? nullptr : &*found;
}

/// Gives how many benches could not be finished.
int run_all(const Options& options, boost::json::array& reports) {
  int reached = 0;
  int missed = 0;
  int failed = 0;
  for (const Bench& bench : registered()) {
    if (!options.names.empty() &&
        std::find(options.names.begin(), options.names.end(), bench.name) == options.names.end())
      continue;
    std::printf("\n%s: %s\n", bench.name.c_str(), bench.compares.c_str());
    BenchRun run(options);
    boost::json::object report;
    try {
      bench.body(run);
      report = run.report(bench);
    } catch (const NotHere& why) {
      std::printf("  not run: %s\n", why.what());
      report = run.report(bench);
      report["not_run"] = why.what();
    } catch (const std::exception& problem) {
      std::printf("  FAILED: %s\n", problem.what());
      report = run.report(bench);
      report["failed"] = problem.what();
      ++failed;
    }
    reached += run.goals_reached();
    missed += run.goals_missed();
    reports.push_back(std::move(report));
  }
  std::printf("\n%d goals reached, %d missed%s\n", reached, missed,
              failed == 0 ? "" : (", " + std::to_string(failed) + " benches failed").c_str());
  return failed;
}

int main_of(const Options& options) {
  if (options.list) return list();
  for (const std::string& name : options.names) {
    if (find(name) != nullptr) continue;
    std::fprintf(stderr, "holdfast_bench: there is no bench '%s'; --list names them\n", name.c_str());
    return 2;
  }
  // Opened before anything is measured: a bad path should not cost ten minutes.
  std::ofstream file;
  if (!options.json.empty()) {
    file.open(options.json);
    if (!file) {
      std::fprintf(stderr, "holdfast_bench: cannot write %s\n", options.json.c_str());
      return 2;
    }
  }
  std::printf("ratio (median of the rounds), smallest–largest, the two medians, goal\n");
  boost::json::array reports;
  const std::string started = timestamp();
  const int failed = run_all(options, reports);
  if (file.is_open()) {
    const boost::json::object report{{"started", started},
                                     {"quick", options.quick},
                                     {"machine", machine()},
                                     {"versions", versions()},
                                     {"benches", std::move(reports)}};
    file << boost::json::serialize(report) << "\n" << std::flush;
    if (!file) {
      std::fprintf(stderr, "holdfast_bench: could not write all of %s\n", options.json.c_str());
      return 1;
    }
  }
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace holdfast::bench

int main(int argc, char** argv) {
  holdfast::bench::Options options;
  CLI::App app{
      "Runs holdfast's benches in turn with what they are compared with, and prints ratios.\n"
      "Exit code: 0 measured (goals missed or not), 1 a bench failed, 2 usage.\n"
      "Example: holdfast_bench timers --json timers.json",
      "holdfast_bench"};
  app.add_option("names", options.names, "which benches to run (default: all)");
  app.add_option("--json", options.json, "write figures, versions and machine to this file");
  app.add_option("--rounds", options.rounds, "rounds per comparison (default: as the bench says)")
      ->check(CLI::PositiveNumber);
  app.add_flag("--list", options.list, "list the benches");
  app.add_flag("--quick", options.quick, "one short round: shows that the benches run, not how fast");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return holdfast::bench::main_of(options);
}
