#include "worker/lodging.hpp"

#include <atomic>
#include <utility>

#include "holdfast/assert.hpp"

namespace holdfast::worker {

/// Shared by the tasks on both loops. `resource` belongs to the home loop; `visible` is what the control loop
/// reads progress from: it is set once the resource is made, and the resource is destroyed only by a task that
/// the control loop posts after it has looked for the last time.
struct Lodging::Room {
  std::unique_ptr<Resource> resource;
  std::atomic<Resource*> visible{nullptr};
  std::atomic<bool> refused{false};
};

Lodging::Lodging(Loop& control, Loop& home, Grant grant)
    : control_(control), home_(home), grant_(std::move(grant)), room_(std::make_shared<Room>()) {
  last_.last_seq = grant_.row.number(attribute::last_seq);
  last_.status = "starting";
}

Lodging::~Lodging() {
  if (over_) {
    home_.post([room = std::move(room_)] { room->resource.reset(); });
  } else {
    room_->resource.reset();
  }
}

void Lodging::start(const ResourceFactory& factory) {
  home_.post([room = room_, &home = home_, grant = grant_, factory] {
    // It may have waited here for long: nothing is begun under a lease that has ended (S7, F8).
    if (!grant.guard->holds(home.instant())) return;
    room->resource = factory(grant.row, home);
    if (!room->resource) return room->refused.store(true, std::memory_order_release);
    room->resource->start(grant);
    room->visible.store(room->resource.get(), std::memory_order_release);
  });
}

void Lodging::row_changed(Row row) {
  if (stopping_) return;
  home_.post([room = room_, row = std::move(row)] {
    if (room->resource) room->resource->row_changed(row);
  });
}

void Lodging::stop(LossReason reason, Instant deadline, std::function<void()> stopped) {
  HOLDFAST_ASSERT(!stopping_, "a resource is stopped once");
  stopping_ = true;
  // Runs on the home loop; hands the news to the control loop.
  auto finished = [this, alive = std::weak_ptr<bool>(alive_), &control = control_, room = room_,
                   stopped = std::move(stopped)] {
    Progress final_progress;
    const bool was_made = room->resource != nullptr;
    if (was_made) final_progress = room->resource->progress();
    control.post([this, alive, was_made, final_progress = std::move(final_progress), stopped] {
      if (alive.expired() || over_) return;
      if (was_made) last_ = final_progress;
      over_ = true;
      stopped();
    });
  };
  home_.post([room = room_, reason, deadline, finished = std::move(finished)]() mutable {
    if (room->resource) {
      room->resource->stop(reason, deadline, std::move(finished));
    } else {
      finished();
    }
  });
}

void Lodging::cut(std::function<void()> gone) {
  if (over_) return;
  last_ = progress();
  over_ = true;
  stopping_ = true;
  home_.post([room = room_, &control = control_, alive = std::weak_ptr<bool>(alive_), gone = std::move(gone)] {
    room->visible.store(nullptr, std::memory_order_release);
    room->resource.reset();
    control.post([alive, gone] {
      if (!alive.expired()) gone();
    });
  });
}

Progress Lodging::progress() const {
  if (over_) return last_;
  const Resource* resource = room_->visible.load(std::memory_order_acquire);
  if (resource != nullptr) return resource->progress();
  Progress progress = last_;
  if (room_->refused.load(std::memory_order_acquire)) {
    // Kept, so that it does not go round and round among workers that cannot run it either.
    progress.status = "parked";
    progress.reason = "this worker cannot run such a row";
  }
  return progress;
}

}  // namespace holdfast::worker
