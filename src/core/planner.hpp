#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/deadline_heap.hpp"
#include "core/lease_write.hpp"
#include "holdfast/lease.hpp"
#include "holdfast/random.hpp"
#include "holdfast/row.hpp"
#include "holdfast/types.hpp"

namespace holdfast {

struct PlannerLimits {
  std::size_t max_leases = 100;  ///< the worker's capacity: sets the size of a batch of claims
  std::size_t pool = 1024;       ///< candidates remembered from one look
  std::size_t rows = 8 * 1024;   ///< read by one look; also rows remembered whose claims came to nothing
};

/// Why a claim came to nothing.
enum class Setback : std::uint8_t {
  conflict,  ///< somebody else has it, or the row is not as it was seen
  refused,   ///< the store rejects it: the row is at fault
  store,     ///< throttled, or no answer in time
};

struct ClaimFailure {
  Setback setback = Setback::conflict;
  std::string why;           ///< of a refusal, for people
  const Row* row = nullptr;  ///< of a conflict: as it really is, where the store said so
};

/// A look for orphans: query_due(STARTED, before, limit).
struct Look {
  WallTime before{};      ///< rows that expire before this, so also some that are still held
  std::size_t limit = 0;  ///< rows per page
  Instant deadline{};     ///< for the whole look, all its pages
  bool goes_on = false;   ///< begins with the page that the last look did not get to
};

/// Rows that are to run and that no claim can win.
struct Unclaimable {
  std::size_t count = 0;
  std::string key;  ///< of one of them
  std::string why;
};

/// Which orphans to claim, and when (pure: no I/O, no clock, randomness from the generator handed in).
///
/// Looks come at random intervals, uniform in [R/10, 19R/10] around R = terms.reconcile_every, so that workers that
/// started together drift apart. Each sees rows that expire within the longest interval to come (2R, but no more than
/// three quarters of what a healthy row has left at its renewal, so healthy rows do not show): a dead owner's row is
/// known before it expires, and its claim is due at expiry + skew + a small jitter.
///
/// Claims are handed out in random order, at most batch() per pace(): survivors share rather than collide, and after
/// an outage the fleet comes back gradually (F15). What was handed out is forgotten until a look shows it again.
/// There is no notion of a fair share here, so none that could keep an orphan waiting (F9).
///
/// No row keeps others waiting (S10). One that can never be claimed is no candidate, but counted; one whose claim
/// came to nothing although it has not changed since waits, twice as long each time; neither takes a candidate's
/// place. An index may be behind its table for long: what a conflict showed counts for more than an older row in a
/// look, so a row that is held is claimed in vain once per lease at most, and not each time the index moves on. When
/// there is no room to remember more (a fleet that takes over ten thousands of orphans collides often), what others
/// hold and no look has shown since is forgotten; where that does not help, claims slow down.
/// A look that had to end before the last row is continued by the next one, as soon as there is room for what it
/// brings: a worker fills at the pace of its claims, however many pages that takes, and each row is reached within a
/// number of looks that is bounded by the number of rows.
///
/// The shell: `if (auto wanted = look(now))` query; each page → saw(); an error → failed(); then
/// `while (auto candidate = take(now, keeper.room())) keeper.claim(*candidate, now)`; again at next(), after every
/// page, and after the keeper freed a slot; and claim_failed() for each claim that was not won. Candidates that it
/// holds itself need no filter: the keeper refuses them.
class Planner {
 public:
  Planner(LeaseTerms terms, PlannerLimits limits, Random& random);

  /// A look, when one is due. It is then under way until saw() says that it is over, failed(), or its deadline.
  std::optional<Look> look(Now now);
  /// A page of the look under way. `more`: the store has further pages. True: fetch the next page as well; false: the
  /// look is over.
  bool saw(std::span<const Row> rows, bool more, Now now);
  /// The look under way failed: next one after an exponential, fully jittered delay of at most 4R (F15).
  void failed(Now now);
  /// Rows may have changed: look soon, but not more often than floor(). Into a store that fails later, by the jitter
  /// of failed(), but within R or half a lease.
  void poke(Now now);

