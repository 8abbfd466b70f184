// What tests against DynamoDB stand on: both servers answer, and know what we need of them.
#include <gtest/gtest.h>

#include <set>

#include "support/dynamodb_call.hpp"
#include "support/dynamodb_servers.hpp"

namespace holdfast::test {
namespace {

using boost::json::array;
using boost::json::object;

class DynamoDbServers : public testing::TestWithParam<DynamoDbServer::Kind> {
 protected:
  const DynamoDbServer& server = DynamoDbServer::of(GetParam());
};

std::string text_of(const object& item, std::string_view name, const char* type = "S") {
  return item.contains(name) ? std::string(item.at(name).at(type).as_string()) : "(missing)";
}

TEST_P(DynamoDbServers, a_conditional_write_that_fails_gives_back_the_item_or_leaves_it_to_a_read) {
  const std::string table = random_table_name("conditional");
  create_fleet_table(server.port(), table);
  const object key{{"Pk", object{{"S", "CONN#1"}}}};
  dynamodb_call(server.port(), "PutItem",
                {{"TableName", table}, {"Item", object{{"Pk", object{{"S", "CONN#1"}}}, {"n", object{{"N", "7"}}}}}});
  const object update{
      {"TableName", table},
      {"Key", key},
      {"UpdateExpression", "SET #n = :eight"},
      {"ConditionExpression", "#n = :six"},
      {"ExpressionAttributeNames", object{{"#n", "n"}}},
      {"ExpressionAttributeValues", object{{":six", object{{"N", "6"}}}, {":eight", object{{"N", "8"}}}}},
      {"ReturnValuesOnConditionCheckFailure", "ALL_OLD"}};
  const RawAnswer answer = raw_http(server.port(), dynamodb_request("UpdateItem", boost::json::serialize(update)));
  EXPECT_EQ(answer.status, 400);
  EXPECT_NE(answer.body.find("ConditionalCheckFailedException"), std::string::npos) << answer.body;
  // dynalite does not know ALL_OLD: a store has to read the row itself.
  EXPECT_EQ(answer.body.find("\"Item\"") != std::string::npos, GetParam() == DynamoDbServer::Kind::local)
      << answer.body;
  const object found = dynamodb_call(server.port(), "GetItem", {{"TableName", table}, {"Key", key}});
  EXPECT_EQ(text_of(found.at("Item").as_object(), "n", "N"), "7");
}

TEST_P(DynamoDbServers, the_index_of_the_fleet_finds_what_is_due_in_order) {
  const std::string table = random_table_name("index");
  create_fleet_table(server.port(), table);
  for (const char* expires : {"30", "10", "20", "40"}) {
    dynamodb_call(server.port(), "PutItem",
                  {{"TableName", table},
                   {"Item", object{{"Pk", object{{"S", std::string("CONN#") + expires}}},
                                   {"desired_state", object{{"S", "STARTED"}}},
                                   {"lease_expires_at_ms", object{{"N", expires}}}}}});
  }
  const object found = dynamodb_call(
      server.port(), "Query",
      {{"TableName", table},
       {"IndexName", "desired_state-lease_expires_at_ms-index"},
       {"KeyConditionExpression", "desired_state = :state AND lease_expires_at_ms < :now"},
       {"ExpressionAttributeValues", object{{":state", object{{"S", "STARTED"}}}, {":now", object{{"N", "40"}}}}}});
  std::vector<std::string> keys;
  for (const auto& item : found.at("Items").as_array()) keys.push_back(text_of(item.as_object(), "Pk"));
  EXPECT_EQ(keys, (std::vector<std::string>{"CONN#10", "CONN#20", "CONN#30"}));
}

TEST_P(DynamoDbServers, is_the_same_one_for_all_who_ask_in_this_program) {
  EXPECT_EQ(DynamoDbServer::of(GetParam()).endpoint(), server.endpoint());
  EXPECT_EQ(server.endpoint(), "http://127.0.0.1:" + std::to_string(server.port()));
}

INSTANTIATE_TEST_SUITE_P(Real, DynamoDbServers,
                         testing::Values(DynamoDbServer::Kind::local, DynamoDbServer::Kind::dynalite),
                         [](const auto& kind) {
                           return kind.param == DynamoDbServer::Kind::local ? "dynamodb_local" : "dynalite";
                         });

TEST(RandomTableName, is_another_one_each_time_and_a_name_that_dynamodb_takes) {
  std::set<std::string> names;
  for (int i = 0; i < 100; ++i) names.insert(random_table_name("a"));
  EXPECT_EQ(names.size(), 100U);
  EXPECT_EQ(names.begin()->find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"), std::string::npos);
}

}  // namespace
}  // namespace holdfast::test
