#pragma once
#include <cstdint>
#include <vector>

#include "holdfast/row.hpp"
#include "holdfast/types.hpp"
#include "holdfast/update.hpp"

// How long rows are remembered that stand for what is over: results, ids of operations and messages, reservations.
namespace holdfast {

/// What makes a row remembered for so long, at least, and then swept by the store.
[[nodiscard]] std::vector<Change> remembered(WallTime now, Duration remember);
/// When that ends, in seconds since 1970, as stores count it.
[[nodiscard]] std::int64_t remembered_until(WallTime now, Duration remember);
/// The same of a number of seconds that is in a row, which may be any.
[[nodiscard]] std::int64_t remembered_until_s(WallTime now, std::int64_t remember_s);
/// The time is over, whether or not the store has swept the row yet.
[[nodiscard]] bool is_past_retention(const Row& row, WallTime now);

}  // namespace holdfast
