#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "holdfast/loop.hpp"

namespace holdfast::runtime {

/// The production Loop: one Asio io_context, run by one thread, and one timerfd on CLOCK_BOOTTIME for all
/// timers. (Asio's own timers run on CLOCK_MONOTONIC, which stands still while the machine is suspended: a
/// belief must not.)
class AsioLoop final : public Loop {
 public:
  explicit AsioLoop(std::uint64_t seed);
  ~AsioLoop() override;
  AsioLoop(const AsioLoop&) = delete;
  AsioLoop& operator=(const AsioLoop&) = delete;

  [[nodiscard]] Instant instant() const override;
  [[nodiscard]] WallTime wall() const override;
  void post(Task task) override;
  TimerId call_at(Instant when, Task task) override;
  void cancel(TimerId timer) override;
  Random& random() override { return random_; }

  [[nodiscard]] boost::asio::io_context& context() { return context_; }

  /// Runs tasks and timers on this thread until stop().
  void run();
  /// Any thread. Queued tasks that have not run are dropped with the loop.
  void stop();

 private:
  struct Entry {
    Instant when;
    TimerId id;
  };
  void wait_for_timer();
  void run_due();
  void arm();
  [[nodiscard]] static bool later(const Entry& left, const Entry& right);

  boost::asio::io_context context_{1};
  boost::asio::posix::stream_descriptor timer_{context_};
  Random random_;
  std::vector<Entry> heap_;                  // earliest first; cancelled entries stay until they surface
  std::unordered_map<TimerId, Task> tasks_;  // looked up by id only, never walked
  TimerId last_id_ = 0;
  Instant armed_ = Instant::max();
};

}  // namespace holdfast::runtime
