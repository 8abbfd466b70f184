#include "serve/receiving.hpp"

#include <boost/json/array.hpp>
#include <memory>
#include <utility>

namespace holdfast::serve {

namespace {

/// Somebody who waits for messages: he may hang up, or the server may stop, while they are on their way.
class Receiving : public std::enable_shared_from_this<Receiving> {
 public:
  Receiving(Desk& desk, CallPtr call) : desk_(desk), call_(std::move(call)), stops_(desk.stops()) {}

  void begin(Place place) {
    waiting_ = desk_.waiting.add(call_, std::move(place), [desk = &desk_] { desk->coordinator.recheck(); });
    look();
  }

 private:
  void look() {
    const Input& body = call_->body();
    ReceiveOptions options;
    options.queue = call_->path("queue");
    options.max = static_cast<std::size_t>(body.integer("max"));
    options.visibility = body.duration("visibility");
    options.skew = body.duration("skew");
    if (body.has("receives_most")) options.receives_most = body.integer("receives_most");
    coord::Coordinator::Poison poison;
    poison.parks = !body.has("dead_letter_queue");
    if (!poison.parks) poison.dead_letter = body.text("dead_letter_queue");
    const auto self = shared_from_this();
    desk_.coordinator.receive(
        std::move(options), std::move(poison), body.duration("wait"), desk_.patience,
        [self](const Ended<std::optional<Batch>>& result) { self->got(result); },
        [self] { return self->desk_.waiting.has(self->waiting_); });
  }

  void got(const Ended<std::optional<Batch>>& result) {
    const bool is_waited = desk_.waiting.remove(waiting_);
    const bool is_here = result && *result;
    // A claim that was under way while the machine stood still may have run out since (S7).
    const bool is_late = is_here && desk_.stops() != stops_;
    if (is_here && (!is_waited || is_late)) give_back(desk_, (*result)->receipt, Given::to_nobody);
    if (!is_waited) return;
    if (is_late) return call_->fail(Problem{410, "lost", "This machine stood still: the batch was given back.", {}});
    if (!result) return call_->fail(result.error());
    if (!is_here) return call_->answer(200, {{"batch", nullptr}});
    hand_over(**result);
  }

  void hand_over(const Batch& batch) {
    boost::json::array messages;
    for (const Message& message : batch.messages) messages.push_back(message_json(message));
    const Duration left = batch.until - desk_.loop.instant();
    const WallTime until = desk_.loop.wall() + std::chrono::floor<std::chrono::milliseconds>(left);
    boost::json::object json{{"receipt", batch.receipt.to_string()},
                             {"group", batch.receipt.group},
                             {"epoch", batch.receipt.epoch.value},
                             {"first", batch.receipt.first},
                             {"last", batch.receipt.last},
                             {"receives", batch.receives},
                             {"until_ms", ms(until)},
                             {"messages", std::move(messages)}};
    if (desk_.invocations != nullptr && !call_->invocation().empty()) {
      desk_.invocations->gave(batch.receipt, call_->invocation());
    }
    call_->answer(200, {{"batch", std::move(json)}}, {}, [desk = &desk_, receipt = batch.receipt](bool was_sent) {
      if (!was_sent) give_back(*desk, receipt, Given::to_nobody);
    });
  }

  Desk& desk_;
  const CallPtr call_;
  const std::uint64_t stops_;
  Waiting::Id waiting_ = 0;
};

}  // namespace

void give_back(Desk& desk, const Receipt& receipt, Given given, std::function<void()> done) {
  Settlement settlement;
  settlement.kind = Settlement::Kind::nack;
  settlement.is_undelivered = given == Given::to_nobody;
  run(desk, std::make_unique<Settle>(receipt, std::move(settlement), desk.deadline(), desk.loop.random()),
      [done = std::move(done)](const Ended<Settled>&) {
        if (done) done();
      });
}

boost::json::object message_json(const Message& message) {
  boost::json::object json{{"seq", message.seq}, {"body", message.body}, {"sent_at_ms", ms(message.sent_at)}};
  if (!message.dedup_id.empty()) json["dedup_id"] = message.dedup_id;
  return json;
}

void receive(Desk& desk, const CallPtr& call) {
  const Input& body = call->body();
  if (body.has("dead_letter_queue") && !body.has("receives_most")) {
    return call->fail(
        bad_request("A dead_letter_queue needs receives_most: when a message is poison.", "/receives_most"));
  }
  if (body.has("dead_letter_queue")) {
    const std::string& dead = body.text("dead_letter_queue");
    if (dead == call->path("queue")) {
      return call->fail(bad_request("The dead_letter_queue is another queue than this.", "/dead_letter_queue"));
    }
    if (const auto good = check_names(dead, "any"); !good) {
      return call->fail(bad_request("Not a dead_letter_queue: " + good.error().detail + ".", "/dead_letter_queue"));
    }
  }
  if (desk.is_draining) return call->fail(draining());
  if (is_of_ended_invocation(desk, *call)) return call->fail(invocation_over());
  auto place = desk.places.take(body.duration("wait"));
  if (!place) return call->fail(no_place());
  std::make_shared<Receiving>(desk, call)->begin(*std::move(place));
}

}  // namespace holdfast::serve
