// holdfast once where what came of a command may not be on record: the real program, and a store that is away.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/eventually.hpp"
#include "support/program.hpp"

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using test::eventually;
using test::expect_one_line;
using test::Program;
using testing::HasSubstr;

class CoordRecording : public testing::Test {
 protected:
  CoordRecording() {
    EXPECT_EQ(program.run({"init"}).code, 0);
    // Somebody else is in the middle of a write for $1 s.
    program.write("block",
                  "import sqlite3, sys, time\n"
                  "c = sqlite3.connect('holdfast.db', isolation_level=None)\n"
                  "c.execute('BEGIN EXCLUSIVE')\nopen('blocked', 'w').close()\ntime.sleep(float(sys.argv[1]))\n");
  }
  /// A charge, which is over once the store is away.
  [[nodiscard]] static std::vector<std::string> charge(std::vector<std::string> options = {}) {
    std::vector<std::string> words{"once", "inv"};
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"--", "/bin/sh", "-c",
                               "echo charge >>led; while [ ! -e blocked ]; do sleep 0.02; done; echo receipt"});
    return words;
  }
  /// For so long, from its charge on.
  [[nodiscard]] runtime::Child away(const std::string& seconds) {
    EXPECT_TRUE(eventually([&] { return std::filesystem::exists(program.file("led")); }));
    auto blocker = program.start_command({"/usr/bin/python3", "block", seconds});
    EXPECT_TRUE(blocker);
    return *std::move(blocker);
  }
  /// One line on standard error; on standard output what the command printed.
  static void expect_told(Program::Ended ended, int code, const std::string& part, const std::string& printed) {
    EXPECT_EQ(std::exchange(ended.out, ""), printed);
    expect_one_line(ended, code, part);
  }
  Program program;
};

TEST_F(CoordRecording, a_charge_is_on_record_though_the_store_was_away_for_longer_than_the_patience) {
  auto charged = program.start(charge({"--store-patience", "300ms", "--ttl", "6s"}));
  ASSERT_TRUE(charged);
  const auto blocker = away("3");
  EXPECT_EQ(charged->read_line(30s).value_or(""), "receipt");
  EXPECT_EQ(charged->wait(30s), (runtime::Exit{0, 0}));
  EXPECT_EQ(program.run(charge()).out, "receipt\n");
  EXPECT_EQ(program.read("led"), "charge\n");
}

TEST_F(CoordRecording, s05_what_may_not_be_on_record_is_told_with_its_output_and_with_what_a_repeat_does) {
  auto charged =
      program.start_command({"/bin/sh", "-c", R"(exec "$0" "$@" 2>err)", test::program_file, "once", "inv",
                             "--store-patience", "200ms", "--ttl", "1500ms", "--", "/bin/sh", "-c", charge().back()});
  ASSERT_TRUE(charged);
  const auto blocker = away("60");
  EXPECT_EQ(charged->read_line(30s).value_or(""), "receipt");
  EXPECT_EQ(charged->wait(30s), (runtime::Exit{74, 0}));
  const std::string told = program.read("err");
  EXPECT_THAT(told, HasSubstr("inv ran to its end, with exit code 0"));
  EXPECT_THAT(told, HasSubstr("may not be on record"));
  EXPECT_THAT(told, HasSubstr("runs it again"));
  EXPECT_THAT(told, HasSubstr("--abandoned hold or reconcile"));
}

TEST_F(CoordRecording, a_signal_does_not_break_off_what_is_being_recorded) {
  auto charged = program.start(charge({"--ttl", "30s", "--store-patience", "20s"}));
  ASSERT_TRUE(charged);
  const auto blocker = away("2");
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(program.file("blocked")); }));
  std::this_thread::sleep_for(500ms);
  for (int i = 0; i < 2; ++i) charged->kill(SIGTERM);  // as `timeout` does
  EXPECT_EQ(charged->read_line(30s).value_or(""), "receipt");
  EXPECT_EQ(charged->wait(30s), (runtime::Exit{0, 0}));
  EXPECT_EQ(program.run(charge()).out, "receipt\n");
  EXPECT_EQ(program.read("led"), "charge\n");
}

