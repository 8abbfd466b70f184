#pragma once
#include <CLI/App.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/store_session.hpp"
#include "coord/coordinator.hpp"
#include "coord/guarded_child.hpp"
#include "coord/within.hpp"
#include "core/coord/limits.hpp"
#include "holdfast/lease.hpp"
#include "runtime/signals.hpp"

// What the commands of ephemeral coordinators (run, once, decide, …) have in common.
namespace holdfast::cli {

/// Exit codes, as in sysexits.h where there is one for it.
enum class CoordExit : int {
  fine = 0,
  failed = 1,
  usage = 64,
  unavailable = 69,  ///< the store cannot be reached
  unrecorded = 74,   ///< the command ran to its end, and what it came to may not be on record
  busy = 75,         ///< somebody else has it; trying again later can help
  lost = 76,         ///< the right was lost while the command ran
  held = 77,         ///< it was begun before and left no result: a person is to decide
  provisional = 79,  ///< accepted on this machine, and not in the store
};
[[nodiscard]] int code_of(const Failure& failure);
/// Tells it in one line on standard error; its exit code.
int complain_of(const Failure& failure);
/// The same for what went wrong before the store was asked. What was asked for wrongly is handed on, to be told by
/// the program.
[[nodiscard]] Result<int> complain_of(const Error& error);

/// Prints it; the exit code to end with.
[[nodiscard]] Result<int> answer(const std::string& text, CoordExit code = CoordExit::fine);

/// For people: why the command under this right was ended. `reason`: as it was told; nothing: not told yet, since its
/// end was near.
[[nodiscard]] std::string why_lost(const std::string& name, std::optional<LossReason> reason, bool renews);

/// The store did not say whether the right under this name was given back, for people.
[[nodiscard]] std::string not_known_to_be_back(const std::string& name);

/// A command that was not started: its lease had ended, or there is no such command.
int complain_of_start(const Error& error);

/// What is asked of the right to run.
struct RightSettings {
  std::string store = "sqlite:holdfast.db";
  Duration ttl = std::chrono::seconds(10);
  std::optional<Duration> skew;
  std::optional<Duration> wait;
  bool no_wait = false;
  bool no_renew = false;
  std::string on_lost = "term";
  Duration store_patience = std::chrono::seconds(5);
};
void add_right(CLI::App& app, RightSettings& settings, const std::string& waits_for);
/// Terms and times, or what is wrong with them.
[[nodiscard]] Result<coord::TaskOptions> task_options(const RightSettings& settings);
[[nodiscard]] Result<coord::OnLost> on_lost_from(const std::string& text);

/// A command has so long, and no longer: it is told to end `notice` before `end_by`, and killed then.
struct TimeLimit {
  Instant end_by;
  Duration notice{};
};

/// How a command under a lease came to its end.
struct CommandEnd {
  coord::GuardedChild::Ending ending;
  std::optional<Error> not_started;
};

/// What is asked of a single call: a store, patience, a form of output.
struct CallSettings {
  std::string store = "sqlite:holdfast.db";
  Duration store_patience = std::chrono::seconds(5);
  bool json = false;
};
void add_call(CLI::App& app, CallSettings& settings, const std::string& json);

/// A process that coordinates: a store, a loop, and the signals that are for the command.
class Coordination {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Coordination>> open(const std::string& store, Duration patience,
                                                                  StoreSession::Create create);

