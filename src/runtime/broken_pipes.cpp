#include "runtime/broken_pipes.hpp"

namespace holdfast::runtime {

namespace {

sigset_t broken_pipes() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGPIPE);
  return set;
}

bool is_pending() {
  sigset_t pending;
  sigpending(&pending);
  return sigismember(&pending, SIGPIPE) == 1;
}

}  // namespace

BrokenPipesHeld::BrokenPipesHeld() : was_pending_(is_pending()) {
  const sigset_t set = broken_pipes();
  pthread_sigmask(SIG_BLOCK, &set, &before_);
}

BrokenPipesHeld::~BrokenPipesHeld() {
  const sigset_t set = broken_pipes();
  const timespec at_once{};
  if (!was_pending_ && is_pending()) sigtimedwait(&set, nullptr, &at_once);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace holdfast::runtime