  /// The next candidate to claim now. Nothing while `room` is 0, when the batch is spent, or none is due.
  std::optional<Candidate> take(Now now, std::size_t room);
  /// A claim was not won. The row waits before it is handed out again, unless it changes. Conflicts on half a batch
  /// of rows bring a new look soon, if the last one saw all: others are claiming too. Only a store that could not be
  /// asked holds up the other claims: the next batch waits, up to R.
  void claim_failed(const Candidate& candidate, ClaimFailure failure, Now now);

  /// No looks and no claims from now on.
  void drain();

  /// When look() or take() next has something by itself. Nothing: never (draining).
  [[nodiscard]] std::optional<Instant> next() const;

  /// Orphans that nobody took for more than 2R after they could have been, or whose claims have come to nothing for
  /// so long, as of the last look (at most limits.pool and limits.rows are known). More than 0 on a worker without
  /// room means: the fleet is too small (F10).
  [[nodiscard]] std::size_t unowned(Now now) const;
  /// As of the last look that saw all rows, or the most so far: damaged rows, those whose claims the store rejects,
  /// and those that met stubborn() conflicts although they did not change.
  [[nodiscard]] Unclaimable unclaimable() const;
  static constexpr unsigned stubborn = 5;

  [[nodiscard]] Duration floor() const { return floor_; }      ///< least time between looks
  [[nodiscard]] Duration pace() const { return pace_; }        ///< time between batches
  [[nodiscard]] std::size_t batch() const { return batch_; }   ///< claims at once
  [[nodiscard]] Duration horizon() const { return horizon_; }  ///< how far ahead of expiry a look sees

 private:
  struct Known {
    Candidate candidate;
    Instant claimable{};    // since when anyone may have it
    std::uint64_t lap = 0;  // that showed it last
  };
  /// A row whose claim came to nothing.
  struct Struck {
    Candidate candidate;           // as it was then
    std::optional<Candidate> met;  // the lease as the conflict showed it
    bool wanted = true;            // so does the row that it showed
    bool held = false;             // or not to run, as the conflict showed it
    bool shown = false;            // by a look, although this was known of it
    Setback setback = Setback::conflict;
    std::string why;
    unsigned times = 0;
    Instant since{};        // as far as is known, nobody has it since then
    Instant again{};        // not before
    std::uint64_t lap = 0;  // that showed it last

    /// `seen` is an older state of the row than the one that the conflict showed.
    [[nodiscard]] bool outdates(const Candidate& seen) const;
  };

  void admit(const Row& row, Now now);
  [[nodiscard]] Instant correct(Candidate& seen, Now now);
  [[nodiscard]] Instant held_until(const Struck& struck, Now now) const;
  void forget(Slot place);
  [[nodiscard]] bool has_place_to_remember(Now now);
  void finish_look(Now now);
  void look_by(Instant at);
  [[nodiscard]] Duration soon() { return random_.between(Duration::zero(), floor_ / 2); }

  const LeaseTerms terms_;
  const PlannerLimits limits_;
  Random& random_;
  const Duration horizon_;
  const Duration floor_;
  const Duration pace_;
  const Duration jitter_;
  const std::size_t batch_;
  const std::size_t page_;  // rows

  std::vector<Known> known_;                      // all of them in due_
  std::unordered_map<std::string, Slot> places_;  // key → index in known_; looked up only, never walked
  DeadlineHeap due_;                              // indexes of known_, by when they may be handed out
  std::map<std::string, Struck> struck_;
  Unclaimable damaged_;       // as of the latest lap that was complete, or more
  Unclaimable damaged_seen_;  // in this lap
  std::uint64_t lap_ = 0;     // from the first row on: one look, and those that went on with it
  bool looked_ = false;       // ever
  std::size_t seen_ = 0;      // rows of the look under way
  WallTime shown_{};          // the expiry of the last of them
  bool looking_ = false;
  bool poked_ = false;      // while looking
  bool truncated_ = false;  // the latest look left rows unseen
  bool draining_ = false;
  bool full_ = false;  // as of the latest take()
  std::size_t left_in_batch_ = 0;
  std::size_t conflicts_ = 0;  // since the latest look
  unsigned failures_ = 0;      // in a row
  Instant poke_from_{};        // failing: pokes bring no look before
  Instant next_look_{};        // the first one at once
  Instant last_look_{};
  Instant forgot_{};  // what others hold, for want of room
  Instant look_deadline_{};
  Instant next_batch_{};
};

}  // namespace holdfast
