#include <utility>

#include "holdfast/assert.hpp"
#include "worker/stream.hpp"

namespace holdfast::worker {

StreamGroup::StreamGroup(Loop& loop, ws::Connector& connector, Sink& sink, TroubleListener troubled)
    : loop_(loop), connector_(connector), sink_(sink), troubled_(std::move(troubled)) {}

StreamGroup::~StreamGroup() = default;

std::unique_ptr<Resource> StreamGroup::make_stream() {
  return std::make_unique<Stream>(*this);
}

void StreamGroup::sink_progressed() {
  if (sink_news_.fetch_or(told, std::memory_order_acq_rel) == awaited) look_soon();
}

void StreamGroup::look_soon() {
  loop_.post([this, alive = std::weak_ptr<bool>(alive_)] {
    if (!alive.expired()) wake_waiting();
  });
}

void StreamGroup::wait_for_sink(Stream& stream) {
  waiting_.emplace(stream.id_, &stream);
  // What the sink did before it could know of this is found by looking once more.
  if ((sink_news_.fetch_or(awaited, std::memory_order_acq_rel) & awaited) == 0) look_soon();
}

void StreamGroup::forget(const Stream& stream) {
  waiting_.erase(stream.id_);
}

/// Whatever ends a stream in the middle of a read, the next one on this loop finds nothing of it (S7).
void StreamGroup::drop_records_of(const Stream& stream) {
  if (reader_ != &stream) return;
  records_.clear();
  reader_ = nullptr;
}

void StreamGroup::wake_waiting() {
  // Cleared before looking: what the sink does from here on is told again.
  sink_news_.fetch_and(~told, std::memory_order_acq_rel);
  std::vector<Id> ids;
  for (const auto& [id, stream] : waiting_) ids.push_back(id);
  for (const Id id : ids) {
    const auto found = waiting_.find(id);
    if (found == waiting_.end()) continue;  // another one's waking ended it
    Stream* stream = found->second;
    waiting_.erase(found);
    stream->sink_moved();  // waits again where it has to
  }
  if (waiting_.empty()) sink_news_.fetch_and(~awaited, std::memory_order_acq_rel);
}

}  // namespace holdfast::worker