TEST_F(CoordRecording, who_does_not_want_to_wait_for_the_store_is_told_that_it_ran) {
  auto charged = program.start(charge({"--ttl", "30s", "--abandoned", "hold"}));
  ASSERT_TRUE(charged);
  const auto blocker = away("60");
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(program.file("blocked")); }));
  std::this_thread::sleep_for(500ms);
  charged->kill(SIGTERM);
  EXPECT_FALSE(charged->wait(500ms));
  charged->kill(SIGTERM);
  EXPECT_EQ(charged->read_line(30s).value_or(""), "receipt");
  EXPECT_EQ(charged->wait(30s), (runtime::Exit{74, 0}));
}

TEST_F(CoordRecording, f23_a_right_that_was_lost_meanwhile_is_76_with_what_the_command_printed) {
  const std::string script =
      "'" + std::string(test::program_file) + "' task release inv --once --epoch 1 >/dev/null; echo receipt";
  const auto charged = program.run({"once", "inv", "--", "/bin/sh", "-c", script});
  expect_told(charged, 76, "The result of inv is not recorded", "receipt\n");
  EXPECT_THAT(charged.err, HasSubstr("exit code 0"));
}

TEST_F(CoordRecording, f22_one_that_a_signal_ended_is_said_to_be_held) {
  const auto killed = program.run({"once", "inv", "--abandoned", "hold", "--", "/bin/sh", "-c", "kill -9 $$"});
  expect_one_line(killed, 137, "inv is held for a person");
}

TEST_F(CoordRecording, f22_both_ways_on_for_what_is_held_are_as_they_are_told) {
  const std::vector<std::string> again{"once", "it's", "--abandoned", "hold", "--", "/bin/echo", "charged"};
  const auto abandon = [&] {
    (void)program.run({"once", "it's", "--abandoned", "hold", "--", "/bin/sh", "-c", "kill -9 $$"});
    const auto held = program.run(again);
    expect_one_line(held, 77, "left no result");
    return held.err;
  };
  // As a person would copy it from there.
  const auto follow = [&](const std::string& text, const std::string& from, const std::string& to) {
    const std::size_t begin = text.find(from);
    std::string words = text.substr(begin, text.find(to, begin) - begin);
    if (words.ends_with("CMD")) words.replace(words.size() - 3, 3, "/bin/echo charged");
    auto shell = program.start_command(
        {"/bin/sh", "-c", "holdfast() { '" + std::string(test::program_file) + "' \"$@\"; }\n" + words});
    ASSERT_TRUE(shell);
    EXPECT_EQ(shell->wait(30s), (runtime::Exit{0, 0})) << words;
  };
  follow(abandon(), "holdfast task release", "\n");
  EXPECT_EQ(program.run({"once", "it's", "--abandoned", "hold", "--", "false"}).code, 1) << "it is run again";
  follow(abandon(), "holdfast once", ". If not");
  const auto done = program.run(again);
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_EQ(done.out, "") << "it is done, and was not run";
}

TEST_F(CoordRecording, what_was_begun_and_left_is_shown_as_abandoned) {
  EXPECT_EQ(program.run({"once", "inv", "--", "/bin/sh", "-c", "kill -9 $$"}).code, 137);
  EXPECT_THAT(program.run({"task", "ls"}).out, HasSubstr("abandoned, ended "));
  EXPECT_THAT(program.run({"task", "show", "inv", "--once"}).out, HasSubstr("lease   abandoned, ended "));
  EXPECT_THAT(program.run({"task", "show", "inv", "--once", "--json"}).out, HasSubstr(R"("state":"ended")"));
}

TEST_F(CoordRecording, s06_who_is_ended_is_told_why_his_right_was_lost_and_who_released_it_that_he_may_run_on) {
  auto runs = program.start_command({"/bin/sh", "-c", R"(exec "$0" "$@" 2>err)", test::program_file, "run", "t",
                                     "--ttl", "2s", "--", "/bin/sh", "-c", "touch led; exec sleep 100"});
  ASSERT_TRUE(runs);
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(program.file("led")); }));
  const auto released = program.run({"task", "release", "t", "--epoch", "1"});
  EXPECT_EQ(released.out,
            "released t, epoch 1; its holder finds out at its next renewal, and may run on until then\n");
  EXPECT_EQ(runs->wait(30s), (runtime::Exit{76, 0}));
  EXPECT_THAT(program.read("err"), HasSubstr("since somebody released it by hand or took it over"));
}

}  // namespace
}  // namespace holdfast
