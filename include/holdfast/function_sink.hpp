#pragma once
#include <atomic>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

#include "holdfast/sink.hpp"

namespace holdfast {

/// A sink that is a function of one's own. It is called inside write(), on the caller's thread, once per record
/// and in order; with several threads writing, several calls run at once. A record counts as acknowledged when
/// the call for it returns.
///
/// A call that throws ends it: that record and all after it are never acknowledged and the function is not
/// called again; failure() tells why and behind() stays true. A successor starts from the last record that was
/// acknowledged, so a function that throws on a record will meet it again.
class FunctionSink final : public Sink {
 public:
  using Function = std::function<void(const Record&)>;
  /// `clock` is for tests and simulation; empty: the real one.
  explicit FunctionSink(Function function, std::function<Instant()> clock = {});

  Position write(std::span<const Record> records) override;
  [[nodiscard]] Position acknowledged() const override { return acknowledged_.load(std::memory_order_acquire); }
  [[nodiscard]] bool behind() const override { return failed_.load(std::memory_order_acquire); }
  [[nodiscard]] std::optional<Error> failure() const override;
  [[nodiscard]] bool failed_for_good() const override { return behind(); }
  void on_progress(std::function<void()> listener) override { listener_ = std::move(listener); }
  void flush() override {}
  void close(Duration) override {}

 private:
  [[nodiscard]] bool call(const Record& record);

  const Function function_;
  const std::function<Instant()> clock_;
  std::function<void()> listener_;
  std::atomic<Position> acknowledged_{0};
  std::atomic<bool> failed_{false};

  mutable std::mutex mutex_;
  Position accepted_ = 0;
  std::vector<Position> running_;  // the first of each write() that is under way, or that failed
  std::optional<Error> failure_;
};

}  // namespace holdfast
