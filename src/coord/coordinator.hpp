#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "coord/holder.hpp"
#include "coord/runner.hpp"
#include "core/coord/decision.hpp"
#include "core/coord/once.hpp"
#include "core/coord/procedure.hpp"
#include "core/coord/queue.hpp"
#include "core/coord/stock.hpp"
#include "holdfast/lease.hpp"

namespace holdfast::coord {

struct TaskOptions {
  LeaseTerms terms;
  bool renews = true;                           ///< false: it ends when its lease does
  Duration wait{};                              ///< how long somebody who holds it is waited for; 0: not at all
  Duration patience = std::chrono::seconds(5);  ///< how long the store is waited for
  /// How long it is tried to record a result once `patience` has gone by in vain; at least as long as that again.
  Duration recording{};
};

/// A lease that is held, in the hands of who acts under it. All on the loop's thread, but for the guard, which may be
/// read from any. When the last copy goes without release(), the lease is given back.
class Held {
 public:
  /// How it ends: given back, with these changes, or left as it is (nothing).
  using End = std::function<void(std::optional<std::vector<Change>>)>;
  Held(std::string key, std::shared_ptr<const LeaseGuard> guard, WorkerId owner, Row row, End end)
      : key_(std::move(key)),
        guard_(std::move(guard)),
        owner_(std::move(owner)),
        row_(std::move(row)),
        end_(std::move(end)) {}
  ~Held() { release({}); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  [[nodiscard]] const std::string& key() const { return key_; }
  [[nodiscard]] Epoch epoch() const { return guard_->epoch(); }
  [[nodiscard]] const std::shared_ptr<const LeaseGuard>& guard() const { return guard_; }
  [[nodiscard]] const Row& row() const { return row_; }  ///< as the claim left it
  /// To be added to the condition of one's own writes to this row (S2).
  [[nodiscard]] Condition fence() const { return holdfast::fence(owner_, epoch()); }
  /// Effects are over: gives the lease back, `extra` with it in the same write. Once; HoldEvents::ended follows.
  void release(std::vector<Change> extra) {
    if (end_) std::exchange(end_, {})(std::move(extra));
  }
  /// Effects are over, and it is not known how far they came: the lease ends, and its row says that somebody began
  /// (F22). In the place of release().
  void leave() {
    if (end_) std::exchange(end_, {})(std::nullopt);
  }

 private:
  const std::string key_;
  const std::shared_ptr<const LeaseGuard> guard_;
  const WorkerId owner_;
  const Row row_;
  End end_;
};

/// What the holder of a lease is told, on the loop, never inside a call.
struct TaskEvents {
  /// Held, or why not. Once.
  std::function<void(Ended<std::shared_ptr<Held>>)> acquired;
  /// The belief is over (S7). `ended` follows.
  std::function<void(LossReason)> lost;
  /// After `acquired` with a lease: how it ended. Once.
  std::function<void(HoldEnd, const Error&)> ended;
  /// Asked before each look and each claim: false, and it is not made, since nobody waits for it
  /// (Failure::Kind::busy). Where that changes during a wait: recheck().
  IsWanted is_wanted = {};
};

/// The primitives of ephemeral coordinators, asynchronously, on one store: the shell around the rules in core/coord.
/// On the loop's thread. Destroyed with leases held: they run out by themselves.
class Coordinator {
 public:
  /// `id` names this process, for people; what makes it unique is added.
  Coordinator(std::string id, Store& store, Loop& loop);
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  void acquire(const std::string& task, TaskOptions options, TaskEvents events);

  /// Any procedure of core/coord, to its end; `handler` is given its result. `is_wanted` as Runner::run()'s.
  template <class P, class Handler>
  void run(std::unique_ptr<P> procedure, Handler handler, IsWanted is_wanted = {}) {
    const P* running = procedure.get();
    runner_.run(
        std::move(procedure), [running, handler = std::move(handler)] { handler(*running->result()); },
        std::move(is_wanted));
  }

  using DecideHandler = std::function<void(Ended<Decided>)>;
  /// `ticket` names the proposal, so that every repeat of it is known for ours.
  void decide(const std::string& key, Value proposal, Duration patience, DecideHandler handler,
              std::string_view ticket = {});

  using ReservationHandler = std::function<void(Ended<Reservation>)>;
  /// Where there is too little, what has expired is returned first.
  void reserve(ReserveOptions options, Duration skew, Duration patience, ReservationHandler handler);
  void end_reservation(const std::string& id, Reservation::State into, Duration skew, Duration patience,
                       ReservationHandler handler);

  /// What becomes of a message that was given out too often (ReceiveOptions::receives_most).
  struct Poison {
    bool parks = true;        ///< its group; otherwise it is moved away, and the group goes on
    std::string dead_letter;  ///< the queue that it is moved to
  };
  using BatchHandler = std::function<void(Ended<std::optional<Batch>>)>;
  /// Times in `options` are filled in. What is poison is dealt with, and the next is looked for.
  /// Nothing is claimed any more once `is_wanted` says false.
  void receive(ReceiveOptions options, Poison poison, Duration wait, Duration patience, BatchHandler handler,
               IsWanted is_wanted = {});

