#include "core/coord/damage.hpp"

#include <algorithm>

#include "core/coord/names.hpp"
#include "core/lease_write.hpp"
#include "core/number.hpp"

namespace holdfast {

namespace {

enum class Type { text, number, boolean, map };

struct Typed {
  std::string_view prefix;  // of the row's key
  std::string_view name;
  Type type;
};
constexpr Typed known[] = {
    {coord::once_prefix, coord::fingerprint, Type::text},
    {coord::once_prefix, coord::result, Type::text},
    {coord::once_prefix, coord::succeeded, Type::boolean},
    {coord::once_prefix, coord::completed_at, Type::number},
    {coord::once_prefix, attribute::tombstone_expires_at, Type::number},
    {coord::decision_prefix, coord::proposer, Type::text},
    {coord::decision_prefix, coord::decided_at, Type::number},
    {coord::counter_prefix, coord::value, Type::number},
    {coord::stock_prefix, coord::available, Type::number},
    {coord::operation_prefix, coord::delta, Type::number},
    {coord::operation_prefix, coord::outcome, Type::text},
    {coord::operation_prefix, attribute::tombstone_expires_at, Type::number},
    {coord::reservation_prefix, coord::outcome, Type::text},
    {coord::reservation_prefix, coord::items, Type::map},
    {coord::reservation_prefix, coord::reserved_until, Type::number},
    {coord::reservation_prefix, coord::remember_s, Type::number},
    {coord::reservation_prefix, coord::draws, Type::number},
    {coord::reservation_prefix, coord::drawn_from, Type::text},
    {coord::reservation_prefix, coord::quota_of, Type::text},
    {coord::reservation_prefix, attribute::tombstone_expires_at, Type::number},
    {coord::queue_prefix, coord::queue, Type::text},
    {coord::queue_prefix, coord::group, Type::text},
    {coord::queue_prefix, coord::head, Type::number},
    {coord::queue_prefix, coord::tail, Type::number},
    {coord::queue_prefix, coord::receives, Type::number},
    {coord::queue_prefix, coord::leased_last, Type::number},
    {coord::message_prefix, coord::seq, Type::number},
    {coord::message_prefix, coord::body, Type::text},
    {coord::message_prefix, coord::dedup_id, Type::text},
    {coord::message_prefix, coord::sent_at, Type::number},
    {coord::message_prefix, coord::deliver_at, Type::number},
    {coord::message_prefix, attribute::tombstone_expires_at, Type::number},
    {coord::dedup_prefix, coord::seq, Type::number},
    {coord::dedup_prefix, coord::sent_at, Type::number},
    {coord::dedup_prefix, coord::fingerprint, Type::text},
    {coord::dedup_prefix, coord::outcome, Type::text},
    {coord::dedup_prefix, attribute::tombstone_expires_at, Type::number},
};

bool is_of(Type type, const Value& value) {
  switch (type) {
    case Type::text:
      return value.as_string() != nullptr;
    case Type::number:
      return value.as_int() != nullptr;
    case Type::boolean:
      return value.as_bool() != nullptr;
    case Type::map:
      return value.as_map() != nullptr;
  }
  return false;
}

bool has_lease(const Row& row) {
  return row.key.starts_with(key_prefix::task) || row.key.starts_with(coord::once_prefix) ||
         row.key.starts_with(coord::queue_prefix);
}

constexpr std::size_t told_most = 10;

}  // namespace

std::optional<std::string> damage_in(const Row& row) {
  for (const Typed& each : known) {
    const Value* value = row.key.starts_with(each.prefix) ? row.find(each.name) : nullptr;
    if (value != nullptr && !is_of(each.type, *value)) return std::string(each.name) + " is " + describe(*value);
  }
  return has_lease(row) ? damage_of(row) : std::nullopt;
}

Failure damaged_row(const Row& row) {
  Failure failure = damaged_row(row.key);
  if (const auto why = damage_in(row)) {
    failure.error.detail.pop_back();
    failure.error.detail += ": " + *why + ".";
  }
  return failure;
}

void LeftOut::add(const Row& row) {
  add(row.key);
}

void LeftOut::add(const Answer& look) {
  if (look.lacks_damaged()) add(look.error.detail);
}

void LeftOut::add(const std::string& which) {
  if (rows_.size() < told_most && std::ranges::find(rows_, which) == rows_.end()) rows_.push_back(which);
}

}  // namespace holdfast
