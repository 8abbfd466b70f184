#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "sim/coord/node.hpp"
#include "sim/coord/scene.hpp"
#include "sim/weather.hpp"

namespace holdfast::sim::coordinated {

/// The processes that come, do a few things and go, and what is done to them: as many at once as the plan says, each
/// at a machine.
class Troupe {
 public:
  using Scenes = std::vector<std::unique_ptr<Scene>>;
  Troupe(Stage& stage, const Scenes& scenes);

  void start();
  /// Faults end: who is there goes on in peace, clocks are right, the network is good.
  void make_well();
  /// From now on processes come only to bring this scene to its end.
  void finish(Scene& scene);
  void end();
  void check_bounds();

 private:
  struct Place {
    std::unique_ptr<Node> node;
    std::uint64_t run = 0;
    std::size_t more = 0;  // things that it will do
  };
  void arrive(std::size_t place);
  void act(std::size_t place);
  void leave(std::size_t place);
  void come_again(std::size_t place, Duration time);
  void next(Fault fault);
  void strike(Fault fault);
  void strike(Fault fault, std::size_t place);
  void step_clock(Node& node);

  Stage& stage_;
  World& world_;
  const Scenes& scenes_;
  Random random_;
  Weather weather_;
  std::vector<Place> places_;
  std::uint64_t last_run_ = 0;
  Scene* finishing_ = nullptr;
};

}  // namespace holdfast::sim::coordinated
