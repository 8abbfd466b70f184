#include "serve/receiving.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <memory>
#include <utility>

namespace holdfast::serve {

namespace {

/// Somebody who waits for messages. Poison on the way is dealt with as he has said, and the wait goes on.
class Receiving : public std::enable_shared_from_this<Receiving> {
 public:
  Receiving(Desk& desk, CallPtr call)
      : desk_(desk),
        call_(std::move(call)),
        until_(desk.loop.instant() + call_->body().duration("wait")),
        stops_(desk.stops()) {}

  void begin() {
    waiting_ = desk_.waiting.add(call_);
    call_->on_hang_up([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->hung_up_ = true;
    });
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
    options.wait_until = until_;
    const Instant deadline = std::max(until_, desk_.loop.instant()) + desk_.patience;
    run(desk_,
        std::make_unique<Receive>(std::move(options), desk_.coordinator.owner(), deadline, desk_.loop.random()),
        [self = shared_from_this()](const Ended<std::optional<Batch>>& result) { self->got(result); });
  }

  void got(const Ended<std::optional<Batch>>& result) {
    if (!result) return fail(result.error());
    if (!*result) return is_waited_for() ? call_->answer(200, {{"batch", nullptr}}) : void();
    if ((*result)->is_poison) return deal_with_poison((*result)->receipt);
    const bool is_waited = is_waited_for();
    // A claim that was under way while the machine stood still may have run out since (S7).
    if (is_waited && !hung_up_ && desk_.stops() == stops_) return hand_over(**result);
    give_back(desk_, (*result)->receipt);
    if (is_waited)
      call_->fail(
          Problem{410, "lost", "The caller had hung up, or this machine stood still: the batch was given back.", {}});
  }

  void deal_with_poison(const Receipt& receipt) {
    const Input& body = call_->body();
    const auto go_on = [self = shared_from_this()](const Ended<Settled>& settled) {
      if (!settled && settled.error().kind != Failure::Kind::refused) return self->fail(settled.error());
      // However much poison there is, the caller is answered; what is left is dealt with by the next one.
      if (self->desk_.loop.instant() >= self->until_ + self->desk_.patience) return self->got(std::optional<Batch>());
      self->look();  // refused: its lease ran out meanwhile
    };
    if (body.has("dead_letter_queue")) {
      return run(
          desk_,
          std::make_unique<MoveAway>(receipt, body.text("dead_letter_queue"), desk_.deadline(), desk_.loop.random()),
          go_on);
    }
    Settlement settlement;
    settlement.kind = Settlement::Kind::park;
    settlement.reason = "given out " + std::to_string(body.integer("receives_most")) + " times in vain";
    run(desk_, std::make_unique<Settle>(receipt, std::move(settlement), desk_.deadline(), desk_.loop.random()),
        go_on);
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
      if (!was_sent) give_back(*desk, receipt);
    });
  }

  void fail(const Failure& failure) {
    if (is_waited_for()) call_->fail(failure);
  }
  [[nodiscard]] bool is_waited_for() { return desk_.waiting.remove(waiting_); }

  Desk& desk_;
  const CallPtr call_;
  const Instant until_;
  const std::uint64_t stops_;
  Waiting::Id waiting_ = 0;
  bool hung_up_ = false;
};

}  // namespace

void give_back(Desk& desk, const Receipt& receipt, std::function<void()> done) {
  Settlement settlement;
  settlement.kind = Settlement::Kind::nack;
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
  if (body.has("dead_letter_queue") && body.text("dead_letter_queue") == call->path("queue")) {
    return call->fail(bad_request("The dead_letter_queue is another queue than this.", "/dead_letter_queue"));
  }
  if (desk.is_draining) return call->fail(draining());
  if (is_of_ended_invocation(desk, *call)) return call->fail(invocation_over());
  std::make_shared<Receiving>(desk, call)->begin();
}

}  // namespace holdfast::serve
