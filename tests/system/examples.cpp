// The programs in examples/, as somebody who embeds Holdfast would run them.
#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "support/fleet_processes.hpp"

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

class Examples : public Processes {
 protected:
  runtime::Child example(const std::string& name, std::vector<std::string> more) {
    runtime::SpawnOptions options;
    const auto programs = std::filesystem::path(program_file).parent_path();
    options.arguments = {(programs / ("example_" + name)).string()};
    options.arguments.insert(options.arguments.end(), more.begin(), more.end());
    options.directory = program.folder().path().string();
    options.output = runtime::SpawnOptions::Output::pipe;
    options.dies_with_parent = true;
    auto child = runtime::spawn(options);
    EXPECT_TRUE(child) << child.error().detail;
    return child ? *std::move(child) : runtime::Child();
  }
};

TEST_F(Examples, own_handler_gets_messages_and_ends_in_order) {
  add_streams(3, feed());
  runtime::Child child = example("own_handler", {"sqlite:holdfast.db", "100"});
  std::set<std::string> connections;
  for (int i = 0; i < 100; ++i) {
    const auto line = child.read_line(generous);
    ASSERT_TRUE(line) << line.error().detail;
    EXPECT_THAT(*line, testing::MatchesRegex("s[012] [0-9]+ \\{.*\\}"));
    connections.insert(line->substr(0, 2));
  }
  EXPECT_EQ(connections.size(), 3U);
  (void)child.read_all(generous);
  EXPECT_EQ(child.wait(generous), (runtime::Exit{0, 0}));
  EXPECT_EQ(text("s1", "lease"), "free");
}

TEST_F(Examples, make_their_table_and_say_what_they_wait_for_or_what_is_wrong) {
  for (const std::string name : {"own_handler", "jobs"}) {
    const auto programs = std::filesystem::path(program_file).parent_path();
    const std::string path = (programs / ("example_" + name)).string();
    EXPECT_THAT(program.run_command({"timeout", "2", path}).err, testing::HasSubstr("holdfast conn add")) << name;
    EXPECT_TRUE(std::filesystem::exists(program.file(name == "jobs" ? "jobs.db" : "holdfast.db"))) << name;
    const auto refused = program.run_command({path, "sqlite:nowhere/x.db"});
    EXPECT_EQ(refused.code, 1);
    EXPECT_THAT(refused.err, testing::HasSubstr("nowhere/x.db")) << name;
  }
}

TEST_F(Examples, jobs_run_in_one_process_at_a_time_and_go_on_where_they_were) {
  ASSERT_EQ(program.run({"conn", "add", "job-1", "--url", "ws://127.0.0.1:9/"}).code, 0);
  runtime::Child first = example("jobs", {"sqlite:holdfast.db"});
  for (int count = 1; count <= 50; ++count) {
    ASSERT_EQ(first.read_line(generous).value_or(""), "job-1 " + std::to_string(count));
  }
  runtime::Child second = example("jobs", {"sqlite:holdfast.db"});
  first.kill(SIGTERM);
  const std::string rest = first.read_all(generous);
  EXPECT_EQ(first.wait(generous), (runtime::Exit{0, 0}));
  const auto lines = std::count(rest.begin(), rest.end(), '\n');
  EXPECT_EQ(second.read_line(generous).value_or(""), "job-1 " + std::to_string(50 + lines + 1));
  second.kill(SIGTERM);
  (void)second.read_all(generous);
  EXPECT_EQ(second.wait(generous), (runtime::Exit{0, 0}));
}

TEST_F(Examples, errands_are_charged_once_and_printed_one_after_the_other) {
  std::vector<runtime::Child> all;
  for (int i = 0; i < 4; ++i) all.push_back(example("errands", {"sqlite:errands.db", "order-17"}));
  int charged = 0;
  std::set<std::string> receipts;
  for (runtime::Child& each : all) {
    const std::string printed = each.read_all(generous);
    EXPECT_EQ(each.wait(generous), (runtime::Exit{0, 0})) << printed;
    charged += printed.find("charging for") != std::string::npos ? 1 : 0;
    const auto at = printed.find("receipt of ");
    ASSERT_NE(at, std::string::npos) << printed;
    receipts.insert(printed.substr(at, 43));
    EXPECT_THAT(printed, testing::HasSubstr("page 3\nthe first order of the day was order-17\n"));
  }
  EXPECT_EQ(charged, 1);
  EXPECT_EQ(receipts.size(), 1U) << "all were told the same";
}

}  // namespace
}  // namespace holdfast::test
