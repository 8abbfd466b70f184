// holdfast run, once, decide, task: the real program, killed and cut off. Its races are in coord_races.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "support/dynamodb_servers.hpp"
#include "support/eventually.hpp"
#include "support/program.hpp"

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using test::eventually;
using test::expect_one_line;
using test::Program;
using testing::HasSubstr;

class CoordRun : public testing::Test {
 protected:
  Program program;

  /// Starts `run` with a shell script as its command.
  runtime::Child start(const std::string& script, std::vector<std::string> options = {}) {
    std::vector<std::string> arguments{"run", "t"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.insert(arguments.end(), {"--", "/bin/sh", "-c", script});
    auto child = program.start(arguments);
    EXPECT_TRUE(child);
    return *std::move(child);
  }
  [[nodiscard]] bool appears(const std::string& name) {
    return eventually([&] { return std::filesystem::exists(program.file(name)); });
  }
  /// Somebody holds the write lock for longer than anybody is patient.
  [[nodiscard]] runtime::Child block() {
    auto blocker =
        program.start_command({"/usr/bin/python3", "-c",
                               "import sqlite3, time\n"
                               "c = sqlite3.connect('holdfast.db', isolation_level=None)\n"
                               "c.execute('BEGIN EXCLUSIVE')\nopen('blocked', 'w').close()\ntime.sleep(100)"});
    EXPECT_TRUE(blocker);
    EXPECT_TRUE(appears("blocked"));
    return *std::move(blocker);
  }
  static bool is_stopped(runtime::Child& child) {
    std::ifstream file("/proc/" + std::to_string(child.pid()) + "/stat");
    const std::string stat{std::istreambuf_iterator<char>(file), {}};
    return stat.find(") T ") != std::string::npos;
  }
};

TEST_F(CoordRun, the_command_gets_its_arguments_as_they_are_and_its_exit_code_is_ours) {
  const auto ended =
      program.run({"run", "t", "--", "/bin/sh", "-c", "printf '%s|' \"$@\"; exit 7", "sh", "a b", "*", ""});
  EXPECT_EQ(ended.code, 7);
  EXPECT_EQ(ended.out, "a b|*||");
  EXPECT_EQ(ended.err, "");
  EXPECT_EQ(program.run({"run", "t", "--", "true"}).code, 0);
}

TEST_F(CoordRun, our_options_end_where_the_command_begins) {
  program.set("HOLDFAST_CONFIG", "settings.toml");
  program.write("settings.toml", "[run]\nttl = \"25s\"\n");
  const std::vector<std::string> told{"--wait", "5s", "--help", "--", "--config", "none", "--no-such", "-x"};
  for (const std::string command : {"run", "once"}) {
    for (const bool is_marked : {false, true}) {
      std::vector<std::string> words{command, "t" + std::to_string(is_marked), "--ttl", "30s"};
      if (is_marked) words.emplace_back("--");
      words.insert(words.end(), {"printf", "%s|"});
      words.insert(words.end(), told.begin(), told.end());
      const auto ended = program.run(words);
      EXPECT_EQ(ended.code, 0) << ended.err;
      EXPECT_EQ(ended.out, "--wait|5s|--help|--|--config|none|--no-such|-x|");
    }
  }
  // The file that the variable names is read, whatever the command is told.
  program.write("settings.toml", "[run]\nttl = \"never\"\n");
  expect_one_line(program.run({"run", "t", "printf", "--config", "none"}), 64, "--ttl: 'never' is no duration");
}

TEST_F(CoordRun, a_signal_that_ends_the_command_is_told_as_a_shell_would) {
  EXPECT_EQ(program.run({"run", "t", "--", "/bin/sh", "-c", "kill -KILL $$"}).code, 137);
}

TEST_F(CoordRun, standard_input_and_the_right_are_handed_on) {
  const auto ended = program.run({"run", "t", "--", "/bin/sh", "-c",
                                  "cat; echo \"$HOLDFAST_TASK $HOLDFAST_EPOCH ${#HOLDFAST_ATTEMPT} "
                                  "$((HOLDFAST_DEADLINE_MS / 1000 - $(date +%s)))\""},
                                 "from us\n");
  EXPECT_THAT(ended.out, testing::MatchesRegex("from us\nt 1 32 [0-9]+\n"));
  EXPECT_THAT(program.run({"run", "t", "--", "/bin/sh", "-c", "echo $HOLDFAST_EPOCH"}).out, "2\n");
}

TEST_F(CoordRun, f28_busy_is_told_apart_from_failed) {
  auto holder = start("touch held; sleep 100");
  ASSERT_TRUE(appears("held"));
  expect_one_line(program.run({"run", "t", "--", "true"}), 75, "holdfast: t is held by ");
  EXPECT_EQ(program.run({"run", "t", "--no-wait", "--busy-exit", "9", "--", "true"}).code, 9);
  EXPECT_EQ(program.run({"run", "other", "--", "false"}).code, 1);
  holder.kill(SIGTERM);
  EXPECT_TRUE(holder.wait(30s));
}

TEST_F(CoordRun, who_waits_has_its_turn_as_soon_as_the_task_is_given_back) {
  auto holder = start("touch held; while [ ! -e go ]; do sleep 0.05; done", {"--ttl", "60s"});
  ASSERT_TRUE(appears("held"));
  auto next = start("touch second", {"--wait", "100s"});
  EXPECT_FALSE(next.wait(300ms));
  EXPECT_FALSE(std::filesystem::exists(program.file("second")));
  program.write("go", "");
  ASSERT_EQ(next.wait(50s), (runtime::Exit{0, 0})) << "long before the lease's end";
  EXPECT_EQ(holder.wait(30s), (runtime::Exit{0, 0}));
}

TEST_F(CoordRun, f27_signals_are_heard_while_waiting_and_passed_on_while_running) {
  auto holder = start("trap 'touch told; exit 5' USR1; touch held; while true; do sleep 0.05; done");
  ASSERT_TRUE(appears("held"));
  auto waiting = start("touch ran", {"--wait", "100s"});
  EXPECT_FALSE(waiting.wait(300ms));
  waiting.kill(SIGTERM);
  EXPECT_EQ(waiting.wait(30s), (runtime::Exit{128 + SIGTERM, 0}));
  EXPECT_FALSE(std::filesystem::exists(program.file("ran")));
  holder.kill(SIGUSR1);
  EXPECT_EQ(holder.wait(30s), (runtime::Exit{5, 0}));
  EXPECT_TRUE(std::filesystem::exists(program.file("told")));
}

TEST_F(CoordRun, who_is_not_to_hear_a_hang_up_does_not_and_nor_does_its_command) {
  auto holder = program.start_command({"/bin/sh", "-c",
                                       "trap '' HUP; exec \"$0\" run t -- /bin/sh -c 'touch held; kill -HUP $$; "
                                       "while [ ! -e go ]; do sleep 0.05; done; echo ended'",
                                       test::program_file});
  ASSERT_TRUE(holder);
  ASSERT_TRUE(appears("held"));
  holder->kill(SIGHUP);
  EXPECT_FALSE(holder->wait(300ms));
  program.write("go", "");
  EXPECT_EQ(holder->read_line(30s).value_or(""), "ended");
  EXPECT_EQ(holder->wait(30s), (runtime::Exit{0, 0}));
}

TEST_F(CoordRun, a_dead_holder_is_succeeded_when_its_lease_has_ended_and_its_command_dies_with_it) {
  auto holder = start("touch held; sleep 0.2; while true; do echo x >>beats; sleep 0.05; done", {"--ttl", "2s"});
  ASSERT_TRUE(appears("beats"));
  holder.kill(SIGKILL);
  const auto next = program.run({"run", "t", "--ttl", "2s", "--wait", "60s", "--", "/bin/sh", "-c",
                                 "wc -l <beats; sleep 0.5; wc -l <beats; echo $HOLDFAST_EPOCH"});
  EXPECT_EQ(next.code, 0) << next.err;
  const auto first = next.out.substr(0, next.out.find('\n') + 1);
  EXPECT_EQ(next.out, first + first + "2\n") << "nobody writes while we hold it";
}

TEST_F(CoordRun, f26_when_the_right_is_lost_nothing_of_the_group_is_left) {
  // Somebody takes the lease away; a child of the command ignores SIGTERM.
  auto holder =
      start("(trap '' TERM; touch held; while true; do echo x >>beats; sleep 0.05; done) & wait", {"--ttl", "3s"});
  ASSERT_TRUE(appears("beats"));
  EXPECT_EQ(program.run({"task", "release", "t", "--epoch", "1"}).code, 0);
  EXPECT_EQ(holder.wait(60s), (runtime::Exit{76, 0}));
  const auto count = program.read("beats").size();
  std::this_thread::sleep_for(300ms);
  EXPECT_EQ(program.read("beats").size(), count);
}

TEST_F(CoordRun, a_command_whose_store_goes_away_is_told_to_end_before_the_lease_does) {
  auto holder = start("trap 'touch told; exit 0' TERM; touch held; while true; do sleep 0.05; done", {"--ttl", "3s"});
  ASSERT_TRUE(appears("held"));
  std::filesystem::remove(program.file("holdfast.db"));
  EXPECT_EQ(holder.wait(60s), (runtime::Exit{76, 0}));
  EXPECT_TRUE(std::filesystem::exists(program.file("told"))) << "SIGTERM comes first";
}

TEST_F(CoordRun, f26_who_is_stopped_stops_the_command_and_goes_on_with_it) {
  auto holder = start("touch held; while true; do echo x >>beats; sleep 0.05; done", {"--ttl", "60s"});
  ASSERT_TRUE(appears("beats"));
  holder.kill(SIGTSTP);
  ASSERT_TRUE(eventually([&] { return is_stopped(holder); }));
  const auto count = program.read("beats").size();
  std::this_thread::sleep_for(300ms);
  EXPECT_EQ(program.read("beats").size(), count);
  holder.kill(SIGCONT);
  EXPECT_TRUE(eventually([&] { return program.read("beats").size() > count + 4; }));
  holder.kill(SIGTERM);
  EXPECT_EQ(holder.wait(30s), (runtime::Exit{128 + SIGTERM, 0}));
}

TEST_F(CoordRun, f26_who_was_stopped_for_too_long_does_nothing_more) {
  auto holder = start("touch held; while true; do echo x >>beats; sleep 0.05; done", {"--ttl", "1s"});
  ASSERT_TRUE(appears("beats"));
  holder.kill(SIGTSTP);
  ASSERT_TRUE(eventually([&] { return is_stopped(holder); }));
  EXPECT_EQ(program.run({"run", "t", "--wait", "60s", "--", "cp", "beats", "then"}).code, 0);
  holder.kill(SIGCONT);
  EXPECT_EQ(holder.wait(30s), (runtime::Exit{76, 0}));
  EXPECT_EQ(program.read("beats"), program.read("then")) << "not one more since another had the right";
}

TEST_F(CoordRun, a_command_that_ran_on_without_its_right_is_told_of) {
  const auto ended =
      program.run({"run", "t", "--ttl", "200ms", "--no-renew", "--on-lost", "ignore", "--", "sleep", "0.5"});
  expect_one_line(ended, 0, "had ended before the command did");
  EXPECT_EQ(program.run({"run", "u", "--on-lost", "ignore", "--", "true"}).err, "");
}

TEST_F(CoordRun, without_renewal_the_command_has_its_time_and_no_longer) {
  const auto ended = program.run({"run", "t", "--ttl", "1s", "--no-renew", "--", "sleep", "100"});
  EXPECT_EQ(ended.code, 76);
  EXPECT_THAT(ended.err, HasSubstr("lost"));
}

TEST_F(CoordRun, what_makes_no_sense_is_64_and_says_what) {
  expect_one_line(program.run({"run", "t", "--ttl", "soon", "--", "true"}), 64, "--ttl");
  expect_one_line(program.run({"run", "t", "--ttl", "1ms", "--", "true"}), 64, "--ttl is from 100ms to 24h");
  expect_one_line(program.run({"run", "t"}), 64, "CMD");
  expect_one_line(program.run({"run", "--ttl", "30s", "--", "./x"}), 64, "'./x' was taken for TASK");
  expect_one_line(program.run({"run", "t", "--jsn", "--", "true"}), 64, "unknown option '--jsn'");
  expect_one_line(program.run({"run", "t", "--verbose", "./report.sh"}), 64,
                  "unknown option '--verbose'; options of CMD come after its first word");
  expect_one_line(program.run({"--store", "sqlite:x.db", "run", "t", "--", "true"}), 64,
                  "'--store' is an option of 'holdfast run', and comes after that");
  expect_one_line(program.run({"--json", "task", "ls"}), 64, "'--json' is an option of 'holdfast task ls'");
  expect_one_line(program.run({"run", "t", "--on-lost", "pray", "--", "true"}), 64, "pray");
  expect_one_line(program.run({"run", "t", "--wait", "1s", "--no-wait", "--", "true"}), 64, "--no-wait");
  expect_one_line(program.run({"run", "t", "--store", "postgres:x", "--", "true"}), 64, "postgres");
  expect_one_line(program.run({"run", "t", "--store", "sqlite:/nowhere/x.db", "--", "true"}), 69, "/nowhere");
  expect_one_line(program.run({"task", "ls", "--store", "sqlite:/nowhere/x.db"}), 69, "/nowhere");
  expect_one_line(program.run({"task", "show", "t", "--colour"}), 64, "--colour");
  expect_one_line(program.run({"run", "-t", "true"}), 64, "unknown option '-t'");
  expect_one_line(program.run({"run", "t", ""}), 64, "CMD: its first word, the program, is empty");
  expect_one_line(program.run({"run", "\xff", "true"}), 64, "TASK: it is no UTF-8");
  expect_one_line(program.run({"run", "t", "--skew", "0s", "true"}), 64, "holdfast: --skew is 0 s");
  expect_one_line(program.run({"run", "t", "--store-patience", "0s", "true"}), 64, "--store-patience");
  expect_one_line(program.run({"once", "\xff", "true"}), 64, "KEY: it is no UTF-8");
  expect_one_line(program.run({"stock", "add", "a\nb", "1"}), 64, "line break");
  expect_one_line(program.run({"journal", "sell", "hat=1", "--ticket", "t\nprovisional u"}), 64, "line break");
  expect_one_line(program.run({"queue", "receive", "q", "--poison", "move", "--dead-letter", "\xff"}), 64, "UTF-8");
  expect_one_line(program.run({"once", "k", ""}), 64, "CMD");
  expect_one_line(program.run({"once", "k", "--retention", "0s", "true"}), 64,
                  "--retention is from 1s to 366d, not 0s");
  expect_one_line(program.run({"once", "k", "--abandoned", "reconcile", "--reconcile", "./nowhere", "true"}), 1,
                  "--reconcile: cannot start ./nowhere");
  expect_one_line(program.run({"decide", "k", ""}), 64, "VALUE: it is missing or empty");
  expect_one_line(program.run({"decide", "k"}), 64, "VALUE: it is missing or empty");
  expect_one_line(program.run({"decide", "k", "v", "--show"}), 64, "--show only looks");
  expect_one_line(program.run({"decide", "k", "--show", "--ticket", "t"}), 64, "--show only looks");
  expect_one_line(program.run({"decide", "k", "v", "--mode", "available", "--max-age", "0s"}), 64, "--max-age");
  for (const std::string age : {"0s", "366d"}) {
    expect_one_line(program.run({"counter", "add", "k", "1", "--mode", "available", "--max-age", age}), 64,
                    "--max-age is from 1ms to 365d, not " + age);
    expect_one_line(program.run({"journal", "sell", "s=1", "--max-age", age}), 64, "--max-age is from 1ms to 365d");
    expect_one_line(program.run({"serve", "--max-age", age}), 2, "--max-age is from 1ms to 365d");
  }
  for (const char* ttl : {"0s", "367d"}) {
    expect_one_line(program.run({"journal", "set-aside", "q", "s=1", "--ttl", ttl}), 64, "--ttl is from 1s to 366d");
  }
  expect_one_line(program.run({"counter", "add", "k", "1", "--remember", "0s"}), 64, "--remember is from 1s");
  expect_one_line(program.run({"counter", "add", "k", "+-1"}), 64, "DELTA");
  expect_one_line(program.run({"stock", "reserve", "r", "s=1", "--ttl", "0s"}), 64, "--ttl is from 100ms to 366d");
  expect_one_line(program.run({"queue", "send", "q", "g", "b", "--delay", "16d"}), 64, "--delay is from 0s to 15d");
  expect_one_line(program.run({"queue", "receive", "q", "--visibility", "25h"}), 64, "--visibility is from 100ms");
  EXPECT_FALSE(std::filesystem::exists(program.file("holdfast.db"))) << "nothing is made before all makes sense";
  EXPECT_EQ(program.run({"counter", "add", "k", "+2"}).out, "2\n");
}

TEST_F(CoordRun, words_that_others_have_for_it_lead_to_ours_and_nothing_else_does) {
  expect_one_line(program.run({"task", "rm", "t"}), 64, "unknown command 'rm' (did you mean 'release'?)");
  expect_one_line(program.run({"task", "list"}), 64, "unknown command 'list' (did you mean 'ls'?)");
  expect_one_line(program.run({"queue", "pop"}), 64, "(did you mean 'receive'?)");
  expect_one_line(program.run({"counter", "sub", "k", "1"}), 64, "unknown command 'sub': see 'holdfast counter");
  expect_one_line(program.run({"lock", "t", "true"}), 2, "unknown command 'lock' (did you mean 'run'?)");
}

TEST_F(CoordRun, a_command_that_is_not_there_is_told_and_the_task_is_free_again) {
  expect_one_line(program.run({"run", "t", "--", "./nowhere"}), 1, "nowhere");
  EXPECT_EQ(program.run({"run", "t", "--", "true"}).code, 0);
}

TEST_F(CoordRun, a_store_that_is_away_is_69) {
  program.write("holdfast.db", "");
  ASSERT_EQ(program.run({"init"}).code, 0);
  const auto blocker = block();
  EXPECT_EQ(program.run({"run", "t", "--store-patience", "500ms", "--ttl", "1s", "--", "true"}).code, 69);
}

TEST_F(CoordRun, s10_giving_back_waits_for_the_store_no_longer_than_its_patience_whatever_the_lease_is) {
  std::vector<runtime::Child> holders;
  const std::vector<std::string> commands{"run", "once"};
  for (const std::string& command : commands) {
    auto holder =
        program.start_command({"/bin/sh", "-c",
                               R"(exec "$0" "$1" t --store-patience 500ms --ttl 1h -- /bin/sh -c 'touch held-$0; )"
                               R"(while [ ! -e go ]; do sleep 0.05; done; exit 3' "$1" 2>"$1.err")",
                               test::program_file, command});
    ASSERT_TRUE(holder);
    holders.push_back(*std::move(holder));
    ASSERT_TRUE(appears("held-" + command));
  }
  const auto blocker = block();
  program.write("go", "");
  for (runtime::Child& holder : holders) EXPECT_EQ(holder.wait(30s), (runtime::Exit{3, 0}));
  for (const std::string& command : commands) {
    EXPECT_THAT(program.read(command + ".err"), HasSubstr("did not say whether t was given back"));
  }
}

TEST_F(CoordRun, f27_what_was_on_its_way_when_a_signal_came_is_nobodys_afterwards) {
  ASSERT_EQ(program.run({"queue", "send", "q", "g", "hello"}).code, 0);
  const std::vector<std::vector<std::string>> commands = {
      {"run", "t", "--", "touch", "ran"},
      {"once", "k", "--abandoned", "hold", "--", "touch", "ran"},
      {"queue", "receive", "q", "--visibility", "1h"},
  };
  for (const auto& words : commands) {
    SCOPED_TRACE(words.front());
    std::optional<runtime::Child> blocker = block();
    auto asks = program.start(words);
    ASSERT_TRUE(asks);
    EXPECT_FALSE(asks->wait(700ms)) << "it has looked, and its claim waits";
    asks->kill(SIGTERM);
    EXPECT_FALSE(asks->wait(300ms)) << "it sees to what may come";
    blocker.reset();
    EXPECT_EQ(asks->wait(30s), (runtime::Exit{128 + SIGTERM, 0}));
    std::filesystem::remove(program.file("blocked"));
  }
  EXPECT_FALSE(std::filesystem::exists(program.file("ran")));
  EXPECT_EQ(program.run({"run", "t", "--no-wait", "--", "true"}).code, 0);
  EXPECT_EQ(program.run({"once", "k", "--abandoned", "hold", "--", "echo", "first"}).out, "first\n");
  EXPECT_THAT(program.run({"queue", "receive", "q", "--json"}).out, HasSubstr(R"("receives":1)"));
}

TEST_F(CoordRun, f27_a_second_signal_ends_at_once) {
  ASSERT_EQ(program.run({"run", "t", "--", "true"}).code, 0);
  const auto blocker = block();
  for (const std::string command : {"run", "once"}) {
    auto asks = program.start({command, "t", "--store-patience", "10m", "--ttl", "1h", "--", "true"});
    ASSERT_TRUE(asks);
    EXPECT_FALSE(asks->wait(700ms));
    asks->kill(SIGTERM);
    asks->kill(SIGTERM);
    EXPECT_FALSE(asks->wait(700ms)) << "twice in a moment is once: shells and timeout signal a process and its group";
    asks->kill(SIGINT);
    EXPECT_EQ(asks->wait(30s), (runtime::Exit{128 + SIGTERM, 0}));
  }
}

// ---- once ----

TEST_F(CoordRun, once_runs_once_and_then_tells_what_it_told) {
  const std::vector<std::string> call{"once", "k", "--", "/bin/sh", "-c", "echo ran >>runs; echo result"};
  for (int i = 0; i < 3; ++i) {
    const auto ended = program.run(call);
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_EQ(ended.out, "result\n");
  }
  EXPECT_EQ(program.read("runs"), "ran\n");
}

TEST_F(CoordRun, once_tells_any_bytes) {
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(program.run({"once", "k", "--", "printf", R"(a\377\001b)"}).out, "a\377\001b");
}

TEST_F(CoordRun, a_failure_is_run_again_unless_it_is_to_count) {
  const std::vector<std::string> script{"--", "/bin/sh", "-c", "echo ran >>runs; exit 3"};
  const auto with = [&](std::vector<std::string> front) {
    front.insert(front.end(), script.begin(), script.end());
    return front;
  };
  EXPECT_EQ(program.run(with({"once", "k"})).code, 3);
  EXPECT_EQ(program.run(with({"once", "k"})).code, 3);
  EXPECT_EQ(program.read("runs"), "ran\nran\n");
  EXPECT_EQ(program.run(with({"once", "k", "--record-failures"})).code, 3);
  EXPECT_EQ(program.run(with({"once", "k"})).code, 3);
  EXPECT_EQ(program.read("runs"), "ran\nran\nran\n");
}

TEST_F(CoordRun, another_input_under_the_same_key_is_refused_however_it_is_called) {
  program.write("a.json", R"({"amount": 1, "to": "x"})");
  program.write("same.json", "{\"to\":\"x\",\"amount\":1.0}\n");
  program.write("b.json", R"({"amount": 2, "to": "x"})");
  ASSERT_EQ(program.run({"once", "k", "--input", "a.json", "--", "echo", "done"}).code, 0);
  EXPECT_EQ(program.run({"once", "k", "--input", "same.json", "--", "false"}).out, "done\n");
  expect_one_line(program.run({"once", "k", "--input", "b.json", "--", "true"}), 64, "another input");
}

TEST_F(CoordRun, a_duplicate_waits_for_the_result_of_the_first) {
  auto first = program.start(
      {"once", "k", "--", "/bin/sh", "-c", "touch held; while [ ! -e go ]; do sleep 0.05; done; echo result"});
  ASSERT_TRUE(first);
  ASSERT_TRUE(appears("held"));
  EXPECT_EQ(program.run({"once", "k", "--", "false"}).code, 75);
  auto second = program.start({"once", "k", "--wait", "100s", "--", "false"});
  ASSERT_TRUE(second);
  EXPECT_FALSE(second->wait(300ms));
  program.write("go", "");
  EXPECT_EQ(second->read_line(60s).value_or(""), "result");
  EXPECT_EQ(second->wait(30s), (runtime::Exit{0, 0}));
}

TEST_F(CoordRun, f22_one_that_was_abandoned_is_run_again_or_held_for_a_person) {
  auto dies = program.start({"once", "k", "--ttl", "1s", "--", "/bin/sh", "-c", "touch held; exec sleep 100"});
  ASSERT_TRUE(dies);
  ASSERT_TRUE(appears("held"));
  dies->kill(SIGKILL);
  ASSERT_TRUE(dies->wait(30s));
  ASSERT_TRUE(eventually([&] {
    return program.run({"once", "k", "--abandoned", "hold", "--", "true"}).err.find("left no result") !=
           std::string::npos;
  }));
  expect_one_line(program.run({"once", "k", "--abandoned", "hold", "--", "true"}), 77,
                  "holdfast task release --once --epoch 1 -- 'k'");
  EXPECT_EQ(program.run({"task", "release", "--once", "--epoch", "1", "--", "k"}).code, 0);
  EXPECT_EQ(program.run({"once", "k", "--abandoned", "hold", "--", "echo", "again"}).out, "again\n");
}

TEST_F(CoordRun, f22_a_command_says_what_became_of_one_that_was_abandoned) {
  program.write("ask", "#!/bin/sh\necho \"$HOLDFAST_TASK $*\" >>asked; cat answer; exit $(cat code)\n");
  std::filesystem::permissions(program.file("ask"), std::filesystem::perms::owner_all);
  const auto call = [&](const std::string& key, const std::string& script) {
    return std::vector<std::string>{"once",        key,       "--abandoned", "reconcile",
                                    "--reconcile", "./ask",   "--wait",      "30s",
                                    "--",          "/bin/sh", "-c",          "echo began >>runs; " + script};
  };
  const auto answer = [&](const std::string& code, const std::string& text) {
    program.write("code", code);
    program.write("answer", text);
  };
  for (const std::string key : {"done", "again", "unknown"}) {
    EXPECT_EQ(program.run(call(key, "kill -9 $$")).code, 137);
  }
  EXPECT_EQ(program.read("asked"), "") << "nobody had begun before";

  answer("0", "charged before\n");
  EXPECT_EQ(program.run(call("done", "echo new")).out, "charged before\n");
  EXPECT_EQ(program.run({"once", "done", "--", "echo", "new"}).out, "charged before\n") << "that is its result now";
  EXPECT_EQ(program.read("asked"), "done /bin/sh -c echo began >>runs; echo new\n");

  for (const std::string code : {"1", "75", "127"}) {
    answer(code, "");
    expect_one_line(program.run(call("unknown", "echo new")), 77, "task release");
  }
  std::filesystem::remove(program.file("ask"));
  EXPECT_EQ(program.run(call("unknown", "echo new")).code, 1) << "what asks is not there";
  expect_one_line(program.run({"once", "unknown", "--abandoned", "hold", "--", "true"}), 77, "left no result");
  program.write("ask", "#!/bin/sh\nexit 10\n");
  std::filesystem::permissions(program.file("ask"), std::filesystem::perms::owner_all);
  EXPECT_EQ(program.run(call("again", "echo new")).out, "new\n");
  EXPECT_EQ(program.read("runs"), "began\nbegan\nbegan\nbegan\n");
  expect_one_line(program.run({"once", "k", "--abandoned", "reconcile", "--", "true"}), 64, "--reconcile");
  expect_one_line(program.run({"once", "k", "--reconcile", "./ask", "--", "true"}), 64, "--abandoned reconcile");
}

TEST_F(CoordRun, f22_a_command_that_is_not_there_leaves_what_was_abandoned_as_it_was) {
  EXPECT_EQ(program.run({"once", "k", "--", "/bin/sh", "-c", "kill -9 $$"}).code, 137);
  EXPECT_EQ(program.run({"once", "k", "--", "./nowhere"}).code, 1);
  expect_one_line(program.run({"once", "k", "--abandoned", "hold", "--", "true"}), 77, "left no result");
}

TEST_F(CoordRun, f22_however_a_command_ends_without_saying_how_far_it_came_that_is_held_for_a_person) {
  const std::string began = "echo began >>runs; ";
  const auto begin = [&](const std::string& key, std::vector<std::string> more, const std::string& script) {
    std::vector<std::string> words{"once", key, "--abandoned", "hold", "--record-failures"};
    words.insert(words.end(), more.begin(), more.end());
    words.insert(words.end(), {"--", "/bin/sh", "-c", began + script});
    return words;
  };
  EXPECT_EQ(program.run(begin("killed", {}, "kill -9 $$")).code, 137);
  EXPECT_EQ(program.run(begin("large", {}, "head -c 400000 /dev/zero")).code, 74);
  EXPECT_EQ(program.run(begin("lost", {"--ttl", "500ms", "--no-renew"}, "exec sleep 100")).code, 76);
  auto stopped = program.start(begin("stopped", {}, "touch held; exec sleep 100"));
  ASSERT_TRUE(stopped);
  ASSERT_TRUE(appears("held"));
  stopped->kill(SIGTERM);
  EXPECT_EQ(stopped->wait(30s), (runtime::Exit{128 + SIGTERM, 0}));
  ASSERT_EQ(program.read("runs"), "began\nbegan\nbegan\nbegan\n");
  for (const std::string key : {"killed", "large", "lost", "stopped"}) {
    const auto again = program.run({"once", key, "--abandoned", "hold", "--wait", "30s", "--", "touch", "again"});
    expect_one_line(again, 77, "left no result");
  }
  EXPECT_FALSE(std::filesystem::exists(program.file("again")));
  // Who may run it again does not have to wait for a lease that nobody has.
  EXPECT_EQ(program.run({"once", "killed", "--wait", "30s", "--", "echo", "again"}).out, "again\n");
}

TEST_F(CoordRun, a_closed_standard_stream_costs_nothing) {
  auto shell = program.start_command(
      {"/bin/sh", "-c", R"("$0" decide k mine >&- && "$0" run t -- sh -c "echo out; exit 3" >&- 2>&-; echo $?)",
       test::program_file});
  ASSERT_TRUE(shell);
  EXPECT_EQ(shell->read_line(60s).value_or(""), "3");
  EXPECT_EQ(program.run({"decide", "k", "yours"}).out, "mine\n");
  EXPECT_EQ(program.run({"decide", "k", "--show"}).out, "mine\n");
  expect_one_line(program.run({"decide", "l", "--show"}), 1, "nothing is decided");
}

TEST_F(CoordRun, nobody_who_hears_what_went_wrong_changes_the_exit_code) {
  auto holder = start("touch held; exec sleep 100");
  ASSERT_TRUE(appears("held"));
  auto shell = program.start_command(
      {"/bin/bash", "-c",
       R"(trap - PIPE; exec 3>&1; exec 2> >(exec true); wait $!; "$0" run t --no-wait -- true; echo $? >&3)",
       test::program_file});
  ASSERT_TRUE(shell);
  EXPECT_EQ(shell->read_line(60s).value_or(""), "75");
  holder.kill(SIGTERM);
  EXPECT_TRUE(holder.wait(30s));
}

TEST_F(CoordRun, output_that_does_not_fit_is_told_and_nothing_is_recorded) {
  const auto ended = program.run({"once", "k", "--", "/bin/sh", "-c", "echo ran >>runs; head -c 400000 /dev/zero"});
  expect_one_line(ended, 74, "350000");
  auto large = program.run({"once", "j", "--", "/bin/sh", "-c", "yes '\"' | head -c 200000"});
  EXPECT_EQ(large.out.size(), 200000U) << "it ran, and this may be all that is left of it";
  large.out.clear();
  expect_one_line(large, 74, "200000 bytes, which as JSON writes them are 400");
  EXPECT_EQ(program.run({"once", "k", "--", "echo", "small"}).out, "small\n");
}

TEST_F(CoordRun, output_without_end_fills_no_disk_and_leaves_no_file) {
  std::filesystem::create_directory(program.file("tmp"));
  program.set("TMPDIR", program.file("tmp"));
  const std::string script =
      R"sh(exec 3>&1; ls "$TMPDIR" >named; head -c 20000000 /dev/zero; )sh"
      R"sh(until [ "$(stat -Lc %s /proc/$$/fd/3)" -lt 1000000 ]; do sleep 0.05; done; touch dropped)sh";
  expect_one_line(program.run({"once", "k", "--", "/bin/sh", "-c", script}), 74, "printed at least ");
  EXPECT_TRUE(std::filesystem::exists(program.file("dropped")));
  EXPECT_EQ(program.read("named"), "") << "a file that has no name needs nobody to remove it";
}

// ---- decide, task ----

TEST_F(CoordRun, tasks_are_listed_shown_and_released_under_their_epoch_only) {
  auto holder = start("touch held; sleep 100");
  ASSERT_TRUE(appears("held"));
  EXPECT_THAT(program.run({"task", "ls"}).out, HasSubstr("task  t"));
  EXPECT_THAT(program.run({"task", "show", "t"}).out, HasSubstr(" left"));
  EXPECT_THAT(program.run({"task", "ls", "--json"}).out, HasSubstr(R"("name":"t","state":"held")"));
  EXPECT_THAT(program.run({"task", "show", "t", "--json"}).out, HasSubstr(R"("name":"t","state":"held")"));
  expect_one_line(program.run({"task", "release", "t", "--epoch", "7"}), 1, "epoch 1");
  expect_one_line(program.run({"task", "show", "nothing"}), 1, "nothing");
  expect_one_line(program.run({"task", "show", "t", "--once"}), 1, "leave out --once");
  holder.kill(SIGTERM);
  EXPECT_TRUE(holder.wait(30s));
  EXPECT_THAT(program.run({"task", "show", "t"}).out, HasSubstr("free"));
  expect_one_line(program.run({"task", "release", "t", "--epoch", "1"}), 1, "nobody holds");
}

TEST_F(CoordRun, a_server_that_is_not_there_is_69) {
  for (const auto& [name, value] : test::DynamoDbServer::environment()) program.set(name, value);
  program.set("HOLDFAST_STORE", "dynamodb://tasks?region=us-east-1&endpoint=http://127.0.0.1:1");
  program.set("HOLDFAST_STORE_PATIENCE", "1s");
  EXPECT_EQ(program.run({"run", "t", "--", "true"}).code, 69);
  EXPECT_EQ(program.run({"once", "t", "--", "true"}).code, 69);
  EXPECT_EQ(program.run({"decide", "t", "x"}).code, 69);
  EXPECT_EQ(program.run({"counter", "add", "t", "1"}).code, 69);
  EXPECT_EQ(program.run({"queue", "receive", "t"}).code, 69);
}

}  // namespace
}  // namespace holdfast
