#pragma once
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "core/backoff.hpp"
#include "holdfast/random.hpp"
#include "holdfast/sink.hpp"
#include "runtime/thread.hpp"
#include "sink/bytes.hpp"
#include "sink/format.hpp"
#include "sink/output.hpp"

namespace holdfast::sink {

/// When the output is synced, and so when records are acknowledged.
enum class Sync {
  always,    ///< after each batch of the writer thread (group commit)
  interval,  ///< once per interval, or earlier where half of the buffer waits for it
  never,     ///< after each batch, but the output's sync() does not wait for the disk
};

struct BufferedSinkOptions {
  Sync sync = Sync::interval;
  Duration interval = std::chrono::seconds(1);
  Duration linger = std::chrono::milliseconds(5);        ///< how long the writer gathers before it writes
  std::size_t high_water_bytes = std::size_t{8} << 20U;  ///< behind() from here on,
  std::size_t low_water_bytes = std::size_t{2} << 20U;   ///< until below this
  std::size_t piece_bytes = std::size_t{256} << 10U;     ///< at most this between a look at the leases and the next
  BackoffOptions retry{std::chrono::milliseconds(100), std::chrono::seconds(2), std::chrono::milliseconds(20)};
  std::uint64_t seed = 1;
  std::function<Instant()> clock;  ///< empty: the real one
};

/// Formats records under a short lock into a buffer; one thread takes the buffer whole, writes and syncs it.
///
/// Everything stays in memory until it is acknowledged, since a failed fsync may have lost all that was written
/// since the last one: it is then written again, in a new file. The sum is bounded by behind().
///
/// Just before each write the leases of what is written are asked (S7). A stretch of records whose lease is over
/// is left out, and that lease's guard is revoked: a renewal that comes too late must not bring back the belief
/// that these records were delivered. An output that waits asks again meanwhile.
///
/// An output that can never work again ends the writer: nothing more is acknowledged, and failed_for_good() says so.
class BufferedSink final : public Sink {
 public:
  BufferedSink(std::unique_ptr<Output> output, BufferedSinkOptions options);
  ~BufferedSink() override;
  BufferedSink(const BufferedSink&) = delete;
  BufferedSink& operator=(const BufferedSink&) = delete;

  Position write(std::span<const Record> records) override;
  [[nodiscard]] Position acknowledged() const override { return acknowledged_.load(std::memory_order_acquire); }
  [[nodiscard]] bool behind() const override { return behind_.load(std::memory_order_acquire); }
  [[nodiscard]] std::optional<Error> failure() const override;
  [[nodiscard]] bool failed_for_good() const override { return dead_.load(std::memory_order_acquire); }
  void on_progress(std::function<void()> listener) override { listener_ = std::move(listener); }
  void flush() override;
  void close(Duration limit) override;

 private:
  /// Records in a row that were received under one lease.
  struct Run {
    std::shared_ptr<LeaseGuard> guard;  // null: always to be written
    std::size_t end = 0;                // offset in the chunk
  };
  struct Chunk {
    Bytes bytes;
    std::vector<Run> runs;
    Position last = 0;
    std::size_t at = 0;   // dealt with up to here
    std::size_t run = 0;  // the run that `at` is in
    void rewind() { at = run = 0; }
  };
  enum class Waiting { no, for_work, lingering };
  class Piece;

  // On the writer thread.
  void run();
  [[nodiscard]] bool wait_for_work();
  [[nodiscard]] Duration time_to_wait() const;
  void take_front(Chunk&& spare);
  void work();
  [[nodiscard]] bool write_chunk(Chunk& chunk);
  [[nodiscard]] std::size_t piece_end(Chunk& chunk);
  [[nodiscard]] static bool may_be_written(const Run& run, Instant at);
  [[nodiscard]] bool sync_is_due() const;
  void synced();
  void release();
  void failed(const Output::Fault& fault);
  void recycle(Chunk&& chunk);
  void tell() const {
    if (listener_) listener_();
  }
  [[nodiscard]] Instant now() const;

  const BufferedSinkOptions options_;
  const std::unique_ptr<Output> output_;
  std::function<void()> listener_;

  std::atomic<Position> acknowledged_{0};
  std::atomic<bool> behind_{false};
  std::atomic<bool> give_up_{false};
  std::atomic<bool> dead_{false};

  mutable std::mutex mutex_;               // guards from here ...
  std::condition_variable wake_;           // nondeterminism-ok: for the writer, a runtime::Thread
  std::condition_variable ended_changed_;  // nondeterminism-ok: as above
  Formatter formatter_;
  Chunk front_;
  Position accepted_ = 0;
  std::size_t held_bytes_ = 0;  // accepted and not acknowledged
  Waiting waiting_ = Waiting::no;
  bool flush_ = false;
  bool closing_ = false;
  bool ended_ = false;
  std::optional<Error> failure_;  // ... to here

  // The writer thread's own.
  std::deque<Chunk> queue_;  // not acknowledged, oldest first
  std::size_t next_ = 0;     // the first in queue_ that is not wholly dealt with
  std::size_t unsynced_bytes_ = 0;
  bool sync_now_ = false;
  Instant sync_at_{};
  std::vector<Chunk> spares_;
  bool failing_ = false;
  Instant retry_at_{};
  Backoff backoff_;
  Random random_;

  runtime::Thread thread_;  // last: it uses all the others
};

}  // namespace holdfast::sink
