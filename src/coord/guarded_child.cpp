#include "coord/guarded_child.hpp"

#include <csignal>
#include <utility>

namespace holdfast::coord {

Result<std::unique_ptr<GuardedChild>> GuardedChild::start(runtime::SpawnOptions command,
                                                          std::shared_ptr<const LeaseGuard> guard, OnLost on_lost,
                                                          Duration notice, runtime::AsioLoop& loop,
                                                          std::function<void(Ending)> ended) {
  command.own_group = true;
  command.takes_terminal = true;
  command.dies_with_parent = true;
  // A process that was stopped since it won the lease checks before its first effect (S7).
  if (!guard->holds(loop.instant())) return fail(Code::unavailable, "the lease ended before the command was started");
  auto child = runtime::spawn(command);
  if (!child) return tl::unexpected<Error>(child.error());
  return std::unique_ptr<GuardedChild>(
      new GuardedChild(*std::move(child), std::move(guard), on_lost, notice, loop, std::move(ended)));
}

GuardedChild::GuardedChild(runtime::Child child, std::shared_ptr<const LeaseGuard> guard, OnLost on_lost,
                           Duration notice, runtime::AsioLoop& loop, std::function<void(Ending)> ended)
    : child_(std::move(child)),
      guard_(std::move(guard)),
      on_lost_(on_lost),
      notice_(notice),
      loop_(loop),
      ended_(std::move(ended)) {
  exit_watch_.emplace(loop_, child_, [this] { exited(); });
  watch();
}

GuardedChild::~GuardedChild() {
  if (timer_ != 0) loop_.cancel(timer_);
}

/// Looks at the belief's end, which renewals move, and acts when it is near.
void GuardedChild::watch() {
  timer_ = 0;
  if (on_lost_ == OnLost::ignore) return;
  const Instant now = loop_.instant();
  const Instant end = guard_->until();
  const Instant kill_at = guard_->revoked() ? now : end - notice_ / 5;
  const Instant tell_at = on_lost_ == OnLost::kill ? kill_at : end - notice_;
  if (now >= kill_at) {
    was_lost_ = true;
    child_.kill(SIGKILL);
    return;
  }
  if (now >= tell_at || told_) {
    was_lost_ = true;
    if (!std::exchange(told_, true)) child_.kill(SIGTERM);
    timer_ = loop_.call_at(kill_at, [this] { watch(); });
    return;
  }
  timer_ = loop_.call_at(tell_at, [this] { watch(); });
}

void GuardedChild::lost() {
  if (on_lost_ == OnLost::ignore) return;
  was_lost_ = true;
  if (timer_ != 0) loop_.cancel(std::exchange(timer_, 0));
  child_.kill(SIGKILL);
}

void GuardedChild::exited() {
  if (timer_ != 0) loop_.cancel(std::exchange(timer_, 0));
  const runtime::Exit exit = child_.wait(Duration::zero()).value_or(runtime::Exit{});
  child_.kill(SIGKILL);  // what it has left behind in its group
  // Last: `ended` may destroy us.
  const auto ended = std::exchange(ended_, {});
  ended({exit, was_lost_});
}

}  // namespace holdfast::coord
