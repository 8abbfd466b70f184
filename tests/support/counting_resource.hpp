#pragma once
#include <cstdint>
#include <functional>

#include "holdfast/resource.hpp"

namespace holdfast::test {

/// Does nothing under its lease, but has something new for a checkpoint each time that it is asked.
class CountingResource final : public Resource {
 public:
  void start(Grant grant) override { seq_ = grant.row.number(attribute::last_seq); }
  void stop(LossReason, Instant, std::function<void()> stopped) override { stopped(); }
  [[nodiscard]] Progress progress() const override { return {.last_seq = ++seq_, .status = "flowing", .reason = {}}; }

 private:
  mutable std::int64_t seq_ = 0;
};

}  // namespace holdfast::test
