#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/deadline_heap.hpp"
#include "core/lease_write.hpp"
#include "holdfast/lease.hpp"
#include "holdfast/random.hpp"
#include "holdfast/row.hpp"
#include "holdfast/store.hpp"
#include "holdfast/types.hpp"

namespace holdfast {

/// Names one try of one write. Never reused within a Keeper, never 0.
using WriteId = std::uint64_t;

/// Why a slot went away.
enum class Ending : std::uint8_t {
  claim_conflict,  ///< somebody else has it, or the row was not as it had been seen: forget what was seen
  claim_failed,    ///< the store could not be asked in time
  claim_refused,   ///< the store rejects the claim: it can never work as it is
  released,        ///< given back, or its expiry overtook the attempt to
  lost,            ///< a `lost` came before
};
[[nodiscard]] std::string_view to_string(Ending ending);

/// Something for the shell to do now. Which fields count depends on the kind.
struct Action {
  enum class Kind : std::uint8_t {
    write,   ///< carry out `write` by `deadline`, then on_write(slot, write_id, …), exactly once
    start,   ///< the lease is won: run the resource under `epoch`, believing until `until`, going on after `last_seq`
    extend,  ///< believe until `until`
    stop,    ///< end the resource for `reason`, by `until` (which renewals go on extending); then stopped()
    lost,    ///< the belief is over, for `reason`: revoke, cut the resource off at once; then stopped()
    gone,    ///< the slot is over and will be reused (`ending`)
  };
  Kind kind = Kind::write;
  Slot slot = 0;
  LossReason reason = LossReason::stopped;
  Ending ending = Ending::released;
  Epoch epoch;
  Instant until{};
  std::int64_t last_seq = 0;
  WriteId write_id = 0;
  Instant deadline{};
  LeaseWrite write;
};

struct KeeperLimits {
  std::size_t max_leases = 100;     ///< claimed, held and ending together
  std::size_t max_in_flight = 256;  ///< writes
};

/// All leases of one worker, as pure rules: what happened goes in with the time, what to do comes out. No I/O, no
/// clock; randomness only from the generator handed in. Not thread-safe: one loop's thread.
///
/// The shell, after every call and at next(): `while (auto action = keeper.poll(loop.now())) …`. The Now handed to
/// poll() must have been read before the request of a `write` leaves, since belief counts from it (S4): read the
/// clocks anew for each poll() or after work that took long.
///
/// Renewals keep a phase within the interval, stable for each key and spread evenly, so that leases that were won
/// together are not renewed together (F16). The phases are few (25 to 50 for leases of up to 20 s, at most 100 ms
/// apart): what is due at one instant is handed out together, and can share a commit.
///
/// Of the row the Keeper keeps only what it needs. The shell keeps the newest row that it handed to on_write() for a
/// slot: that is the row that `start` and `stop` refer to (URL, options, last_seq).
///
/// The life of a slot: claim() → write… → start → (extend | write)… → [stop] → stopped() → write (release) → gone;
/// or lost, at any time after start, → stopped() → gone; or gone without start. Drawn in README.md.
class Keeper {
 public:
  /// `wanted`: the desired state of a row that is to be held; with any other one it is given back. Empty, for tasks:
  /// any will do, and a claim makes the row where there is none.
  Keeper(WorkerId owner, LeaseTerms terms, KeeperLimits limits, Random& random,
         std::string_view wanted = state::started);

  // What happened.

  /// Asks for a claim. False, and nothing happens: no room, draining, that key has a slot already, or the candidate
  /// is not claimable yet by this clock. Given up at `by`, where it has not been answered; then it may still arrive.
  bool claim(const Candidate& candidate, Now now, Instant by = Instant::max());
  /// Everything up to `last_seq` was acknowledged (S9): rides on the next renewal or the release. Never goes back.
  void progress(Slot slot, std::int64_t last_seq);
  /// The next renewal goes out within a moment (200 ms at most, spread), out of turn: there is a first checkpoint to
  /// carry (S9). The ones after keep their phase.
  void renew_soon(Slot slot, Now now);
  /// Ask the resource to stop; renewals go on until it has (S11).
  void stop(Slot slot, LossReason reason, Now now);
  /// Claims nothing more and asks every resource to stop. What was claimed but not started is given back.
  void drain(Now now);
  /// The resource of the slot has ended, asked or not: gives the lease back if it is still held. Somebody waits for
  /// that until `by`: the tries are paced so that several fit. They go on behind it, until the lease has run out.
  void stopped(Slot slot, std::int64_t last_seq, Now now, Instant by = Instant::max());
  /// What became of a write. `row`: as the reply had it, null for none. Ids that are not awaited are ignored.
  void on_write(Slot slot, WriteId id, Outcome outcome, const Row* row, Now now);

