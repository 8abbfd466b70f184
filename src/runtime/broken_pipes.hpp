#pragma once
#include <csignal>

namespace holdfast::runtime {

/// During its life, a write of this thread into a closed pipe is an error of that write, and the process goes on.
class BrokenPipesHeld {
 public:
  BrokenPipesHeld();
  ~BrokenPipesHeld();
  BrokenPipesHeld(const BrokenPipesHeld&) = delete;
  BrokenPipesHeld& operator=(const BrokenPipesHeld&) = delete;

 private:
  sigset_t before_{};
  bool was_pending_ = false;
};

}  // namespace holdfast::runtime
