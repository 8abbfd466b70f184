// `holdfast doctor` on DynamoDB Local, and behind a proxy for what that cannot be brought to say.
#include <gmock/gmock.h>

#include "support/doctor_report.hpp"
#include "support/dynamodb_call.hpp"
#include "support/dynamodb_proxy.hpp"
#include "support/dynamodb_servers.hpp"

namespace holdfast::test {
namespace {

using boost::json::object;
using testing::AllOf;
using testing::HasSubstr;

class DynamoDbDoctor : public testing::Test {
 protected:
  void SetUp() override {
    for (const auto& [name, value] : DynamoDbServer::environment()) program.set(name, value);
  }
  [[nodiscard]] std::string url(const std::string& endpoint = DynamoDbServer::local().endpoint()) const {
    return "dynamodb://" + table + "?region=us-east-1&endpoint=" + endpoint;
  }
  [[nodiscard]] DoctorReport doctor(const std::string& store) {
    return DoctorReport(program.run({"doctor", "--json", "--store", store}));
  }
  void init() { ASSERT_EQ(program.run({"init", "--stream", "--store", url()}).code, 0); }
  void put(const object& item) const {
    dynamodb_call(DynamoDbServer::local().port(), "PutItem", {{"TableName", table}, {"Item", item}});
  }

