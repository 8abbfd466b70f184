#include "sim/coord/decisions.hpp"

#include <utility>

#include "core/coord/decision.hpp"
#include "core/coord/names.hpp"

namespace holdfast::sim::coordinated {
namespace {

constexpr std::size_t calls_on_one = 5;  // then there is another question

}  // namespace

struct Decisions::Call {
  Node& node;
  std::size_t number = 0;
  std::int32_t about = -1;
  std::string proposal{};
  std::size_t in_history = 0;
};

const Row* Decisions::decided(const std::string& key) const {
  return stage_.row(Decide::row_key(key));
}

void Decisions::act(Node& node) {
  const auto call = std::make_shared<Call>(Call{.node = node});
  call->number = calls_ / (calls_on_one * count_) * count_ + node.random().below(count_);
  call->about = subject(Kind::decision, call->number);
  call->proposal = "proposal " + std::to_string(calls_++);
  DecideCalls& history = histories_[call->number];
  call->in_history = history.size();
  history.push_back({.proposal = call->proposal, .invoked = stage_.world.now()});
  const Duration lease = stage_.terms().lease;
  node.begin();
  stage_.calls(node.number(), call->about, Verb::decide);
  node.coordinator().decide("d" + std::to_string(call->number), call->proposal,
                            node.random().between(lease / 4, 2 * lease), [this, call](const Ended<Decided>& ended) {
                              told(*call, ended);
                              call->node.end();
                            });
}

void Decisions::told(const Call& call, const Ended<Decided>& ended) {
  stage_.hears(call.node.number(), call.about, Verb::decide, how(ended));
  DecideCall& noted = histories_[call.number][call.in_history];
  const Row* const row = decided("d" + std::to_string(call.number));
  const Value* const value = row == nullptr ? nullptr : row->find(coord::value);
  if (!ended) {
    if (stage_.at_the_end)
      stage_.broken("liveness", "it cannot be decided: " + ended.error().error.detail, call.about);
    if (ended.error().kind == Failure::Kind::unknown) return;
    // Surely nothing happened: nor does it later.
    noted.never = true;
    impossible_.insert(call.proposal);
    if (value != nullptr && *value == Value(call.proposal)) {
      stage_.broken("S5", "its caller is told that surely nothing happened, and it is decided", call.about);
    }
    return;
  }
  const std::string* const text = ended->value.as_string();
  noted.returned = stage_.world.now();
  noted.value = text == nullptr ? std::string() : *text;
  if (value == nullptr || !(*value == ended->value)) {
    stage_.broken("S8", "its caller is told '" + noted.value + "', which is not what is decided", call.about);
  }
  if (ended->was_ours != (noted.value == call.proposal)) {
    stage_.broken("S5", "its caller is not told rightly whose proposal won", call.about);
  }
  if (!ended->was_ours) stage_.world.marks.hit(Mark::decision_of_another);
}

void Decisions::wrote(const Write& write) {
  for (const Write::Left& left : write.rows) {
    if (!left.after->key.starts_with(coord::decision_prefix)) continue;
    const std::string name = left.after->key.substr(coord::decision_prefix.size());
    const std::int32_t about = name.starts_with("d") ? subject(Kind::decision, std::stoul(name.substr(1))) : -1;
    const Value* const value = left.after->find(coord::value);
    if (left.before != nullptr) stage_.broken("S8", "what was decided is written over", about);
    if (value != nullptr && value->as_string() != nullptr && impossible_.contains(*value->as_string())) {
      stage_.broken("S5", "what surely had not happened is decided", about);
    }
  }
}

void Decisions::judge() {
  for (const auto& [number, history] : histories_) {
    if (const Verdict verdict = check_decide(history); verdict.bad()) {
      stage_.broken("history", verdict.words, subject(Kind::decision, number));
    }
  }
}

}  // namespace holdfast::sim::coordinated
