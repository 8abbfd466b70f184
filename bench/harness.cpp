#include "harness.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <exception>
#include <fstream>

extern char** environ;

namespace holdfast::bench {
namespace {

// A function's own static, so that the benches' files may register in any order.
std::vector<Bench>& all() {
  static std::vector<Bench> benches;
  return benches;
}

double seconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// Reads to the end or to the limit; false where time ran out.
bool read_all(int descriptor, double limit_s, std::string& text) {
  const double until = wall_s() + limit_s;
  char buffer[65536];
  while (true) {
    const double left = until - wall_s();
    if (left <= 0) return false;
    pollfd wait{descriptor, POLLIN, 0};
    if (poll(&wait, 1, static_cast<int>(std::min(left, 60.0) * 1000) + 1) <= 0) continue;
    const ssize_t got = read(descriptor, buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return true;
    text.append(buffer, static_cast<std::size_t>(got));
  }
}

struct Ended {
  int status = 0;
  rusage usage{};
};

Ended wait_for(pid_t pid) {
  Ended ended;
  while (wait4(pid, &ended.status, 0, &ended.usage) < 0) {
    if (errno != EINTR) throw std::runtime_error(std::string("wait4: ") + std::strerror(errno));
  }
  return ended;
}

double to_seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

std::string describe(int status) {
  if (WIFSIGNALED(status)) return "was ended by signal " + std::to_string(WTERMSIG(status));
  return "ended with exit code " + std::to_string(WEXITSTATUS(status));
}

std::optional<Figures> parse_figures(std::string_view line) {
  boost::system::error_code error;
  const boost::json::value parsed = boost::json::parse(line, error);
  if (error || !parsed.is_object()) return std::nullopt;
  Figures figures;
  for (const auto& [name, value] : parsed.as_object()) {
    if (value.is_number()) figures[std::string(name)] = value.to_number<double>();
  }
  return figures;
}

std::optional<Figures> last_figures(std::string_view text) {
  std::optional<Figures> found;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    if (line.starts_with('{')) {
      if (auto figures = parse_figures(line)) found = std::move(figures);
    }
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return found;
}

pid_t spawn(const std::vector<std::string>& command, int output, bool quiet) {
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", 0, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  if (quiet) posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", 1, 0);
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error == ENOENT) throw NotHere(command[0] + " is not installed");
  if (error != 0) throw std::runtime_error(command[0] + ": " + std::strerror(error));
  return pid;
}

struct Pipe {
  int read_end = -1;
  int write_end = -1;
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error(std::string("pipe: ") + std::strerror(errno));
    read_end = ends[0];
    write_end = ends[1];
  }
  ~Pipe() {
    close(read_end);
    close_write();
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close_write() {
    if (write_end >= 0) close(write_end);
    write_end = -1;
  }
};

struct Output {
  std::string text;
  Ended ended;
};

Output collect(pid_t pid, Pipe& pipe, double limit_s, const std::string& who) {
  Output output;
  pipe.close_write();
  const bool in_time = read_all(pipe.read_end, limit_s, output.text);
  if (!in_time) kill(pid, SIGKILL);
  output.ended = wait_for(pid);
  if (!in_time)
    throw std::runtime_error(who + " did not end within " + std::to_string(static_cast<int>(limit_s)) + " s");
  return output;
}

}  // namespace

Register::Register(std::string name, std::string compares, std::string method, std::function<void(Run&)> body) {
  Bench bench{std::move(name), std::move(compares), std::move(method), std::move(body)};
  const auto place =
      std::find_if(all().begin(), all().end(), [&](const Bench& other) { return bench.name < other.name; });
  all().insert(place, std::move(bench));
}

const std::vector<Bench>& registered() {
  return all();
}

double process_cpu_s() {
  return seconds(CLOCK_PROCESS_CPUTIME_ID);
}
double thread_cpu_s() {
  return seconds(CLOCK_THREAD_CPUTIME_ID);
}
double wall_s() {
  return seconds(CLOCK_MONOTONIC);
}

Figures figures(double count, double cpu_s, double wall_s) {
  return {{"count", count},
          {"cpu_s", cpu_s},
          {"wall_s", wall_s},
          {"per_core_second", count / cpu_s},
          {"per_second", count / wall_s},
          {"cpu_ns_each", cpu_s / count * 1e9}};
}

