#include "holdfast/random.hpp"

#include <bit>

namespace holdfast {

namespace {
// splitmix64 spreads a seed over the state, as the generator's authors advise.
std::uint64_t splitmix(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15U;
  std::uint64_t mixed = state;
  mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9U;
  mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebU;
  return mixed ^ (mixed >> 31U);
}
}  // namespace

Random::Random(std::uint64_t seed) : state_{} {
  for (auto& word : state_) word = splitmix(seed);
}

std::uint64_t Random::next() {
  const std::uint64_t result = std::rotl(state_[0] + state_[3], 23) + state_[0];
  const std::uint64_t shifted = state_[1] << 17U;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

double Random::unit() {
  return static_cast<double>(next() >> 11U) * 0x1.0p-53;
}

std::uint64_t Random::below(std::uint64_t bound) {
  if (bound == 0) return 0;
  // Rejects the top remainder, so that every value is equally likely.
  const std::uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
  std::uint64_t drawn = next();
  while (drawn >= limit) drawn = next();
  return drawn % bound;
}

Duration Random::between(Duration low, Duration high) {
  if (high <= low) return low;
  return low + Duration(static_cast<Duration::rep>(below(static_cast<std::uint64_t>((high - low).count()) + 1)));
}

}  // namespace holdfast
