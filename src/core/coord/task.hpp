#pragma once
#include <optional>
#include <string>

#include "core/coord/row_procedure.hpp"
#include "core/lease_write.hpp"

namespace holdfast {

/// What is behind the first '#' of a row's key: of a task, or of what is run once, the name that its callers use.
[[nodiscard]] constexpr std::string_view name_in(std::string_view row_key) {
  return row_key.substr(row_key.find('#') + 1);
}

/// Looks at a task until it can be claimed: ends with what to claim, or busy. Reads only; the claim itself is the
/// Keeper's, so a contender that would lose does not write. While somebody holds the task, the next look comes when
/// the lease can have ended, and before that now and then, since it may be given back early: in an eighth of what
/// remains, within limits, with jitter. Where the store tells of changes, at once.
class AwaitTask final : public RowProcedure<Candidate> {
 public:
  /// `wait_until`: how long a holder is waited for; in the past: not at all. A store that does not answer is waited
  /// for until `deadline`.
  AwaitTask(std::string row_key, Duration skew, Instant wait_until, Instant deadline, Random& random,
            IsWanted is_wanted = {});

  [[nodiscard]] static std::string row_key(std::string_view task);

 private:
  [[nodiscard]] Plan plan(Now now) override;

  const Duration skew_;
  const Instant wait_until_;
};

/// The lease in the row of a task or of what is run once, which need not be there (null).
[[nodiscard]] Ended<Candidate> lease_in(std::string_view key, const Row* row);

/// Whoever holds it: when to look again, or busy. For every primitive that waits for a holder.
[[nodiscard]] std::variant<Pause, Failure> wait_for_holder(const Candidate& held, Duration skew, Instant wait_until,
                                                           Now now, Random& random);

}  // namespace holdfast
