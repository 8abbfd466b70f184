#include "sim/people.hpp"

#include <utility>

namespace holdfast::sim {
namespace {

using Compare = Condition::Compare;

Condition in_state(std::string_view name) {
  return Condition::equals(attribute::desired_state, Value(name));
}

}  // namespace

People::People(const Surroundings& around)
    : around_(around),
      world_(around.world),
      random_(seed_of(world_.plan.seed, "people")),
      editions_(world_.plan.connections) {}

std::int32_t People::any() {
  return static_cast<std::int32_t>(random_.below(world_.plan.connections));
}

void People::write(std::int32_t connection, Update update, std::int64_t what) {
  update.key = connection_key(connection);
  world_.note(Happening::Kind::people, -1, connection, what);
  const Now now{world_.now(), world_.loop.wall()};
  (void)around_.table->execute(store::Request(std::move(update)), {-1, now.instant, now.instant, false}, now);
}

void People::add_all() {
  for (std::size_t i = 0; i < world_.plan.connections; ++i) add(static_cast<std::int32_t>(i));
}

void People::add(std::int32_t connection) {
  Upstream& upstream = around_.upstreams[static_cast<std::size_t>(connection)];
  const std::int64_t now = world_.loop.wall().time_since_epoch().count();
  const std::int64_t allowance =
      5000 + std::chrono::duration_cast<std::chrono::milliseconds>(world_.plan.wall_error_most() * 2).count();
  Update update;
  // One that was removed is taken back only when its last holder is surely gone.
  update.condition =
      Condition::row_missing() ||
      (in_state(state::removed) && (Condition::not_exists(attribute::expires_at) ||
                                    Condition::is(attribute::expires_at, Compare::less, now - allowance)));
  const int edition = editions_[static_cast<std::size_t>(connection)];
  update.changes = {Change::set(attribute::desired_state, state::started), Change::set(attribute::expires_at, 0),
                    Change::set_if_absent(attribute::epoch, 0), Change::set(attribute::url, upstream.url(edition)),
                    Change::set(attribute::options, upstream.options(edition))};
  for (const auto name : {attribute::last_seq, attribute::owner, attribute::tombstone_expires_at, attribute::status,
                          attribute::status_reason}) {
    update.changes.push_back(Change::remove(name));
  }
  const bool was_removed = around_.rules.row(connection).state == state::removed;
  write(connection, std::move(update), 4);
  if (was_removed && around_.rules.row(connection).state == state::started) {
    world_.marks.hit(Mark::tombstone_revived);
  }
}

void People::stop_or_start() {
  world_.inject(Fault::stop_start);
  stop_or_start(any());
}

void People::stop_or_start(std::int32_t connection) {
  const bool started = around_.rules.row(connection).state == state::started;
  const std::string_view from = started ? state::started : state::stopped;
  const std::string_view to = started ? state::stopped : state::started;
  Update update;
  update.condition = Condition::row_exists() && in_state(from);
  update.changes = {Change::set(attribute::desired_state, to), Change::set_if_absent(attribute::expires_at, 0)};
  write(connection, std::move(update), started ? 1 : 0);
}

void People::edit() {
  world_.inject(Fault::edit);
  const std::int32_t connection = any();
  Upstream& upstream = around_.upstreams[static_cast<std::size_t>(connection)];
  const int edition = ++editions_[static_cast<std::size_t>(connection)];
  Update update;
  update.condition = in_state(state::started) || in_state(state::stopped);
  update.changes = {Change::set(attribute::url, upstream.url(edition)),
                    Change::set(attribute::options, upstream.options(edition))};
  write(connection, std::move(update), 2);
}

void People::remove_or_add() {
  world_.inject(Fault::remove_add);
  const std::int32_t connection = any();
  if (around_.rules.row(connection).state == state::removed) return add(connection);
  Update update;
  update.condition = Condition::row_exists();
  update.changes = {Change::set(attribute::desired_state, state::removed),
                    Change::set_if_absent(attribute::expires_at, 0), Change::remove(attribute::url),
                    Change::remove(attribute::options), Change::remove(attribute::last_seq)};
  write(connection, std::move(update), 3);
}

/// What nobody should do, and somebody does: the lease itself is edited. Forwards only, or to nobody without a change
/// of the epoch: who holds it then has to notice, and nobody may come to harm by it.
void People::tamper() {
  world_.inject(Fault::tamper);
  const std::int32_t connection = any();
  Update update;
  update.condition = in_state(state::started);
  const std::int64_t later =
      around_.rules.row(connection).expires_at +
      std::chrono::duration_cast<std::chrono::milliseconds>(world_.plan.terms.lease / 2).count();
  if (around_.rules.row(connection).expires_at == 0) return;
  // With the number ahead, the owner meets a conflict that shows its own lease.
  update.changes = {Change::set(attribute::expires_at, later), Change::add(attribute::renewal, 1000)};
  write(connection, std::move(update), 5);
}

}  // namespace holdfast::sim