  using RedrivenHandler = std::function<void(Ended<Redriven>)>;
  /// Dead letters: the first `most` messages (1 to 100) of the group go to the end of the same group of the queue
  /// `to`, each once, whatever happens. Where some were moved and the next one was surely not, that is a success that
  /// tells how many; asked again, it says why. Failure::Kind::busy: somebody else has the group; refused: it is
  /// parked.
  void redrive_to(const std::string& queue, const std::string& group, const std::string& to, std::size_t most,
                  Duration skew, Duration patience, RedrivenHandler handler);

  /// What a caller of once() is to do, or what there is.
  struct Turn {
    std::shared_ptr<Held> held;    ///< run it under this lease, then finish(); null: do not run
    bool was_abandoned = false;    ///< somebody began before and left no result
    std::optional<OnceDone> done;  ///< it has been run
    std::optional<OnceHeld> hold;  ///< somebody is to decide (OnceOptions::Abandoned::hold)
    struct Given {
      OnceResult result;
      Duration retention{};
    };
    std::shared_ptr<std::optional<Given>> given;  // to finish()
  };
  struct OnceEvents {
    std::function<void(Ended<Turn>)> turn;
    std::function<void(LossReason)> lost;
    /// After a turn with a lease: the result given to finish(), which stands in the row. Nothing: none was given, and
    /// the lease was given back. Failure::Kind::unknown: that is not known; refused: it was lost before, and what was
    /// given to finish() is not recorded. Before that it is tried under the fence, for TaskOptions::recording too.
    std::function<void(Ended<std::optional<OnceResult>>)> finished;
    IsWanted is_wanted = {};  ///< as of TaskEvents
  };
  /// The times in `options` are filled in from the task's.
  void once(OnceOptions options, TaskOptions task, OnceEvents events);
  /// Gives the lease back with the result, which is kept for `retention` at least. Code::usage where it is too large:
  /// then nothing happened, and the lease is still held. Code::unavailable where it is held no longer (F23).
  [[nodiscard]] Result<void> finish(const Turn& turn, OnceResult result, Duration retention);
  /// Records it for a run of ours under `epoch` that has ended, also where its lease is over, or where it is not
  /// known whether it was recorded before (RecordOnce): what stands then. Failure::Kind::refused: it does not, for
  /// good.
  using RecordHandler = std::function<void(Ended<OnceResult>)>;
  void record(const std::string& key, Epoch epoch, OnceResult result, Duration retention, Duration patience,
              RecordHandler handler);

  /// What an is_wanted says may have changed: who waits and is not wanted any more is told at once.
  void recheck() { runner_.recheck(); }

  [[nodiscard]] const WorkerId& owner() const { return owner_; }
  /// For procedures of other primitives on the same store, which has one listener for changes at most.
  [[nodiscard]] Runner& runner() { return runner_; }

 private:
  /// What comes of a claim, for who looks and claims until one of them holds it.
  struct Claim {
    TaskOptions options;
    Instant by{};  ///< it is given up
    std::vector<Change> extra;
    bool was_left = false;
    std::function<void(std::shared_ptr<Held>)> won;
    std::function<void()> beaten;  ///< look again
    std::function<void(Failure)> failed;
    std::function<void(LossReason)> lost;
    std::function<void(HoldEnd, const Error&)> ended;
  };
  struct Acquiring;
  struct Once;
  struct Reserving;
  struct Receiving;
  struct Redriving;
  void claim(const Candidate& candidate, std::shared_ptr<const Claim> claim);
  void again(unsigned& times, std::function<void()> look_again);
  void look(const std::shared_ptr<Acquiring>& what);
  void look(const std::shared_ptr<Once>& what);
  void finished(const std::shared_ptr<Once>& what, HoldEnd how, const Error& error);
  void reserve(const std::shared_ptr<Reserving>& what, bool is_first);
  void receive(const std::shared_ptr<Receiving>& what);
  void put_away(const std::shared_ptr<Receiving>& what, const Receipt& receipt);
  void park(const std::shared_ptr<Receiving>& what, const Receipt& receipt, std::string reason);
  void was_put_away(const std::shared_ptr<Receiving>& what, const Ended<Settled>& settled);
  void move_next(const std::shared_ptr<Redriving>& what);
  void stop_moving(const std::shared_ptr<Redriving>& what, const Failure& why);
  void none_received(const std::shared_ptr<Redriving>& what);
  std::shared_ptr<Holder> holder(const TaskOptions& options);

  const WorkerId owner_;
  Store& store_;
  Loop& loop_;
  Runner runner_;
  std::vector<std::shared_ptr<Holder>> holders_;  // one for each set of terms; few
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace holdfast::coord
