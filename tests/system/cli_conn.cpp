// init and conn, with the real program on real files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/json.hpp>
#include <csignal>

#include "support/program.hpp"

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using test::expect_one_line;
using test::Program;
using testing::HasSubstr;
using testing::Not;

class CliConn : public testing::Test {
 protected:
  Program program;

  void add(const std::string& id, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments{"conn", "add", id, "--url", "ws://127.0.0.1:9/stream/" + id};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const auto ended = program.run(arguments);
    ASSERT_EQ(ended.code, 0) << ended.err;
  }
  boost::json::array listed(std::vector<std::string> more = {}) {
    std::vector<std::string> arguments{"conn", "ls", "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return boost::json::parse(program.run(arguments).out).as_array();
  }
};

TEST_F(CliConn, init_makes_the_table_once) {
  EXPECT_THAT(program.run({"init"}).out, HasSubstr("holdfast.db"));
  EXPECT_EQ(program.run({"init"}).code, 0);
  EXPECT_THAT(program.run({"conn", "ls"}).out, HasSubstr("no connections"));
}

TEST_F(CliConn, looking_into_a_table_that_is_not_there_says_what_to_do_and_makes_nothing) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"conn", "ls"}, {"conn", "show", "a"}, {"conn", "stop", "a"}, {"conn", "rm", "*"}}) {
    expect_one_line(program.run(arguments), 1, "holdfast init");
  }
  EXPECT_FALSE(std::filesystem::exists(program.file("holdfast.db")));
  program.write("empty.db", "");
  expect_one_line(program.run({"conn", "ls", "--store", "sqlite:empty.db"}), 1, "holdfast init");
}

TEST_F(CliConn, a_file_that_is_no_database_and_a_folder_that_is_not_there_are_told) {
  program.write("notes.db", std::string(5000, 'x'));
  expect_one_line(program.run({"conn", "ls", "--store", "sqlite:notes.db"}), 1, "notes.db");
  expect_one_line(program.run({"init", "--store", "sqlite:nowhere/holdfast.db"}), 1, "nowhere");
}

TEST_F(CliConn, what_is_no_table_is_told_by_what_it_is) {
  expect_one_line(program.run({"conn", "ls", "--store", "sqlite:."}), 1, "it is no file");
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"init"}, {"conn", "ls"}, {"worker", "--sink", "stdout"}}) {
    auto with_store = arguments;
    with_store.insert(with_store.end(), {"--store", "memory:"});
    expect_one_line(program.run(with_store), 2, "gone when this command ends");
    with_store.back() = "postgres:x";
    const auto ended = program.run(with_store);
    expect_one_line(ended, 2, "give sqlite:PATH");
    EXPECT_THAT(ended.err, Not(HasSubstr("memory")));
  }
}

TEST_F(CliConn, a_file_that_may_only_be_read_is_told) {
  add("a");
  ASSERT_EQ(::chmod(program.folder().path().c_str(), 0755), 0);
  ASSERT_EQ(::chmod(program.file("holdfast.db").c_str(), 0444), 0);
  std::vector<std::string> command{test::program_file, "conn", "stop", "a"};
  if (::geteuid() == 0) {  // who may write everything
    command.insert(command.begin(), {"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"});
  }
  const auto ended = program.run_command(command);
  if (ended.code >= 126) GTEST_SKIP() << "another user cannot reach the program: " << ended.err;
  expect_one_line(ended, 1, "holdfast.db");
}

TEST_F(CliConn, add_makes_the_table_by_itself_and_ls_shows_the_connection_free) {
  add("s10");
  add("s2", {"--stopped"});
  const auto ended = program.run({"conn", "ls"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(ended.out,
            "ID   STATE    STATUS  OWNER  EPOCH  LEASE  LAST SEQ\n"
            "s2   STOPPED  -       -          0  free          0\n"
            "s10  STARTED  -       -          0  free          0\n");
}

TEST_F(CliConn, add_twice_is_refused_and_replace_is_not) {
  add("a");
  expect_one_line(program.run({"conn", "add", "a", "--url", "ws://other/"}), 1,
                  "exists already: change it with --replace");
  EXPECT_EQ(program.run({"conn", "add", "a", "--url", "ws://other/x", "--replace"}).out, "a changed\n");
  EXPECT_THAT(program.run({"conn", "show", "a"}).out, HasSubstr("ws://other/x"));
}

TEST_F(CliConn, show_tells_the_options_and_hides_header_values_that_are_not_references) {
  add("a", {"--resume-query", "since",
            "--seq-pointer",  "/seq",
            "--header",       "Authorization: Bearer secret",
            "--header",       "X-Key:env:KEY",
            "--subprotocol",  "v1",
            "--subprotocol",  "v2",
            "--subscribe",    R"(["a","b"])",
            "--subscribe",    R"({"op":"sub"})",
            "--silent-after", "90s",
            "--max-message",  "2MiB"});
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"conn", "show", "a"}, {"conn", "show", "a", "--json"}}) {
    const auto ended = program.run(arguments);
    EXPECT_EQ(ended.code, 0);
    EXPECT_THAT(ended.out, Not(HasSubstr("secret")));
    EXPECT_THAT(ended.out, HasSubstr("***"));
    EXPECT_THAT(ended.out, HasSubstr("env:KEY"));
  }
  const auto shown = boost::json::parse(program.run({"conn", "show", "a", "--json"}).out).as_object();
  const auto& options = shown.at("options").as_object();
  EXPECT_EQ(options.at("resume.query").as_string(), "since");
  EXPECT_EQ(options.at("subprotocols").as_array().size(), 2U);
  EXPECT_EQ(options.at("subscribe").as_array().at(0).as_string(), R"(["a","b"])");
  EXPECT_EQ(options.at("max_message_bytes").as_int64(), 2 << 20);
  EXPECT_THAT(program.run({"conn", "ls", "--json"}).out, Not(HasSubstr("secret")));
  expect_one_line(program.run({"conn", "show", "b"}), 1, "no connection is called 'b'");
}

