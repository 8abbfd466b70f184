#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/lease.hpp"
#include "holdfast/loop.hpp"
#include "holdfast/store.hpp"
#include "runtime/log.hpp"
#include "worker/trouble.hpp"

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
  enum class Asked { read, write };
  /// Every answer of the store comes by here. Reads and writes fail apart (a file that may only be read answers the
  /// ones and rejects the others): the store is well when both are.
  void answered(Asked asked, Outcome outcome, const Error& error);
  /// A connection could not be made or ended, and is `parked` or tried again later: one line, or a sum where they are
  /// many.
  void troubled(const Trouble& trouble);
  /// Says what was gathered, now.
  void flush();

 private:
  void gather(std::size_t held_now);
  void tell_troubles();

  Loop& loop_;
  runtime::Log& log_;
  const std::size_t capacity_;
  TimerId timer_ = 0;
  std::size_t held_ = 0;
  std::size_t taken_ = 0;
  std::array<std::size_t, 6> ends_{};
  std::vector<Trouble> troubles_;  // the first ones
  std::size_t troubled_ = 0;
  std::size_t parked_ = 0;  // of them
  struct Side {
    unsigned failures = 0;  // in a row
    std::optional<Instant> first_failure{};
    bool bad = false;
  };
  std::array<Side, 2> sides_{};  // by Asked
  std::optional<Instant> away_since_;
};

}  // namespace holdfast::worker
