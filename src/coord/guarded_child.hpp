#pragma once
#include <functional>
#include <memory>
#include <optional>

#include "holdfast/error.hpp"
#include "holdfast/lease.hpp"
#include "holdfast/types.hpp"
#include "runtime/asio_loop.hpp"
#include "runtime/exit_watch.hpp"
#include "runtime/spawn.hpp"

namespace holdfast::coord {

/// What happens to the command when its lease is about to be lost.
enum class OnLost {
  terminate,  ///< SIGTERM `notice` before the belief ends, SIGKILL a fifth of that before
  kill,       ///< SIGKILL a fifth of `notice` before the belief ends
  ignore,     ///< nothing: it runs on, although somebody else may be running it
};

/// A command that runs under a lease, in a process group of its own: when the belief ends, nothing of the group is
/// left (S7, F26). Or under none: then its time alone ends it. Dies with us too, as far as the system sees to that:
/// the command itself, not what it has started. On the loop's thread.
class GuardedChild {
 public:
  struct Ending {
    runtime::Exit exit;
    bool was_lost = false;  ///< its lease was, or was about to be, so it was told to end
    bool was_late = false;  ///< told to end because its time was over: end_by()
  };
  /// `ended` is called once, on the loop; the group is gone then. Code::not_found or denied where it cannot be
  /// started.
  [[nodiscard]] static Result<std::unique_ptr<GuardedChild>> start(runtime::SpawnOptions command,
                                                                   std::shared_ptr<const LeaseGuard> guard,
                                                                   OnLost on_lost, Duration notice,
                                                                   runtime::AsioLoop& loop,
                                                                   std::function<void(Ending)> ended);
  /// The same under no lease, to be given its time by end_by().
  [[nodiscard]] static Result<std::unique_ptr<GuardedChild>> start(runtime::SpawnOptions command,
                                                                   runtime::AsioLoop& loop,
                                                                   std::function<void(Ending)> ended);
  /// Everything that is still left of its group is killed.
  ~GuardedChild();
  GuardedChild(const GuardedChild&) = delete;
  GuardedChild& operator=(const GuardedChild&) = delete;

  /// To the whole group.
  void signal(int number) { child_.kill(number); }
  /// Whatever becomes of the lease: told to end `notice` before that, killed then.
  void end_by(Instant when, Duration notice);
  /// After all have been stopped (SIGTSTP): the command goes on, if its lease is still held.
  void go_on();
  /// The lease is lost: no need to wait for its belief's end.
  void lost();

 private:
  GuardedChild(runtime::Child child, std::shared_ptr<const LeaseGuard> guard, OnLost on_lost, Duration notice,
               runtime::AsioLoop& loop, std::function<void(Ending)> ended);
  /// What ends it next, unless a renewal moves that.
  struct End {
    Instant tell_at, kill_at;
    bool is_late = false;
  };
  [[nodiscard]] End next_end() const;
  void watch();
  void exited();

  runtime::Child child_;
  const std::shared_ptr<const LeaseGuard> guard_;  // null: under no lease, and none is lost
  const OnLost on_lost_;
  const Duration notice_;
  runtime::AsioLoop& loop_;
  std::function<void(Ending)> ended_;
  TimerId timer_ = 0;
  std::optional<End> end_by_;
  bool was_lost_ = false;
  bool was_late_ = false;
  bool told_ = false;
  std::optional<runtime::ExitWatch> exit_watch_;
};

}  // namespace holdfast::coord
