#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/store.hpp"

namespace holdfast::store {

// What `holdfast doctor` needs of a store beyond the contract: what it stands on, as findings.

enum class Health {
  ok,
  warning,         ///< works, but not as well, or not for all that may be wanted
  failed,          ///< workers cannot do their work, or not safely
  not_applicable,  ///< this kind of store has no such thing
  not_checked,     ///< since something before it failed, or time ran out
};
[[nodiscard]] std::string_view to_string(Health health);

/// What one check came to, for people and programs.
struct Finding {
  std::string check;  ///< "index"
  Health health = Health::ok;
  std::string detail;  ///< what was found
  std::string advice;  ///< what to do; of a warning or a failure never empty
  bool operator==(const Finding&) const = default;
};
using Findings = std::vector<Finding>;

/// Between which two values the server's clock minus ours lies.
struct ClockOffset {
  Duration least{}, most{};
  /// What one answer says whose Date header, cut off to whole seconds, and half a second is `measured` from our clock
  /// when it came, `took` after it was asked for.
  [[nodiscard]] static ClockOffset from_date(Duration measured, Duration took);
  /// What both say. Where they contradict each other a clock was set in between: then what the second says.
  [[nodiscard]] static ClockOffset both(const ClockOffset& first, const ClockOffset& second);
  [[nodiscard]] Duration width() const { return most - least; }
};
/// Whether this machine's clock is as near to the server's as leases need: any two machines may differ by `skew`
/// (S1). Without an offset `why_not` says why there is none.
[[nodiscard]] Finding judge_clock(const std::optional<ClockOffset>& offset, Duration skew,
                                  const std::string& why_not);

struct Diagnosis {
  Findings findings;
  bool can_race = false;  ///< rows can be read and written
  bool can_walk = false;  ///< all rows can be read
  std::optional<ClockOffset> clock;
  std::string no_clock;  ///< why there is none
};

/// Some of the table's rows, in an order of the store's own, whether the index sees them or not.
struct Walked {
  std::vector<Row> rows;
  Findings damaged;  ///< rows that cannot be read, or that the index has otherwise than they are
  std::string next;  ///< hand back to go on; empty: that was all
};

/// Implemented by stores beside the contract. Handlers and deadlines as there.
class Diagnosable {
 public:
  virtual ~Diagnosable() = default;

  /// Looks at what the store stands on, and tries each call without changing a row. May wait for the disk.
  virtual void diagnose(Instant deadline, Handler<Diagnosis> handler) = 0;
  /// Carries an update out apart from all others of this process: neither in order with them nor in one commit.
  virtual void update_apart(Update update, Instant deadline, Handler<RowReply> handler) = 0;
  /// All rows, a page at a time; `from` is Walked::next, or empty. May wait for the disk.
  virtual void walk(std::string from, Instant deadline, Handler<Reply<Walked>> handler) = 0;
};

/// Null where the store cannot be diagnosed. Of the same object.
[[nodiscard]] Diagnosable* diagnosable(Store& store);

}  // namespace holdfast::store
