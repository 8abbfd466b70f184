#include "store/dynamodb/surroundings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <iterator>

#include "runtime/asio_loop.hpp"
#include "runtime/clock.hpp"
#include "support/process_ended.hpp"
#include "support/run_until.hpp"
#include "support/temporary_folder.hpp"

namespace holdfast::store::dynamodb {
namespace {

using namespace std::chrono_literals;
using test::run_until;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct SurroundingsTest : testing::Test {
  /// Runs a shell's script as a credential_process, aside, while the loop lives.
  Result<std::string> run(const std::string& script, Duration limit = 30s) {
    const auto result = std::make_shared<Result<std::string>>();
    bool done = false;
    Surroundings* const from = machine.get();
    machine->in_background([=] { *result = from->run({"/bin/sh", "-c", script}, limit); }, [&done] { done = true; });
    EXPECT_TRUE(run_until(loop, [&] { return done; }));
    return *result;
  }

  runtime::AsioLoop loop{1};
  std::unique_ptr<Surroundings> machine = this_machine(loop);
  test::TemporaryFolder folder;
};

TEST_F(SurroundingsTest, variables_are_those_of_the_start) {
  ::setenv("AWS_HOLDFAST_TEST", "one", 1);
  ::setenv("AWS_HOLDFAST_EMPTY", "", 1);
  const auto now = this_machine(loop);
  ::setenv("AWS_HOLDFAST_TEST", "two", 1);
  EXPECT_EQ(now->variable("AWS_HOLDFAST_TEST"), "one");
  EXPECT_FALSE(now->variable("AWS_HOLDFAST_EMPTY"));
  EXPECT_FALSE(now->variable("AWS_HOLDFAST_NEVER"));
  ::unsetenv("AWS_HOLDFAST_TEST");
  ::unsetenv("AWS_HOLDFAST_EMPTY");
}

TEST_F(SurroundingsTest, a_file_is_read_and_one_that_is_too_large_or_no_file_is_an_error) {
  std::ofstream(folder.file("token")) << "abc";
  EXPECT_EQ(machine->read_file(folder.file("token")), "abc");
  EXPECT_EQ(machine->read_file(folder.file("none")).error().code, Code::not_found);
  EXPECT_EQ(machine->read_file("/dev/null"), "") << "how AWS's tools are told to read no file";
  EXPECT_FALSE(machine->read_file(folder.path().string()));
  std::ofstream(folder.file("large")) << std::string(70'000, 'x');
  EXPECT_FALSE(machine->read_file(folder.file("large")));
  ASSERT_EQ(::mkfifo(folder.file("pipe").c_str(), 0600), 0);
  EXPECT_FALSE(machine->read_file(folder.file("pipe"))) << "nobody writes: it would wait for ever";
}

TEST_F(SurroundingsTest, a_process_gives_what_it_printed) {
  EXPECT_EQ(run("echo one; sleep 0.05; echo two"), "one\ntwo\n");
  EXPECT_EQ(run("cat"), "") << "its input is empty";
  const auto long_text =
      run("i=0; while [ $i -lt 1000 ]; do echo 0123456789012345678901234567890123456789; "
          "i=$((i+1)); done");
  ASSERT_TRUE(long_text);
  EXPECT_EQ(long_text->size(), 41'000U);
}

TEST_F(SurroundingsTest, a_process_that_fails_says_how_and_shows_neither_its_words_nor_its_arguments) {
  const auto failed = run("echo HUSH; echo HUSH >&2; exit 3");
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().detail, AllOf(HasSubstr("/bin/sh failed with exit code 3"), Not(HasSubstr("HUSH"))));
  const auto killed = run("kill -9 $$");
  ASSERT_FALSE(killed);
  EXPECT_THAT(killed.error().detail, HasSubstr("signal 9"));
  const auto result = machine->run({"/no/such/program", "HUSH"}, 1s);
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().detail, AllOf(HasSubstr("/no/such/program"), Not(HasSubstr("HUSH"))));
}

TEST_F(SurroundingsTest, what_a_process_says_on_standard_error_goes_nowhere) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(run("echo HUSH >&2; echo good"), "good\n");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(SurroundingsTest, a_process_that_hangs_is_killed_with_its_children_while_the_loop_goes_on) {
  int beats = 0;
  std::function<void()> beat = [&] {
    ++beats;
    loop.call_after(10ms, beat);
  };
  beat();
  const auto result = run("sleep 600 & echo $! >" + folder.file("child") + "; wait", 300ms);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::unavailable);
  EXPECT_THAT(result.error().detail, HasSubstr("did not end within 300 ms"));
  EXPECT_GT(beats, 5) << "the loop was not held up";
  std::ifstream file(folder.file("child"));
  pid_t child = 0;
  ASSERT_TRUE(file >> child);
  EXPECT_TRUE(run_until(loop, [&] { return test::has_ended(child); }));
}

TEST_F(SurroundingsTest, a_process_that_never_stops_printing_is_ended) {
  const auto result = run("cat /dev/zero");
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().detail, HasSubstr("more than 64 KiB"));
}

TEST_F(SurroundingsTest, one_that_a_process_left_behind_is_not_waited_for) {
  EXPECT_EQ(run("sleep 600 & echo done"), "done\n");
}

TEST_F(SurroundingsTest, destroying_it_ends_a_process_that_runs_and_nobody_hears_of_it) {
  std::atomic<bool> begun = false;
  bool done = false;
  Surroundings* const from = machine.get();
  machine->in_background(
      [&begun, from] {
        begun = true;
        (void)from->run({"/bin/sh", "-c", "sleep 600"}, 600s);
      },
      [&done] { done = true; });
  ASSERT_TRUE(run_until(loop, [&] { return begun.load(); }));
  const Instant before = runtime::boot_now();
  machine.reset();
  EXPECT_LT(runtime::boot_now() - before, 300s) << "it did not wait for the process";
  test::run_for(loop, 20ms);
  EXPECT_FALSE(done);
}

TEST_F(SurroundingsTest, work_is_done_one_after_the_other_and_told_on_the_loop) {
  std::vector<int> order;
  std::atomic<int> running = 0;
  std::atomic<bool> together = false;
  int done = 0;
  for (int i = 0; i < 20; ++i) {
    machine->in_background(
        [&, i] {
          if (running.fetch_add(1) != 0) together = true;
          order.push_back(i);
          running.fetch_sub(1);
        },
        [&] { ++done; });
  }
  EXPECT_EQ(done, 0);
  ASSERT_TRUE(run_until(loop, [&] { return done == 20; }));
  EXPECT_FALSE(together);
  EXPECT_TRUE(std::ranges::is_sorted(order));
}

}  // namespace
}  // namespace holdfast::store::dynamodb
