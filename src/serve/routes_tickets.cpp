// What was accepted provisionally, and goods that were set aside to be sold so.
#include <boost/json/array.hpp>

#include "core/coord/limits.hpp"
#include "serve/json_value.hpp"
#include "serve/tickets.hpp"

namespace holdfast::serve {

namespace {

using Type = Field::Type;

// ---- Tickets ----

boost::json::object ticket_json(const Intent& intent) {
  boost::json::object arguments;
  for (const auto& [name, value] : arguments_of(intent.wish)) arguments[name] = json_from(value);
  return {{"ticket", intent.ticket},
          {"kind", kind_of(intent.wish)},
          {"state", to_string(intent.state)},
          {"compensation", to_string(intent.compensation)},
          {"accepted_at_ms", ms(intent.accepted_at)},
          {"until_ms", ms(intent.expires_at)},
          {"arguments", std::move(arguments)},
          {"note", intent.note}};
}

Schema ticket_schema() {
  return {"Ticket",
          "what was accepted provisionally",
          {{.name = "ticket", .about = "its name", .is_required = true},
           {.name = "kind", .about = "what it is", .is_required = true, .words = {"decide", "add", "draw", "send"}},
           {.name = "state",
            .about = "confirmed and rejected are final",
            .is_required = true,
            .words = {"accepted", "begun", "confirmed", "rejected"}},
           {.name = "compensation",
            .about = "of a rejected one: whether it was made good for",
            .is_required = true,
            .words = {"none", "due", "begun", "done"}},
           {.name = "accepted_at_ms", .type = Type::integer, .about = "by this server's clock", .is_required = true},
           {.name = "until_ms",
            .type = Type::integer,
            .about = "what was not begun by then is rejected",
            .is_required = true},
           {.name = "arguments", .type = Type::any, .about = "what was asked for", .is_required = true},
           {.name = "note", .about = "why it was rejected, or what it came to", .is_required = true}}};
}

void list(Desk& desk, const CallPtr& call) {
  if (!has_journal(desk, call)) return;
  const Input& query = call->query();
  const auto which = query.flag("all") ? coord::Journal::Which::all : coord::Journal::Which::open;
  const auto most = static_cast<std::size_t>(query.integer("max"));
  const auto found = desk.tickets->journal().list(which, query.integer("after"), most);
  if (!found) return call->fail(found.error());
  boost::json::array tickets;
  for (const Intent& intent : *found) tickets.push_back(ticket_json(intent));
  boost::json::object body{{"tickets", std::move(tickets)}};
  body["next"] = found->size() < most ? boost::json::value() : boost::json::value(found->back().seq);
  call->answer(200, body);
}

/// Finds it, or tells that there is none.
std::optional<Intent> ticket_of(Desk& desk, const CallPtr& call) {
  if (!has_journal(desk, call)) return std::nullopt;
  const auto found = desk.tickets->journal().find(call->path("ticket"));
  if (!found) {
    call->fail(found.error());
    return std::nullopt;
  }
  if (!*found) {
    call->fail(Problem{404, "not_found", "There is no such ticket here, or it is no longer remembered.", {}});
  }
  return *found;
}

void show(Desk& desk, const CallPtr& call) {
  if (const auto intent = ticket_of(desk, call)) call->answer(200, ticket_json(*intent));
}

void compensated(Desk& desk, const CallPtr& call) {
  auto intent = ticket_of(desk, call);
  if (!intent) return;
  if (intent->state != Intent::State::rejected) {
    return call->fail(Problem{409, "refused", "It is not rejected: there is nothing to make good for.", {}});
  }
  const auto noted = desk.tickets->note_compensated(*std::move(intent));
  if (!noted) return call->fail(noted.error());
  call->answer(200, {{"ticket", call->path("ticket")}, {"was_repeat", !*noted}});
}

// ---- Goods ----

boost::json::object counts_json(const Basket& basket) {
  boost::json::object items;
  for (const auto& [sku, count] : basket) items[sku] = count;
  return items;
}

boost::json::object quota_json(const Quota& quota) {
  return {{"id", quota.id},
          {"state", to_string(quota.state)},
          {"items", counts_json(quota.basket)},
          {"left", counts_json(quota.left)},
          {"expires_at_ms", ms(quota.expires_at)}};
}

Schema quota_schema() {
  return {"Quota",
          "goods that were set aside, to be sold while the store is away",
          {{.name = "id", .about = "its name", .is_required = true},
           {.name = "state",
            .about = "sold from while it is open",
            .is_required = true,
            .words = {"asked", "open", "closing", "returned"}},
           {.name = "items", .type = Type::counts, .about = "as they were set aside", .is_required = true},
           {.name = "left", .type = Type::counts, .about = "without what was sold", .is_required = true},
           {.name = "expires_at_ms", .type = Type::integer, .about = "when they go back", .is_required = true}}};
}

void set_aside(Desk& desk, const CallPtr& call) {
  if (!has_journal(desk, call)) return;
  if (const auto good = desk.tickets->available().check_set_aside(call->body().duration("ttl")); !good) {
    return call->fail(bad_request(good.error().detail, "/ttl"));
  }
  desk.tickets->available().set_aside(call->path("id"), call->body().counts("items"), call->body().duration("ttl"),
                                      [call](const Ended<Quota>& quota) {
                                        if (!quota) return call->fail(quota.error());
                                        call->answer(200, quota_json(*quota));
                                      });
}

void give_back(Desk& desk, const CallPtr& call) {
  if (!has_journal(desk, call)) return;
  const auto closed = desk.tickets->available().give_back(call->path("id"));
  if (!closed) return call->fail(closed.error());
  if (!*closed) return call->fail(Problem{404, "not_found", "There is no open quota of this name here.", {}});
  call->answer(200, {{"id", call->path("id")}});
}

void list_quotas(Desk& desk, const CallPtr& call) {
  if (!has_journal(desk, call)) return;
  const auto found = desk.tickets->journal().quotas();
  if (!found) return call->fail(found.error());
  boost::json::array quotas;
  for (const Quota& quota : *found) quotas.push_back(quota_json(quota));
  call->answer(200, {{"quotas", std::move(quotas)}});
}

void sell(Desk& desk, const CallPtr& call) {
  if (!has_journal(desk, call)) return;
  const auto sold = desk.tickets->available().sell(call->body().counts("items"), call->path("ticket"));
  if (!sold) return call->fail(sold.error());
  tell(call, *sold);
}

// ---- The table ----

const Route::Refusal no_journal{422, "rejected", "this server was started without --journal"};

Field items_field() {
  return {.name = "items",
          .type = Type::counts,
          .about = "how many of what, by SKU: at most 99",
          .is_required = true,
          .least = 1,
          .most = static_cast<std::int64_t>(basket_most)};
}

void add_ticket_routes(std::vector<Route>& routes) {
  const Route::Refusal none{404, "not_found", "there is no such ticket"};
  routes.push_back(
      {"GET",
       "/v1/tickets",
       "listTickets",
       "What was accepted provisionally, in that order",
       {},
       {{.name = "all", .type = Type::boolean, .about = "also what is over", .otherwise = "false"},
        {.name = "after", .type = Type::integer, .about = "the next of the answer before", .otherwise = "0"},
        {.name = "max",
         .type = Type::integer,
         .about = "how many at most",
         .otherwise = "100",
         .least = 1,
         .most = 1000}},
       {{200,
         "some of them",
         {"Tickets",
          "a page",
          {{.name = "tickets",
            .type = Type::list,
            .about = "in the order of acceptance",
            .is_required = true,
            .of = std::make_shared<const Schema>(ticket_schema())},
           {.name = "next",
            .type = Type::any,
            .about = "for after, where there may be more; or null",
            .is_required = true}}}}},
       {no_journal},
       list});
  routes.push_back({"GET",
                    "/v1/tickets/{ticket}",
                    "showTicket",
                    "What has become of a ticket",
                    {},
                    {},
                    {{200, "as it is now", ticket_schema()}},
                    {none, no_journal},
                    show});
  routes.push_back({"POST",
                    "/v1/tickets/{ticket}/compensated",
                    "noteCompensated",
                    "A rejected ticket was made good for: nothing is left to do about it; again is the same as once",
                    {"Compensated", "nothing", {}},
                    {},
                    {{200,
                      "it is noted",
                      {"Noted",
                       "which",
                       {{.name = "ticket", .about = "its name", .is_required = true},
                        {.name = "was_repeat",
                         .type = Type::boolean,
                         .about = "it had been noted before",
                         .is_required = true}}}}},
                    {none,
                     {409, "refused", "it is not rejected"},
                     {409, "busy", "another process reconciles this journal: again"},
                     no_journal},
                    compensated});
}

void add_goods_routes(std::vector<Route>& routes) {
  routes.push_back({"POST",
                    "/v1/quotas/{id}",
                    "setAside",
                    "Set goods aside in the store, to be sold while it is away; once for each id",
                    {"SetAside",
                     "what to set aside",
                     {items_field(),
                      {.name = "ttl",
                       .type = Type::duration,
                       .about = "they go back by themselves after so long",
                       .otherwise = "168h",
                       .least = coord::in_ms(coord::set_aside.least),
                       .most = coord::in_ms(coord::set_aside.most)}}},
                    {},
                    {{200, "they are set aside", quota_schema()}},
                    {{409, "refused", "there is too little of one of them"},
                     {422, "mismatch", "this id was used for other goods"},
                     no_journal},
                    set_aside});
  routes.push_back(
      {"POST",
       "/v1/quotas/{id}/give-back",
       "giveBackQuota",
       "Nothing more is sold of it; what is left goes back as soon as all that was sold is settled",
       {"GiveBackQuota", "nothing", {}},
       {},
       {{200, "it is closed", {"Closed", "which", {{.name = "id", .about = "its name", .is_required = true}}}}},
       {{404, "not_found", "there is no open quota of this name"}, no_journal},
       give_back});
  routes.push_back({"GET",
                    "/v1/quotas",
                    "listQuotas",
                    "Goods that were set aside",
                    {},
                    {},
                    {{200,
                      "as they are now",
                      {"Quotas",
                       "all of them",
                       {{.name = "quotas",
                         .type = Type::list,
                         .about = "those that end first come first",
                         .is_required = true,
                         .of = std::make_shared<const Schema>(quota_schema())}}}}},
                    {no_journal},
                    list_quotas});
  routes.push_back({"POST",
                    "/v1/sales/{ticket}",
                    "sell",
                    "Sell goods out of a quota, whether the store is there or not; once for each ticket",
                    {"Sale", "what is sold, all or nothing", {items_field()}},
                    {},
                    {provisional_answer()},
                    {{409, "refused", "no quota has as much left for long enough, or the ticket was rejected"},
                     {422, "mismatch", "the ticket was used for something else"},
                     no_journal},
                    sell});
}

}  // namespace

std::vector<Route> ticket_routes() {
  std::vector<Route> routes;
  add_ticket_routes(routes);
  add_goods_routes(routes);
  return routes;
}

}  // namespace holdfast::serve
