#include "store/dynamodb/credentials_refresh.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "support/virtual_loop.hpp"

namespace holdfast::store::dynamodb {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

/// A provider that the test answers for, at once or later.
class FakeProvider final : public CredentialProvider {
 public:
  explicit FakeProvider(int& asked) : asked_(asked) {}
  void ask(Handler handler) override {
    ++asked_;
    if (give) return handler(give());
    waiting = std::move(handler);
  }
  std::function<Found()> give;
  Handler waiting;

 private:
  int& asked_;
};

struct RefreshTest : testing::Test {
  explicit RefreshTest(std::uint64_t seed = 1) : loop(seed) {
    auto made = std::make_unique<FakeProvider>(asked);
    provider = made.get();
    source = std::make_unique<RefreshingCredentials>(loop, std::move(made));
    provider->give = [this] { return have(1h); };
  }

  /// Others each time.
  Found have(Duration life) { return have("AK" + std::to_string(asked), life); }
  Found have(const std::string& id, std::optional<Duration> life) {
    Credentials credentials{id, "s", "t", {}, "fake"};
    if (life) credentials.expires_at = loop.wall() + std::chrono::floor<std::chrono::milliseconds>(*life);
    return Found::have(credentials);
  }
  void get(Duration limit = 10s) {
    source->get(loop.instant() + limit, [this](Result<Credentials> came) { results.push_back(std::move(came)); });
  }
  /// The id, or the error.
  std::string ask(Duration limit = 10s) {
    results.clear();
    get(limit);
    EXPECT_TRUE(results.empty()) << "answered inside the call";
    EXPECT_TRUE(loop.advance_until([&] { return !results.empty(); }));
    return results.at(0) ? results.at(0)->access_key_id : results.at(0).error().detail;
  }

  test::VirtualLoop loop;
  int asked = 0;
  FakeProvider* provider = nullptr;
  std::unique_ptr<RefreshingCredentials> source;
  std::vector<Result<Credentials>> results;
};

TEST_F(RefreshTest, what_was_fetched_is_handed_out_again) {
  EXPECT_EQ(ask(), "AK1");
  EXPECT_EQ(ask(), "AK1");
  loop.advance(30min);
  EXPECT_EQ(ask(), "AK1");
  EXPECT_EQ(asked, 1);
}

TEST_F(RefreshTest, all_who_wait_share_one_fetch) {
  provider->give = {};
  for (int i = 0; i < 5; ++i) get();
  loop.settle();
  ASSERT_EQ(asked, 1);
  provider->waiting(have(1h));
  loop.settle();
  ASSERT_EQ(results.size(), 5U);
  for (const auto& result : results) EXPECT_EQ(result->access_key_id, "AK1");
  EXPECT_EQ(loop.timers(), 0U) << "no timer runs while nobody waits";
}

TEST_F(RefreshTest, others_are_fetched_ahead_of_expiry_while_the_old_ones_are_handed_out) {
  EXPECT_EQ(ask(), "AK1");
  loop.advance(44min);
  EXPECT_EQ(ask(), "AK1");
  EXPECT_EQ(asked, 1) << "more than 15 minutes left";
  loop.advance(6min + 1s);
  provider->give = {};
  EXPECT_EQ(ask(), "AK1") << "and nobody waits";
  EXPECT_EQ(asked, 2);
  EXPECT_EQ(ask(), "AK1");
  EXPECT_EQ(asked, 2) << "one fetch at a time";
  provider->waiting(have(1h));
  EXPECT_EQ(ask(), "AK2");
}

TEST_F(RefreshTest, when_that_is_differs_from_process_to_process) {
  std::vector<Duration> moments;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    struct Once : RefreshTest {
      explicit Once(std::uint64_t seed_) : RefreshTest(seed_) {}
      void TestBody() override {}
    } once(seed);
    (void)once.ask();
    const Instant begin = once.loop.instant();
    while (once.asked == 1) {
      once.loop.advance(1s);
      (void)once.ask();
    }
    moments.push_back(once.loop.instant() - begin);
    EXPECT_GE(moments.back(), 45min);
    EXPECT_LE(moments.back(), 50min + 1s);
  }
  std::ranges::sort(moments);
  EXPECT_GT(moments.back() - moments.front(), 2min);
}

TEST_F(RefreshTest, what_lives_shortly_is_not_fetched_at_every_call) {
  provider->give = [this] { return have(1min); };
  EXPECT_EQ(ask(), "AK1");
  loop.advance(20s);
  EXPECT_EQ(ask(), "AK1");
  EXPECT_EQ(asked, 1);
  loop.advance(20s + 1ms);
  (void)ask();
  EXPECT_EQ(asked, 2);
}

TEST_F(RefreshTest, a_failed_refresh_leaves_the_old_ones_while_they_are_good_and_is_not_repeated_at_every_call) {
  EXPECT_EQ(ask(), "AK1");
  provider->give = [] { return Found::failed({Code::unavailable, "away"}); };
  loop.advance(50min + 1s);
  int calls = 0;
  while (loop.instant().time_since_epoch() < 1h - 10s) {
    ASSERT_EQ(ask(), "AK1");
    ++calls;
    loop.advance(100ms);
  }
  EXPECT_GT(calls, 5000);
  EXPECT_GT(asked, 10);
  EXPECT_LT(asked, 100);
  loop.advance(10s);
  EXPECT_EQ(ask(), "away") << "expired ones are never handed out";
}

