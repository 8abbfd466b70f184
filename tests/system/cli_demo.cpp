// The demo as a newcomer runs it, only shorter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <csignal>
#include <filesystem>

#include "support/dynamodb_servers.hpp"
#include "support/program.hpp"

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using test::expect_one_line;
using test::Program;
using testing::HasSubstr;

// Leftovers would be in the folder that TMPDIR names.
class CliDemo : public testing::Test {
 protected:
  CliDemo() {
    std::filesystem::create_directory(program.file("tmp"));
    program.set("TMPDIR", program.file("tmp"));
  }
  Program program;

  [[nodiscard]] bool left_nothing() const { return std::filesystem::is_empty(program.file("tmp")); }
};

TEST_F(CliDemo, survives_a_crash_and_a_stop_and_reports_it_as_json) {
  const auto ended = program.run({"demo", "--connections", "6", "--seconds", "8", "--lease", "1s", "--json"});
  ASSERT_EQ(ended.code, 0) << ended.err << ended.out;
  EXPECT_EQ(ended.err, "");
  const auto result = boost::json::parse(ended.out).as_object();
  EXPECT_EQ(result.size(), 6U);
  EXPECT_EQ(result.at("delivered").as_int64(), 6 * 8 * 20);
  EXPECT_EQ(result.at("missing").as_int64(), 0);
  EXPECT_GE(result.at("repeats").as_int64(), 0);
  EXPECT_EQ(result.at("gaps").as_int64(), 0);
  EXPECT_EQ(result.at("overlaps").as_int64(), 0);
  const auto& failovers = result.at("failovers").as_array();
  ASSERT_EQ(failovers.size(), 2U);
  EXPECT_EQ(failovers[0].at("kind").as_string(), "crash");
  EXPECT_EQ(failovers[1].at("kind").as_string(), "graceful");
  for (const auto& failover : failovers) {
    EXPECT_GE(failover.at("connections").as_int64(), 1);
    EXPECT_LE(failover.at("ms_median").as_int64(), failover.at("ms_max").as_int64());
    EXPECT_GT(failover.at("ms_max").as_int64(), 0);
  }
  EXPECT_TRUE(left_nothing());
}

TEST_F(CliDemo, holds_on_a_table_of_dynamodb_what_it_holds_on_a_file) {
  using test::DynamoDbServer;
  for (const auto& [name, value] : DynamoDbServer::environment()) program.set(name, value);
  const std::string url = "dynamodb://" + test::random_table_name("demo") +
                          "?region=us-east-1&endpoint=" + DynamoDbServer::local().endpoint();
  const auto ended =
      program.run({"demo", "--store", url, "--connections", "6", "--seconds", "10", "--lease", "2s", "--json"});
  ASSERT_EQ(ended.code, 0) << ended.err << ended.out;
  const auto result = boost::json::parse(ended.out).as_object();
  EXPECT_EQ(result.at("delivered").as_int64(), 6 * 10 * 20);
  EXPECT_EQ(result.at("missing").as_int64(), 0);
  EXPECT_EQ(result.at("overlaps").as_int64(), 0);
  EXPECT_EQ(result.at("failovers").as_array().size(), 2U);
  const auto again = program.run({"demo", "--store", url});
  EXPECT_EQ(again.code, 2);
  EXPECT_THAT(again.err, HasSubstr("--store names a table that is in use"));
  EXPECT_TRUE(left_nothing());
}

TEST_F(CliDemo, shares_a_table_that_it_is_given_and_leaves_it_there_but_takes_none_that_is_in_use) {
  const std::vector<std::string> demo{"demo",
                                      "--connections",
                                      "3",
                                      "--seconds",
                                      "8",
                                      "--lease",
                                      "1s",
                                      "--store",
                                      "sqlite:" + program.file("shared.db")};
  const auto ended = program.run(demo);
  ASSERT_EQ(ended.code, 0) << ended.err << ended.out;
  EXPECT_THAT(ended.out, HasSubstr("processes of this machine that share the table sqlite:"));
  EXPECT_THAT(ended.out, HasSubstr("is still there: it is yours to delete."));
  EXPECT_TRUE(left_nothing());
  const auto listed = program.run({"conn", "ls", "--store", "sqlite:" + program.file("shared.db"), "--json"});
  EXPECT_EQ(listed.code, 0) << listed.err;
  EXPECT_THAT(listed.out, HasSubstr("\"s2\""));

  const auto again = program.run(demo);
  EXPECT_EQ(again.code, 2);
  EXPECT_THAT(again.err, HasSubstr("--store names a table that is in use (it has 3 rows in state STARTED)"));
  EXPECT_TRUE(left_nothing());

  expect_one_line(program.run({"demo", "--store", "memory:"}), 2, "a table in memory is gone");
}

