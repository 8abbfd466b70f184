#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "core/coord/stock.hpp"
#include "holdfast/provisional.hpp"
#include "holdfast/row.hpp"
#include "holdfast/types.hpp"

namespace holdfast {

/// "decide", "add", "draw", "send": as it is written into a journal.
[[nodiscard]] std::string_view kind_of(const Wish& wish);
/// What it is about: intents of one subject are carried out in the order in which they were accepted.
[[nodiscard]] std::string subject_of(const Wish& wish);
/// The rest of it, and back; nothing where that is no such wish.
[[nodiscard]] Attributes arguments_of(const Wish& wish);
[[nodiscard]] std::optional<Wish> wish_from(std::string_view kind, const Attributes& arguments);
/// Whether it can be carried out at all: names that are not empty, sizes within limits. What is wrong, in words.
[[nodiscard]] std::optional<std::string> fault_in(const Wish& wish);
/// Tickets are ids in the store: they fit into the key of a row.
[[nodiscard]] std::optional<std::string> fault_in_ticket(std::string_view ticket);
/// Whether a repeat under the same ticket asks for the same. Which quota is drawn on is not the caller's,
/// and who proposes may be another process than before.
[[nodiscard]] bool same_wish(const Wish& left, const Wish& right);

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

[[nodiscard]] std::optional<Quota::State> quota_state_from(std::string_view text);

/// Whether that much may be drawn now, by an intent that may take `max_age` to reach the store: by then the goods
/// must not have gone back. (S1's skew is in it: who returns them waits for that.)
[[nodiscard]] bool may_draw(const Quota& quota, const Basket& basket, WallTime now, Duration max_age);
void draw(Quota& quota, const Basket& basket);
/// Gives back what a rejected intent had drawn.
void undraw(Quota& quota, const Basket& basket);

}  // namespace holdfast
