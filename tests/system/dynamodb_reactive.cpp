// Workers on DynamoDB Local that look every two hours: what they take, somebody told them of.
#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <thread>

#include "support/dynamodb_call.hpp"
#include "support/dynamodb_servers.hpp"
#include "support/fleet_processes.hpp"

namespace holdfast::test {
namespace {

using Clock = std::chrono::steady_clock;  // nondeterminism-ok: the test measures what a user would

class DynamoDbReactive : public Processes {
 protected:
  DynamoDbReactive() {
    for (const auto& [name, value] : DynamoDbServer::environment()) program.set(name, value);
    program.set("HOLDFAST_STORE",
                "dynamodb://" + table + "?region=us-east-1&endpoint=" + DynamoDbServer::local().endpoint());
    const auto made = program.run({"init", "--stream"});
    EXPECT_EQ(made.code, 0) << made.err;
  }

  runtime::Child reactive(const std::string& id, const std::string& lease) {
    return start({"worker", "--id", id, "--lease", lease, "--reconcile", "2h", "--advertise", "127.0.0.1:0", "--sink",
                  "ndjson:out?fsync=never", "--report", id + ".json", "--max-connections", "50"});
  }
  /// An attribute of a row as the table has it; empty where it is not there.
  [[nodiscard]] std::string attribute_of(const std::string& row, const char* name, const char* type = "S") const {
    const auto answer = dynamodb_call(DynamoDbServer::local().port(), "GetItem",
                                      {{"TableName", table},
                                       {"ConsistentRead", true},
                                       {"Key", boost::json::object{{"Pk", boost::json::object{{"S", row}}}}}});
    const auto* item = answer.if_contains("Item");
    if (item == nullptr || !item->as_object().contains(name)) return {};
    return std::string(item->as_object().at(name).as_object().at(type).as_string());
  }
  /// The name of who reads the changes for all.
  [[nodiscard]] std::string reader() const {
    const std::string owner = attribute_of("FEED#changes", "lease_owner");
    return owner.substr(0, owner.find('#'));
  }
  [[nodiscard]] std::string owner(const std::string& id) const { return attribute_of("CONN#" + id, "lease_owner"); }
  [[nodiscard]] bool is_taken(const std::string& id) {
    return wait_until([&] { return !owner(id).empty(); });
  }
  void wait_for_reader() {
    ASSERT_TRUE(wait_until([&] { return !reader().empty(); }));
    // It stands in the stream when what was there before has been looked at; this one is there before or after.
    add("first", "ws://127.0.0.1:9/");
    ASSERT_TRUE(is_taken("first"));
  }

  const std::string table = random_table_name("reactive");
};

TEST_F(DynamoDbReactive, what_is_added_started_or_given_back_is_taken_although_nobody_looks_for_hours) {
  runtime::Child w1 = reactive("w1", "30s");
  runtime::Child w2 = reactive("w2", "30s");
  runtime::Child w3 = reactive("w3", "30s");
  wait_for_reader();

  std::vector<std::int64_t> took_ms;
  for (int i = 0; i < 7; ++i) {
    const std::string id = "c" + std::to_string(i);
    add(id, "ws://127.0.0.1:9/");
    const auto from = Clock::now();
    ASSERT_TRUE(is_taken(id)) << id;
    took_ms.push_back(std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - from).count());
  }
  std::sort(took_ms.begin(), took_ms.end());
  std::cout << "taken after a median of " << took_ms[took_ms.size() / 2] << " ms, at most " << took_ms.back()
            << " ms\n";

  ASSERT_EQ(program.run({"conn", "stop", "c0"}).code, 0);
  ASSERT_TRUE(wait_until([&] { return owner("c0").empty(); }));
  ASSERT_EQ(program.run({"conn", "start", "c0"}).code, 0);
  EXPECT_TRUE(is_taken("c0"));

  // The reader goes, with what it holds: another one takes both, told by nothing but its goodbye and the stream.
  const std::string old = reader();
  runtime::Child& leaving = old == "w1" ? w1 : old == "w2" ? w2 : w3;
  leaving.kill(SIGTERM);
  ASSERT_TRUE(leaving.wait(generous));
  EXPECT_TRUE(wait_until([&] { return !reader().empty() && reader() != old; }));
  for (int i = 0; i < 7; ++i) {
    const std::string id = "c" + std::to_string(i);
    EXPECT_TRUE(wait_until([&] { return !owner(id).empty() && !owner(id).starts_with(old + "#"); })) << id;
  }
}

TEST_F(DynamoDbReactive, a_reader_that_is_killed_is_replaced_when_its_lease_has_run_out) {
  runtime::Child w1 = reactive("w1", "4s");
  runtime::Child w2 = reactive("w2", "4s");
  wait_for_reader();
  const std::string dead = reader();
  (dead == "w1" ? w1 : w2).kill(SIGKILL);
  ASSERT_TRUE(wait_until([&] { return !reader().empty() && reader() != dead; }));
  EXPECT_GE(std::stoll(attribute_of("FEED#changes", "lease_epoch", "N")), 2);
  add("later", "ws://127.0.0.1:9/");
  EXPECT_TRUE(is_taken("later"));
  EXPECT_FALSE(owner("later").starts_with(dead + "#"));
}

}  // namespace
}  // namespace holdfast::test
