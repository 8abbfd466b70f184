// The worker command: what a person sees who starts one for the first time, and what can be wrong at the start.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <csignal>

#include "support/eventually.hpp"
#include "support/program.hpp"

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using test::eventually;
using test::expect_one_line;
using test::Program;
using testing::HasSubstr;

class CliWorker : public testing::Test {
 protected:
  Program program;
  runtime::Child feed;

  void start_feed_and_add(const std::string& id) {
    auto child = program.start({"feed", "--port", "0", "--streams", "1", "--rate", "50"});
    ASSERT_TRUE(child);
    feed = std::move(*child);
    const auto line = feed.read_line(30s);
    ASSERT_TRUE(line);
    const std::string url = line->substr(13, line->size() - 13 - 4) + "s0";
    ASSERT_EQ(program.run({"conn", "add", id, "--url", url, "--resume-query", "since", "--seq-pointer", "/seq"}).code,
              0);
  }
  boost::json::object shown(const std::string& id) {
    return boost::json::parse(program.run({"conn", "show", id, "--json"}).out).as_object();
  }
};

TEST_F(CliWorker, makes_its_table_holds_what_is_added_and_gives_it_back_when_stopped) {
  auto worker =
      program.start({"worker", "--sink", "stdout", "--id", "w1", "--lease", "2s", "--report", "report.json"});
  ASSERT_TRUE(worker);
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(program.file("holdfast.db")); }));
  start_feed_and_add("a");
  const auto line = worker->read_line(60s);
  ASSERT_TRUE(line) << line.error().detail;
  EXPECT_THAT(*line, HasSubstr(R"({"conn":"a","epoch":1,"seq":)"));
  EXPECT_TRUE(eventually([&] { return shown("a").at("last_seq").as_int64() > 0; }));
  EXPECT_THAT(std::string(shown("a").at("owner").as_string()), testing::StartsWith("w1#"));
  EXPECT_THAT(program.run({"conn", "ls"}).out, HasSubstr(" left "));

  worker->kill(SIGTERM);
  worker->close_output();
  const auto exit = worker->wait(60s);
  ASSERT_TRUE(exit);
  EXPECT_EQ(shown("a").at("lease").as_string(), "free");
  EXPECT_EQ(shown("a").at("epoch").as_int64(), 1);
}

TEST_F(CliWorker, stopping_a_connection_closes_it_and_starting_it_again_goes_on) {
  start_feed_and_add("a");
  auto worker = program.start({"worker", "--sink", "ndjson:messages", "--id", "w1", "--lease", "2s"});
  ASSERT_TRUE(worker);
  ASSERT_TRUE(eventually([&] { return shown("a").at("last_seq").as_int64() > 0; }, 60s));
  ASSERT_EQ(program.run({"conn", "stop", "a"}).code, 0);
  ASSERT_TRUE(eventually([&] { return shown("a").at("lease").as_string() == "free"; }, 60s));
  const std::int64_t stopped_at = shown("a").at("last_seq").as_int64();
  ASSERT_EQ(program.run({"conn", "start", "a"}).code, 0);
  ASSERT_TRUE(eventually([&] { return shown("a").at("last_seq").as_int64() > stopped_at; }, 60s));
  EXPECT_EQ(shown("a").at("epoch").as_int64(), 2);
}

// `timeout` tells the process, and then its group: the same stop twice.
TEST_F(CliWorker, says_what_it_does_and_a_stop_that_is_told_twice_is_one_drain) {
  ASSERT_EQ(program.run({"conn", "add", "a", "--url", "ws://127.0.0.1:1/"}).code, 0);
  const auto ended = program.run_command({"timeout", "12", test::program_file, "worker", "--sink", "ndjson:out",
                                          "--lease", "2s", "--report", "report.json"});
  EXPECT_EQ(ended.code, 124) << "as timeout has it";
  EXPECT_THAT(ended.err, HasSubstr("a: backing off: ")) << "why nothing comes";
  EXPECT_THAT(ended.err, HasSubstr("draining: 1 held"));
  EXPECT_THAT(ended.err, HasSubstr("1 given back, 0 cut"));
  EXPECT_THAT(program.read("report.json"), HasSubstr(R"("end":"drained")"));
}

TEST_F(CliWorker, says_that_it_made_a_table_and_that_there_is_nothing_in_it) {
  const auto ended = program.run_command(
      {"timeout", "8", test::program_file, "worker", "--sink", "ndjson:out", "--store", "sqlite:mistyped.db"});
  EXPECT_THAT(ended.err, HasSubstr("made the table in mistyped.db"));
  EXPECT_THAT(ended.err, HasSubstr("holdfast conn add --store sqlite:mistyped.db"));
}

TEST_F(CliWorker, a_report_that_cannot_be_written_is_told_in_one_line_at_the_start) {
  expect_one_line(program.run({"worker", "--sink", "ndjson:out", "--report", "nowhere/r.json"}), 1, "nowhere/r.json");
}

TEST_F(CliWorker, of_a_dead_worker_only_the_past_is_shown) {
  start_feed_and_add("a");
  auto worker = program.start({"worker", "--sink", "ndjson:out", "--lease", "2s"});
  ASSERT_TRUE(worker);
  ASSERT_TRUE(eventually([&] { return shown("a").at("status") == "flowing"; }, 60s));
  worker->kill(SIGKILL);
  ASSERT_TRUE(eventually([&] { return shown("a").at("lease").as_string() == "expired"; }, 60s));
  EXPECT_TRUE(shown("a").at("status").is_null());
  EXPECT_THAT(program.run({"conn", "show", "a"}).out, HasSubstr("was flowing"));
  EXPECT_THAT(program.run({"conn", "ls"}).out, testing::Not(HasSubstr("flowing")));
}

TEST_F(CliWorker, a_sink_that_cannot_be_is_told_in_one_line) {
  expect_one_line(program.run({"worker", "--sink", "ndjson:nowhere/messages"}), 1, "nowhere");
  program.write("file", "");
  expect_one_line(program.run({"worker", "--sink", "ndjson:file"}), 1, "file");
}

TEST_F(CliWorker, ends_with_an_error_when_whoever_read_its_output_is_gone) {
  auto worker = program.start({"worker", "--sink", "stdout", "--id", "w1", "--lease", "2s"});
  ASSERT_TRUE(worker);
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(program.file("holdfast.db")); }));
  start_feed_and_add("a");
  ASSERT_TRUE(worker->read_line(60s));
  worker->close_output();
  const auto exit = worker->wait(60s);
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 1);
  EXPECT_EQ(shown("a").at("lease").as_string(), "free");
}

TEST_F(CliWorker, too_few_open_files_are_told_as_that_and_not_as_a_fault_of_the_program) {
  ASSERT_EQ(program.run({"init"}).code, 0);
  for (const std::string limit : {"9", "10", "12", "14", "20"}) {
    const auto ended = program.run_command({"sh", "-c", "ulimit -n " + limit + R"(; exec "$@")", "sh",
                                            test::program_file, "worker", "--sink", "ndjson:messages"});
    EXPECT_EQ(ended.code, 1) << limit << ": " << ended.err;
    EXPECT_THAT(ended.err, testing::Not(HasSubstr("report it"))) << limit;
  }
}

TEST_F(CliWorker, a_database_that_is_none_is_told_in_one_line) {
  program.write("notes.db", std::string(5000, 'x'));
  expect_one_line(program.run({"worker", "--sink", "stdout", "--store", "sqlite:notes.db"}), 1, "notes.db");
}

}  // namespace
}  // namespace holdfast
