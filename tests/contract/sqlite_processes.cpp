// Several processes on one SQLite file, and what the operating system can do to one of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>

#include "asking.hpp"
#include "helper.hpp"
#include "runtime/spawn.hpp"
#include "support/temporary_folder.hpp"

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using testing::AnyOf;
using testing::HasSubstr;
using testing::StartsWith;

class SqliteProcesses : public testing::Test {
 protected:
  SqliteProcesses() { EXPECT_TRUE(open().initialize().ok()); }

  Asking open() {
    auto store = open_store("sqlite:" + path_, loop_);
    if (!store) throw std::runtime_error(store.error().detail);
    return {std::move(*store), loop_};
  }
  runtime::Child start(std::vector<std::string> arguments) {
    auto child = runtime::spawn({.arguments = helper_command(std::move(arguments)),
                                 .output = runtime::SpawnOptions::Output::pipe,
                                 .dies_with_parent = true});
    if (!child) throw std::runtime_error(child.error().detail);
    return std::move(*child);
  }
  std::string line_of(runtime::Child& child) {
    auto line = child.read_line(60s);
    EXPECT_TRUE(line.has_value()) << "the helper said nothing";
    return line.value_or("");
  }

  TemporaryFolder folder_;
  const std::string path_ = folder_.file("table.db");
  runtime::AsioLoop loop_{1};
};

TEST_F(SqliteProcesses, counters_added_to_by_three_processes_sum_up) {
  std::vector<runtime::Child> children;
  for (int i = 0; i < 3; ++i) children.push_back(start({"count", path_, "400"}));
  for (runtime::Child& child : children) EXPECT_EQ(line_of(child), "400");
  EXPECT_EQ(open().get("counter").value->number("x"), 1200);
}

TEST_F(SqliteProcesses, every_epoch_is_won_once) {
  open().put("race", {{"epoch", 0}});
  std::vector<runtime::Child> children;
  for (int i = 0; i < 3; ++i) children.push_back(start({"race", path_, "100"}));
  std::int64_t won = 0;
  for (runtime::Child& child : children) won += std::stoi(line_of(child));
  EXPECT_EQ(open().get("race").value->number("epoch"), won);
}

class SqliteKilled : public SqliteProcesses, public testing::WithParamInterface<std::pair<const char*, bool>> {};

TEST_P(SqliteKilled, a_process_killed_in_its_transaction_leaves_all_of_it_or_nothing) {
  const auto& [moment, is_there] = GetParam();
  runtime::Child child = start({"hang", path_, moment});
  ASSERT_EQ(line_of(child), "there");
  child.kill(SIGKILL);
  ASSERT_TRUE(child.wait(20s).has_value());
  Asking store = open();
  const RowsReply reply = store.batch_get({"a", "b"});
  EXPECT_EQ(reply.value.size(), is_there ? 2U : 0U);
  EXPECT_TRUE(store.put("a", {{"x", 2}}).ok()) << "its lock went with it";
}

INSTANTIATE_TEST_SUITE_P(At, SqliteKilled,
                         testing::Values(std::pair("begun", false), std::pair("before_commit", false),
                                         std::pair("after_commit", true)),
                         [](const auto& each) { return std::string(each.param.first); });

TEST_F(SqliteProcesses, a_file_that_may_not_be_written_is_told_with_what_to_do) {
  ::chmod(folder_.path().c_str(), 0755);
  ::chmod(path_.c_str(), 0444);
  runtime::Child child = start({"write_as_nobody", path_});
  const std::string said = line_of(child);
  EXPECT_THAT(said, AnyOf(StartsWith("open: "), StartsWith("rejected: ")));
  EXPECT_THAT(said, HasSubstr("this user"));
}

TEST_F(SqliteProcesses, a_file_that_may_not_be_read_is_told_with_what_to_do) {
  ::chmod(folder_.path().c_str(), 0755);
  ::chmod(path_.c_str(), 0000);
  runtime::Child child = start({"write_as_nobody", path_});
  EXPECT_THAT(line_of(child), AllOf(StartsWith("open: "), HasSubstr("this user")));
}

TEST_F(SqliteProcesses, a_full_disk_is_told_in_words_and_ends_when_there_is_room_again) {
  runtime::Child child = start({"fill", path_, "300000"});
  const std::string said = line_of(child);
  EXPECT_THAT(said, AnyOf(HasSubstr(" throttled works again: cannot"), HasSubstr(" unknown works again: cannot")));
  const int written = std::stoi(said);
  EXPECT_GT(written, 0);
  Asking store = open();
  for (int i = 0; i < written; ++i) EXPECT_TRUE(store.get("row-" + std::to_string(i)).value.has_value()) << i;
}

}  // namespace
}  // namespace holdfast::test
