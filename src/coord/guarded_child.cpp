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
  if (guard && !guard->holds(loop.instant())) {
    return fail(Code::unavailable, "the lease ended before the command was started");
  }
  auto child = runtime::spawn(command);
  if (!child) return tl::unexpected<Error>(child.error());
  return std::unique_ptr<GuardedChild>(
      new GuardedChild(*std::move(child), std::move(guard), on_lost, notice, loop, std::move(ended)));
}

Result<std::unique_ptr<GuardedChild>> GuardedChild::start(runtime::SpawnOptions command, runtime::AsioLoop& loop,
                                                          std::function<void(Ending)> ended) {
  return start(std::move(command), nullptr, OnLost::ignore, Duration::zero(), loop, std::move(ended));
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

void GuardedChild::end_by(Instant when, Duration notice) {
  end_by_ = End{when - notice, when, true};
  if (timer_ != 0) loop_.cancel(timer_);
  watch();
}

GuardedChild::End GuardedChild::next_end() const {
  End end{Instant::max(), Instant::max()};
  if (on_lost_ != OnLost::ignore) {
    const Instant until = guard_->until();
    end.kill_at = guard_->revoked() ? Instant::min() : until - notice_ / 5;
    end.tell_at = on_lost_ == OnLost::kill || guard_->revoked() ? end.kill_at : until - notice_;
  }
  return end_by_ && end_by_->kill_at < end.kill_at ? *end_by_ : end;
}

/// Looks at what ends it next, which renewals move, and acts when that is near.
void GuardedChild::watch() {
  timer_ = 0;
  const Instant now = loop_.instant();
  const End end = next_end();
  if (now < end.tell_at && !told_) {
    if (end.tell_at < Instant::max()) timer_ = loop_.call_at(end.tell_at, [this] { watch(); });
    return;
  }
  (end.is_late ? was_late_ : was_lost_) = true;
  if (now >= end.kill_at) return child_.kill(SIGKILL);
  if (!std::exchange(told_, true)) child_.kill(SIGTERM);
  timer_ = loop_.call_at(end.kill_at, [this] { watch(); });
}

void GuardedChild::go_on() {
  // Before its next effect (S7): a stopped process is killed without doing anything more.
  if (on_lost_ != OnLost::ignore && !guard_->holds(loop_.instant())) return lost();
  child_.kill(SIGCONT);
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
  ended({exit, was_lost_, was_late_});
}

}  // namespace holdfast::coord
