#pragma once
#include <algorithm>
#include <memory>
#include <vector>

#include "support/virtual_loop.hpp"

namespace holdfast::test {

/// The processes of a test, each with its own loop, on one virtual time that moves in steps of a millisecond. One
/// that is paused stands still, as after SIGSTOP, and finds on resume() that its clocks have gone on.
class VirtualNodes {
 public:
  VirtualLoop& add() {
    nodes_.push_back({std::make_unique<VirtualLoop>(nodes_.size() + 1), false});
    VirtualLoop& loop = *nodes_.back().loop;
    loop.freeze(now_ - loop.instant());
    return loop;
  }
  void pause(const VirtualLoop& loop) { find(loop).paused = true; }
  void resume(VirtualLoop& loop) {
    find(loop).paused = false;
    loop.freeze(now_ - loop.instant());
  }
  [[nodiscard]] Instant now() const { return now_; }

  void advance(Duration by) {
    (void)advance_until([] { return false; }, by);
  }
  /// False where it does not hold within the limit.
  template <class Predicate>
  [[nodiscard]] bool advance_until(Predicate predicate, Duration limit) {
    const Instant end = now_ + limit;
    while (!predicate()) {
      if (now_ >= end) return false;
      now_ += std::min<Duration>(end - now_, std::chrono::milliseconds(1));
      for (Node& node : nodes_) {
        if (!node.paused) node.loop->advance_to(now_);
      }
    }
    return true;
  }

 private:
  struct Node {
    std::unique_ptr<VirtualLoop> loop;
    bool paused = false;
  };
  Node& find(const VirtualLoop& loop) {
    return *std::find_if(nodes_.begin(), nodes_.end(), [&](const Node& node) { return node.loop.get() == &loop; });
  }

  std::vector<Node> nodes_;
  Instant now_{std::chrono::seconds(1)};
};

}  // namespace holdfast::test
