#include "sink/buffered_sink.hpp"

#include <algorithm>
#include <utility>

#include "holdfast/assert.hpp"
#include "runtime/clock.hpp"

namespace holdfast::sink {
namespace {

constexpr std::size_t linger_bytes = std::size_t{256} << 10U;  // with this much, gathering more gains nothing
constexpr std::size_t spares_max = 32;  // chunks are kept, so that a steady load allocates nothing,
constexpr std::size_t spare_bytes_max = std::size_t{512} << 10U;  // but for those that a burst has blown up
constexpr Duration for_ever = std::chrono::hours(1);              // then it looks again

}  // namespace

BufferedSink::BufferedSink(std::unique_ptr<Output> output, BufferedSinkOptions options)
    : options_(std::move(options)), output_(std::move(output)), backoff_(options_.retry), random_(options_.seed) {
  HOLDFAST_ASSERT(options_.low_water_bytes < options_.high_water_bytes, "a sink that is behind can catch up");
  thread_ = runtime::Thread("sink", [this] { run(); });
}

BufferedSink::~BufferedSink() {
  close(Duration::zero());
}

Instant BufferedSink::now() const {
  return options_.clock ? options_.clock() : runtime::boot_now();
}

Position BufferedSink::write(std::span<const Record> records) {
  bool wake = false;
  bool now_behind = false;
  Position position = 0;
  {
    const std::lock_guard lock(mutex_);
    HOLDFAST_ASSERT(!closing_, "nothing is written to a sink that was closed");
    const std::size_t before = front_.bytes.size();
    for (const Record& record : records) {
      const LeaseGuard* guard = record.guard != nullptr ? record.guard->get() : nullptr;
      if (front_.runs.empty() || front_.runs.back().guard.get() != guard)
        front_.runs.push_back({record.guard != nullptr ? *record.guard : nullptr, 0});
      formatter_.append(record, front_.bytes);
      front_.runs.back().end = front_.bytes.size();
    }
    accepted_ += records.size();
    front_.last = position = accepted_;
    const std::size_t after = front_.bytes.size();
    held_bytes_ += after - before;
    now_behind = held_bytes_ >= options_.high_water_bytes && !behind_.exchange(true);
    wake = waiting_ == Waiting::for_work || (waiting_ == Waiting::lingering && after >= linger_bytes);
  }
  if (wake) wake_.notify_one();
  if (now_behind) tell();
  return position;
}

std::optional<Error> BufferedSink::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void BufferedSink::flush() {
  {
    const std::lock_guard lock(mutex_);
    flush_ = true;
  }
  wake_.notify_one();
}

void BufferedSink::close(Duration limit) {
  {
    std::unique_lock lock(mutex_);
    closing_ = true;
    wake_.notify_one();
    ended_changed_.wait_for(lock, std::min(limit, for_ever), [this] { return ended_; });
    give_up_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void BufferedSink::run() {
  while (wait_for_work()) work();
  output_->close();
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  ended_changed_.notify_all();
}

Duration BufferedSink::time_to_wait() const {
  if (failing_) return retry_at_ - now();
  if (next_ < queue_.size()) return Duration::zero();
  if (unsynced_bytes_ > 0) return sync_at_ - now();
  return for_ever;
}

/// False where it is closing and nothing is left, or time to give up.
bool BufferedSink::wait_for_work() {
  Chunk spare;
  if (!spares_.empty()) {
    spare = std::move(spares_.back());
    spares_.pop_back();
  }
  std::unique_lock lock(mutex_);
  const Duration wait = time_to_wait();
  if (wait > Duration::zero()) {
    waiting_ = failing_ ? Waiting::no : Waiting::for_work;
    wake_.wait_for(lock, std::min(wait, for_ever), [this] {
      return give_up_ || (!failing_ && (front_.last > 0 || (flush_ && unsynced_bytes_ > 0) || closing_));
    });
    if (!failing_ && front_.last > 0 && !flush_ && !closing_ && options_.linger > Duration::zero()) {
      waiting_ = Waiting::lingering;
      wake_.wait_for(lock, options_.linger,
                     [this] { return flush_ || closing_ || front_.bytes.size() >= linger_bytes; });
    }
    waiting_ = Waiting::no;
  }
  if (give_up_) return false;
  sync_now_ = sync_now_ || flush_ || closing_;
  flush_ = false;
  const bool closing = closing_;
  if (front_.last > 0) {
    take_front(std::move(spare));
  } else {
    recycle(std::move(spare));
  }
  return !closing || !queue_.empty() || unsynced_bytes_ > 0;
}

void BufferedSink::take_front(Chunk&& spare) {
  queue_.push_back(std::exchange(front_, std::move(spare)));
}

void BufferedSink::work() {
  while (next_ < queue_.size()) {
    if (!write_chunk(queue_[next_])) return;
    ++next_;
  }
  if (!sync_is_due()) return;
  if (unsynced_bytes_ > 0) {
    if (const Output::Outcome fault = output_->sync()) return failed(*fault);
  } else if (failing_) {
    // All that waited was left out: only a try shows whether it works again. Whoever asks would otherwise take new
    // leases that it cannot serve.
    release();
    if (const Output::Outcome fault = output_->probe()) return failed(*fault);
  }
  synced();
}

/// S7: what is left out is never believed to be delivered.
bool BufferedSink::may_be_written(const Run& run, Instant at) {
  if (run.guard == nullptr || run.guard->holds(at)) return true;
  run.guard->revoke();
  return false;
}

/// Records in one chunk that are being written, up to `end`.
class BufferedSink::Piece final : public Output::Permission {
 public:
  Piece(const BufferedSink& sink, const Chunk& chunk, std::size_t end) : sink_(sink), chunk_(chunk), end_(end) {}
  [[nodiscard]] bool given_up() const override { return sink_.give_up_; }
  [[nodiscard]] bool holds() override {
    const Instant at = sink_.now();
    for (std::size_t run = chunk_.run; run < chunk_.runs.size(); ++run) {
      if (!may_be_written(chunk_.runs[run], at)) return false;
      if (chunk_.runs[run].end >= end_) break;
    }
    return true;
  }

 private:
  const BufferedSink& sink_;
  const Chunk& chunk_;
  const std::size_t end_;
};

bool BufferedSink::write_chunk(Chunk& chunk) {
  for (std::size_t end = piece_end(chunk); end > chunk.at; end = piece_end(chunk)) {
    const std::string_view piece = chunk.bytes.view().substr(chunk.at, end - chunk.at);
    Piece permission(*this, chunk, end);
    if (const Output::Outcome fault = output_->write(piece, permission)) {
      if (fault->lease_over) continue;  // piece_end() leaves it out
      failed(*fault);
      return false;
    }
    if (unsynced_bytes_ == 0) sync_at_ = now() + options_.interval;
    unsynced_bytes_ += piece.size();
    chunk.at = end;
  }
  return true;
}

/// Where the next piece that may be written ends, after leaving out what is no longer held (S7).
std::size_t BufferedSink::piece_end(Chunk& chunk) {
  const Instant at = now();
  while (chunk.run < chunk.runs.size() && chunk.runs[chunk.run].end <= chunk.at) ++chunk.run;
  while (chunk.run < chunk.runs.size() && !may_be_written(chunk.runs[chunk.run], at)) {
    chunk.at = chunk.runs[chunk.run].end;
    ++chunk.run;
  }
  std::size_t end = chunk.at;
  for (std::size_t run = chunk.run; run < chunk.runs.size() && may_be_written(chunk.runs[run], at); ++run) {
    end = chunk.runs[run].end;
    if (end - chunk.at >= options_.piece_bytes) break;
  }
  if (end - chunk.at <= options_.piece_bytes) return end;
  // A record ends with the only line break in it, so this cuts between two.
  const std::string_view bytes = chunk.bytes.view();
  const std::size_t cut = bytes.rfind('\n', chunk.at + options_.piece_bytes - 1);
  if (cut != std::string_view::npos && cut >= chunk.at) return cut + 1;
  return bytes.find('\n', chunk.at + options_.piece_bytes) + 1;  // one record that is longer than a piece
}

bool BufferedSink::sync_is_due() const {
  if (queue_.empty()) return unsynced_bytes_ > 0 || failing_;
  return options_.sync != Sync::interval || sync_now_ || unsynced_bytes_ == 0 || now() >= sync_at_ ||
         unsynced_bytes_ >= options_.high_water_bytes / 2;
}

/// Everything in the queue is as safe as promised.
void BufferedSink::synced() {
  unsynced_bytes_ = 0;
  sync_now_ = false;
  backoff_.reset();
  const bool mended = std::exchange(failing_, false);
  if (queue_.empty() && !mended) return;
  release();
  if (mended) {
    const std::lock_guard lock(mutex_);
    failure_.reset();
  }
  tell();
}

/// What is in the queue is dealt with: written, synced, or left out.
void BufferedSink::release() {
  if (queue_.empty()) return;
  acknowledged_.store(queue_.back().last, std::memory_order_release);
  std::size_t freed = 0;
  for (Chunk& chunk : queue_) {
    freed += chunk.bytes.size();
    recycle(std::move(chunk));
  }
  queue_.clear();
  next_ = 0;
  {
    const std::lock_guard lock(mutex_);
    held_bytes_ -= freed;
    if (held_bytes_ < options_.low_water_bytes) behind_.store(false, std::memory_order_release);
  }
}

void BufferedSink::failed(const Output::Fault& fault) {
  if (fault.unsynced_lost) {
    for (Chunk& chunk : queue_) chunk.rewind();
    next_ = 0;
    unsynced_bytes_ = 0;
  }
  failing_ = true;
  sync_now_ = true;  // "it works again" is said only of what is safe
  retry_at_ = now() + backoff_.ended(now(), std::nullopt, random_);
  {
    const std::lock_guard lock(mutex_);
    failure_ = fault.error;
    if (fault.for_good) behind_.store(true, std::memory_order_release);
  }
  if (fault.for_good) {
    dead_.store(true, std::memory_order_release);
    give_up_ = true;
  }
  tell();
}

void BufferedSink::recycle(Chunk&& chunk) {
  if (spares_.size() >= spares_max || chunk.bytes.capacity() > spare_bytes_max || chunk.bytes.capacity() == 0) return;
  chunk.bytes.clear();
  chunk.runs.clear();
  chunk.last = 0;
  chunk.rewind();
  spares_.push_back(std::move(chunk));
}

}  // namespace holdfast::sink
