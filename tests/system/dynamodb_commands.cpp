// The program as people run it, on DynamoDB Local.
#include <gmock/gmock.h>

#include "support/dynamodb_call.hpp"
#include "support/dynamodb_proxy.hpp"
#include "support/dynamodb_servers.hpp"
#include "support/fleet_processes.hpp"

namespace holdfast::test {

using testing::HasSubstr;

class DynamoDbCommands : public Processes {
 protected:
  /// Commands name a table that nobody has made.
  void be_without_table() {
    for (const auto& [name, value] : DynamoDbServer::environment()) program.set(name, value);
    program.set("HOLDFAST_STORE", url());
  }
  [[nodiscard]] std::string url(const std::string& more = "") const {
    return "dynamodb://" + table + "?region=us-east-1&endpoint=" + DynamoDbServer::local().endpoint() + more;
  }

  const std::string table = random_table_name("commands");
};

TEST_F(DynamoDbCommands, a_table_that_is_made_a_connection_that_is_added_and_a_worker_that_holds_it) {
  be_without_table();
  const auto made = program.run({"init"});
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("made table " + table));

  const std::string base = feed();
  add_streams(3, base);
  runtime::Child w1 = worker("w1");
  ASSERT_TRUE(wait_until([&] { return flowing("w1") == 3; }));

  const auto listed = program.run({"conn", "ls"});
  EXPECT_EQ(listed.code, 0) << listed.err;
  EXPECT_THAT(listed.out, HasSubstr("s2"));
  EXPECT_THAT(listed.out, HasSubstr("w1"));
  EXPECT_THAT(text("s0", "owner"), HasSubstr("w1"));

  w1.kill(SIGTERM);
  const auto exit = w1.wait(generous);
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 0);
  EXPECT_EQ(text("s0", "owner"), "");
  EXPECT_GT(std::stoll(text("s0", "last_seq")), 0);
  expect_no_hole();
  expect_one_owner_at_a_time();
}

TEST_F(DynamoDbCommands, every_command_on_connections_does_on_dynamodb_what_it_does_on_sqlite) {
  be_on_dynamodb(table);
  program.write("feeds.ndjson", R"({"id":"a","url":"ws://h/a"})"
                                "\n"
                                R"({"id":"b","url":"ws://h/b","stopped":true})"
                                "\n");
  EXPECT_EQ(program.run({"conn", "import", "feeds.ndjson"}).code, 0);
  add("c", "ws://h/c");
  EXPECT_EQ(text("a", "desired_state"), "STARTED");
  EXPECT_EQ(text("b", "desired_state"), "STOPPED");
  EXPECT_EQ(program.run({"conn", "start", "b"}).code, 0);
  EXPECT_EQ(program.run({"conn", "stop", "a"}).code, 0);
  EXPECT_EQ(program.run({"conn", "rm", "c"}).code, 0);
  EXPECT_EQ(text("b", "desired_state"), "STARTED");
  EXPECT_EQ(text("a", "desired_state"), "STOPPED");
  EXPECT_EQ(program.run({"conn", "release", "b"}).code, 0);
  EXPECT_EQ(program.run({"conn", "add", "a", "--url", "ws://h/other"}).code, 1) << "it is there";
  EXPECT_EQ(program.run({"conn", "add", "a", "--url", "ws://h/other", "--replace"}).code, 0);
  EXPECT_THAT(program.run({"conn", "show", "a"}).out, HasSubstr("ws://h/other"));
  const auto listed = program.run({"conn", "ls", "--json"});
  EXPECT_THAT(listed.out, testing::Not(HasSubstr("\"c\"")));
}

