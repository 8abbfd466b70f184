#include "store/rows.hpp"

#include <charconv>
#include <limits>
#include <utility>
#include <variant>

#include "holdfast/assert.hpp"
#include "store/request.hpp"

namespace holdfast::store {

namespace {

/// As long as the tombstone that a worker leaves when it ends in order.
constexpr std::int64_t worker_remembered_ms = 24 * 3600 * std::int64_t{1000};

std::size_t byte_size(const Value& value);

struct Sizer {
  std::size_t operator()(const std::string& text) const { return text.size(); }
  std::size_t operator()(const Value::List& list) const {
    std::size_t size = 3;
    for (const Value& item : list) size += 1 + byte_size(item);
    return size;
  }
  std::size_t operator()(const Value::Map& map) const {
    std::size_t size = 3;
    for (const auto& [key, item] : map) size += 1 + key.size() + byte_size(item);
    return size;
  }
  std::size_t operator()(std::int64_t) const { return 8; }
  std::size_t operator()(double) const { return 8; }
  std::size_t operator()(const auto&) const { return 1; }
};

/// About as DynamoDB counts.
std::size_t byte_size(const Value& value) {
  return std::visit(Sizer(), value.data());
}

/// Tried on a copy where it might: of most rows the sizes tell that it cannot.
bool becomes_too_large(const Update& update, const Row& row) {
  std::size_t most = Sizer()(row.attributes);
  for (const Change& change : update.changes) most += 1 + change.attribute.size() + byte_size(change.value);
  if (most <= row_bytes_max) return false;
  Row after = row;
  return apply(update.changes, after) && Sizer()(after.attributes) > row_bytes_max;
}

RowReply refusal(std::string detail) {
  return {Outcome::rejected, std::nullopt, {Code::usage, std::move(detail)}};
}

}  // namespace

RowReply decide(const Update& update, std::optional<Row> current) {
  const bool exists = current.has_value();
  if (!exists) current = Row{update.key, {}};
  RowReply reply = decide_in_place(update, *current, exists);
  if (reply.ok() || (exists && reply.outcome == Outcome::conflict)) reply.value = std::move(current);
  return reply;
}

RowReply decide_in_place(const Update& update, Row& row, bool exists) {
  if (!holds(update.condition, exists ? &row : nullptr)) return {Outcome::conflict, std::nullopt, {}};
  if (becomes_too_large(update, row)) {
    return refusal("the row " + update.key + " would be larger than " + std::to_string(row_bytes_max) + " bytes");
  }
  if (!apply(update.changes, row)) {
    return refusal("the changes to " + update.key +
                   " cannot be made: one adds to what is no integer or past 64 bits, or two name one attribute");
  }
  return {Outcome::applied, std::nullopt, {}};
}

RowsReply decide_all(const std::vector<Update>& updates, std::vector<std::optional<Row>> current) {
  HOLDFAST_ASSERT(updates.size() == current.size(), "one row for each update");
  RowsReply conflict{Outcome::conflict, {}, {}};
  RowsReply applied{Outcome::applied, {}, {}};
  Error refused;
  bool all_hold = true;
  for (std::size_t i = 0; i < updates.size(); ++i) {
    RowReply one = decide(updates[i], std::move(current[i]));
    if (one.outcome == Outcome::applied) applied.value.push_back(std::move(*one.value));
    if (one.outcome == Outcome::rejected) refused = std::move(one.error);
    if (one.outcome != Outcome::conflict) continue;
    all_hold = false;
    if (one.value) conflict.value.push_back(std::move(*one.value));
  }
  if (!all_hold) return conflict;
  if (applied.value.size() < updates.size()) return {Outcome::rejected, {}, std::move(refused)};
  return applied;
}

std::optional<IndexKey> index_key(const Row& row) {
  const Value* state = row.find(attribute::desired_state);
  const Value* expires_at = row.find(attribute::expires_at);
  if (state == nullptr || expires_at == nullptr) return std::nullopt;
  if (state->as_string() == nullptr || expires_at->as_int() == nullptr) return std::nullopt;
  return IndexKey{*state->as_string(), *expires_at->as_int()};
}

std::optional<std::int64_t> last_expiry(WallTime before) {
  const std::int64_t bound = before.time_since_epoch().count();
  if (before == WallTime::max()) return bound;
  if (bound == std::numeric_limits<std::int64_t>::min()) return std::nullopt;
  return bound - 1;
}

std::string to_token(std::int64_t expires_at, std::string_view key) {
  return std::to_string(expires_at).append(":").append(key);
}

std::optional<Position> position_from(std::string_view token) {
  Position position;
  const char* const end = token.data() + token.size();
  const auto [rest, problem] = std::from_chars(token.data(), end, position.expires_at);
  if (problem != std::errc() || rest == end || *rest != ':') return std::nullopt;
  position.key.assign(rest + 1, end);
  return position;
}

bool may_be_forgotten(const Row& row, WallTime now) {
  const bool worker = row.text(attribute::desired_state) == state::worker && row.key.starts_with(key_prefix::worker);
  if (!worker && row.text(attribute::desired_state) != state::removed) return false;
  const std::int64_t now_ms = now.time_since_epoch().count();
  const std::int64_t session_end = row.number(attribute::expires_at);
  if (session_end > now_ms) return false;
  const Value* value = row.find(attribute::tombstone_expires_at);
  const std::int64_t* expires_at_s = value == nullptr ? nullptr : value->as_int();
  if (expires_at_s != nullptr) return *expires_at_s <= now_ms / 1000;
  return worker && session_end <= now_ms - worker_remembered_ms;
}

}  // namespace holdfast::store
