// Where our options end and a command of the caller's begins.
#include "cli/command_line.hpp"

#include <gtest/gtest.h>

#include <CLI/App.hpp>
#include <sstream>

namespace holdfast::cli {
namespace {

using Words = std::vector<std::string>;

Words words_of(const std::string& line) {
  Words words;
  std::istringstream input(line);
  for (std::string word; input >> word;) words.push_back(word);
  return words;
}

class CliCommandLine : public testing::Test {
 protected:
  CliCommandLine() {
    root.add_option("--config", text);
    CLI::App* run = root.add_subcommand("run");
    run->add_option("TASK", text);
    run->add_option("CMD", many);
    run->add_option("--wait", text);
    run->add_flag("--no-wait");
    CLI::App* reconcile = root.add_subcommand("journal")->add_subcommand("reconcile");
    reconcile->add_option("CMD", many);
    reconcile->add_option("--journal", text);
    CLI::App* add = root.add_subcommand("add");
    add->add_option("KEY", text);
    add->add_option("DELTA", text);
  }
  /// What becomes of the words of this line.
  Words ended(const std::string& line) const {
    Words words = words_of(line);
    end_options_at_command(root, words);
    return words;
  }

  CLI::App root;
  std::string text;
  Words many;
};

TEST_F(CliCommandLine, our_options_end_at_the_first_word_of_the_command) {
  EXPECT_EQ(ended("run t ./x --wait 5s"), words_of("run t -- ./x --wait 5s"));
  EXPECT_EQ(ended("run --wait 5s t --no-wait ./x --help"), words_of("run --wait 5s t --no-wait -- ./x --help"));
  EXPECT_EQ(ended("--config f run t --wait=5s ./x"), words_of("--config f run t --wait=5s -- ./x"));
  EXPECT_EQ(ended("run t --config f ./x"), words_of("run t --config f -- ./x")) << "one of all commands";
  EXPECT_EQ(ended("journal reconcile --journal j ./x -a"), words_of("journal reconcile --journal j -- ./x -a"));
}

TEST_F(CliCommandLine, a_second_mark_is_the_commands_own) {
  EXPECT_EQ(ended("run t -- ./x -- --wait"), words_of("run t -- ./x -- --wait"));
  EXPECT_EQ(ended("run t ./x -- --wait"), words_of("run t -- ./x -- --wait"));
  EXPECT_EQ(ended("run -- t ./x --wait"), words_of("run -- t ./x --wait"));
}

TEST_F(CliCommandLine, a_value_is_no_first_word_whatever_it_looks_like) {
  EXPECT_EQ(ended("run t --wait -- ./x"), words_of("run t --wait -- -- ./x")) << "as CLI11 takes it";
  EXPECT_EQ(ended("run t --wait --no-wait ./x"), words_of("run t --wait --no-wait -- ./x"));
  EXPECT_EQ(ended("run t --wait= 5s ./x"), words_of("run t --wait= 5s -- ./x"));
  EXPECT_EQ(ended("run run ./x run"), words_of("run run -- ./x run"));
  EXPECT_EQ(ended("run -7 - -x"), words_of("run -7 -- - -x"));
}

TEST_F(CliCommandLine, what_takes_no_command_or_makes_no_sense_is_left_as_it_is) {
  for (const std::string line : {"", "run", "run t", "run t --wait", "add k 1 --op x", "add k -2", "nonsense a b",
                                 "run --nonsense t ./x", "run t --nonsense ./x", "journal", "--nonsense"}) {
    EXPECT_EQ(ended(line), words_of(line));
  }
}

}  // namespace
}  // namespace holdfast::cli
