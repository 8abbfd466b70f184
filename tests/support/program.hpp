#pragma once
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "runtime/spawn.hpp"
#include "support/places.hpp"
#include "support/temporary_folder.hpp"

namespace holdfast::test {

/// The built program, run as a user would: in a folder of its own, with nothing of ours in its environment.
class Program {
 public:
  struct Ended {
    int code = -1;
    std::string out;
    std::string err;
  };

  [[nodiscard]] const TemporaryFolder& folder() const { return folder_; }
  [[nodiscard]] std::string file(const std::string& name) const { return folder_.file(name); }
  void write(const std::string& name, const std::string& text) const { std::ofstream(file(name)) << text; }
  void set(const std::string& variable, const std::string& value) { environment_.emplace_back(variable, value); }

  /// Runs to the end. `input` becomes its standard input; `out` is where its standard output goes.
  Ended run(const std::vector<std::string>& arguments, const std::string& input = "", const std::string& out = "") {
    std::vector<std::string> command{program_file};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return run_command(command, input, out);
  }

  /// The same for any command, for what has to be wrapped around the program.
  Ended run_command(const std::vector<std::string>& command, const std::string& input = "",
                    const std::string& out = "") {
    write(".in", input);
    auto child = start(
        {"/bin/sh", "-c", R"(out=$1; shift; exec "$@" <.in >"$out" 2>.err)", "sh", out.empty() ? file(".out") : out},
        command);
    if (!child) return {};
    const auto exit = child->wait(std::chrono::seconds(150));
    return {exit ? exit->code : -1, out.empty() ? read(".out") : "", read(".err")};
  }

  /// Starts it and leaves it running, its standard output to be read line by line.
  Result<runtime::Child> start(const std::vector<std::string>& arguments) { return start({program_file}, arguments); }
  /// The same for any command, for what has to be wrapped around the program.
  Result<runtime::Child> start_command(std::vector<std::string> command) { return start(std::move(command), {}); }

  [[nodiscard]] std::string read(const std::string& name) const {
    std::ifstream input(file(name));
    return {std::istreambuf_iterator<char>(input), {}};
  }

 private:
  Result<runtime::Child> start(std::vector<std::string> command, const std::vector<std::string>& arguments) {
    runtime::SpawnOptions options;
    command.insert(command.end(), arguments.begin(), arguments.end());
    options.arguments = std::move(command);
    options.environment = environment_;
    options.directory = folder_.path().string();
    options.output = runtime::SpawnOptions::Output::pipe;
    options.dies_with_parent = true;
    auto child = runtime::spawn(options);
    if (!child) ADD_FAILURE() << child.error().detail;
    return child;
  }

  TemporaryFolder folder_;
  std::vector<std::pair<std::string, std::string>> environment_;
};

/// Exactly one line on standard error and nothing on standard output: how every failure is told.
inline void expect_one_line(const Program::Ended& ended, int code, const std::string& part) {
  EXPECT_EQ(ended.code, code) << ended.err;
  EXPECT_EQ(ended.out, "");
  EXPECT_TRUE(ended.err.starts_with("holdfast: ")) << ended.err;
  EXPECT_EQ(ended.err.find('\n') + 1, ended.err.size()) << ended.err;
  EXPECT_NE(ended.err.find(part), std::string::npos) << ended.err;
}

}  // namespace holdfast::test
