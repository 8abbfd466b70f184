#pragma once
#include "holdfast/random.hpp"
#include "sim/store.hpp"
#include "sim/world.hpp"
#include "store/request.hpp"

namespace holdfast::sim {

/// One process's network to the table: draws what becomes of each of its requests.
class Network {
 public:
  Network(World& world, Random& random) : world_(world), random_(random) {}

  [[nodiscard]] Fate judge(const store::Request& request);
  void partition(bool on) { partitioned_ = on; }
  void reject(bool on) { rejecting_ = on; }
  [[nodiscard]] bool partitioned() const { return partitioned_; }

 private:
  World& world_;
  Random& random_;
  bool partitioned_ = false;
  bool rejecting_ = false;
};

}  // namespace holdfast::sim