  // What to do.

  /// The next thing to do, in this order: beliefs that ended, other events, writes by the end of their belief.
  /// Nothing: all done until next() or the next call.
  std::optional<Action> poll(Now now);
  /// When poll() will have something to do although nothing is called; in the past (Instant{}): at once. Nothing:
  /// never.
  [[nodiscard]] std::optional<Instant> next() const;

  // For looking.

  struct Counters {
    std::uint64_t claims = 0;              ///< won
    std::uint64_t claim_conflicts = 0;     ///< lost to others, or stale
    std::uint64_t claims_late = 0;         ///< won, but the reply came after the belief's end, so given back
    std::uint64_t renewals = 0;            ///< confirmed
    std::uint64_t releases = 0;            ///< confirmed
    std::uint64_t not_released = 0;        ///< given up, since the lease ran out first, or for good
    std::uint64_t settled = 0;             ///< conflicts that were one's own earlier success (S5)
    std::uint64_t adopted = 0;             ///< conflicts that showed the lease still ours, so written again
    std::uint64_t throttled = 0;           ///< tries
    std::uint64_t unknown = 0;             ///< tries
    std::uint64_t rejected = 0;            ///< tries
    std::uint64_t replies_ignored = 0;     ///< late or foreign
    std::array<std::uint64_t, 6> ended{};  ///< leases that had started, by LossReason, each once
    [[nodiscard]] std::uint64_t ended_by(LossReason reason) const { return ended[static_cast<std::size_t>(reason)]; }
  };
  [[nodiscard]] const Counters& counters() const { return counters_; }
  [[nodiscard]] const WorkerId& owner() const { return owner_; }
  [[nodiscard]] const LeaseTerms& terms() const { return terms_; }
  [[nodiscard]] bool draining() const { return draining_; }
  [[nodiscard]] std::size_t held() const { return held_; }  ///< believed in
  [[nodiscard]] std::size_t used() const { return used_; }  ///< slots that are not free
  [[nodiscard]] std::size_t room() const { return draining_ ? 0 : limits_.max_leases - used_; }
  [[nodiscard]] std::size_t in_flight() const { return in_flight_; }  ///< writes
  [[nodiscard]] std::optional<Slot> find(std::string_view key) const;
  /// After `gone`, the key stays readable until the next claim().
  [[nodiscard]] const std::string& key(Slot slot) const { return leases_[slot].key; }
  [[nodiscard]] Epoch epoch(Slot slot) const { return leases_[slot].epoch; }
  [[nodiscard]] Instant until(Slot slot) const { return leases_[slot].until; }

 private:
  enum class State : std::uint8_t { free, claiming, held, releasing, lost, ended };
  enum class Pace : std::uint8_t { resting, waiting, ready, in_flight };

