#pragma once
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "holdfast/loop.hpp"
#include "holdfast/store.hpp"

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

  void listen(ChangeListener listener);
  /// Any thread: so many rows may have changed. Must not run while the loop is being destroyed.
  void touch(std::size_t rows = Changed::any);
  [[nodiscard]] bool has_listener() const { return has_listener_.load(std::memory_order_relaxed); }  ///< any thread

 private:
  void touched();
  void tell();

  Loop& loop_;
  ChangeListener listener_;
  std::atomic<bool> has_listener_ = false;
  std::atomic<bool> posted_ = false;
  std::atomic<std::uint64_t> rows_ = 0;  // since it was told last; `many` each time that it is not known
  TimerId timer_ = 0;                    // set while a call is due
  Instant told_ = Instant::min();
};

}  // namespace holdfast::store
