#include "runtime/spawn.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <optional>
#include <vector>

#include "runtime/asio_loop.hpp"
#include "runtime/clock.hpp"
#include "runtime/exit_watch.hpp"
#include "runtime/signals.hpp"
#include "support/eventually.hpp"
#include "support/process_ended.hpp"

namespace holdfast::runtime {
namespace {

using namespace std::chrono_literals;
constexpr Duration generous = 60s;

SpawnOptions shell(const std::string& script) {
  SpawnOptions options;
  options.arguments = {"sh", "-c", script};
  options.output = SpawnOptions::Output::pipe;
  return options;
}

bool comes_to_its_end(pid_t pid) {
  return test::eventually([&] { return test::has_ended(pid); });
}

TEST(Spawn, tells_lines_as_they_come_and_then_that_the_output_has_ended) {
  Result<Child> child = spawn(shell("echo one; printf two; exit 3"));
  ASSERT_TRUE(child) << child.error().detail;
  EXPECT_EQ(child->read_line(generous), "one");
  EXPECT_EQ(child->read_line(generous), "two");
  const Result<std::string> end = child->read_line(generous);
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, Code::not_found);
  EXPECT_EQ(child->wait(generous), (Exit{3, 0}));
}

TEST(Spawn, reads_what_it_is_given_however_much_that_is) {
  SpawnOptions options = shell("wc -c; cat");
  options.input = std::string(8 << 20, 'x');
  Result<Child> child = spawn(options);
  ASSERT_TRUE(child) << child.error().detail;
  EXPECT_EQ(child->read_all(generous), "8388608\n");
}

TEST(Spawn, a_program_that_is_not_there_is_an_error_here_and_not_an_exit_code) {
  SpawnOptions options;
  options.arguments = {"no-such-program-anywhere"};
  const Result<Child> child = spawn(options);
  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().code, Code::not_found);
  EXPECT_NE(child.error().detail.find("no-such-program-anywhere"), std::string::npos);
}

TEST(Spawn, a_folder_that_is_not_there_is_an_error) {
  SpawnOptions options = shell("true");
  options.directory = "/no/such/folder";
  const Result<Child> child = spawn(options);
  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().code, Code::not_found);
}

TEST(Spawn, waiting_gives_up_at_its_limit_and_may_be_asked_again) {
  Result<Child> child = spawn(shell("exec sleep 600"));
  ASSERT_TRUE(child);
  EXPECT_FALSE(child->wait(1ms));
  EXPECT_TRUE(child->running());
  child->kill(SIGKILL);
  EXPECT_EQ(child->wait(generous), (Exit{128 + SIGKILL, SIGKILL}));
  EXPECT_FALSE(child->running());
}

TEST(Spawn, stop_asks_first_and_kills_who_does_not_listen) {
  Result<Child> polite = spawn(shell("trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done"));
  ASSERT_TRUE(polite);
  ASSERT_TRUE(polite->read_line(generous));
  EXPECT_EQ(polite->stop(generous), (Exit{7, 0}));

  Result<Child> deaf = spawn(shell("trap '' TERM; echo ready; while :; do sleep 0.01; done"));
  ASSERT_TRUE(deaf);
  ASSERT_TRUE(deaf->read_line(generous));
  EXPECT_EQ(deaf->stop(10ms).signal, SIGKILL);
}

TEST(Spawn, destroying_the_child_ends_it_and_its_group) {
  pid_t grandchild = 0;
  {
    SpawnOptions options = shell("sleep 600 & echo $!; wait");
    options.own_group = true;
    Result<Child> child = spawn(options);
    ASSERT_TRUE(child);
    grandchild = static_cast<pid_t>(std::stol(*child->read_line(generous)));
    ASSERT_EQ(::kill(grandchild, 0), 0);
  }
  EXPECT_TRUE(comes_to_its_end(grandchild));
}

TEST(Spawn, environment_is_added_to_ours_and_overrides_it) {
  ::setenv("HOLDFAST_SPAWN_TEST_A", "ours", 1);
  ::setenv("HOLDFAST_SPAWN_TEST_B", "ours", 1);
  SpawnOptions options = shell("echo $HOLDFAST_SPAWN_TEST_A $HOLDFAST_SPAWN_TEST_B $HOLDFAST_SPAWN_TEST_C");
  options.environment = {{"HOLDFAST_SPAWN_TEST_B", "theirs"}, {"HOLDFAST_SPAWN_TEST_C", "new"}};
  Result<Child> child = spawn(options);
  ASSERT_TRUE(child);
  EXPECT_EQ(child->read_line(generous), "ours theirs new");
}

TEST(Spawn, output_and_errors_can_go_to_a_file_in_order) {
  const std::string path = testing::TempDir() + "/spawn_output_" + std::to_string(::getpid());
  SpawnOptions options = shell("echo out; echo err >&2; echo out");
  options.output = SpawnOptions::Output::file;
  options.output_file = path;
  options.errors_to_output = true;
  Result<Child> child = spawn(options);
  ASSERT_TRUE(child);
  EXPECT_EQ(child->wait(generous), (Exit{0, 0}));
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(text, "out\nerr\nout\n");
  std::remove(path.c_str());
}

