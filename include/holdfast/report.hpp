#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/capacity.hpp"
#include "holdfast/resource.hpp"
#include "holdfast/types.hpp"

namespace holdfast {

/// One connection that somebody else had held before it came to this worker. Times are in milliseconds from the
/// start of its downtime, as far as that can be known from the row (see docs/report.md).
struct Failover {
  enum class Kind {
    crash,     ///< its lease ran out: downtime starts at the last renewal of the former owner
    graceful,  ///< it was released: downtime starts at the release
  };
  std::string connection;
  Epoch epoch;
  Kind kind = Kind::crash;
  std::int64_t claimed_ms = 0;                     ///< until the claim was confirmed
  std::optional<std::int64_t> first_message_ms{};  ///< until the first message was accepted; nothing: none came
};

/// What one worker did between its start and its end. docs/report.md describes its JSON form.
struct Report {
  enum class End {
    drained,  ///< everything was released in time
    cut,      ///< something was not given back by the end of its lease or of the drain
    stopped,  ///< stopped at once, without releasing
    failed,   ///< ended by an unexpected error
  };
  End end = End::drained;
  std::string failure;  ///< where end is failed

  std::string worker;       ///< the name asked for
  std::string incarnation;  ///< 8 hexadecimal digits; owner in rows: worker#incarnation
  WallTime started{}, ended{};

  std::int64_t claims = 0;                     ///< leases won
  std::int64_t conflicts = 0;                  ///< claims that somebody else won, or stale hints
  std::int64_t renewals = 0;                   ///< confirmed
  std::int64_t renewal_late_ms_max = 0;        ///< the latest a renewal was sent after it was due
  std::int64_t releases = 0;                   ///< confirmed
  std::int64_t cut = 0;                        ///< held at the end and not released
  std::map<std::string, std::int64_t> losses;  ///< by reason
  std::map<std::string, std::map<std::string, std::int64_t>> store;  ///< operations by kind, then by outcome
  ConsumedByKind capacity;          ///< what they cost, where the store has such a thing as capacity units
  std::int64_t changes_read = 0;    ///< times that the store told of changes
  std::int64_t pokes_sent = 0;      ///< to other workers, about changes
  std::int64_t pokes_heard = 0;     ///< from other workers
  std::int64_t pokes_refused = 0;   ///< datagrams that were none, or for somebody else
  std::int64_t sink_failures = 0;   ///< times that everything was released because the sink failed
  Tally tally;                      ///< over all that was held
  std::vector<Failover> failovers;  ///< at most failovers_max, the first ones
  std::int64_t failovers_left_out = 0;

  static constexpr std::size_t failovers_max = 10'000;
};

/// One JSON document, ending in a newline.
[[nodiscard]] std::string to_json(const Report& report);

}  // namespace holdfast