TEST_F(CliConn, start_stop_and_rm_take_ids_and_patterns) {
  for (const std::string id : {"s1", "s2", "t1"}) add(id);
  EXPECT_EQ(program.run({"conn", "stop", "s*"}).out, "s1 stopped\ns2 stopped\n");
  EXPECT_EQ(program.run({"conn", "stop", "s1", "s?"}).out, "s1 is stopped already\ns2 is stopped already\n");
  EXPECT_EQ(program.run({"conn", "start", "s[12]"}).out, "s1 started\ns2 started\n");
  EXPECT_EQ(program.run({"conn", "rm", "t1"}).out, "t1 removed\n");
  EXPECT_EQ(listed().size(), 2U);
  EXPECT_EQ(listed({"--all"}).size(), 3U);
  EXPECT_EQ(listed({"s2"}).size(), 1U);
  expect_one_line(program.run({"conn", "start", "x*"}), 1, "no connection matches 'x*', of 2 that there are");
  expect_one_line(program.run({"conn", "remove", "s1"}), 2, "did you mean 'rm'?");
  expect_one_line(program.run({"conn", "start", "t1"}), 1, "was removed: add it again");
}

TEST_F(CliConn, many_at_once_are_summed_up) {
  std::string lines;
  for (int i = 0; i < 30; ++i) {
    lines +=
        R"({"id":"s)" + std::to_string(i) + R"(","url":"ws://h/","stopped":)" + (i < 10 ? "true}\n" : "false}\n");
  }
  EXPECT_EQ(program.run({"conn", "import", "-"}, lines).out, "30 added\n");
  EXPECT_EQ(program.run({"conn", "stop", "*"}).out, "10 is stopped already, 20 stopped\n");
}

TEST_F(CliConn, import_writes_nothing_where_a_line_is_bad_and_names_the_lines) {
  program.write("feeds.ndjson", R"({"id":"a","url":"ws://h/a"})"
                                "\n\n"
                                R"({"id":"b"})"
                                "\nnonsense\n"
                                R"({"id":"a","url":"ws://h/again"})"
                                "\n");
  const auto ended = program.run({"conn", "import", "feeds.ndjson"});
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, testing::MatchesRegex("holdfast: feeds.ndjson, line 3: 'url' is missing\n"
                                               "holdfast: feeds.ndjson, line 4: it is no JSON object: [^\n]+\n"
                                               "holdfast: feeds.ndjson, line 5: 'a' is there twice\n"
                                               "holdfast: feeds.ndjson has 3 bad lines: nothing was imported\n"));
  EXPECT_FALSE(std::filesystem::exists(program.file("holdfast.db")));
  expect_one_line(program.run({"conn", "import", "nowhere.ndjson"}), 1, "cannot read nowhere.ndjson");
}

TEST_F(CliConn, import_reports_those_that_exist_and_changes_them_when_told_to) {
  add("a");
  const std::string lines = R"({"id":"a","url":"ws://h/new"})"
                            "\n"
                            R"({"id":"b","url":"ws://h/b","options":{"seq.pointer":"/seq"}})";
  const auto ended = program.run({"conn", "import", "-"}, lines);
  EXPECT_EQ(ended.code, 1);
  EXPECT_EQ(ended.out, "1 added\n");
  EXPECT_EQ(ended.err, "holdfast: 1 exists already: a: change it with --replace\n");
  EXPECT_EQ(program.run({"conn", "import", "-", "--replace"}, lines).out, "0 added, 2 changed\n");
  EXPECT_THAT(program.run({"conn", "show", "a"}).out, HasSubstr("ws://h/new"));
}

TEST_F(CliConn, watch_lists_again_when_something_changed_and_ends_well_on_a_signal) {
  add("a");
  auto watching = program.start({"conn", "ls", "--watch"});
  ASSERT_TRUE(watching);
  const auto next_line_with = [&](const std::string& part) {
    for (int lines = 0; lines < 100; ++lines) {
      const auto line = watching->read_line(30s);
      if (!line) return false;
      if (line->find(part) != std::string::npos) return true;
    }
    return false;
  };
  EXPECT_TRUE(next_line_with("STARTED"));
  ASSERT_EQ(program.run({"conn", "stop", "a"}).code, 0);
  EXPECT_TRUE(next_line_with("STOPPED"));
  watching->kill(SIGINT);
  const auto exit = watching->wait(30s);
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 0);
}

}  // namespace
}  // namespace holdfast
