#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace holdfast::sim {

/// What can go wrong. How often is the Plan's business: per opportunity, or per hour and process.
enum class Fault : std::uint8_t {
  // Requests to the store: the part of them that meets it.
  throttled,       ///< refused, nothing happened
  request_lost,    ///< nothing happened; no answer
  reply_lost,      ///< it happened; no answer
  server_error,    ///< an answer that says nothing, whether it happened or not
  slow_request,    ///< on its way for up to several leases
  slow_reply,      ///< the answer is
  duplicate,       ///< carried out twice, shortly after one another
  late_duplicate,  ///< carried out once more, up to several leases later
  stale_index,     ///< the index lags behind (a part of the writes, for up to several leases)
  // Processes and the store as a whole: per hour.
  outage,     ///< nobody reaches the store
  partition,  ///< one process does not
  rejection,  ///< everything is refused for good, for a while (credentials, permission)
  crash,      ///< a process is gone; it comes back as another incarnation, sooner or later than its leases end
  pause,      ///< a process stands still, often for longer than a lease
  stall,      ///< one of its threads does
  drain,      ///< a process is asked to end, and a new one comes in its place
  leave,      ///< the same, and nobody comes for long
  join,       ///< one more process
  wall_step,  ///< a wall clock jumps
  // Upstreams: the part of connects, or of reads.
  refusal,        ///< an HTTP status, perhaps with Retry-After
  never_opens,    ///< nothing happens at all
  drop,           ///< reset, or a close frame with some code
  mute,           ///< half-open: nothing comes any more
  garbage,        ///< messages that are no JSON, have no number, or are binary
  repeat,         ///< messages again
  gap,            ///< numbers that never come
  move_back,      ///< the sequence falls back
  forget,         ///< history is trimmed: what was not fetched in time is gone
  upstream_down,  ///< all upstreams at once, per hour
  // Sinks: per hour and process, or the part of reads.
  sink_slow,     ///< acknowledges late
  sink_stall,    ///< takes nothing for a while
  sink_failure,  ///< fails for a while
  sink_full,     ///< says that it is behind although it works
  stubborn,      ///< a resource that does not stop when it is asked to
  // People: per hour.
  stop_start,  ///< desired state changes
  edit,        ///< options change while held
  remove_add,  ///< removed, and added again
  tamper,      ///< somebody edits the lease itself: pushes the expiry forwards, takes the owner away
  // As DynamoDB does it; behind the others, so that plans drawn before these were there stay as they are.
  throttle_burst,  ///< for a while most of what is asked is refused, whoever asks; per hour
  unprocessed,     ///< part of the batches: their rows are read in several goes
  // The table's stream and what workers tell each other of it, in `reactive` only: the part of records, or of pokes.
  stream_slow,     ///< tells of a change late, by up to several leases
  stream_trimmed,  ///< loses the record, and says later that anything may have changed
  poke_lost,       ///< lost, late, doubled, or joined by one that is made up
  stream_off,      ///< turned off for a while, per hour
};
inline constexpr std::size_t faults_count = static_cast<std::size_t>(Fault::stream_off) + 1;

[[nodiscard]] std::string_view name_of(Fault fault);
[[nodiscard]] std::optional<Fault> fault_named(std::string_view name);

template <class T>
class ByFault {
 public:
  T& operator[](Fault fault) { return values_[static_cast<std::size_t>(fault)]; }
  const T& operator[](Fault fault) const { return values_[static_cast<std::size_t>(fault)]; }

 private:
  std::array<T, faults_count> values_{};
};

}  // namespace holdfast::sim
