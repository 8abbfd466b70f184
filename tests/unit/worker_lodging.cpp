#include "worker/lodging.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "support/virtual_loop.hpp"

namespace holdfast::worker {
namespace {

using namespace std::chrono_literals;

/// Does something in the middle of its start.
class Starting final : public Resource {
 public:
  explicit Starting(std::function<void()> in_the_middle) : in_the_middle_(std::move(in_the_middle)) {}
  void start(Grant) override { in_the_middle_(); }
  void stop(LossReason, Instant, std::function<void()> stopped) override { stopped(); }
  [[nodiscard]] Progress progress() const override {
    Progress progress;
    progress.status = "asked";
    return progress;
  }

 private:
  std::function<void()> in_the_middle_;
};

// The control loop may look at any time, from its own thread.
TEST(Lodging, asks_nothing_of_a_resource_before_it_has_started) {
  test::VirtualLoop loop;
  const auto guard = std::make_shared<LeaseGuard>(Epoch{1}, loop.instant() + 1h);
  Lodging lodging(loop, loop, Grant{ConnectionId("a"), Row{"CONN#a", {}}, guard});
  std::string status;
  lodging.start(
      [&](const Row&, Loop&) { return std::make_unique<Starting>([&] { status = lodging.progress().status; }); });
  loop.settle();
  EXPECT_EQ(status, "starting");
  EXPECT_EQ(lodging.progress().status, "asked");
}

}  // namespace
}  // namespace holdfast::worker
