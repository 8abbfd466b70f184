// Found by chaos: a worker that lacked descriptors or memory while it came up crashed instead of saying so. What was
// still posted to its control loop asked a loop that was no longer there.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <string>

#include "runtime/spawn.hpp"
#include "support/places.hpp"
#include "support/program.hpp"
#include "support/sanitized.hpp"

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

class WorkerUnderALimit : public testing::Test {
 protected:
  struct Ended {
    bool came_up = false;
    runtime::Exit exit;
    std::string output;
  };

  /// `limit` is what `ulimit` is told. A worker that comes up is stopped in order.
  Ended run(const std::string& limit) {
    runtime::SpawnOptions options;
    options.arguments = {"sh", "-c",
                         "ulimit " + limit + " && exec \"$0\" worker --id w --sink 'ndjson:out?fsync=never'",
                         program_file};
    options.directory = program.folder().path().string();
    options.output = runtime::SpawnOptions::Output::pipe;
    options.errors_to_output = true;
    options.dies_with_parent = true;
    Ended ended;
    auto child = runtime::spawn(options);
    if (!child) {
      ADD_FAILURE() << child.error().detail;
      return ended;
    }
    for (auto line = child->read_line(60s); line && !ended.came_up; line = child->read_line(60s)) {
      ended.output += *line + '\n';
      ended.came_up = line->find("info    worker w#") != std::string::npos;
      if (ended.came_up) child->kill(SIGTERM);
    }
    ended.output += child->read_all(60s);
    const auto exit = child->wait(60s);
    EXPECT_TRUE(exit) << "it hangs under ulimit " << limit;
    ended.exit = exit.value_or(runtime::Exit{});
    return ended;
  }

  Program program;
};

TEST_F(WorkerUnderALimit, however_few_files_it_may_open_it_comes_up_or_says_why_not) {
#if HOLDFAST_SANITIZED
  GTEST_SKIP() << "clang's check of vtables opens a pipe for each look, and cries wolf where it gets none";
#endif
  int came_up = 0;
  for (int files = 4; files <= 80; files += files < 30 ? 1 : 10) {
    const Ended ended = run("-n " + std::to_string(files));
    EXPECT_EQ(ended.exit.signal, 0) << files << " files: " << ended.output;
    EXPECT_EQ(ended.exit.code == 0, ended.came_up) << files << " files: " << ended.output;
    EXPECT_NE(ended.output, "") << files << " files";
    came_up += ended.came_up ? 1 : 0;
  }
  EXPECT_GT(came_up, 0) << "the range reaches from too few to enough";
  EXPECT_LT(came_up, 32) << "the range reaches from too few to enough";
}

TEST_F(WorkerUnderALimit, however_little_memory_it_has_it_does_not_crash) {
#if HOLDFAST_SANITIZED
  GTEST_SKIP() << "sanitizers reserve more address space than any such limit";
#endif
  for (int megabytes = 20; megabytes <= 160; megabytes += 10) {
    const Ended ended = run("-v " + std::to_string(megabytes * 1024));
    // Where no memory can be had at all, giving up (SIGABRT) is an answer; touching what is not there is none.
    EXPECT_TRUE(ended.exit.signal == 0 || ended.exit.signal == SIGABRT)
        << megabytes << " MiB, signal " << ended.exit.signal << ": " << ended.output;
  }
}

}  // namespace
}  // namespace holdfast::test
