#include "sim/coord/troupe.hpp"

#include <array>
#include <utility>

namespace holdfast::sim::coordinated {
namespace {

using namespace std::chrono_literals;

constexpr std::array timed{Fault::outage, Fault::partition, Fault::rejection,     Fault::crash,
                           Fault::pause,  Fault::wall_step, Fault::throttle_burst};

}  // namespace

Troupe::Troupe(Stage& stage, const Scenes& scenes)
    : stage_(stage),
      world_(stage.world),
      scenes_(scenes),
      random_(seed_of(world_.plan.seed, "troupe")),
      weather_(world_, random_),
      places_(world_.plan.processes) {}

void Troupe::start() {
  for (std::size_t place = 0; place < places_.size(); ++place)
    come_again(place, random_.between(0ms, world_.plan.terms.lease));
  for (const Fault fault : timed) {
    if (world_.plan.on(fault)) next(fault);
  }
}

// ---- Who comes and goes ----

void Troupe::come_again(std::size_t place, Duration time) {
  const std::uint64_t run = places_[place].run;
  world_.loop.call_after(time, [this, place, run] {
    if (places_[place].run == run && !places_[place].node) arrive(place);
  });
}

void Troupe::arrive(std::size_t place) {
  Place& at = places_[place];
  at.run = ++last_run_;
  at.more = 1 + random_.below(6);
  at.node = std::make_unique<Node>(stage_, place % 2, at.run);
  at.node->idle = [this, place] { act(place); };
  at.node->loop().post([this, place] { act(place); });
}

void Troupe::act(std::size_t place) {
  Place& at = places_[place];
  if (at.more-- == 0) return leave(place);
  Node& node = *at.node;
  // Some do several things at once.
  const std::size_t at_once = node.random().below(4) == 0 ? 3 : 1;
  for (std::size_t i = 0; i < at_once; ++i) {
    Scene& scene = finishing_ != nullptr ? *finishing_ : *scenes_[node.random().below(scenes_.size())];
    scene.act(node);
  }
  if (node.busy() > 0) return;
  node.loop().call_after(node.random().between(1ms, world_.plan.terms.lease / 10), [this, place] {
    if (places_[place].node->busy() == 0) act(place);
  });
}

/// Not in the middle of its own task.
void Troupe::leave(std::size_t place) {
  const std::uint64_t run = places_[place].run;
  world_.loop.call_after(0ms, [this, place, run] {
    Place& at = places_[place];
    if (at.run != run || !at.node) return;
    for (const auto& scene : scenes_) scene->gone(*at.node);
    at.node.reset();
    come_again(place, random_.between(0ms, world_.plan.terms.lease / 2));
  });
}

void Troupe::end() {
  for (Place& at : places_) {
    if (!at.node) continue;
    for (const auto& scene : scenes_) scene->gone(*at.node);
    at.node.reset();
  }
}

void Troupe::make_well() {
  world_.calm = true;
  world_.outage = false;
  world_.throttled_share = 0;
  for (Place& at : places_) {
    if (!at.node) continue;
    at.node->resume();
    at.node->partition(false);
    at.node->reject(false);
    at.node->set_wall_error(Duration::zero(), 0);
  }
}

void Troupe::finish(Scene& scene) {
  finishing_ = &scene;
}

void Troupe::check_bounds() {
  for (const Place& at : places_) {
    if (at.node) at.node->check_bounds();
  }
}

// ---- What is done to them ----

void Troupe::next(Fault fault) {
  weather_.after(weather_.until_next(fault), [this, fault] {
    strike(fault);
    next(fault);
  });
}

void Troupe::strike(Fault fault) {
  if (weather_.strike(fault)) return;
  std::vector<std::size_t> there;
  for (std::size_t place = 0; place < places_.size(); ++place) {
    if (places_[place].node) there.push_back(place);
  }
  if (there.empty()) return;
  world_.inject(fault);
  strike(fault, there[random_.below(there.size())]);
}

void Troupe::strike(Fault fault, std::size_t place) {
  Node& node = *places_[place].node;
  world_.note(Happening::Kind::fault, node.number(), -1, static_cast<std::int64_t>(fault));
  const std::uint64_t run = places_[place].run;
  const auto undo = [this, place, run](void (*what)(Node&)) {
    return [this, place, run, what] {
      if (places_[place].run == run && places_[place].node) what(*places_[place].node);
    };
  };
  switch (fault) {
    case Fault::crash:
      return leave(place);
    case Fault::pause:
      node.pause();
      return weather_.after(weather_.some_leases(0.05, 4), undo([](Node& it) { it.resume(); }));
    case Fault::partition:
      node.partition(true);
      return weather_.after(weather_.some_leases(0.1, 4), undo([](Node& it) { it.partition(false); }));
    case Fault::rejection:
      node.reject(true);
      return weather_.after(weather_.some_leases(0.1, 3), undo([](Node& it) { it.reject(false); }));
    case Fault::wall_step:
      return step_clock(node);
    default:
      return;
  }
}

void Troupe::step_clock(Node& node) {
  const Duration most = world_.plan.wall_error_most();
  node.set_wall_error(random_.between(-most, most), (random_.unit() - 0.5) * 1e-3);
}

}  // namespace holdfast::sim::coordinated