TEST_F(CliDemo, tells_a_person_what_happened_and_keeps_the_files_when_asked_to) {
  const auto ended = program.run(
      {"demo", "--workers", "1", "--connections", "3", "--seconds", "8", "--lease", "1s", "--keep", "kept"});
  ASSERT_EQ(ended.code, 0) << ended.err << ended.out;
  for (const std::string part : {"SIGKILL w1", "start w2", "SIGTERM", "480 of 480 arrived", "0 gaps",
                                 "crash (SIGKILL):", "stop (SIGTERM):", "Next:"}) {
    EXPECT_THAT(ended.out, HasSubstr(part));
  }
  EXPECT_THAT(ended.out, testing::Not(HasSubstr("\x1b"))) << "no escape sequences where there is no terminal";
  EXPECT_TRUE(std::filesystem::exists(program.file("kept/holdfast.db")));
  EXPECT_TRUE(std::filesystem::exists(program.file("kept/reports/w2.json")));
  EXPECT_FALSE(std::filesystem::is_empty(program.file("kept/messages")));
  expect_one_line(program.run({"demo", "--keep", "kept"}), 2, "the folder kept is not empty");
}

TEST_F(CliDemo, our_variables_do_not_reach_its_processes) {
  program.set("HOLDFAST_MAX_CONNECTIONS", "1");
  program.set("HOLDFAST_DROP_EVERY", "5");
  const auto ended = program.run({"demo", "--connections", "4", "--seconds", "6", "--lease", "1s", "--json"});
  EXPECT_EQ(ended.code, 0) << ended.err << ended.out;
}

TEST_F(CliDemo, an_interrupt_ends_all_processes_and_leaves_nothing) {
  auto demo = program.start({"demo", "--connections", "3", "--seconds", "60"});
  ASSERT_TRUE(demo);
  while (true) {
    const auto line = demo->read_line(60s);
    ASSERT_TRUE(line) << line.error().detail;
    if (line->find("one owner each") != std::string::npos) break;
  }
  EXPECT_FALSE(left_nothing());
  // Its children: all that have it as their parent.
  std::vector<pid_t> children;
  std::ifstream list("/proc/" + std::to_string(demo->pid()) + "/task/" + std::to_string(demo->pid()) + "/children");
  for (pid_t pid = 0; list >> pid;) children.push_back(pid);
  EXPECT_EQ(children.size(), 4U) << "a feed and three workers";
  demo->kill(SIGINT);
  const auto exit = demo->wait(60s);
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 1);
  for (const pid_t child : children) {
    EXPECT_NE(::kill(child, 0), 0) << child;
  }
  EXPECT_TRUE(left_nothing());
}

TEST_F(CliDemo, a_process_that_dies_unexpectedly_is_named_with_its_last_words) {
  auto demo = program.start({"demo", "--connections", "3", "--seconds", "60", "--keep", "kept"});
  ASSERT_TRUE(demo);
  std::string seen;
  while (seen.find("one owner each") == std::string::npos) {
    const auto line = demo->read_line(60s);
    ASSERT_TRUE(line) << line.error().detail;
    seen = *line;
  }
  std::ifstream list("/proc/" + std::to_string(demo->pid()) + "/task/" + std::to_string(demo->pid()) + "/children");
  pid_t feed = 0;
  ASSERT_TRUE(list >> feed);
  ASSERT_EQ(::kill(feed, SIGKILL), 0);
  const auto exit = demo->wait(60s);
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 1);
}

}  // namespace
}  // namespace holdfast
