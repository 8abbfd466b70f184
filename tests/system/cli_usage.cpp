// What every command has in common: help, versions, exit codes, one line for what is wrong, where settings come from.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "cli/program.hpp"
#include "support/program.hpp"

namespace holdfast {
namespace {

using test::expect_one_line;
using test::Program;
using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

std::vector<std::string> words(const std::string& path) {
  std::vector<std::string> result;
  std::istringstream input(path);
  for (std::string word; input >> word;) result.push_back(word);
  return result;
}

/// One that only holds others.
bool is_group(const std::string& path) {
  static const std::set<std::string> groups{"conn", "counter", "stock", "queue", "task", "journal"};
  return groups.contains(path);
}

TEST(CliHelp, every_command_has_it_with_an_example_and_the_exit_codes) {
  Program program;
  for (const std::string& path : cli::command_paths()) {
    auto arguments = words(path);
    arguments.emplace_back("--help");
    const auto ended = program.run(arguments);
    EXPECT_EQ(ended.code, 0) << path;
    EXPECT_EQ(ended.err, "") << path;
    EXPECT_THAT(ended.out, HasSubstr("Usage: holdfast" + (path.empty() ? "" : " " + path)));
    EXPECT_THAT(ended.out, HasSubstr("$ holdfast "));
    if (!is_group(path)) {
      EXPECT_THAT(ended.out, AnyOf(HasSubstr("Exit codes:\n  0  fine\n  1  "),
                                   AllOf(HasSubstr("Exit codes:\n"), HasSubstr("\n  64 "), HasSubstr("\n  69 "))));
    }
    std::istringstream lines(ended.out);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 120U) << line;
  }
}

TEST(CliHelp, there_is_one_command_for_each_thing_that_can_be_done) {
  EXPECT_THAT(
      cli::command_paths(),
      testing::UnorderedElementsAre(
          "", "init", "doctor", "conn", "conn add", "conn ls", "conn show", "conn start", "conn stop", "conn rm",
          "conn release", "conn import", "worker", "serve", "cost", "feed", "demo", "run", "once", "decide",
          "counter", "counter add", "counter show", "stock", "stock add", "stock show", "stock reserve",
          "stock confirm", "stock cancel", "stock reservation", "stock sweep", "queue", "queue send", "queue receive",
          "queue ack", "queue nack", "queue extend", "queue park", "queue redrive", "queue peek", "queue stats",
          "task", "task ls", "task show", "task release", "journal", "journal ls", "journal reconcile",
          "journal set-aside", "journal give-back", "journal sell", "lambda"));
}

TEST(CliHelp, without_a_command_it_says_what_there_is) {
  Program program;
  EXPECT_THAT(program.run({}).out, HasSubstr("Commands:"));
  EXPECT_THAT(program.run({"conn"}).out, HasSubstr("import"));
}

TEST(CliHelp, the_version_is_one_line) {
  Program program;
  const auto ended = program.run({"--version"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_THAT(ended.out, testing::MatchesRegex("holdfast [0-9]+\\.[0-9]+\\.[0-9]+\n"));
}

TEST(CliUsage, what_makes_no_sense_is_told_in_one_line_with_code_2) {
  Program program;
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
      {{"wrker"}, "unknown command 'wrker' (did you mean 'worker'?)"},
      {{"conn", "lss"}, "unknown command 'lss' (did you mean 'ls'?)"},
      {{"feed", "--prt", "1"}, "unknown option '--prt' (did you mean '--port'?)"},
      {{"feed", "--bogus=3"}, "unknown option '--bogus'"},
      {{"feed", "extra"}, "unexpected argument 'extra'"},
      {{"feed", "--port"}, "--port needs a value"},
      {{"feed", "--port", "1", "--port", "2"}, "--port is given more than once"},
      {{"feed", "--port", "x"}, "--port: 'x' is no whole number from 0 to 65535"},
      {{"feed", "--port", "65536"}, "--port: '65536' is no whole number"},
      {{"feed", "--port", "-1"}, "--port: '-1' is no whole number"},
      {{"feed", "--rate", "0"}, "--rate: '0' is no number from 0.001"},
      {{"feed", "--rate", "nan"}, "--rate: 'nan' is no number"},
      {{"feed", "--size", "-1B"}, "--size: '-1B' is negative"},
      {{"feed", "--size", "1GiB"}, "--size: '1GiB' is too large: at most 16MiB"},
      {{"feed", "--close-code", "1006"}, "--close-code: 1006 is never sent"},
      {{"feed", "--streams", "1000000", "--rate", "2"}, "more than 1000000 messages per second"},
      {{"feed", "--listen", "localhost"}, "'localhost' is no IP address"},
      {{"worker"}, "--sink is required"},
      {{"worker", "--sink", "stdout", "--lease", "20"}, "--lease: '20' has no unit: write 20s or 20ms"},
      {{"worker", "--sink", "stdout", "--lease", "-20s"}, "--lease: '-20s' is negative"},
      {{"worker", "--sink", "stdout", "--lease", "999999999999h"}, "--lease: '999999999999h' is too long"},
      {{"worker", "--sink", "stdout", "--lease", "10s", "--renew", "10s"}, "renew"},
      {{"worker", "--sink", "stdout", "--log-level", "loud"}, "--log-level: "},
      {{"worker", "--sink", "carrier-pigeon:x"}, "carrier-pigeon"},
      {{"worker", "--sink", "stdout", "--store", "redis:x"}, "redis:x"},
      {{"demo", "--workers", "0"}, "--workers: '0' is no whole number from 1 to 20"},
      {{"demo", "--connections", "many"}, "--connections: 'many' is no whole number"},
      {{"demo", "--lease", "1ms"}, "--lease must be from 500ms to 60s"},
      {{"demo", "--seconds", "3"}, "--seconds is too short for a lease of 3s"},
      {{"demo", "--connections", "5000", "--rate", "1000"}, "more than 50000 messages per second"},
      {{"conn", "ls", "--json=maybe"}, "--json = maybe: a switch is true or false"},
      {{"conn", "add"}, "ID is required"},
      {{"conn", "add", "a"}, "--url is required"},
      {{"conn", "add", "a", "b", "--url", "ws://h/"}, "unexpected argument 'b'"},
      {{"conn", "add", "a", "--url", "http://h/"}, "--url: "},
      {{"conn", "add", "a", "--url", "ws://user:pass@h/"}, "--url: "},
      {{"conn", "add", "a b", "--url", "ws://h/"}, "has a blank"},
      {{"conn", "add", "a", "--url", "ws://h/", "--header", "nocolon"}, "--header needs a name, a colon and a value"},
      {{"conn", "add", "a", "--url", "ws://h/", "--seq-pointer", "seq"}, "seq.pointer"},
      {{"conn", "add", "a", "--url", "ws://h/", "--resume-message", "{nonsense}"}, "unknown placeholder {nonsense}"},
      {{"conn", "rm"}, "NAME is required"},
      {{"serve", "--max-body", "0B"}, "--max-body: "},
      {{"serve", "--store-patience", "0s"}, "--store-patience: "},
  };
  for (const auto& [arguments, part] : cases) {
    SCOPED_TRACE(testing::PrintToString(arguments));
    expect_one_line(program.run(arguments), 2, part);
  }
  EXPECT_FALSE(std::filesystem::exists(program.file("holdfast.db"))) << "nothing is made before all makes sense";
}

TEST(CliUsage, an_argument_that_is_called_like_a_command_is_an_argument) {
  Program program;
  ASSERT_EQ(program.run({"conn", "add", "a", "--url", "ws://h/"}).code, 0);
  ASSERT_EQ(program.run({"conn", "add", "feed", "--url", "ws://h/"}).code, 0);
  EXPECT_EQ(program.run({"conn", "rm", "a", "feed"}).code, 0);
  EXPECT_THAT(program.run({"conn", "ls"}).out, Not(HasSubstr("STARTED")));
  program.write("settings.toml", "json = false\n");
  for (const std::string file : {"", "settings.toml"}) {  // with all commands set up, too
    program.set("HOLDFAST_CONFIG", file);
    expect_one_line(program.run({"feed", "conn"}), 2, "unexpected argument 'conn'");
    expect_one_line(program.run({"init", "conn", "ls"}), 2, "unexpected argument 'conn'");
  }
}

TEST(CliUsage, a_line_without_end_is_no_connection) {
  Program program;
  auto shell = program.start_command(
      {"/bin/sh", "-c", R"(ulimit -v 4000000; "$0" conn import - </dev/zero 2>told; echo $?)", test::program_file});
  ASSERT_TRUE(shell);
  EXPECT_EQ(shell->read_line(std::chrono::seconds(30)).value_or(""), "1");
  EXPECT_THAT(program.read("told"), HasSubstr("line 1: it is no JSON"));
}

TEST(CliSettings, come_from_the_command_line_before_the_environment_before_the_file) {
  Program program;
  for (const std::string name : {"line", "variable", "file"}) {
    ASSERT_EQ(program.run({"conn", "add", "in-" + name, "--url", "ws://h/", "--store", "sqlite:" + name}).code, 0);
  }
  program.write("settings.toml", "store = \"sqlite:file\"\n");
  EXPECT_THAT(program.run({"conn", "ls", "--config", "settings.toml"}).out, HasSubstr("in-file"));
  EXPECT_THAT(program.run({"--config", "settings.toml", "conn", "ls"}).out, HasSubstr("in-file"));
  program.set("HOLDFAST_CONFIG", "settings.toml");
  EXPECT_THAT(program.run({"conn", "ls"}).out, HasSubstr("in-file"));
  program.set("HOLDFAST_STORE", "sqlite:variable");
  EXPECT_THAT(program.run({"conn", "ls"}).out, HasSubstr("in-variable"));
  EXPECT_THAT(program.run({"conn", "ls", "--store", "sqlite:line"}).out, HasSubstr("in-line"));
}

TEST(CliSettings, of_commands_that_share_an_option_the_one_that_runs_hears_its_own_line) {
  Program program;
  ASSERT_EQ(program.run({"init", "--store", "sqlite:one.db"}).code, 0);
  ASSERT_EQ(program.run({"init", "--store", "sqlite:other.db"}).code, 0);
  program.set("HOLDFAST_STORE", "sqlite:one.db");
  const std::vector<std::vector<std::string>> writes{
      {"counter", "add", "c", "1"},
      {"stock", "add", "s", "1"},
      {"queue", "send", "q", "g", "hello"},
      {"conn", "add", "a", "--url", "ws://h/"},
  };
  for (std::vector<std::string> arguments : writes) {
    arguments.insert(arguments.end(), {"--store", "sqlite:other.db"});
    EXPECT_EQ(program.run(arguments).code, 0) << testing::PrintToString(arguments);
  }
  EXPECT_EQ(program.run({"counter", "show", "c"}).out, "0\n") << "nothing came to where the variable says";
  EXPECT_EQ(program.run({"counter", "show", "c", "--store", "sqlite:other.db"}).out, "1\n");
  EXPECT_EQ(program.run({"stock", "show", "s", "--store", "sqlite:other.db"}).out, "1\n");
  EXPECT_THAT(program.run({"queue", "peek", "q", "g", "--store", "sqlite:other.db"}).out, HasSubstr("hello"));
  EXPECT_THAT(program.run({"conn", "ls", "--store", "sqlite:other.db"}).out, HasSubstr("STARTED"));
  program.set("HOLDFAST_JSON", "false");
  EXPECT_THAT(program.run({"counter", "show", "c", "--json"}).out, HasSubstr("\"value\""));
  program.set("HOLDFAST_JSON", "true");
  EXPECT_THAT(program.run({"counter", "show", "c"}).out, HasSubstr("\"value\""))
      << "and the variable, where it is alone";
  EXPECT_EQ(program.run({"counter", "show", "c", "--json=false"}).out, "0\n");
}

TEST(CliSettings, what_a_command_is_told_about_its_right_is_no_setting_of_another_call) {
  Program program;
  ASSERT_EQ(program.run({"run", "other", "--", "true"}).code, 0);
  const auto inside = program.run({"run", "mine", "--", std::string(test::program_file), "task", "release", "other"});
  EXPECT_EQ(inside.code, 64);
  EXPECT_THAT(inside.err, HasSubstr("--epoch is required"));
}

TEST(CliSettings, a_section_holds_for_its_command_and_goes_before_what_holds_for_all) {
  Program program;
  for (const std::string name : {"all", "mine"}) {
    ASSERT_EQ(program.run({"conn", "add", "in-" + name, "--url", "ws://h/", "--store", "sqlite:" + name}).code, 0);
  }
  program.write("settings.toml", "store = \"sqlite:all\"\n[conn.ls]\nstore = \"sqlite:mine\"\njson = true\n");
  const auto listed = program.run({"conn", "ls", "--config", "settings.toml"});
  EXPECT_THAT(listed.out, HasSubstr("\"id\":\"in-mine\""));
  EXPECT_EQ(program.run({"conn", "show", "in-all", "--config", "settings.toml"}).code, 0);
}

TEST(CliSettings, a_file_that_is_missing_or_has_unknown_settings_is_refused) {
  Program program;
  expect_one_line(program.run({"conn", "ls", "--config", "nowhere.toml"}), 2, "the config file nowhere.toml");
  program.set("HOLDFAST_CONFIG", "settings.toml");
  expect_one_line(program.run({"conn", "ls"}), 2, "the config file settings.toml");
  for (const std::string text : {"lase = \"5s\"\n", "[worker]\nlase = \"5s\"\n", "[wrker]\nlease = \"5s\"\n"}) {
    program.write("settings.toml", text);
    expect_one_line(program.run({"conn", "ls"}), 2, "the config file has an unknown setting");
  }
}

TEST(CliSettings, nonsense_meant_for_another_command_is_not_ours) {
  Program program;
  ASSERT_EQ(program.run({"init"}).code, 0);
  program.set("HOLDFAST_LEASE", "nonsense");
  EXPECT_EQ(program.run({"conn", "ls"}).code, 0);
  expect_one_line(program.run({"worker", "--sink", "stdout"}), 2, "--lease: 'nonsense' is no duration");
}

TEST(CliOutput, a_full_disk_under_standard_output_is_told) {
  Program program;
  ASSERT_EQ(program.run({"init"}).code, 0);
  const auto ended = program.run({"conn", "ls"}, "", "/dev/full");
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, HasSubstr("cannot write to standard output: No space left on device"));
}

}  // namespace
}  // namespace holdfast
