#pragma once
#include <cstdint>
#include <functional>
#include <memory>

#include "holdfast/resource.hpp"
#include "sim/rules.hpp"
#include "sim/world.hpp"

namespace holdfast::sim {

/// A production resource, watched: the rules hear of its start, of its being told to stop, of its end. Now and then
/// it is stubborn and does not stop when it is asked to.
class WatchedResource final : public Resource {
 public:
  WatchedResource(std::unique_ptr<Resource> inner, World& world, Rules& rules, Loop& loop, std::int16_t process);
  ~WatchedResource() override;
  WatchedResource(const WatchedResource&) = delete;
  WatchedResource& operator=(const WatchedResource&) = delete;

  void start(::holdfast::Grant grant) override;
  void row_changed(const Row& row) override;
  void stop(LossReason reason, Instant deadline, std::function<void()> stopped) override;
  [[nodiscard]] Progress progress() const override { return inner_->progress(); }

 private:
  std::unique_ptr<Resource> inner_;
  World& world_;
  Rules& rules_;
  Loop& loop_;
  const std::int16_t process_;
  std::int32_t connection_ = -1;
  std::shared_ptr<LeaseGuard> guard_;
  TimerId timer_ = 0;
};

}  // namespace holdfast::sim