  [[nodiscard]] coord::Coordinator& coordinator() { return *coordinator_; }
  [[nodiscard]] StoreSession& session() { return *session_; }
  /// Runs the loop until that is true, or until a signal comes while no command runs: its number.
  [[nodiscard]] std::optional<int> run_until(const std::function<bool()>& is_done);
  /// The same for what must not be left half done, such as a result that is being recorded: a signal does not end it,
  /// unless it takes `patience` more, or another one comes. What comes within the same moment is no other one: shells
  /// and `timeout` signal a process and its group.
  [[nodiscard]] std::optional<int> settle(Duration patience, const std::function<bool()>& is_done);
  /// After a signal. What was asked for is not wanted any more, as its is_wanted says by now, and may be on its way:
  /// settles what comes of it. False: it is not known.
  bool see_out(Duration patience, const std::function<bool()>& is_told);
  /// The last signal that asked the command which ran to end; 0: none did.
  [[nodiscard]] int told_to_end() const { return told_to_end_; }
  /// Wakes run_until().
  void wake();
  /// Begins what calls back with a result, and waits for that: the result, or the exit code to end with where there
  /// is none (why is told) or a signal came first.
  template <class T>
  [[nodiscard]] tl::expected<T, int> await(const std::function<void(std::function<void(Ended<T>)>)>& begin) {
    std::optional<Ended<T>> ended;
    begin([&](Ended<T> got) {
      ended = std::move(got);
      wake();
    });
    if (const auto signal = run_until([&] { return ended.has_value(); })) return tl::unexpected(128 + *signal);
    if (!*ended) return tl::unexpected(complain_of(ended->error()));
    return **std::move(ended);
  }
  /// The same for a procedure, which is made of the arguments, a deadline and a generator.
  template <class T, class P, class... Arguments>
  [[nodiscard]] tl::expected<T, int> carry_out(Duration patience, Arguments... arguments) {
    auto procedure = std::make_unique<P>(std::move(arguments)..., session_->instant() + patience, random());
    return await<T>([&](auto handler) { coordinator_->run(std::move(procedure), std::move(handler)); });
  }
  [[nodiscard]] Random& random();

  /// Runs it to its end under the lease: signals are passed on to it.
  [[nodiscard]] CommandEnd run_command(const std::shared_ptr<coord::Held>& held, runtime::SpawnOptions command,
                                       const coord::TaskOptions& options, coord::OnLost on_lost,
                                       const std::optional<TimeLimit>& limit = {});
  /// Starts one under no lease, beside what else goes on; one at a time. Signals are passed on to it. Where one has
  /// asked it to end, run_until() ends with that signal once `ended` was told how it did.
  [[nodiscard]] Result<void> start_command(runtime::SpawnOptions command, const TimeLimit& limit,
                                           std::function<void(const coord::GuardedChild::Ending&)> ended);
  /// The lease of the command that runs is lost.
  void lost();

 private:
  explicit Coordination(std::unique_ptr<StoreSession> session);
  void stop();
  void heard(int signal);
  void note(int signal, Duration patience);

  std::unique_ptr<StoreSession> session_;
  std::unique_ptr<coord::Coordinator> coordinator_;
  std::unique_ptr<runtime::Signals> signals_;
  std::unique_ptr<coord::GuardedChild> child_;
  std::optional<int> signal_;         // to be obeyed
  std::optional<Duration> settling_;  // with so much patience
  struct Noted {
    int signal = 0;
    Instant at;
    TimerId timer = 0;
  };
  std::optional<Noted> noted_;  // while something is settled
  int told_to_end_ = 0;
};

/// Opens it and does that. What is wrong with the store is told, with its exit code.
[[nodiscard]] Result<int> coordinate(const std::string& store, Duration patience,
                                     const std::function<Result<int>(Coordination&)>& action,
                                     StoreSession::Create create = StoreSession::Create::if_embedded);

/// The exit codes of what is a single call; `failed` is what 1 means.
[[nodiscard]] std::string call_exit_codes(const std::string& failed);

/// The four variables that a command finds: HOLDFAST_TASK, _EPOCH, _ATTEMPT, _DEADLINE_MS (epoch milliseconds at
/// which the lease ends unless it is renewed).
[[nodiscard]] std::vector<std::pair<std::string, std::string>> right_environment(const std::string& name,
                                                                                 const coord::Held& held);

}  // namespace holdfast::cli
