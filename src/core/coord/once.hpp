#pragma once
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/coord/row_procedure.hpp"
#include "core/lease_write.hpp"
#include "holdfast/coordination.hpp"

namespace holdfast {

struct OnceOptions {
  std::string key;
  /// Of the input: the same key with another one is a mismatch. Hexadecimal SHA-256 by convention; empty: not
  /// checked.
  std::string fingerprint;
  using Abandoned = holdfast::Abandoned;
  Abandoned abandoned = Abandoned::rerun;
  Duration skew{};
  Instant wait_until{};  ///< how long somebody else's run is waited for; in the past: not at all
  Instant deadline{};    ///< how long the store is waited for
};

/// Nobody has run it yet (or who did is gone): claim the lease, with the changes of claim_changes(), and run.
struct OnceFree {
  Candidate candidate;
  bool was_abandoned = false;  ///< somebody began and left no result
};
/// It has been run, under this epoch.
struct OnceDone {
  OnceResult result;
  Epoch epoch;
};
/// Somebody began, left no result, and OnceOptions::Abandoned::hold says that this is for a person to decide.
struct OnceHeld {
  std::string owner;
  Epoch epoch;
  WallTime expired_at{};
};
using OnceLook = std::variant<OnceFree, OnceDone, OnceHeld>;

/// Looks at what became of a key: reads only. Running it takes two writes, the claim and the result, which are the
/// Keeper's claim and release with changes of their own.
class LookOnce final : public RowProcedure<OnceLook> {
 public:
  LookOnce(OnceOptions options, Random& random, IsWanted is_wanted = {});

  [[nodiscard]] static std::string row_key(std::string_view key);
  /// What goes with the claim.
  [[nodiscard]] static std::vector<Change> claim_changes(const OnceOptions& options);
  /// What goes with the release, in one write under the epoch, so that nobody's result is ever overwritten (F23): the
  /// result, kept for `retention` at least.
  [[nodiscard]] static std::vector<Change> result_changes(const OnceResult& result, Duration retention, WallTime now);

 private:
  [[nodiscard]] Plan plan(Now now) override;

  const OnceOptions options_;
};

/// Records what came of a run that has ended, whatever has become of its lease: under its fence, so that it is as
/// good as on time until somebody else has taken the key, or it was released by hand (F23). Refused then; and where
/// it has been recorded, that is its success.
class RecordOnce final : public RowProcedure<OnceResult> {
 public:
  /// `owner` and `epoch`: of the run.
  RecordOnce(std::string key, WorkerId owner, Epoch epoch, OnceResult result, Duration retention, Instant deadline,
             Random& random);
  /// Its failure is a refusal by the fence: nothing of it is recorded, now or later.
  [[nodiscard]] bool is_overtaken() const { return is_overtaken_; }

 private:
  [[nodiscard]] Plan plan(Now now) override;

  bool is_overtaken_ = false;
  const std::string name_;
  const WorkerId owner_;
  const Epoch epoch_;
  const OnceResult result_;
  const Duration retention_;
};

/// The result in this row, if there is one.
[[nodiscard]] std::optional<OnceResult> once_result_in(const Row& row);

}  // namespace holdfast
