// The proxy that does harm does the harm that it says, to the requests that it was told, and to no others.
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "support/dynamodb_call.hpp"
#include "support/dynamodb_proxy.hpp"
#include "support/dynamodb_servers.hpp"
#include "support/eventually.hpp"

namespace holdfast::test {
namespace {

using boost::json::object;
using Fault = DynamoDbFault;

/// A table of its own, whose row `n` counts the writes that the server has carried out.
class DynamoDbProxyTest : public testing::Test {
 protected:
  DynamoDbProxyTest() { create_fleet_table(server.port(), table); }

  [[nodiscard]] std::string add() const {
    const object body{{"TableName", table},
                      {"Key", object{{"Pk", object{{"S", "CONN#1"}}}}},
                      {"UpdateExpression", "ADD n :one"},
                      {"ExpressionAttributeValues", object{{":one", object{{"N", "1"}}}}},
                      {"ReturnValues", "ALL_NEW"}};
    return dynamodb_request("UpdateItem", boost::json::serialize(body));
  }
  [[nodiscard]] std::string read() const {
    const object body{
        {"TableName", table}, {"Key", object{{"Pk", object{{"S", "CONN#1"}}}}}, {"ConsistentRead", true}};
    return dynamodb_request("GetItem", boost::json::serialize(body));
  }
  /// Asked of the server itself.
  [[nodiscard]] std::string written() const {
    const RawAnswer answer = raw_http(server.port(), read());
    const object found = boost::json::parse(answer.body).as_object();
    return found.contains("Item") ? std::string(found.at("Item").at("n").at("N").as_string()) : "0";
  }
  [[nodiscard]] RawAnswer through(const std::string& request) const { return raw_http(proxy.port(), request); }
  [[nodiscard]] RawAnswer through_for_a_moment(const std::string& request) const {
    return raw_http(proxy.port(), request, std::chrono::milliseconds(300));
  }

