#include "sim/coord/tasks.hpp"

#include <utility>

#include "core/coord/task.hpp"

namespace holdfast::sim::coordinated {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view effects = "effects";
constexpr std::string_view effect_epoch = "effect_epoch";

std::string key_of(std::size_t number) {
  return AwaitTask::row_key("t" + std::to_string(number));
}

}  // namespace

struct Tasks::Call {
  Node& node;
  std::size_t number = 0;
  std::int32_t about = -1;
  std::shared_ptr<coord::Held> held{};
  Epoch epoch{};
  bool was_lost = false;
};

Tasks::Tasks(Stage& stage, std::size_t count) : LeasedScene(stage), count_(count) {}

void Tasks::act(Node& node) {
  const auto call = std::make_shared<Call>(Call{.node = node});
  Random& random = node.random();
  call->number = random.below(count_);
  call->about = subject(Kind::task, call->number);
  const bool renews = random.below(4) != 0;
  coord::TaskOptions options = draw_task(random);
  options.renews = renews;
  coord::TaskEvents events;
  events.acquired = [this, call](const Ended<std::shared_ptr<coord::Held>>& ended) {
    stage_.hears(call->node.number(), call->about, Verb::acquire, how(ended), ended ? (*ended)->epoch().value : 0);
    if (ended) return acquired(call, *ended);
    if (stage_.at_the_end && ended.error().kind != Failure::Kind::busy)
      stage_.broken("liveness", "it cannot be taken: " + ended.error().error.detail, call->about);
    call->node.end();
  };
  events.lost = [this, call](LossReason) {
    call->was_lost = true;
    stage_.world.marks.hit(Mark::task_lost);
  };
  events.ended = [this, call](coord::HoldEnd how, const Error&) { ended(call, how); };
  node.begin();
  stage_.calls(node.number(), call->about, Verb::acquire);
  node.coordinator().acquire("t" + std::to_string(call->number), options, std::move(events));
}

void Tasks::acquired(const std::shared_ptr<Call>& call, const std::shared_ptr<coord::Held>& held) {
  call->held = held;
  if (stage_.at_the_end) taken_.insert(call->number);
  call->epoch = held->epoch();
  leases_.believes(call->about, call->node, held->guard());
  work(call, 1 + call->node.random().below(4));
}

/// An effect now and then, most of them asking the guard before, and the end.
void Tasks::work(const std::shared_ptr<Call>& call, std::size_t more) {
  const Duration pause = call->node.random().between(Duration::zero(), stage_.terms().lease / 3);
  call->node.loop().call_after(pause, [this, call, more] {
    if (more > 0) {
      affect(call);
      return work(call, more - 1);
    }
    if (call->node.random().below(8) == 0) {
      call->held->leave();
    } else {
      call->held->release({});
    }
  });
}

void Tasks::affect(const std::shared_ptr<Call>& call) {
  const bool believes = call->held->guard()->holds(call->node.own_now());
  if (!believes && call->node.random().below(2) == 0) return;
  Update update;
  update.key = call->held->key();
  update.condition = call->held->fence();
  update.changes = {Change::add(effects, 1), Change::set(effect_epoch, call->epoch.value)};
  stage_.calls(call->node.number(), call->about, Verb::effect);
  call->node.store().update(std::move(update), call->node.own_now() + stage_.terms().lease,
                            [this, believes](const RowReply& reply) {
                              if (reply.outcome == Outcome::conflict && !believes) {
                                stage_.world.marks.hit(Mark::stale_effect_refused);
                              }
                            });
}

void Tasks::ended(const std::shared_ptr<Call>& call, coord::HoldEnd how) {
  const std::string& owner = call->node.coordinator().owner().value;
  const Row* const row = stage_.row(key_of(call->number));
  const bool is_ours =
      row != nullptr && row->text(attribute::owner) == owner && row->number(attribute::epoch) == call->epoch.value;
  const bool holds_on = is_ours && row->number(attribute::expires_at) >
                                       stage_.true_wall().time_since_epoch().count() + stage_.wall_error_most() / 1ms;
  stage_.hears(call->node.number(), call->about, Verb::release, how == coord::HoldEnd::lost ? How::lost : How::done);
  if (how == coord::HoldEnd::released && holds_on && stage_.clocks_keep_promise()) {
    stage_.broken("S11", "it was told that the lease is given back, but the row says that it holds it", call->about);
  }
  if (how == coord::HoldEnd::doubtful) stage_.world.marks.hit(Mark::release_doubtful);
  call->node.end();
}

void Tasks::wrote(const Write& write) {
  for (const Write::Left& left : write.rows) {
    if (!left.after->key.starts_with(key_prefix::task)) continue;
    const std::int32_t about = subject(Kind::task, std::stoul(left.after->key.substr(key_prefix::task.size() + 1)));
    leases_.wrote(about, left, write.origin, stage_.terms().skew);
    const bool has_effect =
        left.after->number(effects) != (left.before == nullptr ? 0 : left.before->number(effects));
    if (has_effect && left.after->number(effect_epoch) != left.after->number(attribute::epoch)) {
      stage_.broken("S2",
                    "an effect of epoch " + std::to_string(left.after->number(effect_epoch)) +
                        " is accepted under epoch " + std::to_string(left.after->number(attribute::epoch)),
                    about);
    }
    const bool is_claim =
        left.before != nullptr && left.after->number(attribute::epoch) > left.before->number(attribute::epoch);
    if (is_claim && !left.before->text(attribute::owner).empty()) stage_.world.marks.hit(Mark::task_taken_over);
  }
}

std::string Tasks::left() {
  if (taken_.size() == count_) return {};
  return "of " + std::to_string(count_) + " tasks only " + std::to_string(taken_.size()) + " were taken again";
}

}  // namespace holdfast::sim::coordinated
