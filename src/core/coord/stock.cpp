#include "core/coord/stock.hpp"

#include <algorithm>
#include <utility>

#include "core/coord/counter.hpp"
#include "core/coord/damage.hpp"
#include "core/coord/memory.hpp"
#include "core/coord/names.hpp"
#include "holdfast/assert.hpp"

namespace holdfast {

namespace {

using std::chrono::milliseconds;
using State = Reservation::State;

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

/// Still held, with all that was in it when it was seen.
Condition held_as_seen(const Row& row) {
  return Condition::equals(coord::outcome, to_string(State::held)) &&
         (row.find(coord::draws) == nullptr ? Condition::not_exists(coord::draws)
                                            : Condition::equals(coord::draws, row.number(coord::draws)));
}

/// Whether it was drawn from another reservation: sold out of a quota.
bool is_sale(const Row& row) {
  return !row.text(coord::drawn_from).empty();
}

bool is_part_of(const Basket& part, const Basket& whole) {
  return std::ranges::all_of(part, [&](const auto& item) {
    const auto found = whole.find(item.first);
    return found != whole.end() && found->second >= item.second;
  });
}

/// What is drawn, and what from; one where it says that it is drawn from itself, of which nothing comes.
std::vector<std::string> rows_of(const DrawOptions& options) {
  std::vector<std::string> keys{Reserve::row_key(options.id)};
  if (options.from != options.id) keys.push_back(Reserve::row_key(options.from));
  return keys;
}

Failure refused(std::string why) {
  return {Failure::Kind::refused, Error(Code::exhausted, std::move(why))};
}

Failure unheard_of(const std::string& id) {
  return {Failure::Kind::refused,
          Error(Code::not_found, "There is no reservation " + id + ", or it is no longer remembered.")};
}

}  // namespace

Reservation as_of(Reservation reservation, WallTime now) {
  if (reservation.state == Reservation::State::held && now >= reservation.expires_at) {
    reservation.state = Reservation::State::expired;
  }
  return reservation;
}

Result<void> check_basket(const Basket& basket) {
  if (basket.empty() || basket.size() > basket_most) {
    return fail(Code::usage, "A basket has 1 to " + std::to_string(basket_most) + " kinds of goods, not " +
                                 std::to_string(basket.size()) + ".");
  }
  for (const auto& [sku, count] : basket) {
    if (auto good = coord::check_name("The name of an article", sku); !good) return good;
    if (count < 1) return fail(Code::usage, "Of each of the goods at least one is asked for: " + sku + ".");
  }
  return {};
}

Value value_of(const Basket& basket) {
  Value::Map items;
  for (const auto& [sku, count] : basket) items.insert_or_assign(sku, Value(count));
  return items;
}

std::optional<Basket> basket_from(const Value& value) {
  if (value.as_map() == nullptr) return std::nullopt;
  Basket basket;
  for (const auto& [sku, count] : *value.as_map()) {
    if (count.as_int() == nullptr || *count.as_int() < 1) return std::nullopt;
    basket.emplace(sku, *count.as_int());
  }
  return basket;
}

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
  if (!state || items == nullptr || damage_in(row)) return std::nullopt;
  if (!row.key.starts_with(coord::reservation_prefix)) return std::nullopt;
  Reservation reservation;
  reservation.id = row.key.substr(coord::reservation_prefix.size());
  reservation.state = *state;
  std::optional<Basket> basket = basket_from(*items);
  if (!basket) return std::nullopt;
  reservation.basket = *std::move(basket);
  reservation.expires_at = WallTime(milliseconds(row.number(coord::reserved_until)));
  return reservation;
}

// ---- Reserve ----

