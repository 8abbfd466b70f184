// Processes of the program that want the same at once, on each store.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "support/on_dynamodb.hpp"
#include "support/program.hpp"

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using test::DynamoDbServer;
using test::expect_one_line;
using test::Program;
using testing::Each;

class CoordRaces : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string store = GetParam();
    if (store == "dynamodb") test::use_dynamodb(program);
    if (store == "dynalite") test::use_dynamodb(program, DynamoDbServer::Kind::dynalite);
  }

  Program program;

  /// Starts them all, each with its own words behind those that all have.
  std::vector<runtime::Child> start(const std::vector<std::vector<std::string>>& all) {
    std::vector<runtime::Child> children;
    for (const auto& arguments : all) {
      auto child = program.start(arguments);
      if (child) children.push_back(*std::move(child));
    }
    EXPECT_EQ(children.size(), all.size());
    return children;
  }
  static std::vector<int> codes(std::vector<runtime::Child>& children) {
    std::vector<int> codes;
    for (auto& child : children) codes.push_back(child.wait(150s).value_or(runtime::Exit{-1, 0}).code);
    return codes;
  }
  static std::vector<std::string> first_lines(std::vector<runtime::Child>& children) {
    std::vector<std::string> lines;
    for (auto& child : children) lines.push_back(child.read_line(150s).value_or("nothing"));
    return lines;
  }
  std::string out(const std::vector<std::string>& arguments) {
    const auto ended = program.run(arguments);
    EXPECT_EQ(ended.code, 0) << ended.err;
    return ended.out;
  }
};
/// What needs transactions, which dynalite does not have.
class CoordRacesTransacted : public CoordRaces {};

const auto name_of = [](const auto& store) { return std::string(store.param); };
INSTANTIATE_TEST_SUITE_P(, CoordRaces, testing::Values("sqlite", "dynamodb", "dynalite"), name_of);
INSTANTIATE_TEST_SUITE_P(, CoordRacesTransacted, testing::Values("sqlite", "dynamodb"), name_of);

TEST_P(CoordRaces, of_those_who_run_one_runs_at_a_time_and_each_has_an_epoch_of_its_own) {
  const std::string script =
      "mkdir lock || touch twice; echo $HOLDFAST_EPOCH >>epochs; sleep 0.05; rmdir lock; echo x >>done";
  auto all = start(std::vector<std::vector<std::string>>(
      8, {"run", "t", "--wait", "100s", "--store-patience", "60s", "--", "/bin/sh", "-c", script}));
  EXPECT_THAT(codes(all), Each(0));
  EXPECT_EQ(program.read("done").size(), 16U);
  EXPECT_FALSE(std::filesystem::exists(program.file("twice")));
  EXPECT_EQ(program.read("epochs"), "1\n2\n3\n4\n5\n6\n7\n8\n");
}

TEST_P(CoordRaces, of_those_who_do_not_wait_one_runs_and_the_others_are_told_busy) {
  auto all = start(
      std::vector<std::vector<std::string>>(8, {"run", "t", "--no-wait", "--store-patience", "60s", "--", "/bin/sh",
                                                "-c", "echo x >>ran; while [ ! -e go ]; do sleep 0.05; done"}));
  std::vector<int> ended;
  while (ended.size() < 7) {
    ended.clear();
    for (auto& child : all) {
      if (const auto exit = child.wait(10ms)) ended.push_back(exit->code);
    }
  }
  EXPECT_THAT(ended, Each(75));
  program.write("go", "");
  EXPECT_THAT(codes(all), testing::Contains(0).Times(1));
  EXPECT_EQ(program.read("ran"), "x\n");
}

TEST_P(CoordRaces, of_those_who_run_it_once_one_runs_and_all_tell_its_result) {
  std::vector<std::vector<std::string>> calls;
  for (int i = 0; i < 8; ++i) {
    calls.push_back({"once", "k", "--wait", "100s", "--store-patience", "60s", "--", "/bin/sh", "-c",
                     "echo ran >>runs; sleep 0.2; echo " + std::to_string(i)});
  }
  auto all = start(calls);
  const auto told = first_lines(all);
  EXPECT_EQ(program.read("runs"), "ran\n");
  EXPECT_THAT(told, Each(told.front()));
  EXPECT_NE(told.front(), "nothing");
}

