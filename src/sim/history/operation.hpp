#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/row.hpp"
#include "holdfast/store.hpp"
#include "holdfast/types.hpp"
#include "holdfast/update.hpp"

namespace holdfast::sim {

/// One request to the table about one row, as its client saw it. All times of a history are on one time line: the
/// simulator's, or one machine's CLOCK_BOOTTIME.
///
/// - applied, conflict: took effect once, between `invoked` and `returned`.
/// - throttled, rejected: surely did nothing, so it proves nothing about the row.
/// - unknown: an update took effect once at some time after `invoked`, however much later, or never; a get says
/// nothing.
///
/// A copy that the network made (a duplicate, whenever it arrives) is an operation of its own: the same update,
/// invoked when the original was, unknown. A transaction is one operation for each of its rows; that they happened
/// together is not judged.
struct Operation {
  std::string client;
  std::string key;
  Instant invoked{};
  Instant returned{};            ///< when the outcome was known; of unknown ones it is not used
  std::optional<Update> update;  ///< nothing: a consistent get
  Outcome outcome = Outcome::unknown;
  std::optional<Row> row;  ///< applied: after the update, or as read; conflict: as it was; nothing: there was none
};

using History = std::vector<Operation>;

/// "12.000345 s": what the words of verdicts give times in.
[[nodiscard]] std::string in_words(Instant time);
/// "{lease_epoch: 3, lease_owner: 'w1'}", or "no row".
[[nodiscard]] std::string in_words(const std::optional<Row>& row);
[[nodiscard]] std::string in_words(const Condition& condition);
/// One line: who, when, what, and what came of it.
[[nodiscard]] std::string in_words(const Operation& operation);

}  // namespace holdfast::sim
