#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "core/coord/counter.hpp"
#include "core/coord/decision.hpp"
#include "core/coord/journal.hpp"
#include "core/coord/queue.hpp"
#include "core/coord/stock.hpp"
#include "holdfast/provisional.hpp"

namespace holdfast {

/// What is to become of an intent after the store was asked.
struct Verdict {
  enum class Kind {
    confirmed,
    rejected,  ///< the rules say no; with `may_arrive` only once it is precluded: a late request of ours might do it
    wait,      ///< of the store: nothing else can be carried out either
    stuck,     ///< this one cannot be carried out as things are, and what follows it must wait; others need not
  };
  Kind kind = Kind::wait;
  Error error;              ///< of wait and stuck
  std::string note;         ///< of the others
  bool may_arrive = false;  ///< of rejected
};

/// The caller's merge, and why it does not say: then the proposal is left as it is, for another pass.
using Judge = std::function<Result<bool>(const DecideWish& ours, const Decided& decided)>;

/// Whether what went wrong says nothing about the one thing that was asked for: the store is away, has no table, or
/// does not let us. Then nothing else is to be had of it either. Anything else is about that one thing, or may be,
/// and holds up nothing but what has to come after it.
[[nodiscard]] bool is_of_the_store(const Failure& failure);

/// The store's part of one intent: the operation, under the ticket as its id, so that it happens once however often
/// it is replayed, by whomever, and whatever became of its earlier requests.
class Replay final : public Procedure {
 public:
  enum class Way {
    carry_out,
    look,  ///< whether what stands under the ticket is this very operation: nothing is written any more
  };
  Replay(Intent intent, Now now, Instant deadline, Random& random, Way way = Way::carry_out);

  [[nodiscard]] std::optional<Ask> next(Now now) override;
  void on(Answer answer, Now now) override { operation_->on(std::move(answer), now); }
  [[nodiscard]] Instant deadline() const override { return operation_->deadline(); }

  [[nodiscard]] const Intent& intent() const { return intent_; }
  /// Once it has ended. Of a look: never one that `may_arrive`.
  [[nodiscard]] Verdict verdict(const Judge& judge) const;

  // The results of what was carried out, by kind; null for the others.
  [[nodiscard]] const Ended<Decided>* decided() const;
  [[nodiscard]] const Ended<Added>* added() const;
  [[nodiscard]] const Ended<Sent>* sent() const;

 private:
  [[nodiscard]] Verdict carried_out(const Judge& judge) const;

  const Intent intent_;
  const Way way_;
  const std::unique_ptr<Procedure> operation_;
  bool is_missing_ = false;  // of a look: nothing stands under the ticket (any more)
};

/// The row in which the store remembers that the operation of this ticket was carried out. Nothing for decisions:
/// a request that comes after another's has no effect anyway.
[[nodiscard]] std::optional<std::string> memory_key(const Wish& wish, std::string_view ticket);

/// Sees to it that an operation never happens, unless it has: one conditional write on the row that would remember
/// it, which whatever is still on its way finds taken. So rejecting, too, is one write on one row.
struct Precluded {
  /// An operation stands there: this one, or another's under the same id. Replay::Way::look tells which.
  bool is_taken = false;
};
class Preclude final : public RowProcedure<Precluded> {
 public:
  Preclude(std::string memory_key, Instant deadline, Random& random)
      : RowProcedure(std::move(memory_key), deadline, random) {}

 private:
  [[nodiscard]] Plan plan(Now now) override;
};

}  // namespace holdfast
