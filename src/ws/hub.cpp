#include "ws/hub.hpp"

#include <utility>

#include "holdfast/assert.hpp"
#include "ws/peer.hpp"

namespace holdfast::ws {

Hub::Hub(runtime::AsioLoop& loop, EngineOptions options) : loop_(loop), options_(std::move(options)) {
  // Sixteen KiB is the longest TLS record.
  options_.read_buffer_bytes = std::max(options_.read_buffer_bytes, std::size_t{32} << 10U);
}

Hub::~Hub() = default;

void Hub::stop() {
  stopped_ = true;
  while (!peers_.empty()) {
    const std::shared_ptr<Peer> peer = peers_.back();
    peer->cut();  // removes itself
  }
  if (timer_ != 0) loop_.cancel(timer_);
  timer_ = 0;
}

void Hub::add(std::shared_ptr<Peer> peer) {
  HOLDFAST_ASSERT(!stopped_, "a stopped engine makes no connections");
  peer->hub_index = peers_.size();
  peers_.push_back(std::move(peer));
}

void Hub::remove(Peer& peer) {
  set_deadline(peer, Instant::max());
  const std::size_t index = peer.hub_index;
  HOLDFAST_ASSERT(index < peers_.size() && peers_[index].get() == &peer, "a peer knows its place");
  const std::shared_ptr<Peer> last_owner = std::move(peers_[index]);
  if (index + 1 != peers_.size()) {
    peers_[index] = std::move(peers_.back());
    peers_[index]->hub_index = index;
  }
  peers_.pop_back();
}

char* Hub::buffer() {
  if (!buffer_) buffer_ = std::make_unique<char[]>(options_.read_buffer_bytes);
  return buffer_.get();
}

void Hub::place(std::size_t index, Deadline deadline) {
  deadlines_[index] = deadline;
  deadline.peer->deadline_index = index;
}

void Hub::sift_up(std::size_t index) {
  const Deadline moving = deadlines_[index];
  while (index > 0) {
    const std::size_t parent = (index - 1) / 2;
    if (deadlines_[parent].when <= moving.when) break;
    place(index, deadlines_[parent]);
    index = parent;
  }
  place(index, moving);
}

void Hub::sift_down(std::size_t index) {
  const Deadline moving = deadlines_[index];
  for (;;) {
    std::size_t child = 2 * index + 1;
    if (child >= deadlines_.size()) break;
    if (child + 1 < deadlines_.size() && deadlines_[child + 1].when < deadlines_[child].when) ++child;
    if (moving.when <= deadlines_[child].when) break;
    place(index, deadlines_[child]);
    index = child;
  }
  place(index, moving);
}

void Hub::remove_deadline(std::size_t index) {
  deadlines_[index].peer->deadline_index = Peer::no_index;
  const Deadline last = deadlines_.back();
  deadlines_.pop_back();
  if (index == deadlines_.size()) return;
  place(index, last);
  sift_up(index);
  sift_down(last.peer->deadline_index);
}

void Hub::set_deadline(Peer& peer, Instant when) {
  const bool has = peer.deadline_index != Peer::no_index;
  if (when == Instant::max()) {
    if (has) remove_deadline(peer.deadline_index);
    return;
  }
  if (has) {
    deadlines_[peer.deadline_index].when = when;
    sift_up(peer.deadline_index);
    sift_down(peer.deadline_index);
  } else {
    deadlines_.push_back({when, &peer});
    sift_up(deadlines_.size() - 1);
  }
  arm();
}

void Hub::arm() {
  if (deadlines_.empty() || deadlines_.front().when >= armed_) return;
  if (timer_ != 0) loop_.cancel(timer_);
  armed_ = deadlines_.front().when;
  timer_ = loop_.call_at(armed_, [this] { on_timer(); });  // cancelled by stop()
}

void Hub::on_timer() {
  const std::shared_ptr<Hub> self = shared_from_this();  // a peer's owner may destroy the engine
  timer_ = 0;
  armed_ = Instant::max();
  const Instant now = loop_.instant();
  while (!deadlines_.empty() && deadlines_.front().when <= now) {
    const std::shared_ptr<Peer> peer = deadlines_.front().peer->shared_from_this();
    remove_deadline(0);
    peer->on_deadline(now);
    if (stopped_) return;
  }
  arm();
}

}  // namespace holdfast::ws
