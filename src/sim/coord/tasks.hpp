#pragma once
#include <cstddef>
#include <memory>
#include <set>
#include <string>

#include "sim/coord/leases.hpp"

namespace holdfast::sim::coordinated {

/// Tasks that one process at a time holds, for a while, and under which it writes into the task's row.
class Tasks final : public LeasedScene {
 public:
  Tasks(Stage& stage, std::size_t count);
  void act(Node& node) override;
  void wrote(const Write& write) override;
  [[nodiscard]] std::string left() override;

 private:
  struct Call;
  void acquired(const std::shared_ptr<Call>& call, const std::shared_ptr<coord::Held>& held);
  void work(const std::shared_ptr<Call>& call, std::size_t effects);
  void affect(const std::shared_ptr<Call>& call);
  void ended(const std::shared_ptr<Call>& call, coord::HoldEnd how);

  const std::size_t count_;
  std::set<std::size_t> taken_;  // at the end
};

}  // namespace holdfast::sim::coordinated
