#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include "holdfast/loop.hpp"

namespace holdfast::test {

/// A Loop on virtual time: nothing happens until the test says how far time goes. Tasks that are posted run
/// before time moves; timers run in the order of their time, then of their making.
class VirtualLoop final : public Loop {
 public:
  explicit VirtualLoop(std::uint64_t seed = 1) : random_(seed) {}

  [[nodiscard]] Instant instant() const override { return now_; }
  /// As many milliseconds after an arbitrary day as instant() is after its start, plus what shift_wall() added.
  [[nodiscard]] WallTime wall() const override {
    return wall_start + wall_shift_ + std::chrono::floor<std::chrono::milliseconds>(now_.time_since_epoch());
  }
  void shift_wall(std::chrono::milliseconds by) { wall_shift_ += by; }

  void post(Task task) override {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  TimerId call_at(Instant when, Task task) override {
    const TimerId id = ++last_id_;
    timers_.emplace(std::pair(when, id), std::move(task));
    when_.emplace(id, when);
    return id;
  }
  void cancel(TimerId timer) override {
    const auto found = when_.find(timer);
    if (found == when_.end()) return;
    timers_.erase({found->second, timer});
    when_.erase(found);
  }
  Random& random() override { return random_; }

  /// Runs what was posted, and what that posts, without moving time.
  void settle() {
    for (Task task = take(); task; task = take()) task();
  }

  /// Moves time on, running every task and timer on its way at its own time.
  void advance(Duration by) { advance_to(now_ + by); }
  void advance_to(Instant end) {
    settle();
    while (!timers_.empty() && timers_.begin()->first.first <= end) fire_next();
    if (now_ < end) now_ = end;
  }

  /// As a process that was stopped and goes on: time has passed and no timer has run yet.
  void freeze(Duration by) { now_ += by; }

  /// Moves time on from event to event until the predicate holds; false where it does not within the limit.
  template <class Predicate>
  [[nodiscard]] bool advance_until(Predicate predicate, Duration limit = std::chrono::hours(1)) {
    const Instant end = now_ + limit;
    settle();
    while (!predicate()) {
      if (timers_.empty() || timers_.begin()->first.first > end) return false;
      fire_next();
    }
    return true;
  }

  [[nodiscard]] std::size_t tasks() {
    const std::lock_guard lock(mutex_);
    return tasks_.size();
  }
  [[nodiscard]] std::size_t timers() const { return timers_.size(); }

 private:
  static constexpr WallTime wall_start{std::chrono::milliseconds(1'700'000'000'000)};

  Task take() {
    const std::lock_guard lock(mutex_);
    if (tasks_.empty()) return {};
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    return task;
  }
  void fire_next() {
    const auto first = timers_.begin();
    const Instant when = first->first.first;
    const Task task = std::move(first->second);
    when_.erase(first->first.second);
    timers_.erase(first);
    if (now_ < when) now_ = when;
    task();
    settle();
  }

  Instant now_{std::chrono::seconds(1)};
  std::chrono::milliseconds wall_shift_{};
  Random random_;
  std::mutex mutex_;  // post() may be called from any thread
  std::deque<Task> tasks_;
  std::map<std::pair<Instant, TimerId>, Task> timers_;
  std::map<TimerId, Instant> when_;
  TimerId last_id_ = 0;
};

}  // namespace holdfast::test
