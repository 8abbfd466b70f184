#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "holdfast/row.hpp"
#include "sim/world.hpp"
#include "store/change_feed.hpp"

namespace holdfast::sim {

/// The stream of a table, as a reader of DynamoDB's meets it: it tells late and in order, what is held is left out,
/// now and then records are gone before they were read (then anything may have changed), and it can be turned off.
class SimStream {
 public:
  explicit SimStream(World& world) : world_(world), random_(seed_of(world.plan.seed, "stream")) {}

  struct Reader {
    std::shared_ptr<store::ChangeFeed> feed;
    std::function<bool()> reachable;
    Instant shown{};  // what was read last is from no later than this
  };
  /// From what is new on, for as long as what this gives is kept.
  [[nodiscard]] std::shared_ptr<Reader> read(std::shared_ptr<store::ChangeFeed> feed,
                                             std::function<bool()> reachable);

  void wrote(const Row& after);
  void turn(bool on);
  [[nodiscard]] bool on() const { return on_; }

 private:
  void deliver(const std::shared_ptr<Reader>& reader, std::size_t rows, Duration lag);
  void arrive(const std::shared_ptr<Reader>& reader, std::size_t rows);

  World& world_;
  Random random_;
  bool on_ = true;
  std::vector<std::weak_ptr<Reader>> readers_;
};

}  // namespace holdfast::sim
