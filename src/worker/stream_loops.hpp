#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "holdfast/loop.hpp"
#include "holdfast/resource.hpp"
#include "holdfast/sink.hpp"
#include "runtime/thread.hpp"
#include "worker/trouble.hpp"

namespace holdfast::worker {

/// The loops that resources live on, each with its thread, from the making until end(). Used on one thread.
class StreamLoops {
 public:
  /// `failed` is called on the thread of a loop that an exception has ended; that loop runs no more.
  StreamLoops(unsigned threads, std::function<void(const std::string& what)> failed);
  ~StreamLoops();
  StreamLoops(const StreamLoops&) = delete;
  StreamLoops& operator=(const StreamLoops&) = delete;

  /// WebSocket streams into this sink: it must outlive the loops, but be closed before they are destroyed, since it
  /// tells them of its progress from a thread of its own. Once, before the first resource.
  /// `troubled` is called on the streams' threads.
  [[nodiscard]] ResourceFactory carry(Sink& sink, const TroubleListener& troubled);
  [[nodiscard]] std::vector<Loop*> loops() const;

  /// Lets each loop finish what was posted to it until now, and joins its thread. Waits for handlers to return: where
  /// that takes longer than a second, `late` is called once, and it waits on.
  void end(const std::function<void()>& late = {});

 private:
  struct One;
  void run(One& one, const std::string& name);
  std::function<void(const std::string& what)> failed_;
  runtime::Mailbox<int> returned_;  // one for each thread
  std::vector<std::unique_ptr<One>> ones_;
};

}  // namespace holdfast::worker
