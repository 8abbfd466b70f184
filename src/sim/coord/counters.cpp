#include "sim/coord/counters.hpp"

#include <algorithm>
#include <utility>

#include "core/coord/counter.hpp"
#include "core/coord/names.hpp"

namespace holdfast::sim::coordinated {

struct Counters::Call {
  Node& node;
  std::int16_t process = -1;
  Operation operation{};
  std::int32_t about = -1;
  std::string key{};
  std::string op_key{};
  Instant since{};  // true time
  Instant until{};
  bool is_other = false;  // the same id with another delta
  std::size_t in_history = 0;
};

Counters::Operation Counters::choose(std::int16_t process, Random& random) {
  // One that was tried before is as likely as a new one: its caller died, or does not know what came of it.
  if (!operations_.empty() && random.below(3) == 0) {
    const std::size_t recent = std::min<std::size_t>(operations_.size(), 12);
    const Operation& again = operations_[operations_.size() - 1 - random.below(recent)];
    // Not twice at once by one process: which of the two has carried it out could not be told.
    if (!under_way_.contains({process, again.id})) return again;
  }
  Operation made;
  made.id = "a" + std::to_string(operations_.size());
  made.counter = random.below(count_);
  made.delta = static_cast<std::int64_t>(random.below(9)) - 4;
  if (made.counter % 2 == 0) made.floor = 0;
  operations_.push_back(made);
  return made;
}

void Counters::act(Node& node) {
  const auto call = std::make_shared<Call>(Call{.node = node, .process = node.number()});
  call->operation = choose(node.number(), node.random());
  call->is_other = node.random().below(15) == 0;
  const Operation& operation = call->operation;
  call->about = subject(Kind::counter, operation.counter);
  AddOptions options;
  options.key = "k" + std::to_string(operation.counter);
  options.delta = operation.delta + (call->is_other ? 1 : 0);
  options.op_id = operation.id;
  options.floor = operation.floor;
  call->key = Add::row_key(options.to, options.key);
  call->op_key = operation_key(call->key, options.op_id);
  call->since = stage_.world.now();
  if (call->is_other && !applied_.contains(call->op_key)) {
    call->is_other = false;
    options.delta = operation.delta;
  }
  if (!call->is_other) {
    AddCalls& history = histories_[operation.counter];
    call->in_history = history.size();
    history.push_back({.op = options.op_id, .delta = options.delta, .floor = options.floor, .invoked = call->since});
  }
  const Duration lease = stage_.terms().lease;
  node.begin();
  under_way_.emplace(node.number(), operation.id);
  stage_.calls(node.number(), call->about, Verb::add);
  auto add = std::make_unique<Add>(std::move(options), node.own_now() + node.random().between(lease / 4, 2 * lease),
                                   node.loop().random());
  node.coordinator().run(std::move(add), [this, call](const Ended<Added>& ended) {
    call->until = stage_.world.now();
    under_way_.erase({call->process, call->operation.id});
    stage_.hears(call->process, call->about, Verb::add, how(ended), ended ? ended->value : 0);
    told(*call, ended);
    if (!ended && ended.error().kind != Failure::Kind::unknown) nothing_happened_[call->op_key].push_back(call);
    call->node.end();
  });
}

/// Whether this very call has applied it.
bool Counters::happened_by(const Call& call) const {
  const auto found = applied_.find(call.op_key);
  return found != applied_.end() && found->second.by == call.process && found->second.sent >= call.since &&
         found->second.sent <= call.until;
}

void Counters::told(const Call& call, const Ended<Added>& ended) {
  const bool has_happened = applied_.contains(call.op_key);
  const Series& values = values_[call.key];
  if (call.is_other) {
    if (ended) stage_.broken("F29", "an operation is repeated with another number, and nobody is told", call.about);
    if (!ended && ended.error().kind == Failure::Kind::mismatch) stage_.world.marks.hit(Mark::operation_mismatch);
    return;
  }
  AddCall& noted = histories_[call.operation.counter][call.in_history];
  if (ended) {
    noted.returned = call.until;
    noted.value = ended->value;
    if (!has_happened) stage_.broken("S5", "its caller is told that it is added, and it is not", call.about);
    if (!values.was(ended->value, call.since)) {
      stage_.broken("S5", "its caller is told " + std::to_string(ended->value) + ", which it was at no time",
                    call.about);
    }
    if (ended->was_repeat == happened_by(call)) {
      stage_.broken("F29", "its caller is not told rightly whether it had been added before", call.about);
    }
    if (ended->was_repeat) stage_.world.marks.hit(Mark::operation_repeated);
    return;
  }
  const Failure::Kind kind = ended.error().kind;
  if (kind == Failure::Kind::unknown) return;
  if (kind == Failure::Kind::refused) {
    noted.returned = call.until;
    noted.told = AddCall::Told::refused;
    const bool too_low =
        call.operation.floor && values.least_since(call.since) + call.operation.delta < *call.operation.floor;
    if (!too_low) stage_.broken("F29", "it is refused although enough was there", call.about);
    stage_.world.marks.hit(Mark::below_floor_refused);
  } else {
    noted.never = true;
    if (stage_.at_the_end)
      stage_.broken("liveness", "nothing can be added: " + ended.error().error.detail, call.about);
  }
  if (happened_by(call)) {
    stage_.broken("S5", "its caller is told that surely nothing happened, and it is added", call.about);
  }
}

void Counters::wrote(const Write& write) {
  const Write::Left* const counter = write.find(coord::counter_prefix);
  if (counter == nullptr) return;
  const std::string& key = counter->after->key;
  const bool is_ours = key.starts_with(std::string(coord::counter_prefix) + "k");
  const std::int32_t about =
      is_ours ? subject(Kind::counter, std::stoul(key.substr(coord::counter_prefix.size() + 1))) : -1;
  const Write::Left* const operation = write.find(coord::operation_prefix);
  if (operation == nullptr) return stage_.broken("F29", "something is added without an operation", about);
  Series& values = values_[key];
  const std::int64_t value = counter->after->number(coord::value);
  if (value != values.value() + operation->after->number(coord::delta)) {
    stage_.broken("F29", "the counter is not the sum of its operations", about);
  }
  if (operation->before != nullptr || applied_.contains(operation->after->key)) {
    stage_.broken("F29", "an operation is carried out twice", about);
  }
  values.set(stage_.world.now(), value);
  applied_[operation->after->key] = {write.origin.again ? std::int16_t{-1} : write.origin.process,
                                     write.origin.sent_truth};
  if (write.origin.again) {
    repeated_by_the_network(*operation->after, about);
  } else if (const auto found = nothing_happened_.find(operation->after->key); found != nothing_happened_.end()) {
    for (const auto& call : found->second) {
      if (happened_by(*call)) stage_.broken("S5", "what surely had not happened is added", about);
    }
  }
  if (is_ours && value < 0 && operation->after->number(coord::delta) < 0 && about % 2 == 0) {
    stage_.broken("F29", "the counter falls below its floor, to " + std::to_string(value), about);
  }
}

/// What met a conflict when it was sent: the network sends it again, and now it is allowed. Nobody hears of that, and
/// no caller can know of it.
void Counters::repeated_by_the_network(const Row& operation, std::int32_t about) {
  if (about < 0) return;
  for (auto& [number, history] : histories_) {
    if (subject(Kind::counter, number) != about) continue;
    const std::string_view key = operation.key;
    history.push_back({.op = std::string(key.substr(key.rfind('#') + 1)),
                       .delta = operation.number(coord::delta),
                       .invoked = stage_.world.now()});
  }
}

void Counters::judge() {
  for (const auto& [number, history] : histories_) {
    if (const Verdict verdict = check_counter(history); verdict.bad()) {
      stage_.broken("history", verdict.words, subject(Kind::counter, number));
    }
  }
}

}  // namespace holdfast::sim::coordinated
