// The part of Worker that brings checkpoints about between renewals.
#include "core/number.hpp"
#include "worker/worker.hpp"

namespace holdfast::worker {
namespace {

/// Not all at once: each turn asks one slot in so many.
constexpr int turns = 10;

}  // namespace

void Worker::first_checkpoint(Slot slot, std::uint64_t generation) {
  if (over_ || place(slot).generation != generation) return;
  checkpoint_soon(slot);
  pump();
}

/// By a renewal out of turn, so that a lease still has one write at a time, in order (F5).
void Worker::checkpoint_soon(Slot slot) {
  place(slot).checkpoint_asked = true;
  keeper_.renew_soon(slot, control_.now());
}

void Worker::ask_for_checkpoints() {
  checkpoint_timer_ = control_.call_after(options_.checkpoint_every / turns, [this] { ask_for_checkpoints(); });
  const auto turn = static_cast<std::size_t>(checkpoint_turn_++ % turns);
  for (std::size_t slot = turn; slot < places_.size(); slot += turns) {
    const Place& at = places_[slot];
    if (!at.lodging || at.lodging->stopping()) continue;
    // Where the row's number cannot be read, nothing is written over it.
    if (at.lodging->progress().last_seq > last_seq_of(at.row).value_or(INT64_MAX)) {
      checkpoint_soon(static_cast<Slot>(slot));
    }
  }
  pump();
}

}  // namespace holdfast::worker
