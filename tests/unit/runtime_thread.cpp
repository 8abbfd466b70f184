#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "holdfast/loop.hpp"
#include "runtime/thread.hpp"

namespace holdfast::runtime {
namespace {

using namespace std::chrono_literals;

TEST(Thread, is_joined_by_its_destructor) {
  std::atomic<bool> ended = false;
  {
    const Thread thread("worker", [&] {
      std::this_thread::sleep_for(5ms);
      ended = true;
    });
    EXPECT_TRUE(thread.running());
    EXPECT_FALSE(thread.is_current());
  }
  EXPECT_TRUE(ended);
}

TEST(Thread, carries_its_name_cut_to_what_the_system_takes) {
  std::array<char, 16> name{};
  // The maker sets the name right after the start, so the body may have to wait a moment for it.
  Thread("a-rather-long-name", [&] {
    while (std::string_view(name.data()) != "a-rather-long-n") {
      ASSERT_EQ(pthread_getname_np(pthread_self(), name.data(), name.size()), 0);
    }
  }).join();
  EXPECT_STREQ(name.data(), "a-rather-long-n");
}

TEST(Thread, blocks_signals_and_leaves_its_makers_mask_alone) {
  sigset_t before{};
  sigset_t inside{};
  sigset_t after{};
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  Thread("quiet", [&] { pthread_sigmask(SIG_SETMASK, nullptr, &inside); }).join();
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGCHLD}) {
    EXPECT_EQ(sigismember(&inside, signal), 1);
    EXPECT_EQ(sigismember(&before, signal), sigismember(&after, signal));
  }
}

TEST(Mailbox, gives_what_was_put_in_in_order_and_at_most_so_many) {
  Mailbox<int> box;
  for (int i = 1; i <= 5; ++i) EXPECT_TRUE(box.push(int{i}));
  std::vector<int> taken;
  EXPECT_TRUE(box.take(taken, 3, 0ms));
  EXPECT_EQ(taken, (std::vector<int>{1, 2, 3}));
  EXPECT_TRUE(box.take(taken, 3, 0ms));
  EXPECT_EQ(taken, (std::vector<int>{1, 2, 3, 4, 5}));
  EXPECT_TRUE(box.take(taken, 3, 0ms)) << "empty, but more may come";
}

TEST(Mailbox, full_refuses_and_leaves_the_item_to_its_owner) {
  Mailbox<std::unique_ptr<int>> box(1);
  EXPECT_TRUE(box.push(std::make_unique<int>(1)));
  auto second = std::make_unique<int>(2);
  EXPECT_FALSE(box.push(std::move(second)));
  ASSERT_NE(second, nullptr);
  std::vector<std::unique_ptr<int>> taken;
  box.take(taken, 1, 0ms);
  EXPECT_TRUE(box.push(std::move(second)));
}

TEST(Mailbox, takes_many_at_once_as_far_as_there_is_room_and_leaves_the_rest_to_their_owner) {
  Mailbox<int> box(4);
  EXPECT_TRUE(box.push(1));
  std::vector<int> more{2, 3, 4, 5, 6};
  box.push_all(more);
  EXPECT_EQ(more, (std::vector<int>{5, 6}));
  std::vector<int> taken;
  EXPECT_TRUE(box.take(taken, 10, 0ms));
  EXPECT_EQ(taken, (std::vector<int>{1, 2, 3, 4}));
  box.close();
  box.push_all(more);
  EXPECT_EQ(more, (std::vector<int>{5, 6})) << "closed, so nothing is taken";
}

TEST(Mailbox, closed_refuses_and_gives_out_what_it_holds_before_it_says_so) {
  Mailbox<int> box;
  box.push(1);
  box.close();
  EXPECT_FALSE(box.push(2));
  std::vector<int> taken;
  EXPECT_TRUE(box.take(taken, 9, 1min));
  EXPECT_EQ(taken, std::vector<int>{1});
  EXPECT_FALSE(box.take(taken, 9, 1min));
}

TEST(Mailbox, a_push_a_wake_and_a_close_each_end_a_wait) {
  Mailbox<int> box;
  std::atomic<int> rounds = 0;
  Thread taker("taker", [&] {
    std::vector<int> taken;
    while (box.take(taken, 1, 1h)) ++rounds;
  });
  const auto wait_for_round = [&](int round) {
    while (rounds < round) std::this_thread::yield();
  };
  box.push(1);
  wait_for_round(1);
  box.wake();
  wait_for_round(2);
  box.close();
  taker.join();
  EXPECT_EQ(rounds, 2);
}

TEST(Mailbox, loses_and_repeats_nothing_from_many_threads) {
  constexpr int writers = 4;
  constexpr int each = 2000;
  Mailbox<int> box;
  std::vector<Thread> threads;
  for (int writer = 0; writer < writers; ++writer) {
    threads.emplace_back("writer", [&box, writer] {
      for (int i = 0; i < each; ++i) box.push(writer * each + i);
    });
  }
  std::vector<int> taken;
  while (taken.size() < writers * each) ASSERT_TRUE(box.take(taken, 100, 1min));
  std::vector<int> last(writers, -1);
  for (const int item : taken) {
    int& previous = last[static_cast<std::size_t>(item / each)];
    ASSERT_EQ(item % each, previous + 1);
    previous = item % each;
  }
}

}  // namespace
}  // namespace holdfast::runtime
