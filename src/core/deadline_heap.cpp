#include "core/deadline_heap.hpp"

#include <algorithm>

namespace holdfast {

void DeadlineHeap::set(Slot slot, Instant at) {
  if (slot >= place_.size()) place_.resize(std::max<std::size_t>(slot + 1, 2 * place_.size()), nowhere);
  const Entry entry{at, slot};
  std::size_t place = place_[slot];
  if (place == nowhere) {
    place = heap_.size();
    heap_.push_back(entry);
    up(place, entry);
  } else if (before(entry, heap_[place])) {
    up(place, entry);
  } else {
    down(place, entry);
  }
}

void DeadlineHeap::remove(Slot slot) {
  if (!contains(slot)) return;
  const std::size_t place = place_[slot];
  place_[slot] = nowhere;
  const Entry last = heap_.back();
  heap_.pop_back();
  if (place == heap_.size()) return;
  // The last entry takes the empty place, and may belong above or below it.
  if (place > 0 && before(last, heap_[(place - 1) / arity])) {
    up(place, last);
  } else {
    down(place, last);
  }
}

void DeadlineHeap::put(std::size_t place, Entry entry) {
  heap_[place] = entry;
  place_[entry.slot] = static_cast<std::uint32_t>(place);
}

void DeadlineHeap::up(std::size_t place, Entry entry) {
  while (place > 0) {
    const std::size_t parent = (place - 1) / arity;
    if (!before(entry, heap_[parent])) break;
    put(place, heap_[parent]);
    place = parent;
  }
  put(place, entry);
}

void DeadlineHeap::down(std::size_t place, Entry entry) {
  for (;;) {
    const std::size_t first = place * arity + 1;
    if (first >= heap_.size()) break;
    const std::size_t end = std::min(first + arity, heap_.size());
    std::size_t least = first;
    for (std::size_t child = first + 1; child < end; ++child) {
      if (before(heap_[child], heap_[least])) least = child;
    }
    if (!before(heap_[least], entry)) break;
    put(place, heap_[least]);
    place = least;
  }
  put(place, entry);
}

}  // namespace holdfast
