#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "cli/demo_verify.hpp"
#include "cli/demo_view.hpp"
#include "holdfast/error.hpp"
#include "holdfast/types.hpp"

namespace holdfast::cli {

struct DemoOptions {
  std::size_t workers = 3;
  std::size_t connections = 30;
  double rate = 20;
  Duration lease = std::chrono::seconds(3);
  Duration seconds = std::chrono::seconds(20);  ///< how long the feed speaks
  std::string keep;                             ///< where the files stay; empty: a temporary folder
  std::string store;                            ///< URL of the table; empty: a SQLite file among the files
};

/// What happens when, counted from the first message. An act that needs the one before it to be over waits for it.
struct DemoAct {
  enum class Kind { start, crash, stop };
  Kind kind;
  Duration at;
};
[[nodiscard]] std::vector<DemoAct> demo_plan(const DemoOptions& options);
/// Refuses what cannot come to an end that proves something.
[[nodiscard]] Result<void> check_demo(const DemoOptions& options);
/// So that the fleet can still hold everything when it is one worker short.
[[nodiscard]] std::size_t demo_capacity(const DemoOptions& options);

struct DemoFailover {
  std::string kind;  ///< "crash", "graceful"
  std::string worker;
  DeliveryHistory::Failover measured;
};
struct DemoResult {
  DeliveryHistory::Verdict verdict;
  std::vector<DemoFailover> failovers;
  std::size_t workers = 0;  ///< that took part
  [[nodiscard]] bool holds() const;
};
[[nodiscard]] std::string demo_json(const DemoResult& result);

/// Starts a feed and workers as processes of their own, plays the plan, ends them all, and judges what they wrote.
/// Leaves nothing behind, whichever way it ends.
[[nodiscard]] Result<DemoResult> run_demo(const DemoOptions& options, DemoView& view);

}  // namespace holdfast::cli
