#pragma once
#include <boost/json/object.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "coord/coordinator.hpp"
#include "holdfast/loop.hpp"

namespace holdfast::serve {

/// Why nobody has a guard any more.
enum class GuardEnd {
  released,     ///< by its caller
  finished,     ///< the same, with a result
  let_go,       ///< its caller's own deadline passed
  lost,         ///< the belief in it ended
  undelivered,  ///< its caller had gone before it was told
  drained,      ///< the server stops
};
[[nodiscard]] std::string_view to_string(GuardEnd end);

class Asking;

/// A right that this process holds for a caller who is somewhere else.
struct Guard {
  std::string id;
  std::string kind;                   ///< "task" or "once"
  std::string name;                   ///< of the task; the key of what is run once
  WallTime deadline{};                ///< the caller's own
  Instant own_end{};                  ///< the same, on the clock that nobody sets
  std::shared_ptr<coord::Held> held;  // null: not yet, or no longer
  coord::Coordinator::Turn turn;      // of a "once"
  std::int64_t epoch = 0;
  std::string attempt;
  std::optional<GuardEnd> end;            // set as soon as effects are over
  std::string invocation;                 // of its caller; empty: not said
  std::string reason;                     // of a loss, or of being let go before its deadline
  std::optional<coord::HoldEnd> came_to;  // what became of the write that gave it back
  std::optional<Failure> failure;         // of a "once": why its result does not stand
  bool is_asked_again = false;            // the store, what became of it
  std::string result_digest;              // of what it was finished with
  std::weak_ptr<Asking> asking;           // who waits for it
  boost::json::object told;               // with it, when it was handed over
  TimerId timer = 0;
  std::map<std::uint64_t, std::function<void()>> waiting;  // to be called, once, when something above changes

  [[nodiscard]] bool is_held() const { return held != nullptr && !end; }
  [[nodiscard]] bool runs_out() const { return end && timer != 0; }
  [[nodiscard]] bool is_settled() const { return came_to || failure; }
  /// Its caller ended it, and the store has not said (yet) whether that arrived.
  [[nodiscard]] bool is_doubtful() const {
    const bool is_by_caller = end == GuardEnd::released || end == GuardEnd::finished;
    return is_by_caller && (!is_settled() || came_to == coord::HoldEnd::doubtful);
  }
};
using GuardPtr = std::shared_ptr<Guard>;

/// The guards of this process: kept alive (their leases are renewed) until their callers' own deadlines, at most.
/// Those that have ended are remembered for a while, so that who asks is told what became of them. On the loop's
/// thread.
class Guards {
 public:
  /// `most`: asked for, held, or on their way back.
  Guards(Loop& loop, std::size_t most) : loop_(loop), most_(most) {}
  ~Guards();
  Guards(const Guards&) = delete;
  Guards& operator=(const Guards&) = delete;

  /// One that is about to be asked for, under an id of its caller's, which is not known() here; or empty: one is
  /// drawn. Null: there are too many.
  [[nodiscard]] GuardPtr expect(std::string kind, std::string name, std::string id = {});
  /// It was not to be had, or is not wanted: its id is free again.
  void forget(const GuardPtr& guard);
  /// Asked for, held, or over; null: never heard of, or forgotten.
  [[nodiscard]] GuardPtr known(const std::string& id) const;
  /// Whether such a right is on its way back into the store.
  [[nodiscard]] bool is_returning(std::string_view kind, std::string_view name) const;
  /// Its lease is here. From now on the caller's own deadline runs. One that was forgotten meanwhile is here again,
  /// for as long as it takes to give it back.
  void hold(const GuardPtr& guard, std::shared_ptr<coord::Held> held, Duration hold_for);
  /// Held, or over; null: never heard of, or forgotten.
  [[nodiscard]] GuardPtr find(const std::string& id) const;
  /// Another deadline, counted from now. False: it is over.
  [[nodiscard]] bool extend(const GuardPtr& guard, Duration hold_for);
  /// Effects are over: gives the lease back. A "once" whose caller had it and did not say that it is over is left as
  /// abandoned, as is one that was abandoned before and that nobody was told of. What runs out is given back too:
  /// nobody goes by it any more.
  void let_go(const GuardPtr& guard, GuardEnd why);
  /// Effects are over, for `reason`, as far as we know; but its caller may go by what it was told last. So the lease
  /// is given back only when that has passed (S1), and kept no longer.
  void let_run_out(const GuardPtr& guard, GuardEnd why, std::string reason);
  /// The same, for one whose lease is given back by another's hand (with a result).
  void leave(const GuardPtr& guard, GuardEnd why);

  // What the coordinator tells.
  void lost(const GuardPtr& guard, LossReason reason);
  void ended(const GuardPtr& guard, coord::HoldEnd how);
  void finished(const GuardPtr& guard, const Ended<std::optional<OnceResult>>& how);
  /// The store is asked once more what became of it, or to take it: one of the above follows. Who waits, waits for
  /// that. False: it is being asked already.
  [[nodiscard]] static bool ask_again(const GuardPtr& guard);

  /// Calls back when something about it changes, at `limit`, or where the wait is ended. Once.
  using WaitId = std::uint64_t;
  WaitId wait(const GuardPtr& guard, Duration limit, std::function<void()> called);
  static void end_wait(const GuardPtr& guard, WaitId id);

  [[nodiscard]] std::size_t held() const;
  /// Held, or running out.
  [[nodiscard]] std::vector<GuardPtr> all() const;
  /// Calls back, once, when none is held or on its way back any more.
  void when_empty(std::function<void()> called);
  void let_all_go(GuardEnd why);

 private:
  void set_deadline(const GuardPtr& guard, Duration hold_for);
  [[nodiscard]] static bool is_abandoned(const Guard& guard);
  void give_back(const GuardPtr& guard);
  void changed(const GuardPtr& guard);
  /// Nobody knows it by its id: from now on it has another.
  void rename(const GuardPtr& guard);
  void remember(const GuardPtr& guard);
  void tell_when_empty();

  Loop& loop_;
  const std::size_t most_;
  std::map<std::string, GuardPtr, std::less<>> guards_;  // asked for, held, or on their way back
  std::map<std::string, GuardPtr, std::less<>> ended_;
  std::deque<std::string> ended_order_;  // oldest first
  std::function<void()> empty_;
  WaitId last_wait_ = 0;
};

}  // namespace holdfast::serve