Figures measure(std::uint64_t count, const std::function<void()>& work) {
  const double wall = wall_s();
  const double cpu = process_cpu_s();
  work();
  const double cpu_used = process_cpu_s() - cpu;
  return figures(static_cast<double>(count), cpu_used, wall_s() - wall);
}

double resident_bytes(int pid) {
  const std::string path = "/proc/" + (pid == 0 ? std::string("self") : std::to_string(pid)) + "/statm";
  std::ifstream file(path);
  double total = 0;
  double resident = 0;
  if (!(file >> total >> resident)) throw std::runtime_error("cannot read " + path);
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

Figures child(const std::vector<std::string>& command, double limit_s) {
  Pipe pipe;
  const pid_t pid = spawn(command, pipe.write_end, false);
  const Output output = collect(pid, pipe, limit_s, command[0]);
  if (output.ended.status != 0) throw std::runtime_error(command[0] + " " + describe(output.ended.status));
  auto figures = last_figures(output.text);
  if (!figures) throw std::runtime_error(command[0] + " printed no JSON line");
  (*figures)["child_cpu_s"] = to_seconds(output.ended.usage.ru_utime) + to_seconds(output.ended.usage.ru_stime);
  (*figures)["child_resident_bytes_max"] = static_cast<double>(output.ended.usage.ru_maxrss) * 1024;
  return *figures;
}

Figures start_anew(const std::vector<std::string>& command, int times) {
  std::vector<double> walls;
  std::vector<double> saids;
  double cpu_s = 0;
  for (int i = 0; i < times; ++i) {
    Pipe pipe;
    const double begun = wall_s();
    const pid_t pid = spawn(command, pipe.write_end, false);
    pipe.close_write();
    char first = 0;
    while (read(pipe.read_end, &first, 1) < 0 && errno == EINTR) continue;
    saids.push_back((wall_s() - begun) * 1000);
    const Ended ended = wait_for(pid);
    walls.push_back((wall_s() - begun) * 1000);
    cpu_s += to_seconds(ended.usage.ru_utime) + to_seconds(ended.usage.ru_stime);
    if (ended.status != 0) throw std::runtime_error(command[0] + " " + describe(ended.status));
  }
  return {{"wall_ms", median(walls)}, {"said_ms", median(saids)}, {"cpu_ms", cpu_s * 1000 / times}};
}

Figures in_fork(const std::function<Figures()>& body, double limit_s) {
  std::fflush(nullptr);
  Pipe pipe;
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error(std::string("fork: ") + std::strerror(errno));
  if (pid == 0) {
    boost::json::object answer;
    int code = 0;
    try {
      for (const auto& [name, value] : body()) answer[name] = value;
    } catch (const NotHere& problem) {
      answer["not_here"] = problem.what();
    } catch (const std::exception& problem) {
      std::fprintf(stderr, "%s\n", problem.what());
      code = 1;
    }
    const std::string line = boost::json::serialize(answer) + "\n";
    if (write(pipe.write_end, line.data(), line.size()) != static_cast<ssize_t>(line.size())) code = 1;
    _exit(code);
  }
  const Output output = collect(pid, pipe, limit_s, "the subject's process");
  if (output.ended.status != 0) throw std::runtime_error("the subject's process " + describe(output.ended.status));
  const boost::json::value answer = boost::json::parse(output.text);
  if (const auto* why = answer.as_object().if_contains("not_here")) throw NotHere(std::string(why->as_string()));
  return last_figures(output.text).value_or(Figures{});
}

std::string first_line(const std::vector<std::string>& command) {
  try {
    Pipe pipe;
    const pid_t pid = spawn(command, pipe.write_end, true);
    const Output output = collect(pid, pipe, 10, command[0]);
    if (output.ended.status != 0) return {};
    return output.text.substr(0, output.text.find('\n'));
  } catch (const std::exception&) {
    return {};
  }
}

std::string source_path(std::string_view below) {
  return std::string(HOLDFAST_SOURCE_DIR) + "/" + std::string(below);
}

}  // namespace holdfast::bench
