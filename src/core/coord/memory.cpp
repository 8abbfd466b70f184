#include "core/coord/memory.hpp"

#include <algorithm>

#include "core/lease_write.hpp"

namespace holdfast {

namespace {

/// The end of the year 9999: what a row says beyond that is for ever, and would overflow as a time.
constexpr std::int64_t latest_s = 253'402'300'799;

}  // namespace

std::int64_t remembered_until(WallTime now, Duration remember) {
  // In milliseconds: added as nanoseconds, 240 years from now would be long ago.
  const auto until = now + std::chrono::ceil<std::chrono::milliseconds>(remember);
  return std::chrono::ceil<std::chrono::seconds>(until.time_since_epoch()).count();
}

std::int64_t remembered_until_s(WallTime now, std::int64_t remember_s) {
  const std::int64_t from = std::chrono::ceil<std::chrono::seconds>(now.time_since_epoch()).count();
  return std::min(from + std::clamp<std::int64_t>(remember_s, 0, latest_s), latest_s);
}

std::vector<Change> remembered(WallTime now, Duration remember) {
  return {Change::set(attribute::desired_state, state::removed),  // what is REMOVED is swept after its tombstone
          Change::set(attribute::expires_at, std::int64_t{0}),
          Change::set(attribute::tombstone_expires_at, remembered_until(now, remember))};
}

bool is_past_retention(const Row& row, WallTime now) {
  const Value* until = row.find(attribute::tombstone_expires_at);
  return until != nullptr && until->as_int() != nullptr &&
         WallTime(std::chrono::seconds(std::clamp<std::int64_t>(*until->as_int(), 0, latest_s))) <= now;
}

}  // namespace holdfast
