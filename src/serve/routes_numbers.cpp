// Decisions, counters, stock.
#include "core/coord/counter.hpp"
#include "core/coord/decision.hpp"
#include "core/coord/limits.hpp"
#include "core/coord/stock.hpp"
#include "holdfast/assert.hpp"
#include "serve/desk.hpp"
#include "serve/json_value.hpp"
#include "serve/tickets.hpp"

namespace holdfast::serve {

namespace {

using Type = Field::Type;
using coord::in_ms;

// ---- Decisions ----

boost::json::object decided_json(const std::string& key, const Decided& decided) {
  return {{"key", key},
          {"value", json_from(decided.value)},
          {"proposer", decided.proposer},
          {"decided_at_ms", ms(decided.at)},
          {"was_ours", decided.was_ours}};
}

void decide(Desk& desk, const CallPtr& call) {
  const std::string ticket = call->body().has("ticket") ? call->body().text("ticket") : "";
  if (takes_provisional(call)) {
    if (!has_journal(desk, call)) return;
    return desk.tickets->available().decide(call->path("key"), value_from(call->body().any("value")), ticket,
                                            tell_either<Decided>(call, [call](const Decided& decided) {
                                              call->answer(200, decided_json(call->path("key"), decided));
                                            }));
  }
  desk.coordinator.decide(
      call->path("key"), value_from(call->body().any("value")), desk.patience,
      [call](const Ended<Decided>& decided) {
        if (!decided) return call->fail(decided.error());
        call->answer(200, decided_json(call->path("key"), *decided));
      },
      ticket);
}

void show_decision(Desk& desk, const CallPtr& call) {
  run_for(desk, call, std::make_unique<ReadDecision>(call->path("key"), desk.deadline(), desk.loop.random()),
          [call](const std::optional<Decided>& decided) {
            if (!decided) return call->fail(Problem{404, "not_found", "Nothing is decided about this yet.", {}});
            call->answer(200, decided_json(call->path("key"), *decided));
          });
}

Schema decision_schema() {
  return {
      "Decision",
      "what was decided, once and for ever",
      {{.name = "key", .about = "what it is about", .is_required = true},
       {.name = "value", .type = Type::any, .about = "the first proposal there was", .is_required = true},
       {.name = "proposer", .about = "the server that proposed it", .is_required = true},
       {.name = "decided_at_ms", .type = Type::integer, .about = "by its clock", .is_required = true},
       {.name = "was_ours",
        .type = Type::boolean,
        .about = "it is what this request proposed, or an earlier one under the same ticket; without a ticket the "
                 "repeat of a request cannot be told from another: compare the value",
        .is_required = true}}};
}

// ---- Counters ----

void add(Desk& desk, const CallPtr& call) {
  const Input& body = call->body();
  AddOptions options;
  options.key = call->path("key");
  options.delta = body.integer("delta");
  options.op_id = body.text("op_id");
  if (body.has("floor")) options.floor = body.integer("floor");
  options.remember = body.duration("remember");
  const auto tell_added = [call](const Added& added) {
    call->answer(200, {{"key", call->path("key")}, {"value", added.value}, {"was_repeat", added.was_repeat}});
  };
  if (takes_provisional(call)) {
    if (!has_journal(desk, call)) return;
    return desk.tickets->available().add({options.key, options.delta, options.floor}, options.op_id,
                                         tell_either<Added>(call, tell_added));
  }
  run_for(desk, call, std::make_unique<Add>(std::move(options), desk.deadline(), desk.loop.random()), tell_added);
}

/// `name` of what is in the path, `number` of what it stands at.
void show_number(Desk& desk, const CallPtr& call, AddOptions::To of, std::string_view name, std::string_view number) {
  run_for(desk, call, std::make_unique<ReadNumber>(of, call->path(name), desk.deadline(), desk.loop.random()),
          [call, name, number](std::int64_t value) {
            call->answer(200, {{name, call->path(name)}, {number, value}});
          });
}

void show_counter(Desk& desk, const CallPtr& call) {
  show_number(desk, call, AddOptions::To::counter, "key", "value");
}

// ---- Stock ----

void add_stock(Desk& desk, const CallPtr& call) {
  AddOptions options;
  options.to = AddOptions::To::stock;
  options.key = call->path("sku");
  options.delta = call->body().integer("delta");
  options.op_id = call->body().text("op_id");
  options.remember = call->body().duration("remember");
  run_for(
      desk, call, std::make_unique<Add>(std::move(options), desk.deadline(), desk.loop.random()),
      [call](const Added& added) {
        call->answer(200, {{"sku", call->path("sku")}, {"available", added.value}, {"was_repeat", added.was_repeat}});
      });
}

void show_stock(Desk& desk, const CallPtr& call) {
  show_number(desk, call, AddOptions::To::stock, "sku", "available");
}

boost::json::object reservation_json(const Reservation& reservation) {
  boost::json::object items;
  for (const auto& [sku, count] : reservation.basket) items[sku] = count;
  return {{"id", reservation.id},
          {"state", to_string(reservation.state)},
          {"items", std::move(items)},
          {"expires_at_ms", ms(reservation.expires_at)},
          {"was_repeat", reservation.was_repeat}};
}

Schema reservation_schema() {
  return {
      "Reservation",
      "goods that are set aside, or were",
      {{.name = "id", .about = "its name", .is_required = true},
       {.name = "state",
        .about = "held: until it expires; confirmed: gone for good; cancelled: back; expired: back, or about to be",
        .is_required = true,
        .words = {"held", "confirmed", "cancelled", "expired"}},
       {.name = "items", .type = Type::counts, .about = "how many of what, by SKU", .is_required = true},
       {.name = "expires_at_ms",
        .type = Type::integer,
        .about = "when the goods come back unless it is confirmed, in milliseconds since 1970",
        .is_required = true},
       {.name = "was_repeat", .type = Type::boolean, .about = "this had been done before", .is_required = true}}};
}

void reserve(Desk& desk, const CallPtr& call) {
  const Input& body = call->body();
  ReserveOptions options;
  options.id = call->path("id");
  options.basket = body.counts("items");
  options.ttl = body.duration("ttl");
  options.remember = body.duration("remember");
  run(desk, std::make_unique<Reserve>(std::move(options), desk.deadline(), desk.loop.random()),
      [call](const Ended<Reservation>& made) {
        if (made) return call->answer(made->was_repeat ? 200 : 201, reservation_json(*made));
        const Failure& failure = made.error();
        const bool has_ended = failure.kind == Failure::Kind::refused && failure.error.code == Code::denied;
        if (has_ended) return call->fail(Problem{409, "ended", failure.error.detail, {}});
        call->fail(failure);
      });
}

/// Reads it first: what is in its basket is in its row.
template <class Then>
void with_reservation(Desk& desk, const CallPtr& call, Then then) {
  find_for(desk, call, std::make_unique<ReadReservation>(call->path("id"), desk.deadline(), desk.loop.random()),
           std::move(then));
}

void show_reservation(Desk& desk, const CallPtr& call) {
  with_reservation(desk, call,
                   [call](const Reservation& reservation) { call->answer(200, reservation_json(reservation)); });
}

void end(Desk& desk, const CallPtr& call, Reservation::State into) {
  with_reservation(desk, call, [&desk, call, into](const Reservation& reservation) {
    run_for(
        desk, call,
        std::make_unique<EndReservation>(reservation, into, Duration::zero(), desk.deadline(), desk.loop.random()),
        [call](const Reservation& ended) { call->answer(200, reservation_json(ended)); });
  });
}

void confirm(Desk& desk, const CallPtr& call) {
  end(desk, call, Reservation::State::confirmed);
}
void cancel(Desk& desk, const CallPtr& call) {
  end(desk, call, Reservation::State::cancelled);
}

std::vector<Field> add_fields() {
  return {{.name = "delta",
           .type = Type::integer,
           .about = "what to add; below 0 to subtract",
           .is_required = true,
           .least = INT64_MIN},
          {.name = "op_id",
           .about = "names this operation: sent again with the same id it counts once",
           .is_required = true,
           .least = 1,
           .most = name_most},
          {.name = "remember",
           .type = Type::duration,
           .about = "how long the operation's id is known, at least",
           .otherwise = "24h",
           .least = in_ms(coord::remembered.least),
           .most = in_ms(coord::remembered.most)}};
}

Field was_repeat() {
  return {.name = "was_repeat",
          .type = Type::boolean,
          .about = "the operation had been carried out before",
          .is_required = true};
}

void add_counter_routes(std::vector<Route>& routes) {
  const Field key{.name = "key", .about = "of the counter", .is_required = true};
  const Field value{
      .name = "value", .type = Type::integer, .about = "as it is now", .is_required = true, .least = INT64_MIN};
  std::vector<Field> fields = add_fields();
  fields.push_back({.name = "floor",
                    .type = Type::integer,
                    .about = "a subtraction that would go below this is refused",
                    .least = INT64_MIN});
  Field mode = mode_field();
  mode.about = "while the store is away: say so, or accept provisionally, with 202; op_id is the ticket then";
  fields.push_back(mode);
  routes.push_back({"POST",
                    "/v1/counters/{key}/add",
                    "addToCounter",
                    "Add to a counter, once for each operation, however often it is sent",
                    {"Add", "what to add", fields},
                    {},
                    {{200, "it counts", {"Added", "the counter", {key, value, was_repeat()}}}, provisional_answer()},
                    {{409, "refused", "it would go below the floor, or beyond 64 bits"},
                     {422, "mismatch", "the operation's id was used with another delta"}},
                    add});
  routes.push_back({"GET",
                    "/v1/counters/{key}",
                    "showCounter",
                    "What a counter stands at; one that nobody added to stands at 0",
                    {},
                    {},
                    {{200, "as it is now", {"Counter", "a counter", {key, value}}}},
                    {},
                    show_counter});
}

void add_stock_routes(std::vector<Route>& routes) {
  const Field sku{.name = "sku", .about = "the article's name", .is_required = true};
  const Field available{
      .name = "available", .type = Type::integer, .about = "neither reserved nor gone", .is_required = true};
  routes.push_back(
      {"POST",
       "/v1/stock/{sku}/add",
       "addToStock",
       "Goods have come, or gone otherwise than by a reservation; once for each operation",
       {"Delivery", "how many", add_fields()},
       {},
       {{200, "they are there to be reserved", {"Delivered", "an article", {sku, available, was_repeat()}}}},
       {{409, "refused", "it would go below 0, or beyond 64 bits"},
        {422, "mismatch", "the operation's id was used with another delta"}},
       add_stock});
  routes.push_back({"GET",
                    "/v1/stock/{sku}",
                    "showStock",
                    "How many of an article are there to be reserved",
                    {},
                    {},
                    {{200, "as it is now", {"Stock", "an article", {sku, available}}}},
                    {},
                    show_stock});
}

void add_reservation_routes(std::vector<Route>& routes) {
  const Route::Refusal none{404, "not_found", "there is no such reservation"};
  routes.push_back(
      {"POST",
       "/v1/reservations/{id}",
       "reserve",
       "Set goods aside, all or none, once for each id",
       {"Reserve",
        "what to set aside",
        {{.name = "items",
          .type = Type::counts,
          .about = "how many of what, by SKU: at most 99",
          .is_required = true,
          .least = 1,
          .most = static_cast<std::int64_t>(basket_most)},
         {.name = "ttl",
          .type = Type::duration,
          .about = "not confirmed by then: the goods come back",
          .otherwise = "15m",
          .least = in_ms(coord::reserved.least),
          .most = in_ms(coord::reserved.most)},
         {.name = "remember",
          .type = Type::duration,
          .about = "how long the id is known after that, at least",
          .otherwise = "168h",
          .least = in_ms(coord::remembered.least),
          .most = in_ms(coord::remembered.most)}}},
       {},
       {{201, "they are set aside", reservation_schema()},
        {200, "they had been set aside under this id before: held, or confirmed", reservation_schema()}},
       {{409, "refused", "there is too little of one of them"},
        {409, "ended", "the reservation of this id was cancelled or has expired: another has another id"},
        {422, "mismatch", "this id was used for other goods"}},
       reserve});
  routes.push_back({"GET",
                    "/v1/reservations/{id}",
                    "showReservation",
                    "What has become of a reservation",
                    {},
                    {},
                    {{200, "as it is now", reservation_schema()}},
                    {none},
                    show_reservation});
  routes.push_back({"POST",
                    "/v1/reservations/{id}/confirm",
                    "confirmReservation",
                    "The goods are gone for good; again is the same as once",
                    {"Confirm", "nothing", {}},
                    {},
                    {{200, "it is confirmed", reservation_schema()}},
                    {none, {409, "refused", "it has expired, or was cancelled"}},
                    confirm});
  routes.push_back({"POST",
                    "/v1/reservations/{id}/cancel",
                    "cancelReservation",
                    "The goods come back; again is the same as once",
                    {"Cancel", "nothing", {}},
                    {},
                    {{200, "it is cancelled", reservation_schema()}},
                    {none, {409, "refused", "it has expired, or was confirmed"}},
                    cancel});
}

}  // namespace

std::vector<Route> number_routes() {
  std::vector<Route> routes;
  routes.push_back(
      {"POST",
       "/v1/decide/{key}",
       "decide",
       "Propose a value; the first proposal wins, and stays",
       {"Proposal",
        "what is proposed",
        {{.name = "value",
          .type = Type::any,
          .about = "any JSON whose numbers a double or a 64-bit integer keeps",
          .is_required = true},
         mode_field(),
         {.name = "ticket",
          .about = "names this proposal, so that it is one however often it is sent: was_ours is the same each time",
          .least = 1,
          .most = name_most}}},
       {},
       {{200, "decided, now or before", decision_schema()}, provisional_answer()},
       {{409, "refused", "the ticket was rejected"}, {422, "mismatch", "the ticket was used for something else"}},
       decide});
  routes.push_back({"GET",
                    "/v1/decide/{key}",
                    "showDecision",
                    "What was decided",
                    {},
                    {},
                    {{200, "decided", decision_schema()}},
                    {{404, "not_found", "nothing is decided yet"}},
                    show_decision});
  add_counter_routes(routes);
  add_stock_routes(routes);
  add_reservation_routes(routes);
  return routes;
}

}  // namespace holdfast::serve
