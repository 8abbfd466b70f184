#include "core/coord/stock.hpp"

#include "core/coord/names.hpp"
#include "holdfast/assert.hpp"

namespace holdfast {

namespace {

using std::chrono::milliseconds;
using State = Reservation::State;

/// What reservations that have ended are remembered for, besides the time that is set when they are made.
constexpr std::string_view remember_s = "remember_s";

std::vector<std::string> keys_of(std::string_view id, const Basket& basket) {
  std::vector<std::string> keys{Reserve::row_key(id)};
  for (const auto& [sku, count] : basket) keys.push_back(Reserve::stock_key(sku));
  return keys;
}

std::optional<State> state_from(std::string_view text) {
  for (const State each : {State::held, State::confirmed, State::cancelled, State::expired}) {
    if (text == to_string(each)) return each;
  }
  return std::nullopt;
}

Failure refused(std::string why) {
  return {Failure::Kind::refused, Error(Code::exhausted, std::move(why))};
}

}  // namespace

std::string_view to_string(State state) {
  switch (state) {
    case State::held:
      return "held";
    case State::confirmed:
      return "confirmed";
    case State::cancelled:
      return "cancelled";
    case State::expired:
      return "expired";
  }
  HOLDFAST_ASSERT(false, "every state has a name");
  return {};
}

std::optional<Reservation> reservation_in(const Row& row) {
  const std::optional<State> state = state_from(row.text(coord::outcome));
  const Value* items = row.find(coord::items);
  if (!state || items == nullptr || items->as_map() == nullptr) return std::nullopt;
  if (!row.key.starts_with(coord::reservation_prefix)) return std::nullopt;
  Reservation reservation;
  reservation.id = row.key.substr(coord::reservation_prefix.size());
  reservation.state = *state;
  for (const auto& [sku, count] : *items->as_map()) {
    if (count.as_int() == nullptr || *count.as_int() < 1) return std::nullopt;
    reservation.basket.emplace(sku, *count.as_int());
  }
  reservation.expires_at = WallTime(milliseconds(row.number(coord::reserved_until)));
  return reservation;
}

// ---- Reserve ----

Reserve::Reserve(ReserveOptions options, Instant deadline, Random& random)
    : RowProcedure(keys_of(options.id, options.basket), deadline, random), options_(std::move(options)) {
  HOLDFAST_ASSERT(!options_.id.empty() && !options_.basket.empty() && options_.basket.size() < 100,
                  "looked at by who was given them");
}

std::string Reserve::row_key(std::string_view id) {
  return std::string(coord::reservation_prefix) + std::string(id);
}

std::string Reserve::stock_key(std::string_view sku) {
  return std::string(coord::stock_prefix) + std::string(sku);
}

Reserve::Plan Reserve::plan(Now now) {
  const WallTime expires_at = now.wall + std::chrono::ceil<milliseconds>(options_.ttl);
  if (const Row* row = find(keys().front())) {
    std::optional<Reservation> there = reservation_in(*row);
    if (!there || there->basket != options_.basket) {
      return Failure{Failure::Kind::mismatch,
                     Error(Code::usage, "The reservation " + options_.id + " was made before, of other goods.")};
    }
    there->was_repeat = row->text(attribute::attempt) != attempt().to_string();
    return *std::move(there);
  }
  if (was_applied()) return Reservation{options_.id, State::held, options_.basket, expires_at, false};

  Value::Map items;
  std::vector<Update> updates;
  for (const auto& [sku, count] : options_.basket) {
    const Row* stock = find(stock_key(sku));
    const std::int64_t available = stock == nullptr ? 0 : stock->number(coord::available);
    if (available < count) {
      return refused("Of " + sku + " there are " + std::to_string(available) + " available, and " +
                     std::to_string(count) + " were asked for.");
    }
    items.insert_or_assign(sku, Value(count));
    updates.push_back({stock_key(sku),
                       {Change::add(coord::available, -count)},
                       Condition::is(coord::available, Condition::Compare::greater_equal, count)});
  }
  const auto remember = std::chrono::ceil<std::chrono::seconds>(options_.remember).count();
  updates.push_back(
      {keys().front(),
       {Change::set(attribute::desired_state, coord::reserved_state),
        Change::set(attribute::expires_at, std::int64_t{expires_at.time_since_epoch().count()}),
        Change::set(coord::reserved_until, std::int64_t{expires_at.time_since_epoch().count()}),
        Change::set(coord::outcome, to_string(State::held)), Change::set(coord::items, Value(items)),
        Change::set(remember_s, std::int64_t{remember}), Change::set(attribute::attempt, attempt().to_string())},
       Condition::row_missing()});
  return updates;
}

// ---- Confirm, cancel, return ----

EndReservation::EndReservation(const Reservation& reservation, State into, Duration skew, Instant deadline,
                               Random& random)
    : RowProcedure(into == State::confirmed ? std::vector{Reserve::row_key(reservation.id)}
                                            : keys_of(reservation.id, reservation.basket),
                   deadline, random),
      reservation_(reservation),
      into_(into),
      skew_(skew) {
  HOLDFAST_ASSERT(into != State::held, "an end");
}

EndReservation::Plan EndReservation::plan(Now now) {
  const Row* row = find(keys().front());
  if (row == nullptr) {
    if (was_applied())
      return Reservation{reservation_.id, into_, reservation_.basket, reservation_.expires_at, false};
    return refused("There is no reservation " + reservation_.id + ", or it is no longer remembered.");
  }
  std::optional<Reservation> there = reservation_in(*row);
  if (!there || there->basket != reservation_.basket) {
    return Failure{Failure::Kind::rejected, Error(Code::corrupt, "The row " + row->key + " is damaged.")};
  }
  if (there->state == into_) {
    there->was_repeat = row->text(attribute::attempt) != attempt().to_string();
    return *std::move(there);
  }
  if (there->state != State::held) {
    return refused("The reservation " + there->id + " is " + std::string(to_string(there->state)) + " already.");
  }
  if (into_ == State::confirmed && now.wall >= there->expires_at) {
    return refused("The reservation " + there->id + " has expired.");
  }
  if (into_ == State::expired && now.wall < there->expires_at + std::chrono::ceil<milliseconds>(skew_)) {
    return refused("The reservation " + there->id + " has not expired yet.");
  }
  std::vector<Update> updates;
  const auto remember = std::chrono::seconds(row->number(remember_s));
  const auto until = std::chrono::ceil<std::chrono::seconds>(now.wall.time_since_epoch()) + remember;
  updates.push_back(
      {row->key,
       {Change::set(coord::outcome, to_string(into_)), Change::set(attribute::desired_state, state::removed),
        Change::set(attribute::expires_at, std::int64_t{0}),
        Change::set(attribute::tombstone_expires_at, std::int64_t{until.count()}),
        Change::set(attribute::attempt, attempt().to_string())},
       Condition::equals(coord::outcome, to_string(State::held))});
  if (into_ != State::confirmed) {
    for (const auto& [sku, count] : there->basket) {
      updates.push_back({Reserve::stock_key(sku), {Change::add(coord::available, count)}, Condition::always()});
    }
  }
  return updates;
}

}  // namespace holdfast
