// A worker whose server takes requests and never answers.
#include <gmock/gmock.h>

#include "support/dynamodb_proxy.hpp"
#include "support/fleet_processes.hpp"

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

class DynamoDbTroubles : public Processes {
 protected:
  /// A worker that holds one connection, for a minute without a renewal.
  runtime::Child holder() {
    be_on_dynamodb(random_table_name("troubles"), proxy_.endpoint());
    add_streams(1, feed());
    runtime::Child child = start({"worker", "--id", "w", "--lease", "60s", "--drain-timeout", "8s", "--sink",
                                  "ndjson:out?fsync=never", "--report", "w.json"});
    EXPECT_TRUE(wait_until([&] { return flowing("w") == 1; }));
    return child;
  }
  void hang() { proxy_.plan({.fault = DynamoDbFault::drop_request, .times = 0}); }

  DynamoDbProxy proxy_{DynamoDbServer::local().port()};
};

TEST_F(DynamoDbTroubles, s10_a_server_that_hangs_during_a_drain_is_waited_for_until_the_drains_limit_and_no_longer) {
  runtime::Child worker = holder();
  hang();
  worker.kill(SIGTERM);
  EXPECT_EQ(worker.wait(generous), (runtime::Exit{0, 0}));
  EXPECT_EQ(report("w").at("end").as_string(), "cut");
  EXPECT_EQ(report("w").at("leases").at("cut").as_int64(), 1);
  EXPECT_EQ(report("w").at("leases").at("releases").as_int64(), 0);
  proxy_.clear();
  EXPECT_EQ(text("s0", "lease"), "held") << "what was not given back runs out";
}

TEST_F(DynamoDbTroubles, s11_a_server_that_answers_again_within_the_drains_limit_is_given_the_leases_back) {
  runtime::Child worker = holder();
  hang();
  worker.kill(SIGTERM);
  ASSERT_TRUE(wait_until([&] { return proxy_.counts().faults["drop_request"] > 0; }));
  proxy_.clear();
  EXPECT_EQ(worker.wait(generous), (runtime::Exit{0, 0}));
  EXPECT_EQ(text("s0", "owner"), "");
}

TEST_F(DynamoDbTroubles, a_second_signal_stops_at_once_and_leaves_the_lease_to_run_out) {
  runtime::Child worker = holder();
  hang();
  worker.kill(SIGTERM);
  worker.kill(SIGINT);  // within a second: the same stop
  ASSERT_TRUE(wait_until([&] { return proxy_.counts().faults["drop_request"] > 0; })) << "it gives its lease back";
  std::this_thread::sleep_for(1500ms);
  EXPECT_TRUE(worker.running());
  worker.kill(SIGINT);
  EXPECT_EQ(worker.wait(generous), (runtime::Exit{0, 0}));
  EXPECT_EQ(report("w").at("end").as_string(), "stopped");
  EXPECT_EQ(report("w").at("leases").at("cut").as_int64(), 1);
}

}  // namespace
}  // namespace holdfast::test
