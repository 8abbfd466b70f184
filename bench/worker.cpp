// A whole fleet, as processes: how long connections are without an owner, and what holding them costs.
#include <unistd.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "harness.hpp"
#include "runtime/clock.hpp"
#include "runtime/spawn.hpp"

namespace holdfast::bench {
namespace {

using namespace std::chrono_literals;

std::int64_t now_ms() {
  return runtime::wall_now().time_since_epoch().count();
}

/// A feed, a store and workers in a folder of their own.
class Fleet {
 public:
  Fleet(int connections, int messages_per_second) : connections_(connections) {
    std::string name = (std::filesystem::temp_directory_path() / "holdfast-bench-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw NotHere("no temporary folder");
    folder_ = name;
    feed_ = start({"feed", "--port", "0", "--streams", std::to_string(connections), "--rate",
                   std::to_string(messages_per_second), "--history", "1000"});
    const auto line = feed_.read_line(30s);
    if (!line) throw std::runtime_error("the feed did not start: " + line.error().detail);
    const std::string before = "listening on ";
    const std::string base = line->substr(before.size(), line->size() - before.size() - std::string("NAME").size());
    {
      std::ofstream rows(folder_ + "/rows.ndjson");
      for (int i = 0; i < connections; ++i) {
        const std::string id = "s" + std::to_string(i);
        rows << R"({"id":")" << id << R"(","url":")" << base << id
             << R"(","options":{"resume":{"query":"since"},"seq":{"pointer":"/seq"}}})" << '\n';
      }
    }
    if (const auto exit = start({"conn", "import", "rows.ndjson"}).wait(120s); !exit || exit->code != 0) {
      throw std::runtime_error("the connections could not be imported");
    }
  }
  ~Fleet() {
    workers_.clear();
    feed_ = {};
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  runtime::Child& worker(const std::string& id) {
    workers_[id] = start({"worker", "--id", id, "--lease", "3s", "--max-connections", "5000", "--sink",
                          "ndjson:" + id + "?fsync=never", "--log-level", "error"});
    return workers_[id];
  }

  /// When each connection had its first record in this worker's files that was received after `since`.
  std::map<std::string, std::int64_t> first_records(const std::string& id, std::int64_t since) const {
    std::map<std::string, std::int64_t> first;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ + "/" + id, ignored)) {
      std::ifstream input(entry.path());
      for (std::string text; std::getline(input, text) && !input.eof();) {
        const auto object = boost::json::parse(text).as_object();
        const std::int64_t at = object.at("at_ms").as_int64();
        if (at >= since) first.emplace(object.at("conn").as_string(), at);
      }
    }
    return first;
  }
  void wait_for_all(const std::string& id, std::int64_t since) const {
    const double end = wall_s() + 120;
    while (first_records(id, since).size() < static_cast<std::size_t>(connections_)) {
      if (wall_s() > end) throw std::runtime_error("not all connections came to worker " + id);
      std::this_thread::sleep_for(200ms);
    }
  }

 private:
  runtime::Child start(std::vector<std::string> arguments) const {
    runtime::SpawnOptions options;
    options.arguments = {HOLDFAST_PROGRAM};
    options.arguments.insert(options.arguments.end(), arguments.begin(), arguments.end());
    options.directory = folder_;
    options.output = runtime::SpawnOptions::Output::pipe;
    options.dies_with_parent = true;
    auto child = runtime::spawn(options);
    if (!child) throw std::runtime_error(child.error().detail);
    return *std::move(child);
  }

  const int connections_;
  std::string folder_;
  runtime::Child feed_;
  std::map<std::string, runtime::Child> workers_;
};

/// One worker holds all, another waits; the first is sent the signal. From then to each connection's first message.
Figures take_over(int connections, int signal) {
  Fleet fleet(connections, 5);
  runtime::Child& first = fleet.worker("first");
  fleet.wait_for_all("first", 0);
  fleet.worker("second");
  std::this_thread::sleep_for(4s);
  const std::int64_t sent = now_ms();
  first.kill(signal);
  fleet.wait_for_all("second", 0);
  std::vector<double> times;
  for (const auto& [connection, at] : fleet.first_records("second", 0))
    times.push_back(static_cast<double>(at - sent));
  std::sort(times.begin(), times.end());
  return {{"ms_median", times[times.size() / 2]}, {"ms_max", times.back()}};
}

double cpu_s_of(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(stat, text);
  std::vector<std::string> fields;
  std::string field;
  for (const char c : text.substr(text.rfind(')') + 2)) {
    if (c == ' ') {
      fields.push_back(std::exchange(field, {}));
    } else {
      field += c;
    }
  }
  return (std::stod(fields.at(11)) + std::stod(fields.at(12))) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

Figures hold(int connections, Duration time) {
  Fleet fleet(connections, 1);
  const runtime::Child& worker = fleet.worker("only");
  fleet.wait_for_all("only", 0);
  std::this_thread::sleep_for(3s);
  const double cpu = cpu_s_of(worker.pid());
  const double wall = wall_s();
  std::this_thread::sleep_for(time);
  const double used = cpu_s_of(worker.pid()) - cpu;
  return {{"cores", used / (wall_s() - wall)}, {"resident_bytes", resident_bytes(worker.pid())}};
}

void fleet(Run& run) {
  const int many = run.quick() ? 20 : 300;
  run.compare({.name = std::to_string(many) + " connections, lease 3 s",
               .subjects = {{"crash", [many] { return take_over(many, SIGKILL); }},
                            {"graceful stop", [many] { return take_over(many, SIGTERM); }}},
               .ratios = {{.subject = "crash", .figure = "ms_max", .goal = at_most(4500)},
                          {.subject = "crash", .figure = "ms_median"},
                          {.subject = "graceful stop", .figure = "ms_max", .goal = at_most(1000)},
                          {.subject = "graceful stop", .figure = "ms_median"}},
               .rounds = run.quick() ? 1 : 3,
               .warm_up = false});
  const int held = run.quick() ? 50 : 2000;
  run.compare({.name = std::to_string(held) + " connections, 1 message/s each, lease 3 s",
               .subjects = {{"worker", [held, &run] { return hold(held, run.quick() ? 1s : 10s); }}},
               .ratios = {{.subject = "worker", .figure = "cores", .goal = at_most(0.1)},
                          {.subject = "worker", .figure = "resident_bytes"}},
               .rounds = run.quick() ? 1 : 3,
               .warm_up = false});
}

const Register registered{
    "worker", "a fleet of real processes: hand-over times, and the cost of holding",
    "Feed, workers and SQLite file on this machine. One worker holds every connection, a second "
    "waits with room for all; the first gets SIGKILL or SIGTERM, and for each connection the time "
    "from the signal to its first record in the second one's files is taken (receive time in the "
    "record, one wall clock). The cost of holding is the worker's processor time, all threads, "
    "over 10 s.",
    fleet};

}  // namespace
}  // namespace holdfast::bench
