#pragma once
#include <optional>

#include "core/coord/procedure.hpp"
#include "holdfast/random.hpp"

namespace holdfast {

/// When to ask a store again that did not do what it was asked, and what is told when time is up: the one way in
/// which all procedures are patient (S10).
class Tries {
 public:
  Tries(Instant deadline, Random& random) : deadline_(deadline), random_(random) {}

  /// The latest request came to nothing: full jitter below a bound that doubles, within half of what time is left.
  void failed(Error error, Now now);
  /// Somebody else's write came first: again at once, and if that was in vain too, as after a failure.
  void lost_race(Now now);
  void succeeded() { failures_ = 0; }
  /// A write came out unknown (S5).
  void leave_in_doubt() { in_doubt_ = true; }

  [[nodiscard]] Instant deadline() const { return deadline_; }
  /// There is no time left to ask once more.
  [[nodiscard]] bool is_over(Now now) const { return now.instant >= deadline_; }
  /// What has to be kept before the next request, until `not_before` at least; nothing: it may go.
  [[nodiscard]] std::optional<Pause> pause(Now now, Instant not_before = {}) const;
  /// How many came to nothing, in a row.
  [[nodiscard]] unsigned failures() const { return failures_; }
  [[nodiscard]] bool in_doubt() const { return in_doubt_; }
  /// Time is up.
  [[nodiscard]] Failure failure() const;

 private:
  void put_off(Now now);

  const Instant deadline_;
  Random& random_;
  Instant not_before_{};
  unsigned failures_ = 0;
  bool in_doubt_ = false;
  Error last_;
};

}  // namespace holdfast
