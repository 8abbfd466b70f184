#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "holdfast/assert.hpp"

namespace holdfast::sim {

/// A queue by key for who never puts in a key below the last one taken out, as with time: a radix heap. Equal keys
/// are taken out in the order in which they were put in.
///
/// An entry stands in the bucket of the highest bit in which its key differs from the last key taken out. So all of
/// a lower bucket come before all of a higher one, and when the lower ones are empty, the least of a bucket spreads
/// the others of it over them. Putting in is O(1); an entry is moved once for each bucket that it comes down through.
template <class T>
class MonotoneQueue {
 public:
  /// `key` at least the last one taken out.
  void push(std::uint64_t key, T value) {
    HOLDFAST_ASSERT(key >= last_, "what is over does not come again");
    put({key, std::move(value)});
  }

  /// The least, if it is no higher than `most`.
  std::optional<std::pair<std::uint64_t, T>> pop(std::uint64_t most) {
    if (next_ == buckets_[0].size() && !refill(most)) return std::nullopt;
    return std::pair(last_, std::move(buckets_[0][next_++].value));
  }

 private:
  struct Entry {
    std::uint64_t key = 0;
    T value;
  };
  using Bucket = std::vector<Entry>;

  void put(Entry entry) {
    const auto bucket = static_cast<std::size_t>(std::bit_width(entry.key ^ last_));
    buckets_[bucket].push_back(std::move(entry));
  }

  /// Fills the first bucket, whose keys all are the last one taken out, from the lowest that has something.
  bool refill(std::uint64_t most) {
    buckets_[0].clear();
    next_ = 0;
    std::size_t lowest = 1;
    while (lowest < buckets_.size() && buckets_[lowest].empty()) ++lowest;
    if (lowest == buckets_.size()) return false;
    std::uint64_t least = UINT64_MAX;
    for (const Entry& entry : buckets_[lowest]) least = std::min(least, entry.key);
    if (least > most) return false;
    last_ = least;
    spread_.swap(buckets_[lowest]);
    for (Entry& entry : spread_) put(std::move(entry));
    spread_.clear();
    return true;
  }

  std::array<Bucket, 65> buckets_;
  Bucket spread_;         // the bucket that is being spread: kept for its memory
  std::size_t next_ = 0;  // of the first bucket, which is taken out of from its front
  std::uint64_t last_ = 0;
};

}  // namespace holdfast::sim
