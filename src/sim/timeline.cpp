#include "sim/timeline.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::sim {

TimerId Timeline::add(Instant when, Task task, Runner* runner) {
  if (free_.empty()) {
    places_.emplace_back();
    free_.push_back(static_cast<std::uint32_t>(places_.size() - 1));
  }
  const Ticket ticket{free_.back(), places_[free_.back()].generation};
  free_.pop_back();
  Place& place = places_[ticket.place];
  place.task = std::move(task);
  place.runner = runner;
  place.used = true;
  place.timer = when > now_;
  if (runner != nullptr) ++runner->tasks;
  push(std::max(when, now_), ticket);
  return (static_cast<TimerId>(ticket.generation) << 32U) | ticket.place;
}

void Timeline::push(Instant when, Ticket ticket) {
  due_.push(static_cast<std::uint64_t>(when.time_since_epoch().count()), ticket);
}

bool Timeline::is_void(Ticket ticket) const {
  return !places_[ticket.place].used || places_[ticket.place].generation != ticket.generation;
}

Task Timeline::release(std::uint32_t index) {
  Place& place = places_[index];
  place.used = false;
  ++place.generation;
  if (place.runner != nullptr) --place.runner->tasks;
  place.runner = nullptr;
  free_.push_back(index);
  return std::exchange(place.task, nullptr);
}

void Timeline::cancel(TimerId id) {
  const Ticket ticket{static_cast<std::uint32_t>(id & 0xFFFFFFFFU), static_cast<std::uint32_t>(id >> 32U)};
  if (ticket.place >= places_.size() || is_void(ticket)) return;
  const Task dead = release(ticket.place);  // what it holds goes last
}

bool Timeline::step(Instant end) {
  while (const auto due = due_.pop(static_cast<std::uint64_t>(end.time_since_epoch().count()))) {
    const auto [when, ticket] = *due;
    if (is_void(ticket)) continue;
    now_ = Instant(Duration(static_cast<Duration::rep>(when)));
    Runner* const runner = places_[ticket.place].runner;
    if (runner != nullptr && runner->paused) {
      runner->held.push_back(ticket);
      continue;
    }
    ++steps_;
    const Task task = release(ticket.place);
    task();
    return true;
  }
  now_ = end;
  return false;
}

void Timeline::resume(Runner& runner, bool timers_first) {
  if (!std::exchange(runner.paused, false)) return;
  std::vector<Ticket> held = std::exchange(runner.held, {});
  std::erase_if(held, [this](Ticket ticket) { return is_void(ticket); });
  std::stable_partition(held.begin(), held.end(),
                        [&](Ticket ticket) { return places_[ticket.place].timer == timers_first; });
  for (const Ticket ticket : held) push(now_, ticket);
}

void Timeline::drop(Runner& runner) {
  // What is destroyed may cancel or add more: look again until nothing is left.
  while (runner.tasks > 0) {
    std::vector<Task> dead;
    for (std::uint32_t place = 0; place < places_.size(); ++place) {
      if (places_[place].used && places_[place].runner == &runner) dead.push_back(release(place));
    }
  }
  runner.held.clear();
}

}  // namespace holdfast::sim
