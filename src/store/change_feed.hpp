#pragma once
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>

#include "holdfast/loop.hpp"

namespace holdfast::store {

/// Store::changes(): passes "something changed" on to one listener on the loop, the first at once, then at most
/// one every 100 ms, and always one after the last change. All on the loop's thread, but touch().
class ChangeFeed : public std::enable_shared_from_this<ChangeFeed> {
 public:
  static constexpr Duration quiet = std::chrono::milliseconds(100);

  explicit ChangeFeed(Loop& loop) : loop_(loop) {}
  ~ChangeFeed();
  ChangeFeed(const ChangeFeed&) = delete;
  ChangeFeed& operator=(const ChangeFeed&) = delete;

  void listen(std::function<void()> listener);
  /// Any thread: rows may have changed. Must not run while the loop is being destroyed.
  void touch();
  [[nodiscard]] bool has_listener() const { return has_listener_.load(std::memory_order_relaxed); }  ///< any thread

 private:
  void touched();
  void tell();

  Loop& loop_;
  std::function<void()> listener_;
  std::atomic<bool> has_listener_ = false;
  std::atomic<bool> posted_ = false;
  TimerId timer_ = 0;  // set while a call is due
  Instant told_ = Instant::min();
};

}  // namespace holdfast::store
