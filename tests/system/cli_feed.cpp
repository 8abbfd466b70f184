// The feed, seen by a client that is not ours.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <csignal>

#include "support/program.hpp"

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using test::expect_one_line;
using test::Program;
using testing::HasSubstr;

// Prints what happens on one connection, one line each: "open", the messages, "close CODE", "refused STATUS".
// An argument of the form +SECONDS makes it pause that long after the first message.
constexpr const char* client = R"py(
import asyncio, sys, websockets

async def main(url, count):
    try:
        async with websockets.connect(url, max_size=None, ping_interval=None) as ws:
            print("open", flush=True)
            try:
                for _ in range(count):
                    print(await asyncio.wait_for(ws.recv(), 60), flush=True)
            except websockets.ConnectionClosed as closed:
                print("close", ws.close_code, flush=True)
    except websockets.InvalidStatusCode as refused:
        print("refused", refused.status_code, flush=True)

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
)py";

class CliFeed : public testing::Test {
 protected:
  Program program;
  runtime::Child feed;
  std::string base;  // ws://127.0.0.1:PORT/stream/

  void start(std::vector<std::string> more) {
    std::vector<std::string> arguments{"feed", "--port", "0"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    auto child = program.start(arguments);
    ASSERT_TRUE(child);
    feed = std::move(*child);
    const auto line = feed.read_line(30s);
    ASSERT_TRUE(line) << line.error().detail;
    ASSERT_THAT(*line, testing::MatchesRegex("listening on ws://127\\.0\\.0\\.1:[0-9]+/stream/NAME"));
    base = line->substr(13, line->size() - 13 - 4);
  }

  // Lines of a client that takes `count` messages.
  std::vector<std::string> listen(const std::string& target, int count) {
    runtime::SpawnOptions options;
    options.arguments = {"/usr/bin/python3", "-c", client, base + target, std::to_string(count)};
    options.output = runtime::SpawnOptions::Output::pipe;
    options.dies_with_parent = true;
    auto child = runtime::spawn(options);
    std::vector<std::string> lines;
    if (!child) return lines;
    std::istringstream output(child->read_all(100s));
    for (std::string line; std::getline(output, line);) lines.push_back(line);
    return lines;
  }
  static std::int64_t seq(const std::string& line) { return boost::json::parse(line).at("seq").as_int64(); }
};

TEST_F(CliFeed, messages_are_numbered_without_holes_and_can_be_had_again_from_any_number) {
  start({"--streams", "2", "--rate", "50", "--history", "1000", "--size", "10"});
  const auto first = listen("s1", 5);
  ASSERT_EQ(first.size(), 6U);
  EXPECT_EQ(first[0], "open");
  const auto message = boost::json::parse(first[1]).as_object();
  EXPECT_EQ(message.at("stream").as_string(), "s1");
  EXPECT_EQ(message.at("data").as_string().size(), 10U);
  for (std::size_t i = 2; i < first.size(); ++i) EXPECT_EQ(seq(first[i]), seq(first[i - 1]) + 1);
  const auto again = listen("s1?since=" + std::to_string(seq(first[2])), 5);
  ASSERT_EQ(again.size(), 6U);
  EXPECT_EQ(again[1], first[3]) << "the same message, to the byte";
  EXPECT_EQ(seq(again[1]), seq(first[2]) + 1);
}

TEST_F(CliFeed, older_than_the_history_begins_at_the_oldest_that_is_kept) {
  start({"--streams", "1", "--rate", "200", "--history", "10", "--messages", "100"});
  ASSERT_EQ(listen("s0?since=99", 1).size(), 2U) << "waits until it has said all";
  const auto lines = listen("s0?since=0", 10);
  ASSERT_EQ(lines.size(), 11U);
  EXPECT_EQ(seq(lines[1]), 91);
  EXPECT_EQ(seq(lines[10]), 100);
}

TEST_F(CliFeed, says_nothing_before_enough_clients_listen) {
  start({"--streams", "1", "--rate", "100", "--begin-with", "1"});
  const auto lines = listen("s0", 3);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(seq(lines[1]), 1) << "had it spoken before, this client would have missed it";
}

TEST_F(CliFeed, other_paths_are_not_found) {
  start({"--streams", "2"});
  EXPECT_THAT(listen("s2", 1), testing::ElementsAre("refused 404"));
  EXPECT_THAT(listen("", 1), testing::ElementsAre("refused 404"));
  EXPECT_THAT(listen("s1?since=x", 1), testing::ElementsAre("refused 400"));
}

TEST_F(CliFeed, closes_and_cuts_connections_when_told_to) {
  start({"--streams", "1", "--rate", "100", "--close-every", "3", "--close-code", "1012"});
  const auto closed = listen("s0", 10);
  ASSERT_EQ(closed.size(), 5U);
  EXPECT_EQ(closed.back(), "close 1012");
  feed.stop(10s);
  start({"--streams", "1", "--rate", "100", "--drop-every", "3"});
  const auto cut = listen("s0", 10);
  ASSERT_EQ(cut.size(), 5U);
  EXPECT_EQ(cut.back(), "close 1006");
}

TEST_F(CliFeed, closes_its_connections_and_ends_well_on_a_signal) {
  start({"--streams", "1", "--rate", "100"});
  runtime::SpawnOptions options;
  options.arguments = {"/usr/bin/python3", "-c", client, base + "s0", "100000"};
  options.output = runtime::SpawnOptions::Output::pipe;
  options.dies_with_parent = true;
  auto listener = runtime::spawn(options);
  ASSERT_TRUE(listener);
  ASSERT_TRUE(listener->read_line(60s));
  feed.kill(SIGTERM);
  const auto exit = feed.wait(30s);
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 0);
  EXPECT_THAT(listener->read_all(60s), testing::EndsWith("close 1001\n"));
}

TEST_F(CliFeed, a_port_in_use_is_told_in_one_line) {
  start({"--streams", "1"});
  const std::string port = base.substr(15, base.find("/stream") - 15);
  expect_one_line(program.run({"feed", "--port", port}), 1, "port " + port + " is in use: choose another --port");
}

}  // namespace
}  // namespace holdfast
