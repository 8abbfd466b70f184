#pragma once
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <iterator>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "holdfast/types.hpp"

namespace holdfast::runtime {

/// A thread with a name (cut at 15 bytes, as shown by `top -H`) that its owner always joins: whoever makes one
/// tells its body to end, e.g. by closing the Mailbox that it takes from, before destroying it. All signals are
/// blocked on it: they belong to the main thread.
class Thread {
 public:
  Thread() = default;
  Thread(const std::string& name, std::function<void()> body);
  ~Thread() { join(); }
  Thread(Thread&&) noexcept = default;
  Thread& operator=(Thread&& other) noexcept;

  /// Waits for the body to return. Does nothing where there is no thread.
  void join();
  [[nodiscard]] bool running() const { return thread_.joinable(); }
  [[nodiscard]] bool is_current() const { return thread_.get_id() == std::this_thread::get_id(); }

 private:
  std::thread thread_;
};

/// A queue from any number of threads to one: a Mailbox<Task> is a task queue. Bounded where given a capacity:
/// push() never waits, a full box refuses. Safe for all threads.
template <class T>
class Mailbox {
 public:
  static constexpr std::size_t unbounded = SIZE_MAX;

  explicit Mailbox(std::size_t capacity = unbounded) : capacity_(capacity) {}

  /// False where it is full or closed; the item is then left as it was.
  bool push(T&& item) {
    {
      const std::lock_guard lock(mutex_);
      if (closed_ || items_.size() >= capacity_) return false;
      items_.push_back(std::move(item));
      if (!waiting_) return true;
    }
    ready_.notify_one();
    return true;
  }

  /// All of them at once, oldest first, with one wake-up. Those for which there is no room stay in `items`.
  void push_all(std::vector<T>& items) {
    {
      const std::lock_guard lock(mutex_);
      const std::size_t room = closed_ ? 0 : capacity_ - std::min(capacity_, items_.size());
      const auto end = items.begin() + static_cast<std::ptrdiff_t>(std::min(room, items.size()));
      if (end == items.begin()) return;
      std::move(items.begin(), end, std::back_inserter(items_));
      items.erase(items.begin(), end);
      if (!waiting_) return;
    }
    ready_.notify_one();
  }

  /// Waits until there is something, or `wait` has passed, or wake() or close(); then moves up to `most` items,
  /// oldest first, to the end of `into`. False where it is closed and empty: nothing will ever come again.
  bool take(std::vector<T>& into, std::size_t most, Duration wait) {
    std::unique_lock lock(mutex_);
    waiting_ = true;
    ready_.wait_for(lock, std::min<Duration>(wait, std::chrono::hours(1)),
                    [this] { return !items_.empty() || closed_ || woken_; });
    waiting_ = false;
    woken_ = false;
    const std::size_t count = std::min(most, items_.size());
    for (std::size_t i = 0; i < count; ++i) {
      into.push_back(std::move(items_.front()));
      items_.pop_front();
    }
    return count > 0 || !closed_;
  }

  /// Ends the take() that is waiting, or else the next one, early.
  void wake() {
    {
      const std::lock_guard lock(mutex_);
      woken_ = true;
    }
    ready_.notify_one();
  }

  /// Refuses what comes from now on; what is inside can still be taken.
  void close() {
    {
      const std::lock_guard lock(mutex_);
      closed_ = true;
    }
    ready_.notify_one();
  }

  [[nodiscard]] bool closed() const {
    const std::lock_guard lock(mutex_);
    return closed_;
  }
  [[nodiscard]] std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return items_.size();
  }

 private:
  const std::size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<T> items_;
  bool waiting_ = false;
  bool woken_ = false;
  bool closed_ = false;
};

}  // namespace holdfast::runtime
