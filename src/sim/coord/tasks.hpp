#pragma once
#include <cstddef>
#include <memory>
#include <set>
#include <string>

#include "sim/coord/leases.hpp"
#include "sim/coord/scene.hpp"

namespace holdfast::sim::coordinated {

/// Tasks that one process at a time holds, for a while, and under which it writes into the task's row.
class Tasks final : public Scene {
 public:
  Tasks(Stage& stage, std::size_t count);
  void act(Node& node) override;
  void wrote(const Write& write) override;
  void gone(const Node& node) override { leases_.gone(node); }
  void look() override { leases_.look(); }
  [[nodiscard]] std::string left() override;

 private:
  struct Call;
  void acquired(const std::shared_ptr<Call>& call, const std::shared_ptr<coord::Held>& held);
  void work(const std::shared_ptr<Call>& call, std::size_t effects);
  void affect(const std::shared_ptr<Call>& call);
  void ended(const std::shared_ptr<Call>& call, coord::HoldEnd how);

  Stage& stage_;
  Leases leases_;
  const std::size_t count_;
  std::set<std::size_t> taken_;  // at the end
};

}  // namespace holdfast::sim::coordinated
