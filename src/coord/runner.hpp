#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "core/coord/procedure.hpp"
#include "holdfast/loop.hpp"
#include "holdfast/store.hpp"

namespace holdfast::coord {

/// Carries procedures out on a store, any number at once. On the loop's thread.
class Runner {
 public:
  Runner(Store& store, Loop& loop);
  /// Procedures that are under way are dropped; nobody is told.
  ~Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  using Id = std::uint64_t;
  /// `done` is called once, never inside the call; the procedure lives until it returns. `is_wanted` is the one that
  /// the procedure asks, for recheck().
  Id run(std::unique_ptr<Procedure> procedure, std::function<void()> done, IsWanted is_wanted = {});
  /// What an is_wanted says may have changed: who pauses and is not wanted any more goes on at once, not after it.
  void recheck();
  /// `done` will not be called. A write that is under way may still happen.
  void drop(Id id);

 private:
  struct Run {
    std::unique_ptr<Procedure> procedure;
    std::function<void()> done;
    IsWanted is_wanted;
    TimerId timer = 0;
    bool woken_by_changes = false;
  };

  void step(Id id);
  void carry_out(Id id, Ask ask, Instant end);
  void answered(Id id, Answer answer);
  void pause(Id id, const Pause& pause);
  void changed();
  void wake(const std::function<bool(const Run&)>& which);
  void listen();
  template <class Reply>
  [[nodiscard]] std::function<void(Reply)> answer_to(Id id);

  Store& store_;
  Loop& loop_;
  std::map<Id, Run> runs_;
  Id last_id_ = 0;
  bool listening_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace holdfast::coord
