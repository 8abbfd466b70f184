#pragma once
#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/row.hpp"
#include "sim/history/operation.hpp"
#include "sim/history/verdict.hpp"

namespace holdfast::sim {

struct SearchLimits {
  std::size_t bytes_max = std::size_t{512} << 20U;  ///< remembered by one row's search, estimated
  std::size_t steps_max = 50'000'000;               ///< evaluations of an update by one row's search
};

struct Linearization {
  Verdict verdict;
  std::vector<std::size_t> order;  ///< good: indexes into the history in an order that explains every reply; unknown
                                   ///< updates that are not in it need not have happened
  std::size_t configurations = 0;  ///< how many the search met
};

/// Whether the replies about one row can be explained by updates that each happened at one instant between its
/// invocation and its return (Wing and Gong's search, as Lowe improved it: a configuration, which is the set of
/// operations done and the row they left, is looked into once). What an update does is decided by `holds` and
/// `apply`.
///
/// All operations are about one key. `initial`: the row before the first of them.
[[nodiscard]] Linearization linearize(const History& history, const std::optional<Row>& initial = std::nullopt,
                                      SearchLimits limits = {});

/// Every row of a history by itself (linearizability is local: the whole is linearizable if each row is). Rows that
/// `initial` does not have did not exist at first. Of several bad rows the first by key is told; a bad one comes
/// before an undecided one.
[[nodiscard]] Verdict check_linearizable(const History& history, const std::map<std::string, Row>& initial = {},
                                         SearchLimits limits = {});

}  // namespace holdfast::sim
