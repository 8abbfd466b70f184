#include "sim/timeline.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::sim {

TimerId Timeline::add(Instant when, Task task, Runner* runner) {
  if (free_.empty()) {
    slots_.emplace_back();
    free_.push_back(static_cast<std::uint32_t>(slots_.size() - 1));
  }
  const std::uint32_t index = free_.back();
  free_.pop_back();
  Slot& slot = slots_[index];
  slot.task = std::move(task);
  slot.runner = runner;
  slot.used = true;
  slot.timer = when > now_;
  if (runner != nullptr) ++runner->tasks;
  push(std::max(when, now_), index);
  return (static_cast<TimerId>(slot.generation) << 32U) | index;
}

void Timeline::push(Instant when, std::uint32_t slot) {
  heap_.push_back({when, ++order_, slot, slots_[slot].generation});
  std::push_heap(heap_.begin(), heap_.end(), Later());
}

Task Timeline::release(std::uint32_t index) {
  Slot& slot = slots_[index];
  slot.used = false;
  ++slot.generation;
  if (slot.runner != nullptr) --slot.runner->tasks;
  slot.runner = nullptr;
  free_.push_back(index);
  return std::exchange(slot.task, nullptr);
}

void Timeline::cancel(TimerId id) {
  const auto index = static_cast<std::uint32_t>(id & 0xFFFFFFFFU);
  if (index >= slots_.size()) return;
  const Slot& slot = slots_[index];
  if (!slot.used || slot.generation != static_cast<std::uint32_t>(id >> 32U)) return;
  const Task dead = release(index);  // its entry in the heap is passed over; what it holds goes last
}

bool Timeline::step(Instant end) {
  while (!heap_.empty() && heap_.front().when <= end) {
    std::pop_heap(heap_.begin(), heap_.end(), Later());
    const Entry entry = heap_.back();
    heap_.pop_back();
    const Slot& slot = slots_[entry.slot];
    if (!slot.used || slot.generation != entry.generation) continue;
    now_ = entry.when;
    if (slot.runner != nullptr && slot.runner->paused) {
      slot.runner->held.push_back({entry.slot, entry.generation});
      continue;
    }
    ++steps_;
    const Task task = release(entry.slot);
    task();
    return true;
  }
  now_ = end;
  return false;
}

void Timeline::resume(Runner& runner, bool timers_first) {
  if (!std::exchange(runner.paused, false)) return;
  std::vector<Runner::Held> held = std::exchange(runner.held, {});
  std::erase_if(held, [this](const Runner::Held& one) {
    return !slots_[one.slot].used || slots_[one.slot].generation != one.generation;
  });
  std::stable_partition(held.begin(), held.end(),
                        [&](const Runner::Held& one) { return slots_[one.slot].timer == timers_first; });
  for (const Runner::Held& one : held) push(now_, one.slot);
}

void Timeline::drop(Runner& runner) {
  // What is destroyed may cancel or add more: look again until nothing is left.
  while (runner.tasks > 0) {
    std::vector<Task> dead;
    for (std::uint32_t index = 0; index < slots_.size(); ++index) {
      if (slots_[index].used && slots_[index].runner == &runner) dead.push_back(release(index));
    }
  }
  runner.held.clear();
}

}  // namespace holdfast::sim
