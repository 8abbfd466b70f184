#include "holdfast/assert.hpp"
#include "worker/stream.hpp"

namespace holdfast::worker {

StreamGroup::StreamGroup(Loop& loop, ws::Connector& connector, Sink& sink)
    : loop_(loop), connector_(connector), sink_(sink) {}

StreamGroup::~StreamGroup() = default;

std::unique_ptr<Resource> StreamGroup::make_stream() {
  return std::make_unique<Stream>(*this);
}

void StreamGroup::sink_progressed() {
  if (told_.exchange(true, std::memory_order_acq_rel)) return;
  loop_.post([this, alive = std::weak_ptr<bool>(alive_)] {
    if (!alive.expired()) wake_waiting();
  });
}

void StreamGroup::wait_for_sink(Stream& stream) {
  waiting_.emplace(stream.id_, &stream);
}

void StreamGroup::forget(const Stream& stream) {
  waiting_.erase(stream.id_);
}

void StreamGroup::wake_waiting() {
  // Cleared before looking: what the sink does from here on is told again.
  told_.store(false, std::memory_order_release);
  std::vector<Id> ids;
  for (const auto& [id, stream] : waiting_) ids.push_back(id);
  for (const Id id : ids) {
    const auto found = waiting_.find(id);
    if (found == waiting_.end()) continue;  // another one's waking ended it
    Stream* stream = found->second;
    waiting_.erase(found);
    stream->sink_moved();  // waits again where it has to
  }
}

}  // namespace holdfast::worker
