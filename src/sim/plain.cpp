#include "sim/plain.hpp"

#include <utility>
#include <vector>

namespace holdfast::sim {
namespace {

using namespace std::chrono_literals;
using Compare = Condition::Compare;

constexpr std::size_t holds_at_most = 10;

}  // namespace

PlainWorker::PlainWorker(const Surroundings& around, std::size_t place)
    : around_(around),
      world_(around.world),
      loop_(world_.timeline, clock_, seed_of(world_.plan.seed, "plain", place)),
      name_("plain" + std::to_string(place)) {
  number_ = around_.rules.add_process({.owner = name_, .clock = &clock_, .plain = true});
  SimStore::Hooks hooks;
  hooks.judge = [this](const store::Request&) {
    Fate fate;
    fate.there = fate.back = loop_.random().between(world_.plan.latency / 2, world_.plan.latency * 2);
    return fate;
  };
  hooks.reachable = [&world = world_] { return !world.outage; };
  if (around_.recorder != nullptr) {
    hooks.asked = [this](const store::Request& request) { around_.recorder->asked(name_, request, world_.now()); };
    hooks.answered = [this](const store::Request& request, const store::Answer& answer, bool late) {
      if (!late) around_.recorder->answered(request, answer, world_.now());
    };
  }
  store_ = std::make_unique<SimStore>(around_.table, loop_, world_.loop, number_, std::move(hooks), false);
  loop_.post([this] { turn(); });
}

void PlainWorker::retire() {
  retired_ = true;
}

void PlainWorker::turn() {
  loop_.call_after(world_.plan.terms.lease / 4, [this] { turn(); });
  std::vector<std::int32_t> all;
  for (const auto& [connection, expires_at] : held_) all.push_back(connection);
  for (const std::int32_t connection : all) {
    if (held_[connection] <= now_ms()) {
      held_.erase(connection);  // too late, and it knows
    } else if (retired_ || loop_.random().below(40) == 0) {
      release(connection);
    } else {
      renew(connection);
    }
  }
  if (!retired_ && held_.size() < holds_at_most) look();
}

void PlainWorker::look() {
  QueryDue query{std::string(state::started), loop_.wall(), 5, {}};
  store_->query_due(std::move(query), loop_.instant() + 1s, [this](const PageReply& reply) {
    for (const Row& row : reply.value.rows) claim(row);
  });
}

void PlainWorker::believe(std::int32_t connection, std::int64_t expires_at) {
  held_[connection] = expires_at;
  const auto left = std::chrono::milliseconds(expires_at - now_ms());
  around_.rules.plain_believes(number_, connection, world_.now() + left);
}

void PlainWorker::claim(const Row& row) {
  const std::int32_t connection = connection_of_key(row.key);
  if (connection < 0 || held_.contains(connection)) return;
  const std::int64_t now = now_ms();
  const std::int64_t expires_at =
      now + std::chrono::duration_cast<std::chrono::milliseconds>(world_.plan.terms.lease).count();
  Update update;
  update.key = row.key;
  update.condition = Condition::equals(attribute::desired_state, Value(state::started)) &&
                     (Condition::not_exists(attribute::owner) || Condition::equals(attribute::owner, "") ||
                      Condition::is(attribute::expires_at, Compare::less, now));
  update.changes = {Change::set(attribute::owner, name_), Change::set(attribute::expires_at, expires_at)};
  const bool from_worker = row.text(attribute::owner).starts_with("w");
  store_->update(std::move(update), loop_.instant() + 1s,
                 [this, connection, expires_at, from_worker](const RowReply& reply) {
                   if (!reply.ok()) return;
                   if (from_worker) world_.marks.hit(Mark::taken_by_plain);
                   believe(connection, expires_at);
                 });
}

void PlainWorker::renew(std::int32_t connection) {
  const std::int64_t expires_at =
      now_ms() + std::chrono::duration_cast<std::chrono::milliseconds>(world_.plan.terms.lease).count();
  Update update{connection_key(connection),
                {Change::set(attribute::expires_at, expires_at)},
                Condition::equals(attribute::owner, name_)};
  store_->update(std::move(update), loop_.instant() + 1s, [this, connection, expires_at](const RowReply& reply) {
    if (reply.outcome == Outcome::conflict) {
      held_.erase(connection);
      around_.rules.plain_believes(number_, connection, world_.now());
    }
    if (!reply.ok()) return;
    if (reply.value->text(attribute::desired_state) != state::started) return release(connection);
    believe(connection, expires_at);
  });
}

void PlainWorker::release(std::int32_t connection) {
  held_.erase(connection);
  around_.rules.plain_believes(number_, connection, world_.now());  // it stops first
  Update update{connection_key(connection),
                {Change::set(attribute::expires_at, 0), Change::set(attribute::owner, "")},
                Condition::equals(attribute::owner, name_)};
  store_->update(std::move(update), loop_.instant() + 1s, [](const RowReply&) {});
}

}  // namespace holdfast::sim