Reserve::Reserve(ReserveOptions options, Instant deadline, Random& random, std::string quota_of)
    : RowProcedure(keys_of(options.id, options.basket), deadline, random),
      options_(std::move(options)),
      quota_of_(std::move(quota_of)) {
  HOLDFAST_ASSERT(!options_.id.empty() && check_basket(options_.basket), "looked at by who was given them");
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
    if (was_precluded(*row)) return given_up(options_.id);
    std::optional<Reservation> there = reservation_in(*row);
    if (!there) return damaged_row(*row);
    if (there->basket != options_.basket) {
      return Failure{Failure::Kind::mismatch,
                     Error(Code::usage, "The reservation " + options_.id + " was made before, of other goods.")};
    }
    if (row->text(coord::quota_of) != quota_of_ || is_sale(*row)) {
      return Failure{Failure::Kind::mismatch,
                     Error(Code::usage, "The reservation " + options_.id +
                                            " was made before, by somebody else: for a journal, or not for this one. "
                                            "Use another id.")};
    }
    // Who reserves goes on to be paid: of what has ended nothing is set aside any more. What this very call has set
    // aside it tells as it is, with its time.
    const State is = was_applied() ? there->state : as_of(*there, now.wall).state;
    if (is == State::cancelled || is == State::expired) {
      return Failure{Failure::Kind::refused, Error(Code::denied, "The reservation " + options_.id +
                                                                     " has ended: " + std::string(to_string(is)) +
                                                                     ". To set goods aside anew, use another id.")};
    }
    there->was_repeat = row->text(attribute::attempt) != attempt().to_string();
    return *std::move(there);
  }
  if (was_applied()) return Reservation{options_.id, State::held, options_.basket, expires_at, false};

  std::vector<Update> updates;
  for (const auto& [sku, count] : options_.basket) {
    const Row* stock = find(stock_key(sku));
    const std::int64_t available = stock == nullptr ? 0 : stock->number(coord::available);
    if (available < count) {
      return refused("Of " + sku + " there are " + std::to_string(available) + " available, and " +
                     std::to_string(count) + " were asked for.");
    }
    updates.push_back({stock_key(sku),
                       {Change::add(coord::available, -count)},
                       Condition::is(coord::available, Condition::Compare::greater_equal, count)});
  }
  const auto remember = std::chrono::ceil<std::chrono::seconds>(options_.remember).count();
  std::vector<Change> made{Change::set(attribute::desired_state, coord::reserved_state),
                           Change::set(attribute::expires_at, std::int64_t{expires_at.time_since_epoch().count()}),
                           Change::set(coord::reserved_until, std::int64_t{expires_at.time_since_epoch().count()}),
                           Change::set(coord::outcome, to_string(State::held)),
                           Change::set(coord::items, value_of(options_.basket)),
                           Change::set(coord::remember_s, std::int64_t{remember}),
                           Change::set(attribute::attempt, attempt().to_string())};
  if (!quota_of_.empty()) made.push_back(Change::set(coord::quota_of, quota_of_));
  updates.push_back({keys().front(), std::move(made), Condition::row_missing()});
  return updates;
}

// ---- Draw ----

Draw::Draw(DrawOptions options, Instant deadline, Random& random)
    : RowProcedure(rows_of(options), deadline, random), options_(std::move(options)) {
  HOLDFAST_ASSERT(!options_.basket.empty(), "looked at by who was given it");
}

Draw::Plan Draw::plan(Now now) {
  if (options_.id == options_.from) {
    return Failure{Failure::Kind::mismatch, Error(Code::usage, "A sale out of the reservation " + options_.from +
                                                                   " has another id than that.")};
  }
  if (const Row* row = find(keys()[0])) {
    if (was_precluded(*row)) return given_up(options_.id);
    std::optional<Reservation> there = reservation_in(*row);
    if (!there) return damaged_row(*row);
    // Drawn from whichever: a journal that has forgotten its ticket takes it from another quota the next time.
    if (there->basket != options_.basket || !is_sale(*row)) {
      return Failure{Failure::Kind::mismatch,
                     Error(Code::usage, "The reservation " + options_.id + " was made before, of something else.")};
    }
    there->was_repeat = row->text(attribute::attempt) != attempt().to_string();
    return *std::move(there);
  }
  if (was_applied()) return Reservation{options_.id, State::confirmed, options_.basket, {}, false};

  const Row* from = find(keys()[1]);
  if (from == nullptr) return unheard_of(options_.from);
  std::optional<Reservation> there = reservation_in(*from);
  if (!there) return damaged_row(*from);
  if (there->state != State::held) {
    return refused("The reservation " + there->id + " is " + std::string(to_string(there->state)) +
                   ": nothing can be drawn from it.");
  }
  if (!is_part_of(options_.basket, there->basket)) {
    return refused("Too little is left in the reservation " + there->id + ".");
  }
  Basket left = there->basket;
  for (const auto& [sku, count] : options_.basket) {
    if ((left[sku] -= count) == 0) left.erase(sku);
  }
  std::vector<Change> drawn = remembered(now.wall, options_.remember);
  drawn.push_back(Change::set(coord::outcome, to_string(State::confirmed)));
  drawn.push_back(Change::set(coord::items, value_of(options_.basket)));
  drawn.push_back(Change::set(coord::drawn_from, options_.from));
  drawn.push_back(Change::set(attribute::attempt, attempt().to_string()));
  return std::vector{
      Update{keys()[0], std::move(drawn), Condition::row_missing()},
      Update{from->key,
             {Change::set(coord::items, value_of(left)), Change::set(coord::draws, from->number(coord::draws) + 1)},
             held_as_seen(*from)}};
}

// ---- Confirm, cancel, return ----

ReadReservation::ReadReservation(std::string_view id, Instant deadline, Random& random)
    : RowProcedure(Reserve::row_key(id), deadline, random), id_(id) {}