  const DynamoDbServer& server = DynamoDbServer::dynalite();
  const std::string table = random_table_name("proxy");
  DynamoDbProxy proxy{server.port()};
};

TEST_F(DynamoDbProxyTest, what_it_was_not_told_to_harm_goes_through_as_it_is) {
  const RawAnswer direct = raw_http(server.port(), add());
  const RawAnswer answer = through(add());
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(answer.complete);
  EXPECT_EQ(direct.body.size(), answer.body.size());
  EXPECT_NE(answer.body.find(R"("n":{"N":"2"})"), std::string::npos) << answer.body;
  EXPECT_EQ(answer.headers.count("x-amz-crc32"), 1U);
  EXPECT_EQ(proxy.counts().seen, (std::map<std::string, int>{{"UpdateItem", 1}}));
  EXPECT_EQ(proxy.counts().forwarded, (std::map<std::string, int>{{"UpdateItem", 1}}));
}

TEST_F(DynamoDbProxyTest, an_answer_that_never_comes_leaves_the_connection_open) {
  for (const Fault fault : {Fault::drop_request, Fault::drop_reply}) {
    proxy.plan({.fault = fault});
    const RawAnswer answer = through_for_a_moment(add());
    EXPECT_EQ(answer.status, 0) << to_string(fault);
    EXPECT_TRUE(answer.timed_out) << to_string(fault);
    EXPECT_EQ(written(), fault == Fault::drop_request ? "0" : "1") << to_string(fault);
  }
}

TEST_F(DynamoDbProxyTest, a_cut_connection_gives_nothing_and_the_server_has_done_it_or_not_as_the_fault_says) {
  int done = 0;
  for (const Fault fault : {Fault::cut_before_request, Fault::cut_after_request, Fault::cut_after_reply}) {
    proxy.plan({.fault = fault});
    const RawAnswer answer = through(add());
    EXPECT_EQ(answer.status, 0) << to_string(fault);
    EXPECT_FALSE(answer.timed_out) << to_string(fault);
    done += reaches_server(fault) ? 1 : 0;
    EXPECT_TRUE(eventually([&] { return written() == std::to_string(done); })) << to_string(fault);
  }
  EXPECT_EQ(done, 2);
}

TEST_F(DynamoDbProxyTest, errors_are_answered_in_words_of_dynamodb_and_the_server_never_hears_of_them) {
  const auto body_after = [&](DynamoDbProxy::Rule rule, int status) {
    proxy.plan(rule);
    const RawAnswer answer = through(add());
    EXPECT_EQ(answer.status, status) << to_string(rule.fault);
    EXPECT_TRUE(answer.complete) << to_string(rule.fault);
    return answer.body;
  };
  EXPECT_NE(body_after({.fault = Fault::status_500}, 500).find("#InternalServerError\""), std::string::npos);
  EXPECT_EQ(body_after({.fault = Fault::status_503}, 503), "Service Unavailable");
  EXPECT_NE(body_after({.fault = Fault::throttle}, 400).find("#ProvisionedThroughputExceededException\""),
            std::string::npos);
  const std::string own =
      body_after({.fault = Fault::error, .status = 403, .type = "ExpiredTokenException", .message = "too old"}, 403);
  EXPECT_NE(own.find("#ExpiredTokenException\""), std::string::npos) << own;
  EXPECT_NE(own.find("too old"), std::string::npos) << own;
  EXPECT_EQ(written(), "0");
}

TEST_F(DynamoDbProxyTest, an_error_of_the_server_may_come_although_it_was_done) {
  proxy.plan({.fault = Fault::status_500_after});
  EXPECT_EQ(through(add()).status, 500);
  EXPECT_EQ(written(), "1");
}

TEST_F(DynamoDbProxyTest, an_answer_can_be_spoiled_in_each_way_after_it_was_done) {
  proxy.plan({.fault = Fault::garbage});
  const RawAnswer garbage = through(add());
  EXPECT_EQ(garbage.status, 200);
  EXPECT_TRUE(garbage.complete);
  boost::system::error_code error;
  (void)boost::json::parse(garbage.body, error);
  EXPECT_TRUE(error.failed());

  proxy.plan({.fault = Fault::no_http});
  EXPECT_EQ(through(add()).status, 0);

  proxy.plan({.fault = Fault::half_body});
  const RawAnswer half = through(add());
  EXPECT_EQ(half.status, 200);
  EXPECT_FALSE(half.complete);
  EXPECT_FALSE(half.timed_out);
  EXPECT_EQ(half.body.size(), std::stoul(half.headers.at("content-length")) / 2);

  const std::string right = through(read()).headers.at("x-amz-crc32");
  proxy.plan({.fault = Fault::wrong_crc});
  const RawAnswer wrong = through(read());
  EXPECT_EQ(wrong.status, 200);
  EXPECT_TRUE(wrong.complete);
  EXPECT_NE(wrong.headers.at("x-amz-crc32"), right);
  EXPECT_EQ(written(), "3");
}

TEST_F(DynamoDbProxyTest, what_is_held_is_done_when_it_is_let_go_though_the_client_has_left) {
  proxy.plan({.fault = Fault::hold_request});
  EXPECT_TRUE(through_for_a_moment(add()).timed_out);
  EXPECT_EQ(proxy.counts().held, 1);
  EXPECT_EQ(written(), "0");
  proxy.release();
  EXPECT_TRUE(eventually([&] { return written() == "1"; }));

  proxy.plan({.fault = Fault::hold_reply});
  auto answer = std::async(std::launch::async, [&] { return through(add()); });
  EXPECT_TRUE(eventually([&] { return written() == "2"; }));
  EXPECT_TRUE(eventually([&] { return proxy.counts().held == 1; }));
  proxy.release();
  EXPECT_EQ(answer.get().status, 200);
}

TEST_F(DynamoDbProxyTest, a_delay_ends_by_itself_before_or_after_the_server_does_it) {
  for (const Fault fault : {Fault::delay_request, Fault::delay_reply}) {
    proxy.plan({.fault = fault, .seconds = 0.2});
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(through(add()).status, 200) << to_string(fault);
    EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(200)) << to_string(fault);
  }
}

TEST_F(DynamoDbProxyTest, a_rule_finds_its_requests_by_operation_text_and_count) {
  proxy.plan({.fault = Fault::throttle, .operation = "UpdateItem", .contains = "CONN#1", .skip = 1, .times = 2});
  proxy.plan({.fault = Fault::throttle, .operation = "UpdateItem", .contains = "CONN#2", .times = 0});
  EXPECT_EQ(through(read()).status, 200);
  std::vector<int> statuses;
  for (int i = 0; i < 4; ++i) statuses.push_back(through(add()).status);
  EXPECT_EQ(statuses, (std::vector<int>{200, 400, 400, 200}));
  EXPECT_EQ(proxy.counts().faults, (std::map<std::string, int>{{"throttle", 2}}));
  EXPECT_EQ(proxy.counts().seen.at("UpdateItem"), 4);
  EXPECT_EQ(proxy.counts().forwarded.at("UpdateItem"), 2);
}

TEST_F(DynamoDbProxyTest, a_rule_without_an_end_ends_when_the_plan_is_cleared) {
  proxy.plan({.fault = Fault::throttle, .times = 0});
  for (int i = 0; i < 5; ++i) EXPECT_EQ(through(add()).status, 400);
  proxy.clear();
  EXPECT_EQ(through(add()).status, 200);
}

TEST_F(DynamoDbProxyTest, connections_can_be_refused_and_are_taken_again_on_the_same_port) {
  proxy.refuse_connections(true);
  EXPECT_THROW((void)through(add()), std::runtime_error);
  proxy.refuse_connections(false);
  EXPECT_EQ(through(add()).status, 200);
}

TEST_F(DynamoDbProxyTest, a_connection_that_waits_can_be_cut) {
  proxy.plan({.fault = Fault::drop_request});
  auto answer = std::async(std::launch::async, [&] { return through(add()); });
  EXPECT_TRUE(eventually([&] { return proxy.counts().faults["drop_request"] == 1; }));
  proxy.cut_connections();
  const RawAnswer got = answer.get();
  EXPECT_EQ(got.status, 0);
  EXPECT_FALSE(got.timed_out);
}

TEST_F(DynamoDbProxyTest, every_fault_has_a_name_that_the_proxy_knows) {
  for (const Fault fault : all_dynamodb_faults()) EXPECT_NO_THROW(proxy.plan({.fault = fault})) << to_string(fault);
}

}  // namespace
}  // namespace holdfast::test