TEST_F(DynamoDbCommands,
       s05_a_write_whose_answer_was_lost_is_known_again_by_the_row_also_where_expiries_are_seconds) {
  DynamoDbProxy proxy(DynamoDbServer::local().port());
  for (const char* names : {"", "&key=tarefa_id&owner=instancia_id&expires=expiracao&expires_unit=s"}) {
    const std::string lost = random_table_name("lost");
    be_on_dynamodb(lost, proxy.endpoint() + names);
    const auto lose_next_answer = [&] {
      proxy.plan({.fault = DynamoDbFault::cut_after_reply, .operation = "UpdateItem"});
    };
    lose_next_answer();
    const auto added = program.run({"conn", "add", "a", "--url", "ws://h/"});
    EXPECT_EQ(added.code, 0) << added.err;
    lose_next_answer();
    const auto stopped = program.run({"conn", "stop", "a"});
    EXPECT_EQ(stopped.code, 0) << stopped.err;
    EXPECT_EQ(text("a", "desired_state"), "STOPPED");
    const bool seconds = *names != '\0';
    const std::int64_t in_an_hour = now_ms() + 3'600'000;
    using Json = boost::json::object;
    dynamodb_call(DynamoDbServer::local().port(), "UpdateItem",
                  {{"TableName", lost},
                   {"Key", Json{{seconds ? "tarefa_id" : "Pk", Json{{"S", "CONN#a"}}}}},
                   {"UpdateExpression", "SET #o = :o, #e = :e"},
                   {"ExpressionAttributeNames", Json{{"#o", seconds ? "instancia_id" : "lease_owner"},
                                                     {"#e", seconds ? "expiracao" : "lease_expires_at_ms"}}},
                   {"ExpressionAttributeValues",
                    Json{{":o", Json{{"S", "w#1"}}},
                         {":e", Json{{"N", std::to_string(seconds ? in_an_hour / 1000 : in_an_hour)}}}}}});
    lose_next_answer();
    const auto released = program.run({"conn", "release", "a"});
    EXPECT_EQ(released.code, 0) << released.err;
    EXPECT_THAT(released.out, HasSubstr("is free in 20"));
    EXPECT_LT(shown("a").at("expires_at_ms").as_int64(), now_ms() + 30'000);
    EXPECT_EQ(proxy.counts().faults["cut_after_reply"], *names == '\0' ? 3 : 6);
  }
}

TEST_F(DynamoDbCommands, init_makes_it_as_it_is_told_once_and_says_afterwards_what_differs) {
  be_without_table();
  const auto described = [&] {
    return dynamodb_call(DynamoDbServer::local().port(), "DescribeTable", {{"TableName", table}})
        .at("Table")
        .as_object();
  };
  const auto made = program.run({"init", "--billing", "provisioned", "--write-units", "7", "--stream"});
  EXPECT_EQ(made.code, 0) << made.err;
  const auto is = described();
  EXPECT_EQ(is.at("ProvisionedThroughput").at("WriteCapacityUnits").as_int64(), 7);
  EXPECT_EQ(is.at("GlobalSecondaryIndexes").at(0).at("ProvisionedThroughput").at("WriteCapacityUnits").as_int64(), 7);
  EXPECT_TRUE(is.at("StreamSpecification").at("StreamEnabled").as_bool());
  const auto ttl = dynamodb_call(DynamoDbServer::local().port(), "DescribeTimeToLive", {{"TableName", table}})
                       .at("TimeToLiveDescription");
  EXPECT_EQ(ttl.at("AttributeName").as_string(), "tombstone_expires_at");

  const auto again = program.run({"init"});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(again.out, "table " + table + " is there, with its index desired_state-lease_expires_at_ms-index\n");
  const auto other = program.run({"init", "--billing", "on-demand"});
  EXPECT_EQ(other.code, 0) << other.err;
  EXPECT_THAT(other.out,
              HasSubstr("its billing is another than on demand: the table is provisioned with 5 read and 7 "
                        "write units"));
  EXPECT_EQ(described().at("ProvisionedThroughput"), is.at("ProvisionedThroughput")) << "left as it is";

  expect_one_line(program.run({"init", "--store", url("&key=id")}), 1, "should be id (S)");
}

TEST_F(DynamoDbCommands, init_refuses_what_makes_no_sense) {
  be_without_table();
  expect_one_line(program.run({"init", "--billing", "free"}), 2, "neither on-demand nor provisioned");
  expect_one_line(program.run({"init", "--billing", "on-demand", "--read-units", "5"}), 2, "go with --billing");
  expect_one_line(program.run({"init", "--read-units", "0"}), 2, "--read-units");
  expect_one_line(program.run({"init", "--store", "sqlite:x.db", "--stream"}), 2, "a table of DynamoDB");
}

TEST_F(DynamoDbCommands, a_table_that_is_not_there_is_told_with_the_command_that_makes_it) {
  be_without_table();
  const std::string advice = "holdfast init --store '" + url() + "'";
  expect_one_line(program.run({"conn", "ls"}), 1, advice);
  expect_one_line(program.run({"conn", "add", "a", "--url", "ws://h/"}), 1, advice);
  const auto refused = program.run({"worker", "--sink", "stdout"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr(advice));
}

TEST_F(DynamoDbCommands, libcurl_is_needed_where_http_is_spoken_and_nowhere_else) {
  be_without_table();
  program.write("libcurl.so.4", "");  // found first, and of no use
  program.set("LD_LIBRARY_PATH", program.folder().path().string());
  expect_one_line(program.run({"conn", "ls"}), 1, "install Debian's libcurl4");
  EXPECT_EQ(program.run({"run", "t", "--store", "sqlite:t.db", "--", "true"}).code, 0);
}

TEST_F(DynamoDbCommands, a_listing_whose_reader_has_gone_ends_in_silence) {
  be_on_dynamodb(table);
  const auto ended = program.run_command({"/bin/sh", "-c", R"("$0" conn ls | true)", program_file});
  EXPECT_THAT(ended.err, testing::Not(HasSubstr("cannot write")));
}

}  // namespace holdfast::test
