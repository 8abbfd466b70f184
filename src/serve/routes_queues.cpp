// Ordered queues.
#include <boost/json/array.hpp>
#include <boost/json/value_from.hpp>

#include "core/coord/limits.hpp"
#include "core/coord/queue.hpp"
#include "core/coord/queue_look.hpp"
#include "serve/desk.hpp"
#include "serve/receiving.hpp"
#include "serve/tickets.hpp"

namespace holdfast::serve {

namespace {

using Type = Field::Type;
using coord::in_ms;
constexpr std::size_t groups_most = 10'000;  // of one answer to stats

std::shared_ptr<const Schema> message_schema() {
  return std::make_shared<const Schema>(Schema{
      "Message",
      "a message",
      {{.name = "seq", .type = Type::integer, .about = "its number in its group, from 1", .is_required = true},
       {.name = "body", .about = "as it was sent", .is_required = true},
       {.name = "dedup_id", .about = "its sender's; or, where it was sent without one, one of its own"},
       {.name = "sent_at_ms", .type = Type::integer, .about = "when, by the sender's clock", .is_required = true}}});
}

// ---- Sending ----

void send(Desk& desk, const CallPtr& call) {
  const Input& body = call->body();
  SendOptions options;
  options.queue = call->path("queue");
  options.group = body.text("group");
  options.body = body.text("body");
  if (body.has("dedup_id")) options.dedup_id = body.text("dedup_id");
  options.delay = body.duration("delay");
  options.dedup_window = body.duration("dedup_window");
  options.retention = body.duration("retention");
  const auto tell_sent = [call](const Sent& sent) {
    call->answer(200, {{"seq", sent.seq}, {"was_duplicate", sent.was_duplicate}});
  };
  if (takes_provisional(call)) {
    if (!has_journal(desk, call)) return;
    return desk.tickets->available().send(
        {options.queue, options.group, options.body, std::chrono::ceil<std::chrono::milliseconds>(options.delay),
         std::chrono::ceil<std::chrono::milliseconds>(options.retention)},
        options.dedup_id, tell_either<Sent>(call, tell_sent));
  }
  run_for(desk, call, std::make_unique<Send>(std::move(options), desk.deadline(), desk.loop.random()), tell_sent);
}

// ---- What a consumer does with what it was given ----

void tell(const CallPtr& call, const Settled& settled, bool is_leased) {
  boost::json::object body{{"left", settled.left}};
  if (is_leased) body["expires_at_ms"] = ms(settled.expires_at);
  call->answer(200, body);
}

void settle(Desk& desk, const CallPtr& call, Settlement settlement) {
  auto receipt = Receipt::from_string(call->body().text("receipt"));
  if (!receipt || receipt->queue != call->path("queue")) {
    return call->fail(bad_request("This is no receipt of this queue.", "/receipt"));
  }
  const std::int64_t size = receipt->last - receipt->first + 1;
  if (settlement.kind == Settlement::Kind::ack && settlement.count == 0) settlement.count = size;
  if (settlement.count > size) {
    return call->fail(bad_request("The batch has " + std::to_string(size) + " messages.", "/count"));
  }
  const bool ends = settlement.kind == Settlement::Kind::nack || settlement.kind == Settlement::Kind::park ||
                    (settlement.kind == Settlement::Kind::ack && settlement.count == size);
  run_for(desk, call,
          std::make_unique<Settle>(*std::move(receipt), std::move(settlement), desk.deadline(), desk.loop.random()),
          [&desk, call, ends](const Settled& settled) {
            if (ends && desk.invocations != nullptr) desk.invocations->settled(call->body().text("receipt"));
            tell(call, settled, !ends);
          });
}

void ack(Desk& desk, const CallPtr& call) {
  Settlement settlement;
  if (call->body().has("count")) settlement.count = call->body().integer("count");
  settle(desk, call, std::move(settlement));
}
void nack(Desk& desk, const CallPtr& call) {
  Settlement settlement;
  settlement.kind = Settlement::Kind::nack;
  settlement.delay = call->body().duration("delay");
  settle(desk, call, std::move(settlement));
}
void extend(Desk& desk, const CallPtr& call) {
  Settlement settlement;
  settlement.kind = Settlement::Kind::extend;
  settlement.visibility = call->body().duration("visibility");
  settle(desk, call, std::move(settlement));
}
void park(Desk& desk, const CallPtr& call) {
  Settlement settlement;
  settlement.kind = Settlement::Kind::park;
  settlement.reason = call->body().text("reason");
  settle(desk, call, std::move(settlement));
}

void redrive_to(Desk& desk, const CallPtr& call) {
  const Input& body = call->body();
  if (const auto good = check_redrive(call->path("queue"), body.text("group"), body.text("to")); !good) {
    return call->fail(bad_request(good.error().detail, "/to"));
  }
  desk.coordinator.redrive_to(call->path("queue"), body.text("group"), body.text("to"),
                              static_cast<std::size_t>(body.integer("max")), body.duration("skew"), desk.patience,
                              [call](const Ended<Redriven>& redriven) {
                                if (!redriven) return call->fail(redriven.error());
                                call->answer(200, {{"moved", redriven->moved}, {"left", redriven->left}});
                              });
}

void redrive(Desk& desk, const CallPtr& call) {
  if (call->body().has("to")) return redrive_to(desk, call);
  run_for(desk, call,
          std::make_unique<Redrive>(call->path("queue"), call->body().text("group"), call->body().flag("skip_first"),
                                    desk.deadline(), desk.loop.random()),
          [call](const Settled& settled) {
            call->answer(200, {{"moved", 0}, {"left", settled.left}});
          });
}

// ---- Looking ----

void peek(Desk& desk, const CallPtr& call) {
  run_for(desk, call,
          std::make_unique<PeekGroup>(call->path("queue"), call->query().text("group"),
                                      static_cast<std::size_t>(call->query().integer("max")), desk.deadline(),
                                      desk.loop.random()),
          [call](const std::optional<GroupView>& view) {
            if (!view) return call->fail(Problem{404, "not_found", "This queue has no such group.", {}});
            const Group& group = view->group;
            boost::json::array messages;
            for (const Message& each : view->messages) messages.push_back(message_json(each));
            call->answer(200, {{"group", group.group},
                               {"state", group.state == Group::State::parked  ? "parked"
                                         : group.state == Group::State::empty ? "empty"
                                                                              : "ready"},
                               {"size", group.size()},
                               {"receives", group.receives},
                               {"owner", group.owner},
                               {"epoch", group.epoch.value},
                               {"due_ms", ms(group.due)},
                               {"parked_because", group.parked_because},
                               {"messages", std::move(messages)}});
          });
}

void stats(Desk& desk, const CallPtr& call) {
  run_for(desk, call,
          std::make_unique<ListGroups>(call->path("queue"), groups_most, desk.deadline(), desk.loop.random()),
          [&desk, call](const GroupList& list) {
            std::int64_t ready = 0, leased = 0, parked = 0, ready_messages = 0, parked_messages = 0;
            for (const Group& each : list.groups) {
              const bool is_parked = each.state == Group::State::parked;
              ++(is_parked ? parked : ready);
              (is_parked ? parked_messages : ready_messages) += each.size();
              if (!is_parked && !each.owner.empty() && each.due > desk.loop.wall()) ++leased;
            }
            call->answer(200, {{"queue", call->path("queue")},
                               {"ready_groups", ready},
                               {"leased_groups", leased},
                               {"ready_messages", ready_messages},
                               {"parked_groups", parked},
                               {"parked_messages", parked_messages},
                               {"is_partial", list.is_partial},
                               {"damaged", boost::json::value_from(list.damaged)}});
          });
}

// ---- The table ----

Field count_of(std::string_view name, std::string_view about) {
  return {.name = name, .type = Type::integer, .about = about, .is_required = true};
}

Schema batch_schema() {
  return {"Batch",
          "the first messages of one group, leased",
          {{.name = "receipt", .about = "what the other calls are made with", .is_required = true},
           {.name = "group", .about = "whose messages these are", .is_required = true},
           count_of("epoch", "the fencing token"),
           count_of("first", "number of the first message"),
           count_of("last", "number of the last one"),
           count_of("receives", "how often the first one was given out, this time included"),
           {.name = "until_ms",
            .type = Type::integer,
            .about = "to be acknowledged or extended by then",
            .is_required = true},
           {.name = "messages",
            .type = Type::list,
            .about = "in order; none where all are past their retention: to be acknowledged all the same",
            .is_required = true,
            .of = message_schema()}}};
}

Schema settled_schema() {
  return {"Settled",
          "the group afterwards",
          {count_of("left", "messages that are not acknowledged"),
           {.name = "expires_at_ms",
            .type = Type::integer,
            .about = "when the lease ends, where it is still the caller's"}}};
}

Field skew_field() {
  return {.name = "skew",
          .type = Type::duration,
          .about = "what the clocks of two machines may differ by",
          .otherwise = "1s",
          .most = coord::in_ms(coord::skewed.most)};
}

Schema redriven_schema() {
  return {"Redriven",
          "the group afterwards",
          {count_of("moved", "messages that went to the queue `to`"), count_of("left", "messages in the group")}};
}

Field receipt_field() {
  return {.name = "receipt", .about = "that came with the batch", .is_required = true, .least = 1, .most = 4096};
}

Route settling(std::string_view path, std::string_view operation, std::string_view about, std::string_view schema,
               std::vector<Field> fields, void (*handler)(Desk&, const CallPtr&)) {
  fields.insert(fields.begin(), receipt_field());
  return {"POST",
          path,
          operation,
          about,
          {schema, about, std::move(fields)},
          {},
          {{200, "done", settled_schema()}},
          {{409, "refused", "the lease of this receipt has ended: the group may be another's"},
           {422, "rejected", "the receipt is not as it was given out"}},
          handler};
}

void add_sending(std::vector<Route>& routes) {
  Field mode = mode_field();
  mode.about =
      "while the store is away: say so, or accept provisionally, with 202; dedup_id is the ticket then, known for a "
      "year";
  routes.push_back({"POST",
                    "/v1/queues/{queue}/send",
                    "sendMessage",
                    "Append a message to a group",
                    {"Send",
                     "the message",
                     {{.name = "group",
                       .about = "messages of one group are in strict order",
                       .is_required = true,
                       .least = 1,
                       .most = name_most},
                      {.name = "body",
                       .about = "any text",
                       .is_required = true,
                       .most = static_cast<std::int64_t>(SendOptions::body_most)},
                      {.name = "dedup_id",
                       .about = "the same again with the same id within the window: nothing happens",
                       .least = 1,
                       .most = name_most},
                      {.name = "delay",
                       .type = Type::duration,
                       .about = "not given out earlier, nor what comes after it",
                       .otherwise = "0",
                       .most = in_ms(coord::delayed.most)},
                      {.name = "dedup_window",
                       .type = Type::duration,
                       .about = "how long dedup_id is known, at least",
                       .otherwise = "10m",
                       .least = in_ms(coord::deduplicated.least),
                       .most = in_ms(coord::deduplicated.most)},
                      {.name = "retention",
                       .type = Type::duration,
                       .about = "how long it is kept if nobody acknowledges it",
                       .otherwise = "336h",
                       .least = 60'000,
                       .most = in_ms(coord::remembered.most)},
                      mode}},
                    {},
                    {{200,
                      "it is in the queue",
                      {"Sent",
                       "the message's place",
                       {count_of("seq", "its number in its group"),
                        {.name = "was_duplicate",
                         .type = Type::boolean,
                         .about = "it had been sent before, and seq is that one's",
                         .is_required = true}}}},
                     provisional_answer()},
                    {{422, "mismatch", "the id was used for another message, or another group"}},
                    send});
}

void add_receiving(std::vector<Route>& routes) {
  routes.push_back({"POST",
                    "/v1/queues/{queue}/receive",
                    "receiveMessages",
                    "Lease a group that has messages, as a whole, and take the first of them",
                    {"Receive",
                     "how many, and for how long",
                     {{.name = "max",
                       .type = Type::integer,
                       .about = "how many messages at most",
                       .otherwise = "10",
                       .least = 1,
                       .most = 100},
                      {.name = "visibility",
                       .type = Type::duration,
                       .about = "how long the group is the caller's",
                       .otherwise = "30s",
                       .least = in_ms(coord::visible.least),
                       .most = in_ms(coord::visible.most)},
                      skew_field(),
                      {.name = "wait",
                       .type = Type::duration,
                       .about = "how long to wait for messages; hanging up ends it",
                       .otherwise = "0",
                       .most = 300'000},
                      {.name = "receives_most",
                       .type = Type::integer,
                       .about = "a message that was given out this often in vain is poison: its group is parked",
                       .least = 1},
                      {.name = "dead_letter_queue",
                       .about = "where poison goes instead, so that its group goes on",
                       .least = 1,
                       .most = name_most}}},
                    {},
                    {{200,
                      "a batch; null where there was nothing",
                      {"Received",
                       "what there was",
                       {{.name = "batch",
                         .type = Type::object,
                         .about = "the first messages of one group",
                         .is_required = true,
                         .may_be_null = true,
                         .of = std::make_shared<const Schema>(batch_schema())}}}}},
                    {{410, "lost", "the caller had hung up, so it was given back"}},
                    receive});
}

void add_settling(std::vector<Route>& routes) {
  routes.push_back(settling("/v1/queues/{queue}/ack", "acknowledge",
                            "Messages are done with; what is left of the batch stays leased", "Ack",
                            {{.name = "count",
                              .type = Type::integer,
                              .about = "how many, from the first on; without it all",
                              .least = 1,
                              .most = 100}},
                            ack));
  routes.push_back(settling("/v1/queues/{queue}/nack", "giveBack", "The group is given back, to be received again",
                            "Nack",
                            {{.name = "delay",
                              .type = Type::duration,
                              .about = "not before this has passed",
                              .otherwise = "0",
                              .most = in_ms(coord::delayed.most)}},
                            nack));
  routes.push_back(settling("/v1/queues/{queue}/extend", "extendBatch", "The group is the caller's for longer",
                            "ExtendBatch",
                            {{.name = "visibility",
                              .type = Type::duration,
                              .about = "for how long from now on, at least: nothing is taken back",
                              .is_required = true,
                              .least = in_ms(coord::visible.least),
                              .most = in_ms(coord::visible.most)}},
                            extend));
  routes.push_back(settling(
      "/v1/queues/{queue}/park", "parkGroup", "The group is set aside, with all that is in it", "Park",
      {{.name = "reason", .about = "for people", .otherwise = "by its consumer", .least = 1, .most = 1024}}, park));
  routes.push_back(
      {"POST",
       "/v1/queues/{queue}/redrive",
       "redriveGroup",
       "A parked group goes on; or, with `to`, dead letters go back to their queue",
       {"Redrive",
        "which",
        {{.name = "group",
          .about = "that is parked; with `to`: whose messages are moved",
          .is_required = true,
          .least = 1,
          .most = name_most},
         {.name = "skip_first", .type = Type::boolean, .about = "without its first message", .otherwise = "false"},
         {.name = "to",
          .about = "a queue: to the end of its group of the same name go the messages, in order, each once",
          .least = 1,
          .most = name_most},
         {.name = "max",
          .type = Type::integer,
          .about = "with `to`: how many messages, at most",
          .otherwise = "100",
          .least = 1,
          .most = 100},
         skew_field()}},
       {},
       {{200, "it goes on, or its messages were moved", redriven_schema()}},
       {{409, "busy", "with `to`: somebody else has the group"},
        {409, "refused", "there is no such group, or it is not parked; with `to`: it is"}},
       redrive});
}

void add_looking(std::vector<Route>& routes) {
  routes.push_back({"GET",
                    "/v1/queues/{queue}/peek",
                    "peek",
                    "Look at a group without taking anything",
                    {},
                    {{.name = "group", .about = "which group", .is_required = true, .least = 1, .most = name_most},
                     {.name = "max",
                      .type = Type::integer,
                      .about = "how many messages at most",
                      .otherwise = "10",
                      .least = 1,
                      .most = 100}},
                    {{200,
                      "as it is now",
                      {"Group",
                       "a group",
                       {{.name = "group", .about = "its name", .is_required = true},
                        {.name = "state",
                         .about = "leased ones are ready",
                         .is_required = true,
                         .words = {"ready", "empty", "parked"}},
                        count_of("size", "messages that are not acknowledged"),
                        count_of("receives", "how often the first was given out"),
                        {.name = "owner", .about = "of the lease; empty: none", .is_required = true},
                        count_of("epoch", "of the lease"),
                        {.name = "due_ms",
                         .type = Type::integer,
                         .about = "when it is next to be received, or the lease ends",
                         .is_required = true},
                        {.name = "parked_because", .about = "empty where it is not", .is_required = true},
                        {.name = "messages",
                         .type = Type::list,
                         .about = "the first ones",
                         .is_required = true,
                         .of = message_schema()}}}}},
                    {{404, "not_found", "this queue has no such group"}},
                    peek});
  routes.push_back({"GET",
                    "/v1/queues/{queue}/stats",
                    "queueStats",
                    "How much there is in a queue",
                    {},
                    {},
                    {{200,
                      "as the index has it",
                      {"QueueStats",
                       "a queue",
                       {{.name = "queue", .about = "its name", .is_required = true},
                        count_of("ready_groups", "that have messages, leased or not"),
                        count_of("leased_groups", "of those, at work"),
                        count_of("ready_messages", "in them"),
                        count_of("parked_groups", "set aside"),
                        count_of("parked_messages", "in them"),
                        {.name = "is_partial",
                         .type = Type::boolean,
                         .about = "there are more groups than were counted",
                         .is_required = true},
                        damaged_field()}}}},
                    {},
                    stats});
}

}  // namespace

std::vector<Route> queue_routes() {
  std::vector<Route> routes;
  add_sending(routes);
  add_receiving(routes);
  add_settling(routes);
  add_looking(routes);
  return routes;
}

}  // namespace holdfast::serve
