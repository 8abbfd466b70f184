#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

/// The harness of `./dev bench`.
///
/// One machine's nanoseconds mean little on another, and little on the same one an hour later. So a bench
/// compares: its subjects run in turn, round after round (A B C, A B C, …), and what is reported is the ratio
/// of two subjects of the same round: its median over the rounds, and the smallest and largest seen.
///
/// A bench is one file here, `bench/NAME.cpp`, that registers itself:
///
///     namespace holdfast::bench {
///     namespace {
///     void frames(Run& run) {
///       run.compare({.name = "100 B text",
///                    .subjects = {{"holdfast", [] { return measure(1'000'000, [] { ...the work, once...; }); }},
///                                 {"ws (Node)", [] { return child({"node", source_path("bench/peers/client.mjs"),
///                                 "100"}); }}},
///                    .ratios = {{.subject = "holdfast", .to = "ws (Node)", .figure = "per_core_second",
///                                .goal = at_least(7)}}});
///     }
///     const Register registered{"frames", "frame parsing against Node's ws", "Both read the same bytes ...",
///     frames}; }  // namespace }  // namespace holdfast::bench
namespace holdfast::bench {

/// What one run of one subject gave: figures by name, units last in the name (`bytes_per_connection`,
/// `per_core_second`).
using Figures = std::map<std::string, double>;

/// Thrown by a subject, or by a whole bench, that cannot run here (a program or package is missing, a limit of
/// the machine). It is reported as such, and the rest goes on. Any other exception is a fault of the bench.
struct NotHere : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Subject {
  std::string name;
  std::function<Figures()> run;  ///< once per round; as short as is still steady: about 0.2 to 2 s
};

/// A bound that the project has set itself.
struct Goal {
  double bound = 0;
  bool lower = true;  ///< true: at least the bound; false: at most
};
[[nodiscard]] inline Goal at_least(double bound) {
  return {bound, true};
}
[[nodiscard]] inline Goal at_most(double bound) {
  return {bound, false};
}

/// `figure` of `subject` divided by `figure` of `to`. Without `to`: the figure itself (for bounds that are
/// absolute, as bytes per connection).
struct Ratio {
  std::string subject;
  std::string to{};
  std::string figure;
  std::optional<Goal> goal{};
};

struct Comparison {
  std::string name;  ///< of this case, where a bench has several: "100 B text"
  std::vector<Subject> subjects;
  std::vector<Ratio> ratios;
  int rounds = 5;  ///< after one warm-up round, which does not count; `--rounds N` overrides it
  bool warm_up = true;
};

/// What a bench body is handed.
class Run {
 public:
  virtual ~Run() = default;
  /// Runs the subjects in turn for all rounds, then prints its lines of the table.
  virtual void compare(const Comparison& comparison) = 0;
  /// Adds a version to the report, for what this bench was compared with ("ws", "8.18.0").
  virtual void version(std::string_view what, std::string_view version) = 0;
  /// A sentence about this run that belongs beside its figures ("limited to 9,000 connections by ulimit -n").
  virtual void note(std::string_view sentence) = 0;
  /// True with `--quick`: fewer rounds and as little work as still shows that the bench runs.
  [[nodiscard]] virtual bool quick() const = 0;
};

struct Bench {
  std::string name;      ///< for `./dev bench NAME`
  std::string compares;  ///< one line for the list
  std::string method;    ///< how it was measured, in a few sentences: goes into the report
  std::function<void(Run&)> body;
};

/// Makes a bench known to the program. One per bench, at namespace scope.
class Register {
 public:
  Register(std::string name, std::string compares, std::string method, std::function<void(Run&)> body);
};
[[nodiscard]] const std::vector<Bench>& registered();  ///< in the order of their names

// ---- Tools for subjects ----

/// Processor time of this process (user and system, all threads), wall time, or processor time of this thread.
[[nodiscard]] double process_cpu_s();
[[nodiscard]] double thread_cpu_s();
[[nodiscard]] double wall_s();

/// Runs `work` once and divides: gives `per_core_second`, `cpu_ns_each`, `per_second`, `count`, `cpu_s`, `wall_s`.
/// Processor time is the whole process's, so work done on other threads counts.
[[nodiscard]] Figures measure(std::uint64_t count, const std::function<void()>& work);

/// The same figures, from times taken by the caller.
[[nodiscard]] Figures figures(double count, double cpu_s, double wall_s);

/// Memory of this process that is resident, in bytes; of another one, by its id.
[[nodiscard]] double resident_bytes(int pid = 0);

/// Runs another program to its end and reads the last line of its standard output that is a JSON object: each
/// number in it is a figure. Adds `child_cpu_s` and `child_resident_bytes_max` as the kernel counted them.
/// Its errors go to ours. Killed after the limit. NotHere where the program does not exist.
[[nodiscard]] Figures child(const std::vector<std::string>& command, double limit_s = 120);

/// Starts a command anew so often, one after the other, and throws away what it prints: the median of `wall_ms` from
/// its start to its end, and the mean of `cpu_ms`, its own with that of its children. NotHere where it does not
/// exist; throws where it fails.
[[nodiscard]] Figures start_anew(const std::vector<std::string>& command, int times);

/// Runs `body` in a fork of this process and hands its figures back: for memory, where an earlier round would
/// leave its heap behind. Call it while this process has one thread.
[[nodiscard]] Figures in_fork(const std::function<Figures()>& body, double limit_s = 120);

/// First line that a command prints, for version(): first_line({"node", "--version"}). Empty where it cannot run.
[[nodiscard]] std::string first_line(const std::vector<std::string>& command);

/// The path of a file of this repository.
[[nodiscard]] std::string source_path(std::string_view below);

/// Keeps the compiler from leaving out a computation whose result nobody uses.
template <class T>
inline void keep(const T& value) {
  asm volatile("" : : "g"(&value) : "memory");
}

}  // namespace holdfast::bench
