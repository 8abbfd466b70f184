#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/coord/scene.hpp"
#include "sim/history/calls.hpp"

namespace holdfast::sim::coordinated {

/// Counters: the sum of all operations that happened, each once, never below its floor.
class Counters final : public Scene {
 public:
  Counters(Stage& stage, std::size_t count) : Scene(stage), count_(count) {}
  void act(Node& node) override;
  void wrote(const Write& write) override;
  void judge() override;

  /// Whether the operation of this row was carried out.
  [[nodiscard]] bool happened(const std::string& op_key) const { return applied_.contains(op_key); }

 private:
  struct Operation {
    std::string id;
    std::size_t counter = 0;
    std::int64_t delta = 0;
    std::optional<std::int64_t> floor;
  };
  struct Applied {
    std::int16_t by = -1;
    Instant sent{};  // true time
  };
  struct Call;
  [[nodiscard]] Operation choose(std::int16_t process, Random& random);
  void told(const Call& call, const Ended<Added>& ended);
  [[nodiscard]] bool happened_by(const Call& call) const;
  void repeated_by_the_network(const Row& operation, std::int32_t about);

  const std::size_t count_;
  std::vector<Operation> operations_;
  std::set<std::pair<std::int16_t, std::string>> under_way_;                    // which process is at which
  std::map<std::string, Series> values_;                                        // by row
  std::map<std::string, Applied> applied_;                                      // by the operation's row
  std::map<std::string, std::vector<std::shared_ptr<Call>>> nothing_happened_;  // so they were told; by operation
  std::map<std::size_t, AddCalls> histories_;
};

}  // namespace holdfast::sim::coordinated
