#include "sim/stream.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::sim {
namespace {

using namespace std::chrono_literals;

bool is_of_use(const Row& row) {
  if (!row.key.starts_with(key_prefix::connection)) return false;
  if (row.text(attribute::desired_state) != state::started) return false;
  return row.text(attribute::owner).empty() || row.number(attribute::expires_at) == 0;
}

}  // namespace

std::shared_ptr<SimStream::Reader> SimStream::read(std::shared_ptr<store::ChangeFeed> feed,
                                                   std::function<bool()> reachable) {
  auto reader = std::make_shared<Reader>(Reader{std::move(feed), std::move(reachable), {}});
  std::erase_if(readers_, [](const auto& one) { return one.expired(); });
  readers_.push_back(reader);
  deliver(reader, Changed::any, random_.between(10ms, 500ms));  // what happened before nobody has read
  return reader;
}

void SimStream::wrote(const Row& after) {
  if (!on_ || !is_of_use(after)) return;
  for (const auto& one : readers_) {
    const auto reader = one.lock();
    if (!reader) continue;
    if (world_.strikes(Fault::stream_trimmed, random_)) {
      world_.marks.hit(Mark::stream_trimmed);
      deliver(reader, Changed::any, random_.between(0ms, world_.plan.terms.lease));
    } else if (world_.strikes(Fault::stream_slow, random_)) {
      deliver(reader, 1, random_.between(0ms, world_.plan.terms.lease * 3));
    } else {
      deliver(reader, 1, random_.between(50ms, 900ms));
    }
  }
}

void SimStream::turn(bool on) {
  if (std::exchange(on_, on) == on) return;
  if (!on) world_.marks.hit(Mark::stream_turned_off);
  for (const auto& one : readers_) {
    if (const auto reader = one.lock()) deliver(reader, Changed::any, random_.between(0ms, world_.plan.terms.lease));
  }
}

void SimStream::deliver(const std::shared_ptr<Reader>& reader, std::size_t rows, Duration lag) {
  reader->shown = std::max(reader->shown, world_.now() + lag);
  world_.loop.call_at(reader->shown, [this, weak = std::weak_ptr(reader), rows] {
    if (const auto still = weak.lock()) arrive(still, rows);
  });
}

/// Who cannot reach the table reads on when he can.
void SimStream::arrive(const std::shared_ptr<Reader>& reader, std::size_t rows) {
  if (reader->reachable()) return reader->feed->touch(rows);
  world_.loop.call_after(random_.between(100ms, 1s), [this, weak = std::weak_ptr(reader), rows] {
    if (const auto still = weak.lock()) arrive(still, rows);
  });
}

}  // namespace holdfast::sim
