#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "holdfast/error.hpp"
#include "holdfast/row.hpp"
#include "holdfast/types.hpp"

// What the calls of a coordinator are given and come to (holdfast/coordinator.hpp): plain values.
namespace holdfast {

/// Why an operation gave no result.
struct Failure {
  enum class Kind {
    unavailable,  ///< the store was away, or too slow; surely nothing happened
    unknown,      ///< the same, but a write of ours may have happened, or may still happen (S5)
    busy,         ///< somebody else has it, for longer than the caller waits
    mismatch,     ///< the same key was used for something else before
    refused,      ///< the rules say no: below the floor, an older epoch, not there
    rejected,     ///< it can never work as it is; the error says what to do
  };
  Kind kind = Kind::unavailable;
  Error error{};
};
[[nodiscard]] std::string_view to_string(Failure::Kind kind);

template <class T>
using Ended = tl::expected<T, Failure>;

/// What was decided, once and for ever.
struct Decided {
  Value value{};
  std::string proposer{};  ///< who proposed it
  WallTime at{};           ///< by the proposer's clock
  bool was_ours = false;   ///< this very call's proposal, whichever of its tries it was; or one under its ticket
};

/// Somebody began a run under `once`, is gone, and left no result.
enum class Abandoned {
  rerun,      ///< run it again
  hold,       ///< refuse, until somebody decides (for money)
  reconcile,  ///< claim it, and have the caller find out what became of it
};

/// What a run under `once` left behind: what later callers are given.
struct OnceResult {
  bool succeeded = true;  ///< false: it failed for good, and is not to be run again
  std::string content{};  ///< at most OnceResult::most bytes
  WallTime at{};          ///< by the clock of who ran it

  /// What fits into a row of DynamoDB (400 KB with everything else in it), base64 included where it is needed.
  static constexpr std::size_t most = 350'000;
};

struct AddOptions {
  std::string key{};  ///< the counter's, or the SKU
  std::int64_t delta = 0;
  /// Names this operation: repeated with the same id, from anywhere, it counts once (F29). Not empty.
  std::string op_id{};
  /// The value never goes below this by a subtraction; nothing: no limit. Of a stock: 0, or what is above that.
  std::optional<std::int64_t> floor{};
  enum class To {
    counter,
    stock,  ///< what is available of a SKU
  };
  To to = To::counter;
  /// How long the operation's id is remembered, at least: 1 s to 366 days.
  Duration remember = std::chrono::hours(24);
};
struct Added {
  std::int64_t value = 0;   ///< of the counter; after a repeat, as it is now
  bool was_repeat = false;  ///< the operation had been carried out before
};

/// How many of what: by SKU (the name of an article), each at least 1.
using Basket = std::map<std::string, std::int64_t>;

struct ReserveOptions {
  std::string id{};
  Basket basket{};                                 ///< 1 to 99 SKUs, all or none
  Duration ttl = std::chrono::minutes(15);         ///< not confirmed by then: the goods come back; 100 ms to 366 days
  Duration remember = std::chrono::hours(24 * 7);  ///< how long the id is known after that, at least: 1 s to 366 days
};

/// A reservation is an operation: its id names it, and whatever is repeated happens once.
struct Reservation {
  enum class State {
    held,       ///< the goods are set aside, until it expires
    confirmed,  ///< they are gone for good
    cancelled,  ///< they are back
    expired,    ///< nobody confirmed in time: they are back, or come back when it is next looked
  };
  std::string id;
  State state = State::held;
  Basket basket{};
  WallTime expires_at{};
  bool was_repeat = false;  ///< it had been made (confirmed, cancelled) before
};
[[nodiscard]] std::string_view to_string(Reservation::State state);

// ---- Ordered queues: groups, each in strict order (docs/coordinators.md) ----

struct Message {
  std::int64_t seq = 0;  ///< in its group, from 1 without a hole
  std::string body{};
  std::string dedup_id{};
  WallTime sent_at{};
  WallTime deliver_at{};
};

/// Proof that a consumer was given part of a group: what the other calls are made with. Plain data, so that it can be
/// handed to another process.
struct Receipt {
  std::string queue{}, group{};
  WorkerId owner{};
  Epoch epoch{};
  std::int64_t first = 0;  ///< sequence numbers
  std::int64_t last = 0;

  /// One line of printable characters, and back; nothing where it is no receipt.
  [[nodiscard]] std::string to_string() const;
  [[nodiscard]] static std::optional<Receipt> from_string(std::string_view text);
};

/// What is in a group's row.
struct Group {
  enum class State {
    ready,  ///< has messages, or is leased
    empty,
    parked,  ///< set aside, until it is released by hand
  };
  State state = State::empty;
  std::string queue{}, group{};
  std::int64_t head = 1;
  std::int64_t tail = 0;
  std::int64_t receives = 0;  ///< how often the message at the head was given out
  std::string owner{};
  Epoch epoch{};
  WallTime due{};  ///< the lease's expiry while it is leased
  std::string parked_because{};

  [[nodiscard]] std::int64_t size() const { return tail - head + 1; }
};

struct SendOptions {
  std::string queue{}, group{};
  std::string body{};  ///< at most 350,000 bytes
  /// The same message again with the same id within the window: nothing happens. Another one, or to another group:
  /// a mismatch. Empty: none.
  std::string dedup_id{};
  Duration delay{};  ///< not given out earlier, nor what comes after it in its group; up to 15 days
  Duration dedup_window = std::chrono::minutes(10);  ///< at least, whatever became of the message; 5 min to 15 days
  Duration retention =
      std::chrono::hours(24 * 14);  ///< a message that nobody acknowledged is kept this long; 1 s to 366 days

  static constexpr std::size_t body_most = 350'000;
};
struct Sent {
  std::int64_t seq = 0;
  bool was_duplicate = false;  ///< of one that was sent before with this id; `seq` is that one's
};

/// A group, and the first of its messages.
struct GroupView {
  Group group{};
  std::vector<Message> messages{};  ///< in order; those past their retention are missing
};

/// Groups of a queue, by name.
struct GroupList {
  std::vector<Group> groups{};
  bool is_partial = false;  ///< there are more than were asked for
  /// What is left out since it is damaged, of the first such rows: their keys, or what the store says of one that it
  /// cannot read.
  std::vector<std::string> damaged{};
};

struct Batch {
  Receipt receipt{};
  std::vector<Message> messages{};  ///< contiguous, in order; none where `is_poison`, or where all are past
                                    ///< their retention: to be acknowledged all the same
  std::int64_t receives = 0;        ///< of the first, this time included
  Instant until{};                  ///< to be acknowledged by then (S4: counted from before the claim, and
                                    ///< a tenth of its time before the lease ends)
  bool is_poison = false;           ///< the group is leased, and its first message is to be parked or moved away
};

struct Settled {
  std::int64_t left = 0;  ///< messages in the group that are not acknowledged
  WallTime expires_at{};  ///< extend, and ack of a part: of the lease
};

/// Messages that went to another queue (redrive_to()).
struct Redriven {
  std::int64_t moved = 0;
  std::int64_t left = 0;  ///< in the group that they came from
};

}  // namespace holdfast