TEST_F(RefreshTest, f20_expired_ones_are_not_handed_out_and_who_asks_waits_for_others) {
  EXPECT_EQ(ask(), "AK1");
  loop.advance(2h);
  EXPECT_EQ(ask(), "AK2");
}

TEST_F(RefreshTest, a_process_that_slept_past_the_expiry_does_not_hand_them_out) {
  EXPECT_EQ(ask(), "AK1");
  loop.freeze(1h);
  EXPECT_EQ(ask(), "AK2");
}

TEST_F(RefreshTest, setting_the_wall_clock_does_not_make_them_live_longer) {
  EXPECT_EQ(ask(), "AK1");
  loop.shift_wall(-24h);
  loop.advance(1h);
  EXPECT_EQ(ask(), "AK2");
}

TEST_F(RefreshTest, what_expires_within_seconds_has_expired) {
  provider->give = [this] { return have(4s); };
  EXPECT_THAT(ask(), HasSubstr("fake: what it gave expires in 4 s"));
  loop.advance(1min);
  provider->give = [this] { return have(-1h); };
  EXPECT_THAT(ask(), HasSubstr("expired before"));
  EXPECT_EQ(results.at(0).error().code, Code::unavailable);
}

TEST_F(RefreshTest, after_a_failure_it_pauses_and_tells_the_same_meanwhile) {
  provider->give = [this] { return Found::failed({Code::denied, "failure " + std::to_string(asked)}); };
  EXPECT_EQ(ask(), "failure 1");
  EXPECT_EQ(ask(), "failure 1");
  EXPECT_EQ(asked, 1);
  for (int i = 0; i < 20; ++i) {
    loop.advance(15s);
    (void)ask();
  }
  EXPECT_EQ(asked, 21) << "no pause is longer than 15 s";
  int at_once = 0;
  for (int i = 0; i < 600; ++i) {
    const int before = asked;
    (void)ask();
    at_once += asked - before;
    loop.advance(100ms);
  }
  EXPECT_LT(at_once, 20) << "in a minute";
  provider->give = [this] { return have(1h); };
  loop.advance(15s);
  EXPECT_THAT(ask(), HasSubstr("AK"));
}

TEST_F(RefreshTest, who_waits_too_long_is_told_so_and_the_fetch_goes_on) {
  provider->give = {};
  EXPECT_THAT(ask(2s), HasSubstr("still being fetched"));
  EXPECT_EQ(results.at(0).error().code, Code::unavailable);
  provider->waiting(have(1h));
  loop.settle();
  EXPECT_EQ(ask(), "AK1");
  EXPECT_EQ(asked, 1);
}

TEST_F(RefreshTest, f20_refused_ones_are_replaced_at_the_next_call) {
  EXPECT_EQ(ask(), "AK1");
  loop.advance(2s);
  source->refused();
  EXPECT_EQ(ask(), "AK2");
}

TEST_F(RefreshTest, a_burst_of_refusals_is_one) {
  EXPECT_EQ(ask(), "AK1");
  loop.advance(2s);
  for (int i = 0; i < 100; ++i) source->refused();
  EXPECT_EQ(ask(), "AK2");
  for (int i = 0; i < 100; ++i) source->refused();  // of requests that had left with the old ones
  EXPECT_EQ(ask(), "AK2");
  EXPECT_EQ(asked, 2);
}

TEST_F(RefreshTest, the_same_ones_that_are_refused_again_and_again_are_fetched_less_and_less) {
  provider->give = [this] { return have("STATIC", std::nullopt); };
  EXPECT_EQ(ask(), "STATIC");
  for (int i = 0; i < 6000; ++i) {
    loop.advance(100ms);
    source->refused();
    ASSERT_EQ(ask(), "STATIC") << "there are no others";
  }
  EXPECT_GT(asked, 5);
  EXPECT_LT(asked, 25) << "in ten minutes";
}

TEST_F(RefreshTest, refused_ones_are_not_handed_out_where_no_others_can_be_had) {
  EXPECT_EQ(ask(), "AK1");
  loop.advance(2s);
  source->refused();
  provider->give = [] { return Found::failed({Code::unavailable, "away"}); };
  EXPECT_EQ(ask(), "away");
}

TEST_F(RefreshTest, a_provider_that_has_no_newer_ones_yet_is_not_asked_at_every_call) {
  const WallTime end = loop.wall() + 1h;
  provider->give = [end] {
    Credentials same{"SAME", "s", "t", end, "fake"};
    return Found::have(same);
  };
  EXPECT_EQ(ask(), "SAME");
  loop.advance(51min);
  for (int i = 0; i < 4800; ++i) {
    ASSERT_EQ(ask(), "SAME");
    loop.advance(100ms);
  }
  EXPECT_LT(asked, 50);
  loop.advance(1min);
  EXPECT_THAT(ask(), HasSubstr("expire"));
}

TEST_F(RefreshTest, destroying_it_ends_all_and_nobody_hears_of_it) {
  provider->give = {};
  get();
  loop.settle();
  get();
  source.reset();
  loop.advance(1min);
  EXPECT_TRUE(results.empty());
  EXPECT_EQ(loop.timers(), 0U);
}

}  // namespace
}  // namespace holdfast::store::dynamodb