ReadReservation::Plan ReadReservation::plan(Now now) {
  const Row* row = find(key());
  if (row == nullptr || was_precluded(*row)) return unheard_of(id_);
  std::optional<Reservation> there = reservation_in(*row);
  if (!there) return damaged_row(*row);
  return as_of(*std::move(there), now.wall);
}

EndReservation::EndReservation(const Reservation& reservation, State into, Duration skew, Instant deadline,
                               Random& random, std::string quota_of)
    : RowProcedure(into == State::confirmed ? std::vector{Reserve::row_key(reservation.id)}
                                            : keys_of(reservation.id, reservation.basket),
                   deadline, random),
      reservation_(reservation),
      into_(into),
      skew_(skew),
      quota_of_(std::move(quota_of)) {
  HOLDFAST_ASSERT(into != State::held, "an end");
}

EndReservation::Plan EndReservation::plan(Now now) {
  const Row* row = find(keys().front());
  if (row == nullptr) {
    if (was_applied())
      return Reservation{reservation_.id, into_, reservation_.basket, reservation_.expires_at, false};
    return unheard_of(reservation_.id);
  }
  if (was_precluded(*row)) return unheard_of(reservation_.id);
  std::optional<Reservation> there = reservation_in(*row);
  if (!there || !is_part_of(there->basket, reservation_.basket)) {
    return damaged_row(*row);
  }
  // One that an older program has made says nothing of journals.
  if (const auto owner = row->text(coord::quota_of);
      into_ != State::expired && !owner.empty() && owner != quota_of_) {
    return Failure{Failure::Kind::mismatch,
                   Error(Code::usage, "The reservation " + there->id +
                                          " is the quota of a journal: give it back there ('holdfast journal "
                                          "give-back', then 'reconcile').")};
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
  if (into_ == State::expired && now.wall - std::chrono::ceil<milliseconds>(skew_) < there->expires_at) {
    return refused("The reservation " + there->id + " has not expired yet.");
  }
  std::vector<Update> updates;
  updates.push_back(
      {row->key,
       {Change::set(coord::outcome, to_string(into_)), Change::set(attribute::desired_state, state::removed),
        Change::set(attribute::expires_at, std::int64_t{0}),
        Change::set(attribute::tombstone_expires_at, remembered_until_s(now.wall, row->number(coord::remember_s))),
        Change::set(attribute::attempt, attempt().to_string())},
       held_as_seen(*row)});
  if (into_ != State::confirmed) {
    for (const auto& [sku, count] : there->basket) {
      updates.push_back({Reserve::stock_key(sku), {Change::add(coord::available, count)}, Condition::always()});
    }
  }
  return updates;
}

ReturnExpired::ReturnExpired(Duration skew, std::size_t most, Instant deadline, Random& random)
    : ReadProcedure(deadline, random), skew_(skew), most_(most), random_(random) {}

std::optional<Ask> ReturnExpired::next(Now now) {
  if (is_over()) return std::nullopt;
  if (returning_) {
    if (auto ask = returning_->next(now)) return ask;
    const Ended<Reservation>& ended = *returning_->result();
    if (ended) {
      ++returned_;
    } else if (ended.error().kind != Failure::Kind::refused) {  // by somebody else
      failure_ = ended.error();
    }
    returning_.reset();
  }
  if (!found_.empty() && now.instant < deadline()) {
    returning_.emplace(found_.back(), State::expired, skew_, deadline(), random_);
    found_.pop_back();
    return next(now);
  }
  const bool is_enough = page_.empty() || returned_ >= most_ || now.instant >= deadline();
  if (has_looked_ && is_enough && returned_ == 0 && failure_) {
    fail(*std::move(failure_));
  } else if (has_looked_ && is_enough) {
    conclude(returned_);
  }
  return ReadProcedure::next(now);
}

void ReturnExpired::on(Answer answer, Now now) {
  if (returning_) return returning_->on(std::move(answer), now);
  ReadProcedure::on(std::move(answer), now);
}

Ask ReturnExpired::read(Now now) {
  QueryDue query;
  query.state = coord::reserved_state;
  query.before = now.wall - std::chrono::ceil<milliseconds>(skew_) + milliseconds(1);  // up to then
  query.limit = most_ - returned_;
  query.page = page_;
  return LookDue{std::move(query)};
}

void ReturnExpired::took(Answer answer, Now) {
  has_looked_ = true;
  page_ = std::move(answer.next);
  if (answer.lacks_damaged()) failure_ = Failure{Failure::Kind::rejected, std::move(answer.error)};
  for (const Row& row : answer.rows) {
    if (auto found = reservation_in(row)) {
      found_.push_back(*std::move(found));
    } else {
      failure_ = damaged_row(row);
    }
  }
  std::ranges::reverse(found_);
}

}  // namespace holdfast
