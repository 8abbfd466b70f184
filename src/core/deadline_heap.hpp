#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "holdfast/types.hpp"

namespace holdfast {

/// A number for a lease within one Keeper. Reused after the lease has gone.
using Slot = std::uint32_t;

/// Slots by instant, earliest first; equal instants by slot, so that runs repeat exactly. At most one instant
/// per slot. A 4-ary heap that knows where each slot is: set and remove in O(log n), the top in O(1). Allocates
/// only when a slot number higher than any before is set.
class DeadlineHeap {
 public:
  struct Entry {
    Instant at;
    Slot slot = 0;
  };

  [[nodiscard]] bool empty() const { return heap_.empty(); }
  [[nodiscard]] std::size_t size() const { return heap_.size(); }
  [[nodiscard]] bool contains(Slot slot) const { return slot < place_.size() && place_[slot] != nowhere; }
  [[nodiscard]] std::optional<Instant> at(Slot slot) const {
    return contains(slot) ? std::optional(heap_[place_[slot]].at) : std::nullopt;
  }
  /// The earliest. Not on an empty heap.
  [[nodiscard]] const Entry& top() const { return heap_.front(); }

  /// Puts the slot in, or moves it to another instant.
  void set(Slot slot, Instant at);
  /// No effect where the slot is not in.
  void remove(Slot slot);

 private:
  static constexpr std::uint32_t nowhere = UINT32_MAX;
  static constexpr std::size_t arity = 4;
  static bool before(const Entry& left, const Entry& right) {
    return left.at != right.at ? left.at < right.at : left.slot < right.slot;
  }
  void put(std::size_t place, Entry entry);
  void up(std::size_t place, Entry entry);
  void down(std::size_t place, Entry entry);

  std::vector<Entry> heap_;
  std::vector<std::uint32_t> place_;  // by slot
};

}  // namespace holdfast
