#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "holdfast/loop.hpp"
#include "holdfast/sink.hpp"
#include "sim/rules.hpp"
#include "sim/upstream.hpp"
#include "sim/world.hpp"

namespace holdfast::sim {

/// A place for messages that takes its time, stalls, fails and fills up, and keeps the Sink's promises all the same:
/// it asks a record's lease again before it makes it durable, and leaves out what is no longer held.
class SimSink final : public Sink {
 public:
  /// `loop`: its own thread. `net`: asked whether a gap is real.
  SimSink(World& world, Rules& rules, Loop& loop, std::int16_t process, std::uint64_t seed);

  void attach(const SimConnector& net) { nets_.push_back(&net); }

  // For the one who does things to it.
  void stall(bool on);
  void fail(bool on);
  void fill(bool on);
  /// The process dies: some of what was under way has just become durable, and nobody will know.
  void die();

  Position write(std::span<const Record> records) override;
  [[nodiscard]] Position acknowledged() const override { return acknowledged_; }
  [[nodiscard]] bool behind() const override { return full_ || failing_ || queue_.size() >= queue_most; }
  [[nodiscard]] std::optional<Error> failure() const override;
  void on_progress(std::function<void()> listener) override { listener_ = std::move(listener); }
  void flush() override;
  void close(Duration) override {}

 private:
  static constexpr std::size_t queue_most = 64;
  struct Kept {
    std::int32_t connection = -1;
    std::int64_t from = 0;
    std::int64_t to = 0;
    bool gap = false;
  };
  struct Batch {
    Position last = 0;
    std::shared_ptr<LeaseGuard> guard;
    std::vector<Kept> records;
  };
  void check_gap(const Record& record, std::int32_t connection);
  void work_after(Duration time);
  void work();
  bool make_durable(const Batch& batch);
  void tell() const {
    if (listener_) listener_();
  }

  World& world_;
  Rules& rules_;
  Loop& loop_;
  const std::int16_t process_;
  Random random_;
  std::vector<const SimConnector*> nets_;
  std::function<void()> listener_;
  std::deque<Batch> queue_;
  Position accepted_ = 0;
  Position acknowledged_ = 0;
  TimerId timer_ = 0;
  bool stalled_ = false;
  bool failing_ = false;
  bool full_ = false;
  Instant full_since_{};
};

}  // namespace holdfast::sim