TEST_P(CoordRaces, the_first_proposal_is_told_to_all) {
  std::vector<std::vector<std::string>> calls;
  for (int i = 0; i < 8; ++i) {
    calls.push_back({"decide", "paid-first", "order-" + std::to_string(i), "--store-patience", "60s"});
  }
  auto all = start(calls);
  const auto told = first_lines(all);
  EXPECT_THAT(told.front(), testing::StartsWith("order-"));
  EXPECT_THAT(told, Each(told.front()));
  const auto json = boost::json::parse(out({"decide", "paid-first", "late", "--json"})).as_object();
  EXPECT_EQ(json.at("value"), boost::json::value(told.front()));
  EXPECT_FALSE(json.at("was_ours").as_bool());
}

TEST_P(CoordRacesTransacted, those_who_add_are_all_counted_and_each_operation_once) {
  std::vector<std::vector<std::string>> calls;
  for (int i = 0; i < 12; ++i) {  // each operation by two processes
    calls.push_back({"counter", "add", "n", "1", "--op", std::to_string(i / 2), "--store-patience", "60s"});
  }
  auto all = start(calls);
  EXPECT_THAT(codes(all), Each(0));
  EXPECT_EQ(out({"counter", "show", "n"}), "6\n");
}

TEST_P(CoordRacesTransacted, of_those_who_want_the_last_goods_as_many_get_them_as_there_are) {
  out({"stock", "add", "shirt", "3"});
  out({"stock", "add", "hat", "10"});
  std::vector<std::vector<std::string>> calls;
  for (int i = 0; i < 8; ++i) {
    calls.push_back(
        {"stock", "reserve", "order-" + std::to_string(i), "shirt=1", "hat=2", "--store-patience", "60s"});
  }
  auto all = start(calls);
  const auto ended = codes(all);
  EXPECT_THAT(ended, testing::Contains(0).Times(3));
  EXPECT_THAT(ended, testing::Contains(1).Times(5));
  EXPECT_EQ(out({"stock", "show", "shirt"}), "0\n");
  EXPECT_EQ(out({"stock", "show", "hat"}), "4\n") << "all or none";
}

TEST_P(CoordRacesTransacted, those_who_receive_never_hold_parts_of_one_group_and_lose_nothing) {
  // Two senders in each of three groups, whose messages are numbered in the order in which they were accepted.
  std::vector<std::vector<std::string>> calls;
  for (int i = 0; i < 12; ++i) {
    calls.push_back(
        {"queue", "send", "q", "g" + std::to_string(i % 3), std::to_string(i), "--store-patience", "60s"});
  }
  auto senders = start(calls);
  EXPECT_THAT(codes(senders), Each(0));
  // Each message is in its group's file between its delivery and its acknowledgement.
  const std::string consume = R"sh(
while true; do
  batch=$("$0" queue receive q --max 2 --wait 2s --json --store-patience 60s)
  case $? in 0) ;; 75) exit 0 ;; *) exit 8 ;; esac
  group=$(echo "$batch" | sed -E 's/.*"group":"([^"]*)".*/\1/')
  mkdir "at-$group" || touch twice
  echo "$batch" | grep -oE '"seq":[0-9]+' | cut -d: -f2 >>"seqs-$group"
  rmdir "at-$group"
  "$0" queue ack "$(echo "$batch" | sed -E 's/.*"receipt":"([^"]*)".*/\1/')" --store-patience 60s || exit 9
done)sh";
  std::vector<runtime::Child> consumers;
  for (int i = 0; i < 3; ++i) {
    auto child = program.start_command({"/bin/sh", "-c", consume, test::program_file});
    ASSERT_TRUE(child);
    consumers.push_back(*std::move(child));
  }
  EXPECT_THAT(codes(consumers), Each(0));
  EXPECT_FALSE(std::filesystem::exists(program.file("twice")));
  for (const char* group : {"g0", "g1", "g2"}) {
    EXPECT_EQ(program.read(std::string("seqs-") + group), "1\n2\n3\n4\n") << group;
  }
}

TEST(CoordWithoutTransactions, what_needs_them_says_so_and_nothing_happens) {
  Program program;
  test::use_dynamodb(program, DynamoDbServer::Kind::dynalite);
  expect_one_line(program.run({"counter", "add", "n", "1"}), 64, "does not know TransactWriteItems");
  expect_one_line(program.run({"stock", "add", "shirt", "1"}), 64, "does not know TransactWriteItems");
  expect_one_line(program.run({"queue", "send", "q", "g", "x"}), 64, "does not know TransactWriteItems");
  EXPECT_EQ(program.run({"counter", "show", "n"}).out, "0\n");
}

}  // namespace
}  // namespace holdfast
