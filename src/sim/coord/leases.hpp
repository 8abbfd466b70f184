#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/coord/node.hpp"
#include "sim/coord/scene.hpp"
#include "sim/coord/stage.hpp"

namespace holdfast::sim::coordinated {

/// S1 to S3 of the rows that coordinators lease (tasks, what is run once, groups of a queue): who believes, by their
/// own clocks, and what is written under which epoch.
class Leases {
 public:
  explicit Leases(Stage& stage) : stage_(stage) {}

  void believes(std::int32_t subject, const Node& node, std::shared_ptr<const LeaseGuard> guard);
  /// `skew`: what whoever takes it over waits for.
  void wrote(std::int32_t subject, const Write::Left& left, const Origin& origin, Duration skew);
  void gone(const Node& node);
  /// Who believes now, as far as that may have changed.
  void look(std::int32_t subject);
  void look();

 private:
  struct Belief {
    const Node* node = nullptr;
    std::int16_t process = -1;
    std::shared_ptr<const LeaseGuard> guard;
  };
  [[nodiscard]] static bool holds(const Belief& belief) { return belief.guard->holds(belief.node->own_now()); }
  void claimed(std::int32_t subject, const Row* before, const Row& after, const Origin& origin, Duration skew);
  [[nodiscard]] std::string who(std::int16_t process) const;

  Stage& stage_;
  std::map<std::int32_t, std::vector<Belief>> beliefs_;
};

/// A primitive whose rows are leased.
class LeasedScene : public Scene {
 public:
  explicit LeasedScene(Stage& stage) : Scene(stage), leases_(stage) {}
  void gone(const Node& node) final { leases_.gone(node); }
  void look() final { leases_.look(); }

 protected:
  /// How long somebody waits for a task, and for the store.
  [[nodiscard]] coord::TaskOptions draw_task(Random& random) const;

  Leases leases_;
};

}  // namespace holdfast::sim::coordinated
