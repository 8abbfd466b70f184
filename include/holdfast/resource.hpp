#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "holdfast/lease.hpp"
#include "holdfast/loop.hpp"
#include "holdfast/row.hpp"
#include "holdfast/types.hpp"

namespace holdfast {

/// What a resource is given when its lease was won.
struct Grant {
  ConnectionId id{};
  Row row{};  ///< as it was when claimed: desired state, URL, options, last_seq
  std::shared_ptr<LeaseGuard> guard{};
  /// May be called, from any thread, when progress().last_seq has left 0 for the first time in the row's life: the
  /// next renewal then comes at once. Until a row has a checkpoint, a crash leaves its successor nothing to go on
  /// from (S9). May be empty.
  std::function<void()> first_checkpoint{};
};

/// What a resource has done since it was started, for the report.
struct Tally {
  std::int64_t messages = 0;
  std::int64_t bytes = 0;
  std::int64_t repeats_dropped = 0;
  std::int64_t gaps = 0;
  std::int64_t unnumbered = 0;     ///< messages in which the sequence number was not found
  std::int64_t seq_went_back = 0;  ///< times that the sequence fell within one connection
  std::int64_t reconnects = 0;
  bool operator==(const Tally&) const = default;
};

/// Where a leased resource stands, for renewals (last_seq) and for people (status).
struct Progress {
  std::int64_t last_seq = 0;  ///< acknowledged: nothing at or below it is needed again (S9)
  /// One word: connecting, open, subscribed, flowing, silent, paused, backing_off, parked… At most 40 bytes are kept.
  std::string status{};
  std::string reason{};  ///< why, where the word does not say it; kept as one line of at most 300 bytes
  Tally tally{};
  std::optional<WallTime> first_message_at{};  ///< when its first message was accepted, or its first work done
};

/// Something that exactly one worker runs at a time, under a lease. A WebSocket stream is one kind of it.
///
/// Lifecycle: made, start() once, row_changed() any number of times, stop() once, destroyed after it called
/// `stopped`; or destroyed at any time without that, which ends it at once. All on one loop's thread, but
/// progress(), which any thread may call.
/// Before every effect the resource asks grant.guard->holds(now): the guard may end at any time (S7); stop()
/// follows, but the guard is what counts.
class Resource {
 public:
  virtual ~Resource() = default;
  virtual void start(Grant grant) = 0;
  /// The row was edited while held (URL, options). Desired state is not its concern.
  virtual void row_changed(const Row& row) { (void)row; }
  /// Ends it. While the guard still holds there is time until `deadline` to finish what is under way, so that
  /// progress() is final when `stopped` is called; afterwards, or if the guard has ended, at once.
  virtual void stop(LossReason reason, Instant deadline, std::function<void()> stopped) = 0;
  [[nodiscard]] virtual Progress progress() const = 0;
};

/// Makes the resource for a row that was claimed; it will live on that loop. Null: such a row cannot be run here; it
/// is held, parked, and says so.
using ResourceFactory = std::function<std::unique_ptr<Resource>(const Row& row, Loop& loop)>;

}  // namespace holdfast
