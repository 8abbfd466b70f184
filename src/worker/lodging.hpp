#pragma once
#include <functional>
#include <memory>

#include "holdfast/loop.hpp"
#include "holdfast/resource.hpp"

namespace holdfast::worker {

/// A leased resource on the loop that it lives on, handled from the control loop. Calls go over as tasks, in
/// order; answers come back as tasks. All calls on the control loop's thread.
///
/// Destroying it after `stopped` or after cut() leaves the resource's end to its own loop. Destroying it before
/// that destroys the resource at once, on this thread: only where its loop no longer runs, or is this one.
class Lodging {
 public:
  Lodging(Loop& control, Loop& home, Grant grant);
  ~Lodging();
  Lodging(const Lodging&) = delete;
  Lodging& operator=(const Lodging&) = delete;

  void start(const ResourceFactory& factory);
  void row_changed(Row row);
  /// Once. `stopped` is called on the control loop, unless cut() or destroyed first; progress() is then final.
  void stop(LossReason reason, Instant deadline, std::function<void()> stopped);
  /// Ends it without asking: it is destroyed on its loop as soon as that gets to it. `gone` is called on the control
  /// loop after that: until then something may still be under way there. progress() stays as it was. Instead of
  /// stop() or after it. Of several calls the first counts: its `gone` is the one that comes.
  void cut(std::function<void()> gone);

  [[nodiscard]] Progress progress() const;
  [[nodiscard]] LeaseGuard& guard() const { return *grant_.guard; }
  [[nodiscard]] bool stopping() const { return stopping_; }
  /// It has stopped, or was cut and its loop has only to let go of it.
  [[nodiscard]] bool over() const { return over_; }

 private:
  struct Room;
  Loop& control_;
  Loop& home_;
  Grant grant_;
  std::shared_ptr<Room> room_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  bool stopping_ = false;
  bool over_ = false;
  Progress last_;  // final where over_
};

}  // namespace holdfast::worker
