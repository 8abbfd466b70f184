#include "ws/peer.hpp"

#include <algorithm>
#include <utility>

#include "holdfast/assert.hpp"
#include "ws/hub.hpp"
#include "ws/opening.hpp"
#include "ws/words.hpp"

namespace holdfast::ws {
namespace {

/// What a peer may still send after the owner was told, before it is cut off.
constexpr std::size_t discarded_bytes_max = std::size_t{1} << 20U;

/// How much later than due a ping may go out, or a silence be noticed.
constexpr Duration grid_max = std::chrono::milliseconds(50);

Duration at_least_1_ms(Duration duration) {
  return std::max<Duration>(duration, std::chrono::milliseconds(1));
}

}  // namespace

Peer::Peer(Hub& hub, Events& events, const Limits& limits)
    : hub_(&hub),
      events_(&events),
      socket_(hub.loop().context(), hub.cipher),
      reader_(limits.message_bytes),
      ping_every_(at_least_1_ms(limits.ping_every)),
      dead_after_(at_least_1_ms(limits.dead_after)),
      close_limit_(limits.close),
      send_queue_bytes_max_(limits.send_queue_bytes) {}

Peer::~Peer() = default;

void Peer::open(ConnectOptions options) {
  opening_ = std::make_unique<Opening>(*this, std::move(options));
  // Even what fails at once is told from the loop.
  hub_->loop().post([self = shared_from_this()] {
    if (!self->dead() && !self->failing_) self->opening_->start();
  });
}

// ---- the owner's calls

bool Peer::send(std::string_view payload, bool binary) {
  if (state_ != State::open || failing_) return false;
  const std::size_t waiting = output_ ? output_->waiting() : 0;
  if (payload.size() > send_queue_bytes_max_ || waiting > send_queue_bytes_max_ - payload.size()) return false;
  put(binary ? Opcode::binary : Opcode::text, payload);
  return true;
}

void Peer::close(std::uint16_t code, std::string_view reason) {
  HOLDFAST_ASSERT(code == no_code || may_be_sent(code), "only codes that RFC 6455 lets an endpoint send");
  if (state_ == State::opening && !failing_) {
    failing_ = true;
    hub_->loop().post([self = shared_from_this()] {
      if (!self->dead()) self->end({.kind = Closed::Kind::local});
    });
  }
  if (state_ != State::open || failing_) return;
  state_ = State::closing;
  paused_ = false;
  put_close(code, reason);
  hub_->set_deadline(*this, hub_->loop().instant() + close_limit_);
  read_on();
}

void Peer::pause() {
  if (state_ != State::open || paused_) return;
  paused_ = true;
  hub_->set_deadline(*this, Instant::max());
}

void Peer::resume() {
  if (state_ != State::open || !paused_) return;
  paused_ = false;
  last_heard_ = hub_->loop().instant();
  next_ping_ = last_heard_ + hub_->loop().random().between(Duration(0), ping_every_);
  schedule_liveness();
  read_on();
}

void Peer::abandon() {
  if (state_ == State::lingering) return;  // it has been told; the last bytes are still going out
  cut();
}

void Peer::cut() {
  if (dead()) return;
  const std::shared_ptr<Peer> self = shared_from_this();
  state_ = State::dead;
  events_ = nullptr;
  socket_.close();
  opening_.reset();
  output_.reset();
  hub_->remove(*this);
  hub_ = nullptr;
}

// ---- the end

void Peer::end(const Closed& closed) {
  const std::shared_ptr<Peer> self = shared_from_this();
  Events* const events = std::exchange(events_, nullptr);
  cut();
  if (events != nullptr) events->on_closed(closed);
}

void Peer::fail(Error error) {
  // Where we had begun to close, this is how that ended.
  const bool ours = state_ == State::closing;
  Closed closed{.kind = ours ? Closed::Kind::local : Closed::Kind::failed};
  closed.error = std::move(error);
  end(closed);
}

void Peer::linger(const Closed& told) {
  const std::shared_ptr<Peer> self = shared_from_this();
  state_ = State::lingering;
  paused_ = false;
  hub_->set_deadline(*this, hub_->loop().instant() + close_limit_);
  socket_.end_turn();
  if (!output_) on_flushed();
  wait_for_read();
  Events* const events = std::exchange(events_, nullptr);
  if (events != nullptr) events->on_closed(told);
}

void Peer::discard() {
  for (;;) {
    const Transfer got = socket_.read_raw(hub_->buffer(), hub_->buffer_bytes());
    if (got.kind == Transfer::Kind::want_read) return wait_for_read();
    discarded_bytes_ += static_cast<std::uint32_t>(got.bytes);
    if (got.kind != Transfer::Kind::some || discarded_bytes_ > discarded_bytes_max) return cut();
  }
}

void Peer::on_deadline(Instant now) {
  switch (state_) {
    case State::opening:
      return opening_->on_deadline(now);
    case State::open:
      return check_liveness(now);
    case State::closing:
      return fail(
          Error(Code::unavailable, "the server did not answer our close frame within " + words(close_limit_)));
    case State::lingering:
      return cut();
    case State::dead:
      return;
  }
}

// ---- liveness (F33): any byte from the peer counts, our pings make it say something

void Peer::check_liveness(Instant now) {
  // A process that was stopped for a while finds here what came meanwhile: that counts.
  if (now - last_heard_ >= dead_after_) read_frames();
  if (dead() || state_ != State::open || paused_) return;
  if (now - last_heard_ >= dead_after_) {
    return fail(Error(Code::unavailable, "nothing was heard from the server for " + words(dead_after_) +
                                             ", not even an answer to our pings"));
  }
  if (now >= next_ping_) {
    next_ping_ = std::max(next_ping_ + ping_every_, now + ping_every_ / 2);
    // What already waits to be written does a ping's work.
    if (!output_) put(Opcode::ping, {});
  }
  schedule_liveness();
}

void Peer::schedule_liveness() {
  // Looked at on a grid, which connections share: thousands of them need not wake the loop one by one.
  const Instant due = std::min(next_ping_, last_heard_ + dead_after_);
  const Duration grid = std::min(grid_max, std::min(ping_every_, dead_after_) / 16);
  hub_->set_deadline(*this, Instant((due.time_since_epoch() / grid + 1) * grid));
}

// ---- reading

void Peer::wait_for_read() {
  if (waits_for_read_) return;
  waits_for_read_ = true;
  socket_.wait_readable([self = shared_from_this()](const boost::system::error_code& error) {
    if (self->dead()) return;
    self->waits_for_read_ = false;
    if (!error) self->on_readable();
  });
}

void Peer::wait_for_write() {
  if (waits_for_write_) return;
  waits_for_write_ = true;
  socket_.wait_writable([self = shared_from_this()](const boost::system::error_code& error) {
    if (self->dead()) return;
    self->waits_for_write_ = false;
    if (!error) self->on_writable();
  });
}

void Peer::on_readable() {
  switch (state_) {
    case State::opening:
      if (opening_) opening_->on_ready();
      return;
    case State::open:
    case State::closing:
      if (!paused_) read_frames();
      return;
    case State::lingering:
      return discard();
    case State::dead:
      return;
  }
}

void Peer::opened(const Opened& opened, std::string_view rest) {
  const std::shared_ptr<Hub> hub = hub_->shared_from_this();
  const std::unique_ptr<Opening> finished = std::move(opening_);  // `rest` lies in it
  if (failing_) return hub->set_deadline(*this, Instant::max());  // closed by the owner meanwhile
  state_ = State::open;
  last_heard_ = hub->loop().instant();
  // Each connection has its own phase (F16): a fleet that was opened together does not ping together.
  next_ping_ = last_heard_ + hub->loop().random().between(Duration(0), ping_every_);
  schedule_liveness();
  events_->on_open(opened);
  if (dead()) return;
  if (!rest.empty() && !walk(rest)) return;
  read_frames();
}

void Peer::read_frames() {
  const std::shared_ptr<Hub> hub = hub_->shared_from_this();  // the owner may destroy the engine
  if (state_ == State::open && !paused_ && events_ != nullptr) {
    events_->before_read();
    if (dead() || paused_) return;
  }
  char* const buffer = hub->buffer();
  std::size_t budget = hub->options().read_bytes_per_turn;
  bool heard = false;
  for (;;) {
    const Transfer got = socket_.read(buffer, hub->buffer_bytes(), budget > 0 && !paused_);
    if (got.kind == Transfer::Kind::some) {
      if (!std::exchange(heard, true)) last_heard_ = hub->loop().instant();
      budget -= std::min(budget, got.bytes);
      if (!walk({buffer, got.bytes})) return;
      continue;
    }
    if (got.kind == Transfer::Kind::want_read) break;
    if (got.kind != Transfer::Kind::want_write) return on_stream_end(got);
    reads_after_write_ = true;
    socket_.end_turn();
    return wait_for_write();
  }
  socket_.end_turn();
  if (output_ && !waits_for_write_) flush();  // TLS had to hear something before it could speak
  read_on();
}

void Peer::read_on() {
  if (!paused_ && !reads_after_write_) wait_for_read();
}

/// False: this connection is no longer read for frames, or not there any more.
bool Peer::walk(std::string_view input) {
  Hub& hub = *hub_;  // kept alive by our callers
  bool delivered = false;
  bool pinged = false;
  std::string_view ping;
  for (;;) {
    const Found found = reader_.next(input, hub.assembled);
    switch (found.kind) {
      case Found::Kind::message:
        if (state_ != State::open) break;  // we are closing
        delivered = true;
        events_->on_message({found.binary, found.data});
        if (dead()) {
          hub.assembled.clear();
          return false;
        }
        break;
      case Found::Kind::ping:
        // Of the pings of one read, the latest is answered (RFC 6455 section 5.5.3): a flood costs one write.
        pinged = true;
        ping = found.data;
        break;
      case Found::Kind::pong:
        break;
      case Found::Kind::nothing:
        if (pinged && state_ == State::open) answer_ping(ping);
        return end_batch(delivered);
      case Found::Kind::close:
        return take_close(found, delivered);
      case Found::Kind::error:
        return take_error(found, delivered);
    }
  }
}

bool Peer::end_batch(bool delivered) {
  Hub& hub = *hub_;
  if (delivered && events_ != nullptr) events_->on_batch_end();
  if (!hub.assembled.empty()) hub.assembled.clear();
  return !dead();
}

bool Peer::take_close(const Found& found, bool delivered) {
  Closed closed{.kind = Closed::Kind::closed, .code = found.code, .reason = std::string(found.data)};
  if (!end_batch(delivered)) return false;
  if (state_ == State::open) {
    put_close(found.code, {});
  } else {
    closed.kind = Closed::Kind::local;
  }
  linger(closed);
  return false;
}

bool Peer::take_error(const Found& found, bool delivered) {
  const std::string why(found.data);
  if (!end_batch(delivered)) return false;
  Closed closed{.kind = Closed::Kind::protocol, .code = found.code, .reason = why};
  if (state_ == State::open) {
    put_close(found.code, why);
  } else {
    closed = {.kind = Closed::Kind::local, .code = abnormal};
  }
  closed.error = Error(Code::corrupt, "the server broke the WebSocket protocol: " + why);
  linger(closed);
  return false;
}

void Peer::on_stream_end(const Transfer& transfer) {
  socket_.end_turn();
  if (transfer.kind == Transfer::Kind::ended) {
    return fail(Error(Code::unavailable, "the server ended the connection without a close frame"));
  }
  fail(Error(Code::unavailable, socket_.trouble()));
}

// ---- writing

void Peer::put(Opcode opcode, std::string_view payload) {
  if (output_) return append_frame(output_->bytes, opcode, payload, hub_->mask());
  hub_->outgoing.clear();
  append_frame(hub_->outgoing, opcode, payload, hub_->mask());
  transmit();
}

void Peer::put_close(std::uint16_t code, std::string_view reason) {
  if (output_) return append_close(output_->bytes, code, reason, hub_->mask());
  hub_->outgoing.clear();
  append_close(hub_->outgoing, code, reason, hub_->mask());
  transmit();
}

/// Writes hub.outgoing as far as the socket takes it now; the rest is kept.
void Peer::transmit() {
  std::string_view left = hub_->outgoing;
  while (!left.empty()) {
    const Transfer sent = socket_.write(left);
    if (sent.kind == Transfer::Kind::some) {
      left.remove_prefix(sent.bytes);
      continue;
    }
    if (sent.kind == Transfer::Kind::failed || sent.kind == Transfer::Kind::ended) return write_failed();
    output_ = std::make_unique<Output>();
    output_->bytes = left;
    if (sent.kind == Transfer::Kind::want_write) wait_for_write();
    return;
  }
}

void Peer::answer_ping(std::string_view payload) {
  if (!output_) return put(Opcode::pong, payload);
  // There is no room: only the latest is kept, so that a flood of pings does not become one of pongs.
  output_->pong = payload;
  output_->has_pong = true;
}

void Peer::on_writable() {
  if (state_ == State::opening) {
    if (opening_) opening_->on_ready();
    return;
  }
  if (output_) flush();
  if (dead() || !std::exchange(reads_after_write_, false)) return;
  if (state_ == State::open || state_ == State::closing) read_frames();
}

void Peer::flush() {
  for (;;) {
    while (output_->waiting() > 0) {
      const Transfer sent = socket_.write(std::string_view(output_->bytes).substr(output_->sent));
      if (sent.kind == Transfer::Kind::want_write) return wait_for_write();
      if (sent.kind == Transfer::Kind::want_read) return;  // read_frames() comes back here
      if (sent.kind != Transfer::Kind::some) return write_failed();
      output_->sent += sent.bytes;
    }
    output_->bytes.clear();
    output_->sent = 0;
    if (!output_->has_pong || state_ != State::open) break;
    append_frame(output_->bytes, Opcode::pong, output_->pong, hub_->mask());
    output_->has_pong = false;
  }
  output_.reset();
  on_flushed();
}

void Peer::on_flushed() {
  if (state_ == State::lingering) socket_.finish_writing();
}

void Peer::write_failed() {
  if (std::exchange(failing_, true)) return;
  // Told from the loop. First what the server said before it went away is read: its close frame says more than our
  // broken pipe.
  hub_->loop().post([self = shared_from_this(), trouble = socket_.trouble()] {
    if (self->dead()) return;
    if (self->state_ == State::lingering) return self->cut();
    if (!self->paused_) self->read_frames();
    if (!self->dead() && self->state_ != State::lingering) self->fail(Error(Code::unavailable, trouble));
  });
}

}  // namespace holdfast::ws
