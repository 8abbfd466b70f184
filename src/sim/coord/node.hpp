#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "coord/coordinator.hpp"
#include "sim/coord/stage.hpp"
#include "sim/network.hpp"
#include "sim/node_loop.hpp"
#include "sim/store.hpp"

namespace holdfast::sim::coordinated {

/// One short-lived process: the production coordinator on a simulated loop, store and network. Destroying it is a
/// crash: what it had sent still arrives, nobody in it hears of anything any more.
class Node {
 public:
  /// `machine`: whose disk it has (machines outlive their processes).
  Node(Stage& stage, std::size_t machine, std::uint64_t run);
  ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  [[nodiscard]] coord::Coordinator& coordinator() { return *coordinator_; }
  [[nodiscard]] NodeLoop& loop() { return loop_; }
  [[nodiscard]] SimStore& store() { return *store_; }
  /// For what those in it do; what production code draws comes from its loop's.
  [[nodiscard]] Random& random() { return random_; }
  [[nodiscard]] std::int16_t number() const { return number_; }
  [[nodiscard]] std::size_t machine() const { return machine_; }
  [[nodiscard]] const NodeClock& clock() const { return clock_; }
  [[nodiscard]] Instant own_now() const { return loop_.instant(); }
  [[nodiscard]] bool paused() const { return loop_.paused(); }

  void pause();
  void resume();
  void partition(bool on) { network_.partition(on); }
  void reject(bool on) { network_.reject(on); }
  void set_wall_error(Duration error, double drift);
  /// S10: what it has under way is bounded.
  void check_bounds();

  /// So many things it is at. At the end of each its owner may have it do another, or go.
  void begin() { ++busy_; }
  void end();
  [[nodiscard]] std::size_t busy() const { return busy_; }
  std::function<void()> idle;  ///< on its loop, when it is at nothing

  /// What it has besides the coordinator, destroyed with it and before it.
  std::shared_ptr<void> extra;

 private:
  Stage& stage_;
  const std::size_t machine_;
  const std::int16_t number_;
  Random random_;
  Network network_;
  NodeClock clock_;
  NodeLoop loop_;
  std::unique_ptr<SimStore> store_;
  std::unique_ptr<coord::Coordinator> coordinator_;
  std::size_t busy_ = 0;
};

}  // namespace holdfast::sim::coordinated
