#include "sim/history/calls.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "sim/history/operation.hpp"

namespace holdfast::sim {
namespace {

constexpr std::size_t configurations_most = 20'000;  // each is a copy of the state

/// One thing that happens at one instant. `returned` nothing: at any time from `invoked` on, or never.
template <class Event>
struct Step {
  Event event;
  Instant invoked{};
  std::optional<Instant> returned{};
  std::string words;
};

/// Wing and Gong's search with memory, as in linearizability.cpp, for models with few states. `Model::apply(event,
/// state, is_open)` gives the state afterwards, or nothing where what was told (of what is open: that it happened)
/// cannot be.
template <class Event, class State, class Model>
class Search {
 public:
  Search(std::vector<Step<Event>> steps, Model model)
      : steps_(std::move(steps)), model_(std::move(model)), definite_(count_definite(steps_)) {
    std::stable_sort(steps_.begin(), steps_.end(), [](const auto& left, const auto& right) {
      return std::tuple(!left.returned, left.invoked) < std::tuple(!right.returned, right.invoked);
    });
  }

  Verdict run(const std::string& about) {
    std::vector<Configuration> pending{{std::vector<bool>(steps_.size()), 0, State{}}};
    std::set<std::pair<std::vector<bool>, State>> met;
    std::size_t furthest = 0;
    Configuration best = pending.back();
    while (!pending.empty()) {
      const Configuration at = std::move(pending.back());
      pending.pop_back();
      if (at.definite_done == definite_) return Verdict::pass();
      if (!met.emplace(at.done, at.state).second) continue;
      if (met.size() > configurations_most) return Verdict::give_up("gave up on " + about);
      if (at.definite_done > furthest) {
        furthest = at.definite_done;
        best = at;
      }
      expand(at, pending);
    }
    return Verdict::fault(words(about, best));
  }

 private:
  static std::size_t count_definite(const std::vector<Step<Event>>& steps) {
    return static_cast<std::size_t>(
        std::count_if(steps.begin(), steps.end(), [](const auto& step) { return step.returned.has_value(); }));
  }

  struct Configuration {
    std::vector<bool> done;
    std::size_t definite_done = 0;
    State state;
  };

  [[nodiscard]] Instant horizon(const Configuration& at) const {
    Instant earliest = Instant::max();
    for (std::size_t i = 0; i < definite_ && steps_[i].invoked <= earliest; ++i) {
      if (!at.done[i]) earliest = std::min(earliest, *steps_[i].returned);
    }
    return earliest;
  }
  /// What is definite comes last, and so is tried first.
  void expand(const Configuration& at, std::vector<Configuration>& pending) const {
    const Instant end = horizon(at);
    for (std::size_t i = steps_.size(); i-- > 0;) {
      if (at.done[i] || steps_[i].invoked > end) continue;
      const bool is_open = i >= definite_;
      std::optional<State> after = model_.apply(steps_[i].event, at.state, is_open);
      if (!after || (is_open && *after == at.state)) continue;
      Configuration next{at.done, at.definite_done + (is_open ? 0 : 1), *std::move(after)};
      next.done[i] = true;
      pending.push_back(std::move(next));
    }
  }
  [[nodiscard]] std::string words(const std::string& about, const Configuration& at) const {
    std::string text = "no order of the calls explains what was told of " + about + ": " +
                       std::to_string(at.definite_done) + " of " + std::to_string(definite_) +
                       " were explained, then none of these could come next";
    const Instant end = horizon(at);
    for (std::size_t i = 0; i < definite_; ++i) {
      if (at.done[i] || steps_[i].invoked > end) continue;
      text += "\n  - " + steps_[i].words + ", from " + in_words(steps_[i].invoked) + " to " +
              in_words(*steps_[i].returned);
    }
    return text;
  }

  std::vector<Step<Event>> steps_;
  Model model_;
  std::size_t definite_ = 0;
};

struct DecideModel {
  [[nodiscard]] std::optional<std::string> apply(const DecideCall& call, const std::string& decided,
                                                 bool is_open) const {
    const std::string& after = decided.empty() ? call.proposal : decided;
    if (!is_open && call.value != after) return std::nullopt;
    return after;
  }
};

/// The operation itself, or the read of the value that is told after it.
struct AddEvent {
  const AddCall* call = nullptr;
  bool reads = false;
};
struct Counter {
  std::int64_t value = 0;
  std::set<std::string> done;
  auto operator<=>(const Counter&) const = default;
};
struct AddModel {
  [[nodiscard]] std::optional<Counter> apply(const AddEvent& event, const Counter& at, bool is_open) const {
    const AddCall& call = *event.call;
    const bool is_done = at.done.contains(call.op);
    if (event.reads) return is_done && call.value == at.value ? std::optional(at) : std::nullopt;
    const bool too_low = call.floor && call.delta < 0 && at.value + call.delta < *call.floor;
    if (!is_open && call.told == AddCall::Told::refused) {
      return !is_done && too_low ? std::optional(at) : std::nullopt;
    }
    if (is_done) return at;
    if (too_low) return std::nullopt;
    Counter after = at;
    after.value += call.delta;
    after.done.insert(call.op);
    return after;
  }
};

struct Shop {
  using Kind = StockCall::Kind;
  struct Reserved {
    Kind state = Kind::reserve;
    std::map<std::string, std::int64_t> items;
    auto operator<=>(const Reserved&) const = default;
  };
  std::map<std::string, std::int64_t> available;
  std::set<std::string> added;
  std::map<std::string, Reserved> reservations;
  auto operator<=>(const Shop&) const = default;
};
struct StockModel {
  using Kind = StockCall::Kind;
  using Told = StockCall::Told;

