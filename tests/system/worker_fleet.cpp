// Workers as real processes: crash, pause, stop.
#include <gmock/gmock.h>

#include "support/fleet_processes.hpp"

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

class WorkerFleet : public ProcessesOnEachStore {};
INSTANTIATE_TEST_SUITE_P(Stores, WorkerFleet, each_store(), name_of_store);

TEST_P(WorkerFleet, after_a_crash_others_go_on_and_every_message_arrives) {
  add_streams(5, feed());
  runtime::Child victim = worker("victim");
  ASSERT_TRUE(wait_until([&] { return flowing("victim") == 5; }));
  runtime::Child heir = worker("heir");
  victim.kill(SIGKILL);
  ASSERT_TRUE(wait_until([&] { return flowing("heir") == 5; }));
  heir.kill(SIGTERM);
  EXPECT_EQ(heir.wait(generous), (runtime::Exit{0, 0}));
  expect_no_hole();
  expect_one_owner_at_a_time();
  EXPECT_GE(report("heir").at("failover").at("crash").at("count").as_int64(), 5);
  EXPECT_EQ(report("heir").at("end").as_string(), "drained");
}

TEST_P(WorkerFleet, f01_a_worker_that_was_stopped_for_longer_than_its_lease_writes_nothing_when_it_goes_on) {
  add_streams(5, feed());
  runtime::Child sleeper = worker("sleeper");
  ASSERT_TRUE(wait_until([&] { return flowing("sleeper") == 5; }));
  runtime::Child other = worker("other");
  ASSERT_TRUE(pause(sleeper));
  ASSERT_TRUE(wait_until([&] { return flowing("other") == 5; }));
  const std::int64_t woken = now_ms();
  sleeper.kill(SIGCONT);
  // It lives on, without its leases, and can be drained.
  ASSERT_TRUE(wait_until([&] { return flowing("other", woken + 1000) == 5; }));
  sleeper.kill(SIGTERM);
  EXPECT_EQ(sleeper.wait(generous), (runtime::Exit{0, 0}));
  other.kill(SIGTERM);
  EXPECT_EQ(other.wait(generous), (runtime::Exit{0, 0}));
  for (const Line& line : lines()) {
    if (line.file.starts_with("sleeper-")) {
      EXPECT_LT(line.at_ms, woken) << line.connection << " " << line.seq;
    }
  }
  expect_no_hole();
  expect_one_owner_at_a_time();
  EXPECT_GE(report("sleeper").at("leases").at("losses").at("belief_expired").as_int64(), 5);
}

TEST_P(WorkerFleet, a_worker_that_is_stopped_in_order_hands_over_without_repeats) {
  add_streams(5, feed());
  runtime::Child leaver = worker("leaver", {}, long_lease);
  ASSERT_TRUE(wait_until([&] { return flowing("leaver") == 5; }));
  runtime::Child heir = worker("heir", {}, long_lease);
  leaver.kill(SIGTERM);
  EXPECT_EQ(leaver.wait(generous), (runtime::Exit{0, 0}));
  ASSERT_TRUE(wait_until([&] { return flowing("heir") == 5; }));
  heir.kill(SIGINT);
  EXPECT_EQ(heir.wait(generous), (runtime::Exit{0, 0}));
  expect_no_hole();
  std::map<std::pair<std::string, std::int64_t>, int> copies;
  for (const Line& line : lines()) ++copies[{line.connection, line.seq}];
  for (const auto& [place, count] : copies) EXPECT_EQ(count, 1) << place.first << " " << place.second;
  EXPECT_EQ(report("leaver").at("leases").at("releases").as_int64(), 5);
  EXPECT_EQ(report("heir").at("failover").at("graceful").at("count").as_int64(), 5);
}

TEST_P(WorkerFleet, f12_two_workers_of_one_name_both_work) {
  add_streams(4, feed());
  const auto twin = [&](const std::string& name) {
    return start({"worker", "--id", "twin", "--lease", "2s", "--sink", "ndjson:out?fsync=never", "--report",
                  name + ".json", "--max-connections", "2"});
  };
  runtime::Child first = twin("first");
  ASSERT_TRUE(wait_until([&] { return flowing("twin") == 2; }));
  runtime::Child second = twin("second");
  ASSERT_TRUE(wait_until([&] { return flowing("twin") == 4; }));
  for (runtime::Child* child : {&first, &second}) {
    EXPECT_TRUE(child->running());
    child->kill(SIGTERM);
    EXPECT_EQ(child->wait(generous), (runtime::Exit{0, 0}));
  }
  expect_one_owner_at_a_time();
  EXPECT_GE(report("first").at("leases").at("claims").as_int64(), 2);
}

TEST_P(WorkerFleet, a_connection_that_is_told_to_stop_is_closed_by_its_worker) {
  add_streams(1, feed());
  runtime::Child holder = worker("holder");
  ASSERT_TRUE(wait_until([&] { return flowing("holder") == 1; }));
  ASSERT_EQ(program.run({"conn", "stop", "s0"}).code, 0);
  EXPECT_TRUE(wait_until([&] { return text("s0", "lease") == "free"; }));
  EXPECT_TRUE(holder.running());
  holder.kill(SIGTERM);
  EXPECT_EQ(holder.wait(generous), (runtime::Exit{0, 0}));
  EXPECT_EQ(report("holder").at("leases").at("losses").at("stopped").as_int64(), 1);
}

}  // namespace
}  // namespace holdfast::test