  struct Lease {
    std::string key;
    std::string seen_owner;
    WallTime seen_expires_at{};
    WallTime seen_released_at{};
    bool row_exists = true;  // claiming: as it was seen
    State state = State::free;
    Pace pace = Pace::resting;
    LeaseWrite::Kind sent_kind = LeaseWrite::Kind::claim;  // of the write in flight
    LossReason reason = LossReason::stopped;
    Ending ending = Ending::released;
    bool unwanted = false;  // claimed, but to be given back without a start
    bool starting = false;  // won, but `start` was not handed out yet
    bool stop_asked = false;
    bool resource_ended = true;  // stopped() was called, or there never was a start
    bool attempt_open = false;   // the attempt's write has not been settled yet
    bool maybe_applied = false;  // a try of this attempt came out unknown
    bool hurry = false;          // renew_soon() came while a write was in flight
    bool say_extend = false;
    bool say_stop = false;
    bool event_queued = false;
    bool loss_queued = false;
    std::uint8_t tries = 0;
    Epoch epoch;
    Instant until{};       // held: the belief's end. claiming, releasing: when it is no longer worth trying
    Instant due{};         // waiting: the next write
    Instant first_sent{};  // of the open attempt
    Instant sent{};        // the latest try
    Instant give_up{};     // in flight: when a reply is no longer waited for
    Instant wanted_by = Instant::max();  // claiming, releasing: until when somebody waits for it
    Duration wait = Duration::max();     // how long in all
    Duration phase{};
    std::int64_t renewal = 0;  // the highest number of a renewal ever sent, or seen, under this epoch
    Attempt attempt;
    WriteId write_id = 0;
    std::int64_t acknowledged = 0;
    std::int64_t carried = 0;       // by the write in flight
    std::int64_t checkpointed = 0;  // confirmed in the row; INT64_MAX: unreadable, so nothing may be written over it
    Slot next_event = 0;
    Slot next_loss = 0;
  };
  struct Fifo {  // threads through the leases: nothing is allocated
    static constexpr Slot none = UINT32_MAX;
    Slot head = none;
    Slot tail = none;
  };

  [[nodiscard]] Duration phase_of(std::string_view key) const;
  [[nodiscard]] Slot take_slot();
  void fire(Slot slot, Now now);
  std::optional<Action> take_loss();
  std::optional<Action> take_event();
  std::optional<Action> take_write(Now now);
  [[nodiscard]] LeaseWrite make_write(Lease& lease, Now now);

  void settle(Slot slot, Outcome outcome, const Row* row, Now now);
  void claim_answered(Slot slot, Outcome outcome, const Row* row, Now now);
  void renewal_answered(Slot slot, Outcome outcome, const Row* row, Now now);
  void release_answered(Slot slot, Outcome outcome, const Row* row, Now now);
  void won(Slot slot, Instant counted_from, const Row* row, Now now);
  void renewed(Slot slot, Instant counted_from, const Row* row, Now now);
  void retry(Slot slot, Now now);
  void give_back(Slot slot, Now now);
  void give_up_release(Slot slot);
  void drop_claim(Slot slot, Now now);
  void lose(Slot slot, LossReason reason, Now now);
  void end(Slot slot, Ending ending);
  void leave_held(Lease& lease);

  static void note_checkpoint(Lease& lease, const Row* row);
  static void begin_write(Lease& lease);      // a new logical write: a new attempt
  void ask_write(Slot slot);                  // as soon as there is room in flight
  void ask_write_at(Slot slot, Instant due);  // later
  void rest(Slot slot);
  void schedule(Slot slot);
  void queue_event(Slot slot);
  void queue_loss(Slot slot);
  [[nodiscard]] bool still_wanted(const Row* row) const;
  [[nodiscard]] bool still_ours(const Lease& lease, const Row* row) const;
  [[nodiscard]] bool own_attempt(const Lease& lease, const Row* row) const;
  static void wait_until(Lease& lease, Instant by, Now now);
  [[nodiscard]] Instant soon(Now now);
  [[nodiscard]] Instant next_phase(const Lease& lease, Instant after) const;

  const WorkerId owner_;
  const std::string wanted_;
  const LeaseTerms terms_;
  const KeeperLimits limits_;
  Random& random_;
  const Duration belief_;  // lease − margin
  const std::chrono::milliseconds lease_;
  const Duration try_limit_;  // for one try of a write
  const Duration phase_step_;
  const Duration phase_offset_;
  std::deque<Lease> leases_;  // a deque: keys are viewed from outside, so leases stay where they are
  std::vector<Slot> free_;
  std::unordered_map<std::string_view, Slot> slots_;  // looked up by key only, never walked
  DeadlineHeap timers_;
  DeadlineHeap ready_;
  Fifo events_;
  Fifo losses_;
  Counters counters_;
  WriteId last_write_ = 0;
  std::size_t used_ = 0;
  std::size_t held_ = 0;
  std::size_t in_flight_ = 0;
  bool draining_ = false;
};

}  // namespace holdfast
