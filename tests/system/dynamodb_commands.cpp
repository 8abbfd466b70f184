// The program as people run it, on DynamoDB Local.
#include <gmock/gmock.h>

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

TEST_F(DynamoDbCommands, a_table_that_is_not_there_is_told_with_the_command_that_makes_it) {
  be_without_table();
  const std::string advice = "holdfast init --store " + url();
  expect_one_line(program.run({"conn", "ls"}), 1, advice);
  expect_one_line(program.run({"conn", "add", "a", "--url", "ws://h/"}), 1, advice);
  const auto refused = program.run({"worker", "--sink", "stdout"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr(advice));
}

TEST_F(DynamoDbCommands, a_listing_whose_reader_has_gone_ends_in_silence) {
  be_on_dynamodb(table);
  const auto ended = program.run_command({"/bin/sh", "-c", R"("$0" conn ls | true)", program_file});
  EXPECT_THAT(ended.err, testing::Not(HasSubstr("cannot write")));
}

}  // namespace holdfast::test
