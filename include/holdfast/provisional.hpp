#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "holdfast/coordination.hpp"
#include "holdfast/row.hpp"
#include "holdfast/types.hpp"

namespace holdfast {

// What may be accepted while the store is away, to be carried out later. Each kind stands for one operation that has
// an id, so that it happens once however often it is repeated. A kind that is not here cannot be accepted in that
// way: a task, a run under `once`, a batch of a queue. Those are rights over what others do at the same time, and
// nobody can give a right provisionally.

/// Another value may turn out to have won: then the caller's merge judges.
struct DecideWish {
  std::string key{};
  Value proposal{};
  std::string proposer{};
  bool operator==(const DecideWish&) const = default;
};
struct AddWish {
  std::string key{};
  std::int64_t delta = 0;
  std::optional<std::int64_t> floor{};
  bool operator==(const AddWish&) const = default;
};
/// Goods that were set aside beforehand are sold.
struct DrawWish {
  Basket basket{};
  std::string quota{};  ///< chosen when it is accepted
  bool operator==(const DrawWish&) const = default;
};
struct SendWish {
  std::string queue{}, group{}, body{};
  std::chrono::milliseconds delay{};  ///< from its acceptance; up to 15 days
  /// From when it is sent, and can be had; 1 s to 366 days.
  std::chrono::milliseconds retention = std::chrono::hours(24 * 14);
  bool operator==(const SendWish&) const = default;
};
using Wish = std::variant<DecideWish, AddWish, DrawWish, SendWish>;

/// It is in the store.
template <class T>
struct Committed {
  T value{};
};
/// It is on this machine's disk, and will be confirmed or rejected, once: another type, so that nobody takes it for
/// the other.
struct Provisional {
  std::string ticket{};
  WallTime until{};        ///< what was not begun by then is rejected
  Wish wish{};             ///< what stands in the journal; of a decision: what is proposed, by us or before us
  bool was_there = false;  ///< the ticket was in the journal before, or the proposal is another's
  std::string why{};       ///< it is not in the store, for people
};
template <class T>
using Accepted = std::variant<Committed<T>, Provisional>;

// ---- What stands in a journal ----

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
  std::string ticket{};  ///< the operation's id, in the store as well
  Wish wish{};
  WallTime accepted_at{};
  WallTime expires_at{};  ///< what was not begun by then is rejected
  State state = State::accepted;
  Compensation compensation = Compensation::none;
  WallTime begun_at{};
  WallTime settled_at{};
  std::string note{};  ///< for people: why it was rejected, what it came to

  [[nodiscard]] bool is_settled() const { return state == State::confirmed || state == State::rejected; }
  /// Nothing is left to do.
  [[nodiscard]] bool is_over() const {
    return state == State::confirmed || (state == State::rejected && compensation == Compensation::done);
  }
  bool operator==(const Intent&) const = default;
};
[[nodiscard]] std::string_view to_string(Intent::State state);
[[nodiscard]] std::string_view to_string(Intent::Compensation compensation);

/// Goods that were set aside in the store (as a reservation of this id), to be drawn on without it.
///
///     asked ──► open ──► closing ──► returned
///
/// One that the store refuses is forgotten.
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

// ---- How it is settled ----

/// What a decision that was proposed provisionally came to: false rejects it. Pure, or at least such that asking it
/// twice gives the same: a crash may come between its answer and the note of it.
using Merge = std::function<bool(const DecideWish& ours, const Decided& decided)>;
/// The same value is as good as ours; any other is not.
[[nodiscard]] bool merge_equal(const DecideWish& ours, const Decided& decided);

struct ReconcileReport {
  std::size_t confirmed = 0;
  std::size_t rejected = 0;
  std::size_t compensated = 0;
  std::size_t left = 0;  ///< intents that are still open, or wait for their compensation; quotas that cannot go back
  std::size_t quotas_returned = 0;
  std::vector<std::string> notes{};  ///< why something was left, at most `notes_most`
  bool store_is_away = false;        ///< the pass ended early

  static constexpr std::size_t notes_most = 20;
  [[nodiscard]] bool is_all() const { return left == 0 && !store_is_away; }
};

}  // namespace holdfast