  const std::string table = random_table_name("doctor");
  Program program;
};

TEST_F(DynamoDbDoctor, finds_what_init_made_healthy) {
  init();
  const DoctorReport report = doctor(url());
  EXPECT_EQ(report.code, 0) << report.out;
  for (const char* check :
       {"credentials", "reachable", "table", "index", "stream", "ttl", "calls", "clock", "exclusion", "rows"}) {
    EXPECT_EQ(report.verdict(check), "ok") << check << report.out;
  }
  EXPECT_THAT(report.found("credentials"), HasSubstr("environment"));
  EXPECT_THAT(report.found("calls"), AllOf(HasSubstr("UpdateItem"), HasSubstr("Query"),
                                           HasSubstr("TransactWriteItems"), HasSubstr("GetRecords")));
  EXPECT_THAT(program.run({"conn", "ls", "--all", "--json", "--store", url()}).out, HasSubstr("[]"));
}

TEST_F(DynamoDbDoctor, f19_a_table_or_an_index_that_is_missing_or_of_another_shape_is_told_with_what_makes_it) {
  const DoctorReport missing = doctor(url());
  EXPECT_EQ(missing.code, 1);
  EXPECT_EQ(missing.verdict("table"), "failed");
  EXPECT_THAT(missing.advice("table"), HasSubstr("holdfast init --store '" + url() + "'"));
  EXPECT_EQ(missing.verdict("reachable"), "ok");

  create_fleet_table(DynamoDbServer::local().port(), table, "Pk", "", "");
  const DoctorReport no_index = doctor(url());
  EXPECT_EQ(no_index.code, 1);
  EXPECT_EQ(no_index.verdict("table"), "ok");
  EXPECT_EQ(no_index.verdict("index"), "failed");
  EXPECT_THAT(no_index.advice("index"), HasSubstr("holdfast init"));

  const DoctorReport other_key = doctor(url() + "&key=id");
  EXPECT_EQ(other_key.code, 1);
  EXPECT_EQ(other_key.verdict("table"), "failed");
  EXPECT_THAT(other_key.advice("table"), HasSubstr("key="));
  EXPECT_EQ(other_key.verdict("calls"), "not checked");
}

TEST_F(DynamoDbDoctor, f19_an_index_of_that_name_over_other_attributes_is_told) {
  create_fleet_table(DynamoDbServer::local().port(), table, "Pk", "kind", "until");
  const DoctorReport report = doctor(url() + "&index=kind-until-index");
  EXPECT_EQ(report.code, 1);
  EXPECT_EQ(report.verdict("table"), "ok");
  EXPECT_EQ(report.verdict("index"), "failed");
  EXPECT_THAT(report.found("index"), HasSubstr("kind"));
  EXPECT_EQ(report.verdict("exclusion"), "ok") << "what does not need the index is looked at all the same";
}

TEST_F(DynamoDbDoctor, f21_rows_that_the_index_cannot_see_and_damaged_ones_are_told_and_their_repair_works) {
  init();
  put({{"Pk", {{"S", "CONN#blind"}}}, {"desired_state", {{"S", "STARTED"}}}, {"ws_url", {{"S", "ws://h/"}}}});
  put({{"Pk", {{"S", "CONN#damaged"}}},
       {"desired_state", {{"S", "STARTED"}}},
       {"lease_expires_at_ms", {{"N", "0"}}},
       {"lease_epoch", {{"S", "seven"}}},
       {"ws_url", {{"S", "ws://h/"}}}});
  const DoctorReport report = doctor(url());
  EXPECT_EQ(report.code, 1);
  EXPECT_THAT(report.advice("row CONN#blind"), HasSubstr("'holdfast conn start blind' repairs it"));
  EXPECT_THAT(report.advice("row CONN#damaged"), HasSubstr("'holdfast conn start damaged' repairs it"));
  EXPECT_EQ(program.run({"conn", "start", "blind", "damaged", "--store", url()}).code, 0);
  EXPECT_EQ(doctor(url()).code, 0);
}

TEST_F(DynamoDbDoctor, without_credentials_each_place_that_was_looked_at_is_named) {
  program.set("AWS_ACCESS_KEY_ID", "");
  program.set("AWS_SECRET_ACCESS_KEY", "");
  program.set("HOME", program.folder().path().string());
  const DoctorReport report = doctor(url());
  EXPECT_EQ(report.code, 1);
  EXPECT_EQ(report.verdict("credentials"), "failed");
  EXPECT_THAT(report.found("credentials"), HasSubstr("AWS_ACCESS_KEY_ID is not set"));
  EXPECT_EQ(report.verdict("table"), "not checked");
}

TEST_F(DynamoDbDoctor, a_server_that_is_not_reached_is_told_and_what_depends_on_it_is_not_checked) {
  const DoctorReport report = doctor(url("http://127.0.0.1:1"));
  EXPECT_EQ(report.code, 1);
  EXPECT_EQ(report.verdict("reachable"), "failed");
  EXPECT_THAT(report.found("reachable"), HasSubstr("127.0.0.1"));
  EXPECT_EQ(report.verdict("exclusion"), "not checked");
}

TEST_F(DynamoDbDoctor, f19_each_call_that_a_role_may_not_do_is_told_and_keys_that_are_refused) {
  init();
  DynamoDbProxy proxy(DynamoDbServer::local().port());
  const auto refuse = [&](const std::string& operation, const std::string& type) {
    proxy.plan({.fault = DynamoDbFault::error, .operation = operation, .times = 0, .type = type});
  };
  refuse("Query", "AccessDeniedException");
  refuse("Scan", "AccessDeniedException");
  const DoctorReport denied = doctor(url(proxy.endpoint()));
  EXPECT_EQ(denied.code, 1);
  EXPECT_EQ(denied.verdict("call Query"), "failed");
  EXPECT_THAT(denied.advice("call Query"), HasSubstr("/index/*"));
  EXPECT_EQ(denied.verdict("call Scan"), "warning");
  EXPECT_EQ(denied.verdict("rows"), "not checked");
  EXPECT_EQ(denied.verdict("exclusion"), "ok");

  proxy.clear();
  refuse("*", "UnrecognizedClientException");
  const DoctorReport unknown = doctor(url(proxy.endpoint()));
  EXPECT_EQ(unknown.verdict("credentials"), "failed");
  EXPECT_EQ(unknown.verdict("reachable"), "ok");
}

}  // namespace
}  // namespace holdfast::test
