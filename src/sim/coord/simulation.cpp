#include "sim/coord/simulation.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "sim/coord/counters.hpp"
#include "sim/coord/decisions.hpp"
#include "sim/coord/journals.hpp"
#include "sim/coord/onces.hpp"
#include "sim/coord/queues.hpp"
#include "sim/coord/stocks.hpp"
#include "sim/coord/tasks.hpp"
#include "sim/coord/troupe.hpp"

namespace holdfast::sim::coordinated {
namespace {

using namespace std::chrono_literals;

class Simulation {
 public:
  Simulation(const Plan& plan, std::size_t tail_most)
      : world_(plan, /*keeps_trace=*/tail_most > 0),
        stage_(world_),
        troupe_(stage_, scenes_),
        index_random_(seed_of(plan.seed, "index")),
        tail_most_(tail_most) {
    const std::size_t count = plan.connections;
    make<Tasks>(stage_, count);
    make<Onces>(stage_, count);
    Decisions& decisions = make<Decisions>(stage_, count);
    Counters& counters = make<Counters>(stage_, count);
    Stocks& stocks = make<Stocks>(stage_, count + 1);
    Queues& queues = make<Queues>(stage_, count);
    make<Journals>(stage_, Journals::Others{counters, decisions, stocks, queues}, std::size_t{2});
    stage_.table->watch_writes([this](const std::vector<Row>& rows, const Origin& origin) { wrote(rows, origin); });
    if (plan.on(Fault::stale_index)) stage_.table->let_index_lag([this] { return world_.index_lag(index_random_); });
  }

  Result run() {
    troupe_.start();
    look();
    if (run_until(Timeline::start + world_.plan.duration)) finish();
    return result();
  }

 private:
  template <class S, class... Arguments>
  S& make(Arguments&&... arguments) {
    auto scene = std::make_unique<S>(std::forward<Arguments>(arguments)...);
    S& made = *scene;
    scenes_.push_back(std::move(scene));
    return made;
  }

  void wrote(const std::vector<Row>& rows, const Origin& origin) {
    if (origin.again) world_.marks.hit(Mark::duplicate_applied);
    std::vector<Row> before(rows.size());
    Write write;
    write.origin = origin;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      Row& there = stage_.rows[rows[i].key];
      const bool is_new = there.key.empty();
      before[i] = std::exchange(there, rows[i]);
      write.rows.push_back({is_new ? nullptr : &before[i], &there});
    }
    for (const auto& scene : scenes_) scene->wrote(write);
  }

  void look() {
    for (const auto& scene : scenes_) scene->look();
    troupe_.check_bounds();
    world_.loop.call_after(world_.plan.terms.lease / 16, [this] { look(); });
  }

  /// False where a rule was broken.
  bool run_until(Instant end) {
    while (!stage_.violation && world_.timeline.step(end)) {
    }
    return !stage_.violation.has_value();
  }

  /// Liveness: without faults everything comes to its end within a stated time, one primitive after the other, and
  /// nobody is told anything that the history of all calls cannot explain.
  void finish() {
    troupe_.make_well();
    const Instant from = world_.now();
    // Not before the last request that is late by three leases has arrived, and the expiries that a wrong clock
    // wrote.
    const Duration lease = world_.plan.terms.lease;
    if (!run_until(from + 6 * lease + 2 * world_.plan.wall_error_most() + world_.plan.terms.skew)) return;
    stage_.at_the_end = true;
    for (const auto& scene : scenes_) {
      troupe_.finish(*scene);
      const Instant end = world_.now() + 60 * lease + 5min;
      do {
        if (!run_until(world_.now() + lease)) return;
      } while (!scene->left().empty() && world_.now() < end);
      if (const std::string left = scene->left(); !left.empty()) return stage_.broken("liveness", left, -1);
    }
    well_after_ = world_.now() - from;
    // Whoever still is at it comes to an end.
    if (!run_until(world_.now() + 4 * lease)) return;
    for (const auto& scene : scenes_) scene->judge();
  }

  Result result() {
    Result result = result_of(world_, stage_.violation, well_after_, tail_most_);
    troupe_.end();
    result.marks = world_.marks;
    return result;
  }

  World world_;
  Stage stage_;
  Troupe::Scenes scenes_;
  Troupe troupe_;
  Random index_random_;
  const std::size_t tail_most_;
  Duration well_after_{};
};

}  // namespace

Result simulate(const Plan& plan, std::size_t tail_most) {
  return Simulation(plan, tail_most).run();
}

}  // namespace holdfast::sim::coordinated
