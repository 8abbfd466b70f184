#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/keeper.hpp"
#include "holdfast/lease.hpp"
#include "holdfast/loop.hpp"
#include "holdfast/store.hpp"

namespace holdfast::coord {

/// How it ended with a lease that was asked for.
enum class HoldEnd {
  beaten,       ///< not won: somebody else was faster, or the row was not as it had been seen
  unavailable,  ///< not won: the store could not be asked in time; nothing is held
  unanswered,   ///< not known to be won: the store did not say in time; a lease that was won runs out by itself
  rejected,     ///< not won: the store refuses it for good (the error says why)
  released,     ///< given back; what went with the release is in the row
  doubtful,  ///< given back, but whether that arrived is not known yet: if it does not, the lease runs out by itself
  lost,      ///< lost before it was given back; what should have gone with the release is not in the row
};

/// Who holds a lease is told by these, on the loop, never inside a call.
struct HoldEvents {
  /// Won. `row` is as the claim left it.
  std::function<void(std::shared_ptr<const LeaseGuard> guard, const Row& row)> won;
  /// The belief is over: whatever rests on it must have stopped (S7). `ended` follows.
  std::function<void(LossReason reason)> lost;
  /// The last one, always.
  std::function<void(HoldEnd how, const Error& error)> ended;
};

/// Leases on tasks, kept by a Keeper: this is its shell. All with the same terms. On the loop's thread.
class Holder {
 public:
  /// `renews`: false for leases that are to last as long as they were taken for.
  Holder(WorkerId owner, LeaseTerms terms, bool renews, Store& store, Loop& loop);
  /// At once: nothing is given back, nobody is told; leases run out by themselves.
  ~Holder();
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;

  /// Asks for the lease, until `by` at the latest; `extra` goes with the claim. False, and no event: it is not
  /// claimable yet, or its key is held or asked for here already. `was_left`: the row says that somebody began and
  /// left (F22); where it is won too late to be told to anybody, it says so still.
  bool claim(const Candidate& candidate, Instant by, std::vector<Change> extra, bool was_left, HoldEvents events);
  /// Gives it back, if it is still held; `extra` goes with it, in the same conditional write. Where the store does
  /// not say so within `patience`, that is the end that is told (S10); the tries go on behind it.
  void release(const std::string& key, std::vector<Change> extra, Duration patience);
  /// Ends it, if it is still held, and leaves its owner in the row: whoever looks finds that somebody began (F22).
  void leave(const std::string& key, Duration patience);

  [[nodiscard]] const WorkerId& owner() const { return keeper_.owner(); }
  [[nodiscard]] const LeaseTerms& terms() const { return keeper_.terms(); }
  [[nodiscard]] bool renews() const { return renews_; }
  [[nodiscard]] std::size_t used() const { return keeper_.used(); }
  [[nodiscard]] const Keeper::Counters& counters() const { return keeper_.counters(); }

 private:
  struct Place {
    HoldEvents events;
    std::vector<Change> with_claim, with_release;
    std::shared_ptr<LeaseGuard> guard;
    Row row;
    Error error;
    bool may_arrive = false;  // a claim came out unknown
    bool lost = false;
    bool is_left = false;  // its end leaves the owner in the row
    bool release_asked = false;
    Attempt release;       // the id of that write
    TimerId patience = 0;  // for it
    std::optional<HoldEnd> release_came_to;
  };

  void pump();
  void soon();
  void arm();
  void carry_out(const Action& action);
  void write(const Action& action);
  void written(Slot slot, WriteId id, LeaseWrite::Kind kind, RowReply&& reply);
  void note_release(Slot slot, Place& place, const RowReply& reply) const;
  void won(const Action& action);
  void lose(const Action& action);
  void forget(const Action& action);
  void tell_end(Place& place, HoldEnd how);

  Store& store_;
  Loop& loop_;
  const bool renews_;
  Keeper keeper_;
  std::map<Slot, Place> places_;
  TimerId timer_ = 0;
  bool soon_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace holdfast::coord
