#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "holdfast/lease.hpp"
#include "holdfast/loop.hpp"
#include "holdfast/store.hpp"
#include "runtime/log.hpp"

namespace holdfast::worker {

/// What a worker has to say, in few lines (F20): takes and losses are gathered for a second, the store's state is
/// told when it changes.
class Tidings {
 public:
  Tidings(Loop& loop, runtime::Log& log, std::size_t capacity) : loop_(loop), log_(log), capacity_(capacity) {}
  ~Tidings();
  Tidings(const Tidings&) = delete;
  Tidings& operator=(const Tidings&) = delete;

  void took(std::size_t held_now);
  void ended(LossReason reason, std::size_t held_now);
  /// Every answer of the store comes by here.
  void answered(Outcome outcome, const Error& error);
  /// Says what was gathered, now.
  void flush();

 private:
  void gather(std::size_t held_now);

  Loop& loop_;
  runtime::Log& log_;
  const std::size_t capacity_;
  TimerId timer_ = 0;
  std::size_t held_ = 0;
  std::size_t taken_ = 0;
  std::array<std::size_t, 6> ends_{};
  unsigned failures_ = 0;  // of the store, in a row
  std::optional<Instant> away_since_;
  std::optional<Instant> first_failure_;
};

}  // namespace holdfast::worker
