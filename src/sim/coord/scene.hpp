#pragma once
#include <cstdint>
#include <string>

#include "sim/coord/node.hpp"
#include "sim/coord/stage.hpp"

namespace holdfast::sim::coordinated {

/// One primitive: what processes do with it, and whether it keeps its promises, seen by one who sees every write of
/// the table and every answer to a caller.
class Scene {
 public:
  explicit Scene(Stage& stage) : stage_(stage) {}
  virtual ~Scene() = default;
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  /// `node` does something of this kind: begin(), and end() when it is done. At the end of the run it brings to an
  /// end what is left.
  virtual void act(Node& node) = 0;
  /// The table has carried something out.
  virtual void wrote(const Write& /*write*/) {}
  /// A process is about to go, or to crash.
  virtual void gone(const Node& /*node*/) {}
  /// Every now and then.
  virtual void look() {}
  /// What has not come right yet, in words, now that all is well; empty: all has.
  [[nodiscard]] virtual std::string left() { return {}; }
  /// When all is over: the histories.
  virtual void judge() {}

 protected:
  Stage& stage_;
};

}  // namespace holdfast::sim::coordinated
