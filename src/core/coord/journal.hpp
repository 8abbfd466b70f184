#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "core/coord/stock.hpp"
#include "holdfast/row.hpp"
#include "holdfast/types.hpp"

namespace holdfast {

// What may be accepted while the store is away, to be carried out later. Each kind stands for one operation that has
// an id, so that it happens once however often it is repeated. A kind that is not here cannot be accepted in that
// way: a task, a run under `once`, a batch of a queue. Those are rights over what others do at the same time, and
// nobody can give a right provisionally.

/// Another value may turn out to have won: then the caller's merge judges.
struct DecideWish {
  std::string key;
  Value proposal;
  std::string proposer;
  bool operator==(const DecideWish&) const = default;
};
struct AddWish {
  std::string key;
  std::int64_t delta = 0;
  std::optional<std::int64_t> floor;
  bool operator==(const AddWish&) const = default;
};
/// Goods that were set aside beforehand are sold.
struct DrawWish {
  Basket basket;
  std::string quota;  ///< chosen when it is accepted
  bool operator==(const DrawWish&) const = default;
};
struct SendWish {
  std::string queue, group, body;
  std::chrono::milliseconds delay{};  ///< from its acceptance
  bool operator==(const SendWish&) const = default;
};
using Wish = std::variant<DecideWish, AddWish, DrawWish, SendWish>;

/// "decide", "add", "draw", "send": as it is written into a journal.
[[nodiscard]] std::string_view kind_of(const Wish& wish);
/// What it is about: intents of one subject are carried out in the order in which they were accepted.
[[nodiscard]] std::string subject_of(const Wish& wish);
/// The rest of it, and back; nothing where that is no such wish.
[[nodiscard]] Attributes arguments_of(const Wish& wish);
[[nodiscard]] std::optional<Wish> wish_from(std::string_view kind, const Attributes& arguments);
/// Whether it can be carried out at all: names that are not empty, sizes within limits. What is wrong, in words.
[[nodiscard]] std::optional<std::string> fault_in(const Wish& wish);
/// Whether a repeat under the same ticket asks for the same. Which quota is drawn on is not the caller's.
[[nodiscard]] bool same_wish(const Wish& left, const Wish& right);

/// One entry of a journal.
///
///     accepted ──► begun ──► confirmed
///         │          └─────► rejected ──► compensation: due ──► begun ──► done
///         └─ too late ─────► rejected
///
/// Confirmed and rejected are final. `begun` stands in the journal before the store is asked for the first time: what
/// was only accepted has surely not happened.
struct Intent {
  enum class State { accepted, begun, confirmed, rejected };
  enum class Compensation { none, due, begun, done };

  std::int64_t seq = 0;  ///< the order of acceptance; 0: not in a journal yet
  std::string ticket;    ///< the operation's id, in the store as well
  Wish wish;
  WallTime accepted_at{};
  WallTime expires_at{};  ///< what was not begun by then is rejected
  State state = State::accepted;
  Compensation compensation = Compensation::none;
  WallTime begun_at{};
  WallTime settled_at{};
  std::string note;  ///< for people: why it was rejected, what it came to

  [[nodiscard]] bool is_settled() const { return state == State::confirmed || state == State::rejected; }
  /// Nothing is left to do.
  [[nodiscard]] bool is_over() const {
    return state == State::confirmed || (state == State::rejected && compensation == Compensation::done);
  }
  bool operator==(const Intent&) const = default;
};
[[nodiscard]] std::string_view to_string(Intent::State state);
[[nodiscard]] std::string_view to_string(Intent::Compensation compensation);
[[nodiscard]] std::optional<Intent::State> intent_state_from(std::string_view text);
[[nodiscard]] std::optional<Intent::Compensation> compensation_from(std::string_view text);
/// Whether these can stand together: what is read from a file is not believed.
[[nodiscard]] bool is_sound(const Intent& intent);

/// How long the store remembers the ids of operations that went through a journal. One that was begun longer ago can
/// no longer be told from one that never happened.
inline constexpr Duration intent_remembered = std::chrono::hours(24 * 365);

/// What is to be done about it next.
enum class IntentStep {
  begin,       ///< note that it is begun, then carry it out
  carry_out,   ///< once more: what became of the first time is not known
  preclude,    ///< its time is over: see that it never happens, unless it has
  expire,      ///< its time is over, and nobody has begun
  compensate,  ///< and note before that it is begun
  give_up,     ///< it was begun longer ago than the store remembers: a person has to look
  nothing,     ///< it is over
};
[[nodiscard]] IntentStep next_step(const Intent& intent, WallTime now);

// The only ways in which an intent may change.
void begin(Intent& intent, WallTime now);
void confirm(Intent& intent, std::string note, WallTime now);
void reject(Intent& intent, std::string why, WallTime now);
void begin_compensation(Intent& intent);
void end_compensation(Intent& intent);

/// Goods that were set aside in the store (as a reservation of this id), to be drawn on without it.
///
///     asked ──► open ──► closing ──► returned
struct Quota {
  enum class State {
    asked,     ///< the store was asked, or is about to be
    open,      ///< it may be drawn on
    closing,   ///< no more; what is left goes back as soon as all that was drawn is settled
    returned,  ///< it has gone back
  };
  std::string id;
  Basket basket;  ///< as it was set aside
  Basket left;    ///< without what was drawn and not rejected
  WallTime expires_at{};
  State state = State::asked;
  bool operator==(const Quota&) const = default;
};
[[nodiscard]] std::string_view to_string(Quota::State state);
[[nodiscard]] std::optional<Quota::State> quota_state_from(std::string_view text);

/// Whether that much may be drawn now, by an intent that may take `max_age` to reach the store: by then the goods
/// must not have gone back. (S1's skew is in it: who returns them waits for that.)
[[nodiscard]] bool may_draw(const Quota& quota, const Basket& basket, WallTime now, Duration max_age);
void draw(Quota& quota, const Basket& basket);
/// Gives back what a rejected intent had drawn.
void undraw(Quota& quota, const Basket& basket);

}  // namespace holdfast
