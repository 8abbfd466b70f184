#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "holdfast/error.hpp"
#include "holdfast/lease.hpp"
#include "holdfast/types.hpp"

namespace holdfast {

/// One message, or one hole in the sequence, on its way to a sink. Views are valid during the call only.
struct Record {
  enum class Kind : std::uint8_t { text, binary, gap };
  Kind kind = Kind::text;
  std::string_view connection{};
  Epoch epoch{};
  std::int64_t seq = 0;  ///< for a gap: the first missing number; no_seq: the upstream gave this message none
  std::int64_t gap_to = 0;
  WallTime at{};  ///< when it was received
  std::string_view data{};
  /// The lease it was received under: a sink that writes later than it accepts asks again before it writes (S7)
  /// and leaves out what is no longer held.
  const std::shared_ptr<LeaseGuard>* guard = nullptr;

  static constexpr std::int64_t no_seq = -1;
};

/// A place in the order in which a sink accepted records; rises with each record.
using Position = std::uint64_t;

/// Where messages go.
///
/// write() is called from several threads; a sink orders what it accepts and gives the position of the last
/// record. It takes all that it is offered, whatever its state: bounds are kept by the caller, who stops
/// reading its sockets while behind() and goes on when told of progress (so the overshoot is at most one read
/// per thread). acknowledged() moves forwards only, to the highest position up to which everything is as safe as
/// the sink promises. Records left out because their lease had ended count as done: acknowledged() moves past them,
/// but only after their guard was revoked, and nobody stores how far a connection got by a revoked guard (S9).
class Sink {
 public:
  virtual ~Sink() = default;
  virtual Position write(std::span<const Record> records) = 0;
  [[nodiscard]] virtual Position acknowledged() const = 0;  ///< any thread
  [[nodiscard]] virtual bool behind() const = 0;            ///< any thread
  /// What is wrong at the moment, for people; nothing when it works. A sink tries on by itself. Any thread.
  [[nodiscard]] virtual std::optional<Error> failure() const { return std::nullopt; }
  /// Whether what failure() tells is for good: nothing will ever be acknowledged again. Any thread.
  [[nodiscard]] virtual bool failed_for_good() const { return false; }
  /// To be called after acknowledged(), behind() or failure() changed; from any thread, from inside write() too (it
  /// only posts to loops, and calls nothing of the sink), but not while a lock is held that acknowledged(), behind()
  /// or failure() take. Not after close() has returned. Set once, before the first write.
  virtual void on_progress(std::function<void()> listener) = 0;
  /// Asks for everything accepted so far to be acknowledged soon; progress tells when.
  virtual void flush() = 0;
  /// Ends it: writes what it can within the time and stops its threads. write() must not be called afterwards.
  virtual void close(Duration limit) = 0;
};

}  // namespace holdfast