TEST(Spawn, errors_can_go_nowhere_while_the_output_is_read) {
  SpawnOptions options = shell("echo out; echo err >&2; readlink /proc/self/fd/2");
  options.discard_errors = true;
  Result<Child> child = spawn(options);
  ASSERT_TRUE(child);
  EXPECT_EQ(child->read_all(generous), "out\n/dev/null\n");
}

TEST(Spawn, a_child_that_never_stops_printing_does_not_hold_its_reader_up) {
  Result<Child> child = spawn(shell("exec cat /dev/zero"));
  ASSERT_TRUE(child);
  while (child->read_all(Duration::zero()).empty()) ::usleep(1000);
  EXPECT_LE(child->read_all(Duration::zero()).size(), 4096U);
  EXPECT_FALSE(child->read_all(20ms).empty());
  const Result<std::string> line = child->read_line(20ms);
  ASSERT_FALSE(line) << "zeros have no line";
  EXPECT_EQ(line.error().code, Code::unavailable);
}

TEST(Spawn, hands_on_no_descriptor_but_the_three_standard_ones_and_no_signal_mask) {
  const int leak = ::dup(STDERR_FILENO);  // without close-on-exec
  sigset_t blocked;
  sigset_t before;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &blocked, &before);
  SpawnOptions options;
  options.arguments = {"/bin/sh", "-c", "ls /proc/self/fd | tr '\\n' ' '; grep SigBlk /proc/self/status"};
  options.output = SpawnOptions::Output::pipe;
  Result<Child> child = spawn(options);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  ::close(leak);
  ASSERT_TRUE(child);
  // 3 is the folder that `ls` itself has open.
  EXPECT_EQ(child->read_line(generous), "0 1 2 3 SigBlk:\t0000000000000000");
}

TEST(Spawn, a_child_that_dies_with_its_parent_does_not_survive_it) {
  // The parent is a child of ours that spawns and is then killed without a chance to tidy up.
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t parent = ::fork();
  ASSERT_GE(parent, 0);
  if (parent == 0) {
    SpawnOptions options = shell("exec sleep 600");
    options.dies_with_parent = true;
    Result<Child> child = spawn(options);
    const pid_t pid = child ? child->pid() : -1;
    if (::write(ends[1], &pid, sizeof pid) != sizeof pid) ::_exit(1);
    ::pause();
    ::_exit(0);
  }
  pid_t grandchild = -1;
  ASSERT_EQ(::read(ends[0], &grandchild, sizeof grandchild), static_cast<ssize_t>(sizeof grandchild));
  ASSERT_GT(grandchild, 0);
  ::kill(parent, SIGKILL);
  ASSERT_EQ(::waitpid(parent, nullptr, 0), parent);
  EXPECT_TRUE(comes_to_its_end(grandchild));
  ::close(ends[0]);
  ::close(ends[1]);
}

TEST(ExitWatch, tells_on_its_loop_that_a_child_has_ended_and_wait_tells_how) {
  AsioLoop loop(1);
  Result<Child> child = spawn(shell("exit 3"));
  ASSERT_TRUE(child);
  int told = 0;
  const ExitWatch watch(loop, *child, [&] {
    ++told;
    loop.stop();
  });
  loop.run();
  EXPECT_EQ(told, 1);
  EXPECT_EQ(child->wait(Duration::zero()), (Exit{3, 0}));
}

TEST(ExitWatch, says_nothing_once_it_is_gone) {
  AsioLoop loop(1);
  Result<Child> early = spawn(shell("read line"));
  Result<Child> late = spawn(shell("exit 0"));
  ASSERT_TRUE(early && late);
  bool told = false;
  std::optional<ExitWatch> gone(std::in_place, loop, *early, [&] { told = true; });
  gone.reset();
  early->kill(SIGKILL);
  ASSERT_TRUE(early->wait(generous));
  const ExitWatch watch(loop, *late, [&] { loop.stop(); });
  loop.run();
  EXPECT_FALSE(told);
}

TEST(Signals, those_that_are_asked_for_are_calls_on_the_loop) {
  AsioLoop loop(1);
  std::vector<int> heard;
  const Signals signals(loop,
                        [&](int signal) {
                          heard.push_back(signal);
                          if (heard.size() == 1) ::kill(::getpid(), SIGUSR2);
                          if (heard.size() == 2) loop.stop();
                        },
                        {SIGUSR1, SIGUSR2});
  ::kill(::getpid(), SIGUSR1);
  loop.run();
  EXPECT_EQ(heard, (std::vector{SIGUSR1, SIGUSR2}));
}

}  // namespace
}  // namespace holdfast::runtime
