#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "holdfast/lease.hpp"
#include "holdfast/row.hpp"
#include "holdfast/types.hpp"
#include "holdfast/update.hpp"

namespace holdfast {

/// A row that may be claimed, as it was seen. What was seen is pinned by the claim's condition (S8).
struct Candidate {
  std::string key;
  bool row_exists = true;  ///< false, of a task: there was no row, and the claim makes it
  Epoch epoch;             ///< 0: the row never had one
  std::string owner;       ///< empty: nobody
  WallTime expires_at{};   ///< 1970: free, or never held
  WallTime released_at{};  ///< 1970: not released by its last owner; for reports
};

/// The lease in a row, whether or not it is to run. Nothing where it is damaged.
[[nodiscard]] std::optional<Candidate> lease_of(const Row& row);
/// The same, but nothing where its desired state is not STARTED.
[[nodiscard]] std::optional<Candidate> candidate_from(const Row& row);
/// The lease on a task, whose row may not be there yet (null). Nothing where it is damaged.
[[nodiscard]] std::optional<Candidate> task_from(std::string_view key, const Row* row);

/// Why no claim on this row could ever succeed, whoever holds it, in words; nothing where one could. A claim's
/// condition demands the owner and epoch exactly as they were seen, so they must be what such a value can be: a text
/// (or nothing), and a number from 0 on that has a successor (or nothing).
[[nodiscard]] std::optional<std::string> damage_of(const Row& row);

/// From when on (by one's own wall clock) others may take it: at once where nobody holds it (WallTime::min()),
/// otherwise `skew` after its expiry (S1, S4).
[[nodiscard]] WallTime claimable_from(std::string_view owner, WallTime expires_at, Duration skew);
[[nodiscard]] inline WallTime claimable_from(const Candidate& candidate, Duration skew) {
  return claimable_from(candidate.owner, candidate.expires_at, skew);
}

/// What a row says while this lease is held. Added to the condition of one's own writes to that row it fences them:
/// none is accepted once the lease is somebody else's (S2).
[[nodiscard]] Condition fence(const WorkerId& owner, Epoch epoch);

/// One of the conditional writes of a lease's life, as small plain data: made for every renewal, so it owns
/// nothing. The views point into the Keeper and are valid until the lease's slot is gone; render() copies.
struct LeaseWrite {
  enum class Kind : std::uint8_t { claim, renew, release };
  Kind kind = Kind::claim;
  bool row_exists = true;  ///< claim: as it was seen
  std::string_view key;
  Attempt attempt;                       ///< the same in every try of this write (S5)
  Epoch epoch;                           ///< held, or to be held: a claim is conditional on the one below it
  WallTime expires_at{};                 ///< claim, renew
  std::int64_t renewal = 0;              ///< renew: higher at every try under this epoch (docs/adr/0017)
  std::optional<std::int64_t> last_seq;  ///< renew, release: only where it went forwards (S9)
  WallTime at{};                         ///< the wall clock at this try
  /// claim: the row's desired state (S8); empty: none is demanded, and TASK is what it becomes
  std::string_view wanted = state::started;
  std::string_view seen_owner;  ///< claim
  WallTime seen_expires_at{};   ///< claim
  WallTime seen_released_at{};  ///< claim: for reports
  WallTime free_before{};       ///< claim: an owner whose expiry is at or before this has lost it
};

/// The write as conditions and changes on the row. See README.md for what each condition is there for.
[[nodiscard]] Update render(const LeaseWrite& write, const WorkerId& owner);

}  // namespace holdfast
