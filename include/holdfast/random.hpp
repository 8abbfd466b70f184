#pragma once
#include <cstdint>

#include "holdfast/types.hpp"

namespace holdfast {

/// A small seeded generator (xoshiro256++, by Blackman and Vigna, public domain: prng.di.unimi.it). Not for
/// keys. Not thread-safe. `core` draws from the one that it was handed and from nothing else.
class Random {
 public:
  explicit Random(std::uint64_t seed);
  [[nodiscard]] std::uint64_t next();
  [[nodiscard]] std::uint64_t below(std::uint64_t bound);  ///< uniform in [0, bound); 0 where bound is 0
  [[nodiscard]] double unit();                             ///< uniform in [0, 1)
  [[nodiscard]] Duration between(Duration low, Duration high);
  [[nodiscard]] Attempt attempt() { return {next(), next()}; }

 private:
  std::uint64_t state_[4];
};

}  // namespace holdfast
