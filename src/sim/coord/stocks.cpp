#include "sim/coord/stocks.hpp"

#include <algorithm>
#include <utility>

#include "core/coord/counter.hpp"
#include "core/coord/names.hpp"

namespace holdfast::sim::coordinated {
namespace {

using Told = StockCall::Told;

std::int32_t about(const std::string& id) {
  const bool is_ours =
      id.size() > 1 && id.front() == 'r' && id.find_first_not_of("0123456789", 1) == std::string::npos;
  return is_ours ? subject(Kind::reservation, std::stoul(id.substr(1))) : -1;
}

StockCall::Kind kind_of(Reservation::State into) {
  switch (into) {
    case Reservation::State::held:
      break;
    case Reservation::State::confirmed:
      return StockCall::Kind::confirm;
    case Reservation::State::cancelled:
      return StockCall::Kind::cancel;
    case Reservation::State::expired:
      return StockCall::Kind::expire;
  }
  return StockCall::Kind::reserve;
}

}  // namespace

struct Stocks::Call {
  Node& node;
  std::string id{};
  std::int32_t about = -1;
  Basket basket{};
  Instant since{};
  std::size_t in_history = 0;
};

StockCall& Stocks::note(const Call& call) {
  return history_[call.in_history];
}

Duration Stocks::patience(Node& node) const {
  const Duration lease = stage_.terms().lease;
  return node.random().between(lease / 4, 2 * lease);
}

void Stocks::act(Node& node) {
  const std::uint64_t drawn = stage_.at_the_end ? 9 : node.random().below(10);
  if (drawn < 2 || made_ == 0) return deliver(node);
  if (drawn < 6) return reserve(node);
  if (drawn < 9 && !recent_.empty()) return end(node, recent_[node.random().below(recent_.size())]);
  return_expired(node);
}

void Stocks::deliver(Node& node) {
  const auto call = std::make_shared<Call>(Call{.node = node});
  AddOptions options;
  options.to = AddOptions::To::stock;
  options.key = sku(node.random().below(count_));
  options.delta = 1 + static_cast<std::int64_t>(node.random().below(6));
  options.op_id = "g" + std::to_string(made_++);
  call->id = options.op_id;
  call->about = subject(Kind::stock, std::stoul(options.key.substr(1)));
  call->in_history = history_.size();
  history_.push_back({.kind = StockCall::Kind::add,
                      .id = call->id,
                      .items = {{options.key, options.delta}},
                      .invoked = stage_.world.now()});
  node.begin();
  stage_.calls(node.number(), call->about, Verb::add);
  auto add = std::make_unique<Add>(std::move(options), node.own_now() + patience(node), node.loop().random());
  node.coordinator().run(std::move(add), [this, call](const Ended<Added>& ended) {
    stage_.hears(call->node.number(), call->about, Verb::add, how(ended), ended ? ended->value : 0);
    if (ended) note(*call).returned = stage_.world.now();
    if (!ended && ended.error().kind != Failure::Kind::unknown) note(*call).never = true;
    call->node.end();
  });
}

void Stocks::reserve(Node& node) {
  const auto call = std::make_shared<Call>(Call{.node = node});
  call->id = "r" + std::to_string(made_++);
  call->about = about(call->id);
  const std::size_t articles = 1 + node.random().below(count_);
  for (std::size_t i = 0; i < articles; ++i) {
    call->basket[sku(node.random().below(count_))] = 1 + static_cast<std::int64_t>(node.random().below(3));
  }
  call->since = stage_.world.now();
  call->in_history = history_.size();
  history_.push_back({.kind = StockCall::Kind::reserve,
                      .id = call->id,
                      .items = {call->basket.begin(), call->basket.end()},
                      .invoked = call->since});
  const Duration lease = stage_.terms().lease;
  ReserveOptions options;
  options.id = call->id;
  options.basket = call->basket;
  options.ttl = node.random().between(lease / 4, 3 * lease);
  node.begin();
  stage_.calls(node.number(), call->about, Verb::reserve);
  node.coordinator().reserve(std::move(options), stage_.terms().skew, patience(node),
                             [this, call](const Ended<Reservation>& ended) { reserved(call, ended); });
}

void Stocks::reserved(const std::shared_ptr<Call>& call, const Ended<Reservation>& ended) {
  stage_.hears(call->node.number(), call->about, Verb::reserve, how(ended));
  const bool is_there = known_.contains(call->id);
  if (ended) {
    note(*call).returned = stage_.world.now();
    if (!is_there) stage_.broken("S5", "its caller is told that goods are set aside, and they are not", call->about);
    recent_.push_back(call->id);
    if (recent_.size() > 8) recent_.erase(recent_.begin());
    const std::uint64_t drawn = call->node.random().below(4);
    if (drawn < 3) {
      const Duration pause = call->node.random().between(Duration::zero(), stage_.terms().lease);
      call->node.loop().call_after(
          pause, [this, call, drawn] { end(call, drawn < 2 ? State::confirmed : State::cancelled); });
      return;
    }
  } else if (ended.error().kind == Failure::Kind::refused) {
    note(*call).returned = stage_.world.now();
    note(*call).told = Told::refused;
    const bool too_few = std::ranges::any_of(call->basket, [&](const auto& item) {
      return available_[item.first].least_since(call->since) < item.second;
    });
    if (!too_few) stage_.broken("F29", "it is refused although all of it was there", call->about);
    stage_.world.marks.hit(Mark::reservation_refused);
  } else if (ended.error().kind != Failure::Kind::unknown) {
    note(*call).never = true;
    if (is_there) {
      stage_.broken("S5", "its caller is told that surely nothing happened, and goods are set aside", call->about);
    }
  }
  call->node.end();
}

/// Anybody may end a reservation: two of them at once, in two ways.
void Stocks::end(Node& node, const std::string& id) {
  const auto call = std::make_shared<Call>(Call{.node = node, .id = id});
  call->about = about(id);
  node.begin();
  end(call, node.random().below(2) == 0 ? State::confirmed : State::cancelled);
}

void Stocks::end(const std::shared_ptr<Call>& call, State into) {
  call->since = stage_.world.now();
  call->in_history = history_.size();
  history_.push_back({.kind = kind_of(into), .id = call->id, .items = {}, .invoked = call->since});
  stage_.calls(call->node.number(), call->about, into == State::confirmed ? Verb::confirm : Verb::cancel);
  call->node.coordinator().end_reservation(
      call->id, into, stage_.terms().skew, patience(call->node),
      [this, call, into](const Ended<Reservation>& ended) { this->ended(call, into, ended); });
}

void Stocks::ended(const std::shared_ptr<Call>& call, State into, const Ended<Reservation>& ended) {
  stage_.hears(call->node.number(), call->about, into == State::confirmed ? Verb::confirm : Verb::cancel, how(ended));
  const Reservation& there = known_[call->id];
  if (ended) {
    note(*call).returned = stage_.world.now();
    if (there.state != into) {
      stage_.broken("S5",
                    "its caller is told that it is " + std::string(to_string(into)) + ", but it is " +
                        std::string(to_string(there.state)),
                    call->about);
    }
    if (ended->was_repeat) stage_.world.marks.hit(Mark::reservation_ended_twice);
  } else if (ended.error().kind == Failure::Kind::refused) {
    note(*call).returned = stage_.world.now();
    const bool is_over = call->node.loop().wall() >= there.expires_at;
    note(*call).told = is_over ? Told::too_late : Told::refused;
    if (there.state == into || (there.state == State::held && !is_over)) {
      stage_.broken("F29", "its end is refused although it is " + std::string(to_string(there.state)), call->about);
    }
    if (there.state == State::expired) stage_.world.marks.hit(Mark::confirmed_too_late);
  } else if (ended.error().kind != Failure::Kind::unknown) {
    note(*call).never = true;
  }
  call->node.end();
}

void Stocks::return_expired(Node& node) {
  node.begin();
  stage_.calls(node.number(), -1, Verb::give_back_expired);
  auto returning =
      std::make_unique<ReturnExpired>(stage_.terms().skew, 25, node.own_now() + patience(node), node.loop().random());
  node.coordinator().run(std::move(returning), [this, &node](const Ended<std::size_t>& ended) {
    stage_.hears(node.number(), -1, Verb::give_back_expired, how(ended),
                 ended ? static_cast<std::int64_t>(*ended) : 0);
    node.end();
  });
}

void Stocks::wrote(const Write& write) {
  std::set<std::string> touched;
  for (const Write::Left& left : write.rows) {
    const std::string& key = left.after->key;
    if (key.starts_with(coord::stock_prefix)) {
      const std::string sku = key.substr(coord::stock_prefix.size());
      available_[sku].set(stage_.world.now(), left.after->number(coord::available));
      touched.insert(sku);
      const Write::Left* const operation = write.find(coord::operation_prefix);
      if (operation != nullptr) {
        delivered_[sku] += operation->after->number(coord::delta);
        if (operation->before != nullptr) stage_.broken("F29", "goods come in twice", -1);
      }
    } else if (key.starts_with(coord::reservation_prefix)) {
      reservation_left(left, write.origin);
      const auto found = known_.find(key.substr(coord::reservation_prefix.size()));
      if (found == known_.end()) continue;  // precluded
      for (const auto& [sku, count] : found->second.basket) touched.insert(sku);
    }
  }
  for (const std::string& sku : touched) look_at_goods(sku);
}

void Stocks::reservation_left(const Write::Left& left, const Origin& origin) {
  const std::optional<Reservation> is = reservation_in(*left.after);
  if (!is) return;  // only remembered, so that it never happens (Preclude)
  const std::int32_t subject = about(is->id);
  const std::optional<Reservation> was = left.before == nullptr ? std::nullopt : reservation_in(*left.before);
  stage_.world.note(Happening::Kind::left, origin.process, subject, 0, 0, static_cast<std::int64_t>(is->state));
  const auto weighs = [](State state) { return state == State::held || state == State::confirmed; };
  if (was && weighs(was->state)) {
    for (const auto& [sku, count] : was->basket) set_aside_[sku] -= count;
  }
  if (weighs(is->state)) {
    for (const auto& [sku, count] : is->basket) set_aside_[sku] += count;
  }
  known_[is->id] = *is;
  if (was && was->state != State::held) {
    stage_.broken("F29", "it had ended, " + std::string(to_string(was->state)) + ", and ends again", subject);
  }
  if (was && is->state == State::expired) {
    // It is known to the history from here: nobody is told of it by name.
    if (subject >= 0) {
      history_.push_back({.kind = StockCall::Kind::expire,
                          .id = is->id,
                          .items = {},
                          .invoked = stage_.world.now(),
                          .returned = stage_.world.now()});
    }
    stage_.world.marks.hit(Mark::reservation_returned);
    const Duration least = stage_.terms().skew - stage_.wall_error_most();
    if (stage_.clocks_keep_promise() &&
        stage_.true_wall() < was->expires_at + std::chrono::floor<std::chrono::milliseconds>(least)) {
      stage_.broken("S1", "it is returned before its time and the skew had passed", subject);
    }
  }
  if (is->state == State::held && !was && origin.again && subject >= 0) {
    // What had been refused is set aside after all, since the network sent it again: nobody knows, and it expires.
    history_.push_back({.kind = StockCall::Kind::reserve,
                        .id = is->id,
                        .items = {is->basket.begin(), is->basket.end()},
                        .invoked = stage_.world.now()});
  }
}

/// F29: what came in is there, set aside or sold.
void Stocks::look_at_goods(const std::string& sku) {
  const std::int32_t about = subject(Kind::stock, std::stoul(sku.substr(1)));
  const std::int64_t available = available_[sku].value();
  stage_.world.note(Happening::Kind::left, -1, about, 0, 0, available);
  if (available < 0) stage_.broken("F29", "more is set aside than there is: " + std::to_string(available), about);
  const std::int64_t sum = available + set_aside_[sku];
  if (sum == delivered_[sku]) return;
  stage_.broken("F29",
                "of " + std::to_string(delivered_[sku]) + " that came in, " + std::to_string(available) +
                    " are there and " + std::to_string(set_aside_[sku]) + " are set aside or sold",
                about);
}

std::optional<Reservation::State> Stocks::state_of(const std::string& id) const {
  const auto found = known_.find(id);
  return found == known_.end() ? std::nullopt : std::optional(found->second.state);
}

std::string Stocks::left() {
  const WallTime now = stage_.true_wall();
  for (const auto& [id, reservation] : known_) {
    const WallTime due = reservation.expires_at + std::chrono::ceil<std::chrono::milliseconds>(stage_.terms().skew);
    if (reservation.state == State::held && now >= due) return "the reservation " + id + " has not come back";
  }
  return {};
}

void Stocks::judge() {
  if (const Verdict verdict = check_stock(history_); verdict.bad()) {
    stage_.broken("history", verdict.words, -1);
  }
}

}  // namespace holdfast::sim::coordinated
