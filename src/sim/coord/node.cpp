#include "sim/coord/node.hpp"

#include <string>
#include <utility>

namespace holdfast::sim::coordinated {

using namespace std::chrono_literals;

Node::Node(Stage& stage, std::size_t machine, std::uint64_t run)
    : stage_(stage),
      machine_(machine),
      number_(static_cast<std::int16_t>(stage.owners.size())),
      random_(seed_of(stage.world.plan.seed, "node", run)),
      network_(stage.world, random_),
      clock_(draw_clock(stage.world, random_)),
      loop_(stage.world.timeline, clock_, random_.next()) {
  World& world = stage_.world;
  if (world.plan.on(Fault::wall_step) && !world.calm) {
    const Duration most = world.plan.wall_error_most();
    set_wall_error(random_.between(-most, most), (random_.unit() - 0.5) * 1e-4);
  }
  SimStore::Hooks hooks;
  hooks.judge = [this](const store::Request& request) { return network_.judge(request); };
  hooks.reachable = [&world] { return !world.outage; };
  store_ =
      std::make_unique<SimStore>(stage_.table, loop_, world.loop, number_, std::move(hooks), world.plan.change_feed);
  coordinator_ = std::make_unique<coord::Coordinator>("n" + std::to_string(number_), *store_, loop_);
  stage_.owners.push_back(coordinator_->owner().value);
  world.note(Happening::Kind::process, number_, -1, 1);
}

Node::~Node() {
  stage_.world.note(Happening::Kind::process, number_, -1, busy_ == 0 ? 3 : 4);
  extra.reset();
  coordinator_.reset();
  store_.reset();
  loop_.clear();
}

void Node::pause() {
  loop_.pause();
}

void Node::resume() {
  if (loop_.paused()) loop_.resume(random_.below(2) == 0);
}

void Node::set_wall_error(Duration error, double drift) {
  const World& world = stage_.world;
  clock_.set_wall_error(world.now(), error, drift, world.plan.wall_error_most());
}

void Node::check_bounds() {
  constexpr std::size_t requests_most = 32;
  if (store_->pending() > requests_most) {
    stage_.broken("S10",
                  "p" + std::to_string(number_) + " has " + std::to_string(store_->pending()) + " requests under way",
                  -1);
  }
  constexpr std::size_t tasks_most = 200;
  if (!loop_.paused() && loop_.waiting() > tasks_most) {
    stage_.broken(
        "S10",
        "p" + std::to_string(number_) + " has " + std::to_string(loop_.waiting()) + " timers and tasks waiting", -1);
  }
}

void Node::end() {
  if (--busy_ > 0 || !idle) return;
  loop_.post([this] {
    if (busy_ == 0 && idle) idle();
  });
}

}  // namespace holdfast::sim::coordinated
