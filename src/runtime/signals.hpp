#pragma once
#include <csignal>
#include <functional>
#include <memory>
#include <vector>

namespace holdfast::runtime {

class AsioLoop;

/// Signals (SIGTERM and SIGINT unless told), as calls on a loop, from its making until it is destroyed. At most one
/// per process. SIGHUP is left alone where it is ignored: that is what `nohup` asks for.
class Signals {
 public:
  /// `on_signal` is called on the loop's thread, once for each signal that arrives (the system may merge equal
  /// ones that arrive together).
  Signals(AsioLoop& loop, std::function<void(int signal)> on_signal,
          const std::vector<int>& signals = {SIGTERM, SIGINT});
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

/// Stops this process as SIGSTOP does; returns when it goes on.
void stop_this_process();

/// Makes a write into a closed pipe or socket an error of that write instead of the end of the process.
void ignore_broken_pipes();
/// Ends the process as such a write would have ended it.
void end_by_broken_pipe();

}  // namespace holdfast::runtime