  [[nodiscard]] std::optional<Shop> apply(const StockCall& call, const Shop& at, bool is_open) const {
    const bool refuses = !is_open && call.told != Told::done;
    switch (call.kind) {
      case Kind::add:
        return add(call, at);
      case Kind::reserve:
        return reserve(call, at, refuses);
      case Kind::confirm:
      case Kind::cancel:
      case Kind::expire:
        return end(call, at, refuses);
    }
    return std::nullopt;
  }

 private:
  [[nodiscard]] static std::optional<Shop> add(const StockCall& call, const Shop& at) {
    if (at.added.contains(call.id)) return at;
    Shop after = at;
    after.added.insert(call.id);
    for (const auto& [sku, count] : call.items) after.available[sku] += count;
    return after;
  }
  [[nodiscard]] static std::optional<Shop> reserve(const StockCall& call, const Shop& at, bool refuses) {
    if (at.reservations.contains(call.id)) return refuses ? std::nullopt : std::optional(at);
    const bool enough = std::ranges::all_of(call.items, [&](const auto& item) {
      const auto found = at.available.find(item.first);
      return found != at.available.end() && found->second >= item.second;
    });
    if (refuses) return enough ? std::nullopt : std::optional(at);
    if (!enough) return std::nullopt;
    Shop after = at;
    for (const auto& [sku, count] : call.items) after.available[sku] -= count;
    after.reservations[call.id] = {Kind::reserve, call.items};
    return after;
  }
  [[nodiscard]] static std::optional<Shop> end(const StockCall& call, const Shop& at, bool refuses) {
    const auto found = at.reservations.find(call.id);
    const bool is_held = found != at.reservations.end() && found->second.state == Kind::reserve;
    const bool is_so = found != at.reservations.end() && found->second.state == call.kind;
    if (refuses) {
      const bool may_be = !is_so && (!is_held || call.told == Told::too_late);
      return may_be ? std::optional(at) : std::nullopt;
    }
    if (is_so) return at;
    if (!is_held) return std::nullopt;
    Shop after = at;
    after.reservations[call.id].state = call.kind;
    if (call.kind == Kind::confirm) return after;
    for (const auto& [sku, count] : found->second.items) after.available[sku] += count;
    return after;
  }
};

std::string in_words(const StockCall& call) {
  static constexpr std::array<std::string_view, 5> kinds{"add", "reserve", "confirm", "cancel", "expire"};
  std::string words = std::string(kinds.at(static_cast<std::size_t>(call.kind))) + " " + call.id;
  for (const auto& [sku, count] : call.items) words += " " + sku + "=" + std::to_string(count);
  return words + (call.told == StockCall::Told::done ? ": done" : ": refused");
}

}  // namespace

Verdict check_decide(const DecideCalls& calls) {
  std::vector<Step<DecideCall>> steps;
  for (const DecideCall& call : calls) {
    if (call.never) continue;
    steps.push_back({call, call.invoked, call.returned, "'" + call.proposal + "' is told '" + call.value + "'"});
  }
  return Search<DecideCall, std::string, DecideModel>(std::move(steps), {}).run("a decision");
}

Verdict check_counter(const AddCalls& calls) {
  std::vector<Step<AddEvent>> steps;
  for (const AddCall& call : calls) {
    if (call.never) continue;
    const bool refused = call.returned && call.told == AddCall::Told::refused;
    const std::string words = call.op + " adds " + std::to_string(call.delta) +
                              (refused ? ": refused" : ", is told " + std::to_string(call.value));
    steps.push_back({{&call, false}, call.invoked, call.returned, words});
    if (call.returned && !refused)
      steps.push_back({{&call, true}, call.invoked, call.returned, words + " (the value)"});
  }
  return Search<AddEvent, Counter, AddModel>(std::move(steps), {}).run("a counter");
}

Verdict check_stock(const StockCalls& calls) {
  std::vector<Step<StockCall>> steps;
  for (const StockCall& call : calls) {
    if (!call.never) steps.push_back({call, call.invoked, call.returned, in_words(call)});
  }
  return Search<StockCall, Shop, StockModel>(std::move(steps), {}).run("a stock");
}

}  // namespace holdfast::sim
