#pragma once
#include <string>
#include <vector>

#include "holdfast/types.hpp"
#include "sim/history/operation.hpp"
#include "sim/history/verdict.hpp"

namespace holdfast::sim {

/// One ownership, from the claim that won it: who, under which epoch, and when the outside could see it.
struct Grant {
  std::string key;
  std::string owner;
  Epoch epoch;
  Instant from{};   ///< the claim took effect at this time or later
  Instant until{};  ///< and at this time or earlier (its reply came)
};

/// A stretch of time in which a process believed that it held `key`, as measured from outside by true time.
struct Belief {
  std::string key;
  std::string owner;
  Epoch epoch;
  Instant from{};
  Instant until{};  ///< not believed any more at this time
};

/// Something the outside can see that was accepted: a checkpoint, a record that a sink took.
struct Effect {
  std::string key;
  std::string by;
  Epoch epoch;
  Instant from{};    ///< it was accepted at this time or later
  Instant until{};   ///< and at this time or earlier; the same where the time is known exactly
  std::string what;  ///< for the words
};

/// S3: every epoch has one owner and is given once; of two grants, one of which was over before the other could
/// begin, the later has the higher epoch.
[[nodiscard]] Verdict check_epochs(const std::vector<Grant>& grants);

/// S3, of whatever else was recorded: nobody believes, or has an effect, under an epoch that another has.
[[nodiscard]] Verdict check_owners(const std::vector<Grant>& grants, const std::vector<Belief>& beliefs,
                                   const std::vector<Effect>& effects);

/// S1: no two beliefs of different processes in one key overlap, and none lasts, for sure, when a higher epoch has
/// been given. (Only promised while clocks are within the skew.)
[[nodiscard]] Verdict check_one_believer(const std::vector<Belief>& beliefs, const std::vector<Grant>& grants = {});

/// S2: no effect is accepted, for sure, after one of a higher epoch on the same key.
[[nodiscard]] Verdict check_fence(const std::vector<Effect>& effects);

/// S2: no checkpoint is accepted into a row that belongs to another than its asker.
[[nodiscard]] Verdict check_writers(const History& history);

/// The grants in a history of operations: applied updates that left an owner under an epoch of their own setting.
/// An unknown claim that took effect is a grant too, but only its consequences can be seen, not itself.
[[nodiscard]] std::vector<Grant> grants_in(const History& history);

/// The applied updates that set `attribute` on a row that has an owner and an epoch, as effects under that epoch:
/// with last_seq, the checkpoints.
[[nodiscard]] std::vector<Effect> effects_in(const History& history, std::string_view attribute);

}  // namespace holdfast::sim
