// The coordinators for programs that wait: real threads, a real file.
#include <gmock/gmock.h>

#include <atomic>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "coord/engine.hpp"
#include "holdfast/holdfast.hpp"
#include "support/eventually.hpp"
#include "support/temporary_folder.hpp"

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using Kind = Failure::Kind;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr auto generous = 30s;

template <class T>
std::optional<Kind> kind_of(const Ended<T>& ended) {
  if (ended) return std::nullopt;
  return ended.error().kind;
}

/// Waits until it was requested to stop.
bool waits_for(const std::stop_token& token) {
  std::mutex mutex;
  std::condition_variable_any changed;
  std::unique_lock lock(mutex);
  (void)changed.wait_for(lock, token, generous, [] { return false; });
  return token.stop_requested();
}

class BlockingTest : public testing::Test {
 protected:
  std::unique_ptr<Coordinator> open(Duration skew = 10ms) {
    auto opened = Coordinator::open({.store = url(), .patience = generous, .skew = skew});
    EXPECT_TRUE(opened) << opened.error().detail;
    return *std::move(opened);
  }
  [[nodiscard]] std::string url() const { return "sqlite:" + file("agreed.db"); }
  /// As somebody does whose clock is ahead by more than was promised.
  void take_over(const std::string& key) {
    Store* its_store = nullptr;
    Loop* its_loop = nullptr;
    const auto engine = coord::Engine::start(url(), coord::Engine::First::look, generous,
                                             [&](Store& store, Loop& loop) -> Result<std::shared_ptr<void>> {
                                               its_store = &store;
                                               its_loop = &loop;
                                               return std::make_shared<int>();
                                             });
    ASSERT_TRUE(engine) << engine.error().detail;
    const auto expiry = its_loop->wall() + std::chrono::hours(1);
    const auto done = (*engine)->call<Outcome>([&](std::function<void(Ended<Outcome>)> answer) {
      Update update{key,
                    {Change::set(attribute::owner, "thief"), Change::add(attribute::epoch, 1),
                     Change::set(attribute::expires_at, std::int64_t{expiry.time_since_epoch().count()})},
                    {}};
      its_store->update(std::move(update), its_loop->instant() + generous,
                        [answer](const RowReply& reply) { answer(reply.outcome); });
    });
    ASSERT_TRUE(done);
    ASSERT_EQ(*done, Outcome::applied);
  }
  [[nodiscard]] std::string file(const std::string& name) const { return (folder_.path() / name).string(); }

 private:
  test::TemporaryFolder folder_;
};

using RightTest = BlockingTest;

TEST_F(RightTest, one_has_it_the_next_gets_it_under_a_higher_epoch) {
  const auto first = open();
  const auto second = open();
  auto right = first->acquire("report");
  ASSERT_TRUE(right) << right.error().error.detail;
  EXPECT_TRUE(right->holds());
  EXPECT_GT(right->left(), 0s);
  EXPECT_EQ(right->key(), "TASK#report");
  EXPECT_FALSE(right->lost().stop_requested());
  EXPECT_EQ(kind_of(second->acquire("report")), Kind::busy);
  EXPECT_EQ(kind_of(first->acquire("report")), Kind::busy) << "nor twice in one process";

  const Epoch epoch = right->epoch();
  EXPECT_TRUE(right->release());
  EXPECT_FALSE(right->holds());
  EXPECT_EQ(right->left(), 0s);
  EXPECT_TRUE(right->lost().stop_requested());
  EXPECT_EQ(right->why_lost(), std::nullopt) << "it was given back";
  EXPECT_TRUE(right->release()) << "and that it was";

  const auto next = second->acquire("report");
  ASSERT_TRUE(next);
  EXPECT_EQ(next->epoch().value, epoch.value + 1);
}

TEST_F(RightTest, its_end_gives_it_back_to_who_waits) {
  const auto first = open();
  const auto second = open();
  std::optional<Right> right = *first->acquire("report");
  std::thread waiting([&] {
    const auto got = second->acquire("report", {.wait = generous});
    EXPECT_TRUE(got && got->holds());
  });
  right.reset();
  waiting.join();
}

/// Each call that waits, without an end in sight, for what the first coordinator holds.
TEST_F(BlockingTest, a_wait_can_be_cancelled) {
  const auto first = open();
  const auto second = open();
  const Right right = *first->acquire("report");
  std::thread runs([&] {
    (void)first->run_once("k", [&](const Right&) -> std::optional<OnceResult> {
      std::stop_source cancel;
      const std::vector<std::function<std::optional<Kind>()>> calls = {
          [&] { return kind_of(second->acquire("report", {.wait = 24h, .cancel = cancel.get_token()})); },
          [&] {
            return kind_of(second->run_once("k", [](const Right&) { return std::optional<OnceResult>(); },
                                            {.wait = 24h, .cancel = cancel.get_token()}));
          },
          [&]() -> std::optional<Kind> {
            const auto batch = second->receive("q", {.wait = 24h, .cancel = cancel.get_token()});
            return batch && !*batch ? std::optional(Kind::busy) : std::nullopt;
          },
      };
      std::atomic<int> cancelled = 0;
      std::vector<std::thread> threads;
      for (const auto& call : calls) {
        threads.emplace_back([&] { cancelled += call() == Kind::busy ? 1 : 0; });
      }
      cancel.request_stop();
      for (std::thread& thread : threads) thread.join();
      EXPECT_EQ(cancelled, 3);
      for (const auto& call : calls) EXPECT_EQ(call(), Kind::busy) << "before it begins";
      return std::nullopt;
    });
  });
  runs.join();
}

TEST_F(RightTest, it_is_renewed) {
  const auto coordinator = open();
  const auto other = open();
  const auto right = coordinator->acquire("report", {.lease = {.lease = 8s, .renew_every = 50ms}});
  ASSERT_TRUE(right);
  const Instant first_end = right->until();
  EXPECT_TRUE(test::eventually([&] { return right->until() > first_end; }));
  EXPECT_TRUE(right->holds());
  EXPECT_EQ(kind_of(other->acquire("report")), Kind::busy);
}

TEST_F(RightTest, one_that_is_not_renewed_says_when_it_is_over) {
  const auto coordinator = open();
  auto right = coordinator->acquire("report", {.lease = {.lease = 1s}, .renews = false});
  ASSERT_TRUE(right);
  EXPECT_TRUE(waits_for(right->lost()));
  EXPECT_FALSE(right->holds());
  EXPECT_EQ(right->why_lost(), LossReason::belief_expired);
  EXPECT_EQ(kind_of(right->release()), Kind::refused);
}

TEST_F(RightTest, a_coordinator_that_goes_gives_back_what_it_held) {
  auto first = open();
  auto right = first->acquire("report", {.lease = {.lease = 60s}});
  ASSERT_TRUE(right);
  first.reset();
  EXPECT_FALSE(right->holds());
  EXPECT_TRUE(right->lost().stop_requested());
  EXPECT_EQ(kind_of(right->release()), Kind::unknown) << "nobody is there to ask any more";
  EXPECT_TRUE(open()->acquire("report")) << "at once";
}

TEST_F(RightTest, a_callback_that_calls_back_is_refused_not_stuck) {
  const auto coordinator = open();
  std::optional<Kind> came_to;
  auto right = coordinator->acquire("report", {.lease = {.lease = 1s}, .renews = false});
  ASSERT_TRUE(right);
  const std::stop_callback on_loss(right->lost(), [&] { came_to = kind_of(coordinator->decide("k", "v")); });
  EXPECT_TRUE(waits_for(right->lost()));
  (void)coordinator->acquire("another");  // goes through the loop after the callback
  EXPECT_EQ(came_to, Kind::rejected);
}

using OnceTest = BlockingTest;

TEST_F(OnceTest, many_threads_of_several_processes_run_it_once) {
  const std::vector coordinators{open().release(), open().release(), open().release()};
  std::atomic<int> runs = 0;
  std::atomic<int> replays = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 9; ++i) {
    threads.emplace_back([&, coordinator = coordinators[static_cast<std::size_t>(i) % coordinators.size()]] {
      const auto ran = coordinator->run_once("invoice-17",
                                             [&](const Right& right) {
                                               EXPECT_TRUE(right.holds());
                                               ++runs;
                                               return OnceResult{.content = "charged"};
                                             },
                                             {.input = R"({"amount": 5, "to": "x"})", .wait = generous});
      ASSERT_TRUE(ran) << ran.error().error.detail;
      EXPECT_EQ(ran->result->content, "charged");
      if (ran->was_replayed) ++replays;
    });
  }
  for (auto& each : threads) each.join();
  EXPECT_EQ(runs, 1);
  EXPECT_EQ(replays, 8);
  const auto same = coordinators[0]->run_once("invoice-17", {}, {.input = R"({"to":"x","amount":5.0})"});
  ASSERT_TRUE(same) << "the same input, written otherwise";
  const auto other = coordinators[0]->run_once("invoice-17", {}, {.input = R"({"amount": 6, "to": "x"})"});
  EXPECT_EQ(kind_of(other), Kind::mismatch);
  for (auto* each : coordinators) delete each;
}

TEST_F(OnceTest, what_failed_for_good_is_a_result_too) {
  const auto coordinator = open();
  const auto fails = [](const Right&) { return OnceResult{.succeeded = false, .content = "no such card"}; };
  ASSERT_TRUE(coordinator->run_once("k", fails));
  const auto again = coordinator->run_once("k", {});
  ASSERT_TRUE(again);
  EXPECT_FALSE(again->result->succeeded);
  EXPECT_TRUE(again->was_replayed);
}

TEST_F(OnceTest, f22_a_throw_leaves_it_to_the_next_callers_policy) {
  const auto coordinator = open();
  const auto throws = [](const Right&) -> OnceResult { throw std::runtime_error("midway"); };
  EXPECT_THROW((void)coordinator->run_once("k", throws), std::runtime_error);

  const auto held = coordinator->run_once("k", {}, {.abandoned = Abandoned::hold});
  EXPECT_EQ(kind_of(held), Kind::refused);
  EXPECT_THAT(held.error().error.detail, HasSubstr("left no result"));

  int asked = 0;
  const auto found = coordinator->run_once(
      "k", [](const Right&) -> OnceResult { throw std::runtime_error("not to be called"); },
      {.abandoned = Abandoned::reconcile, .reconcile = [&](const Right& right) -> std::optional<OnceResult> {
         EXPECT_TRUE(right.holds());
         ++asked;
         return OnceResult{.content = "it had been charged"};
       }});
  ASSERT_TRUE(found) << found.error().error.detail;
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(found->result->content, "it had been charged");
  EXPECT_EQ(coordinator->run_once("k", {})->result->content, "it had been charged");
}

TEST_F(OnceTest, what_is_surely_not_done_is_run_by_whoever_is_next) {
  const auto coordinator = open();
  const auto tried = coordinator->run_once("k", [](const Right&) { return std::optional<OnceResult>(); });
  ASSERT_TRUE(tried);
  EXPECT_FALSE(tried->result);
  const auto done = coordinator->run_once("k", [](const Right&) { return OnceResult{.content = "now"}; },
                                          {.abandoned = Abandoned::hold});
  ASSERT_TRUE(done) << "it was not abandoned: " << done.error().error.detail;
  EXPECT_EQ(done->result->content, "now");
}

TEST_F(OnceTest, who_finds_out_nothing_has_it_run_again) {
  const auto coordinator = open();
  EXPECT_THROW((void)coordinator->run_once("k", [](const Right&) -> OnceResult { throw 1; }), int);
  const auto ran =
      coordinator->run_once("k", [](const Right&) { return OnceResult{.content = "now"}; },
                            {.abandoned = Abandoned::reconcile,
                             .reconcile = [](const Right&) -> std::optional<OnceResult> { return std::nullopt; }});
  ASSERT_TRUE(ran);
  EXPECT_EQ(ran->result->content, "now");
}

TEST_F(OnceTest, a_result_that_does_not_fit_is_recorded_by_nobody) {
  const auto coordinator = open();
  const auto large = coordinator->run_once(
      "large", [](const Right&) { return OnceResult{.content = std::string(OnceResult::most + 1, 'x')}; });
  EXPECT_EQ(kind_of(large), Kind::rejected);
  EXPECT_THAT(large.error().error.detail, HasSubstr("350001"));
  EXPECT_EQ(kind_of(coordinator->run_once("large", {}, {.abandoned = Abandoned::hold})), Kind::refused);
}

TEST_F(OnceTest, f23_what_comes_after_the_lease_was_taken_over_is_recorded_by_nobody) {
  const auto coordinator = open();
  const auto ran = coordinator->run_once("k",
                                         [&](const Right& right) {
                                           take_over(right.key());
                                           EXPECT_TRUE(waits_for(right.lost()));  // a renewal meets it
                                           EXPECT_FALSE(right.holds());
                                           EXPECT_EQ(right.why_lost(), LossReason::taken_over);
                                           return OnceResult{.content = "late"};
                                         },
                                         {.lease = {.lease = 10s, .renew_every = 50ms}});
  EXPECT_EQ(kind_of(ran), Kind::unknown) << "it has happened";
  EXPECT_THAT(ran.error().error.detail, HasSubstr("result of k is not recorded"));
  EXPECT_EQ(kind_of(coordinator->run_once("k", {})), Kind::busy) << "the other one is at it";
}

using DataTest = BlockingTest;

TEST_F(DataTest, the_first_proposal_wins) {
  const auto first = open();
  const auto second = open();
  const auto nothing = second->decided("who");
  ASSERT_TRUE(nothing);
  EXPECT_FALSE(nothing->has_value());
  EXPECT_TRUE(first->decide("who", "a")->was_ours);
  const auto seen = second->decided("who");
  ASSERT_TRUE(seen && seen->has_value());
  EXPECT_EQ((*seen)->value, Value("a"));
  const auto told = second->decide("who", "b");
  ASSERT_TRUE(told);
  EXPECT_FALSE(told->was_ours);
  EXPECT_EQ(told->value, Value("a"));
  EXPECT_FALSE(first->decide("who", "a")->was_ours) << "by its value alone nobody's proposal is known";
}

TEST_F(DataTest, a_proposal_with_a_ticket_is_known_again_whoever_repeats_it) {
  const auto first = open();
  const auto second = open();
  for (const auto& each : {std::ref(first), std::ref(second), std::ref(first)}) {
    EXPECT_TRUE(each.get()->decide("who", "a", "t1")->was_ours);
  }
  EXPECT_FALSE(second->decide("who", "a", "t2")->was_ours);
  EXPECT_FALSE(second->decide("who", "b", "t1")->was_ours) << "it is not what was proposed under it";
  EXPECT_FALSE(second->decide("who", "a")->was_ours);
}

TEST_F(DataTest, counters_count_each_operation_once_and_not_below_their_floor) {
  const auto coordinator = open();
  EXPECT_EQ(*coordinator->number(AddOptions::To::counter, "seats"), 0);
  EXPECT_EQ(coordinator->add({.key = "seats", .delta = 5, .op_id = "1"})->value, 5);
  EXPECT_TRUE(coordinator->add({.key = "seats", .delta = 5, .op_id = "1"})->was_repeat);
  EXPECT_EQ(kind_of(coordinator->add({.key = "seats", .delta = -6, .op_id = "2", .floor = 0})), Kind::refused);
  EXPECT_EQ(kind_of(coordinator->add({.key = "seats", .delta = 1, .op_id = "1"})), Kind::mismatch);
  EXPECT_EQ(*coordinator->number(AddOptions::To::counter, "seats"), 5);
}

TEST_F(DataTest, stock_is_reserved_all_or_none_and_comes_back) {
  const auto coordinator = open();
  using To = AddOptions::To;
  ASSERT_TRUE(coordinator->add({.key = "shirt", .delta = 3, .op_id = "s", .to = To::stock}));
  ASSERT_TRUE(coordinator->add({.key = "hat", .delta = 1, .op_id = "h", .to = To::stock}));
  ASSERT_TRUE(coordinator->reserve({.id = "r1", .basket = {{"shirt", 1}, {"hat", 1}}}));
  EXPECT_EQ(kind_of(coordinator->reserve({.id = "r2", .basket = {{"shirt", 1}, {"hat", 1}}})), Kind::refused);
  EXPECT_EQ(*coordinator->number(To::stock, "shirt"), 2);
  EXPECT_EQ(coordinator->confirm("r1")->state, Reservation::State::confirmed);
  EXPECT_EQ(kind_of(coordinator->cancel("r1")), Kind::refused);
  EXPECT_EQ(coordinator->reservation("r1")->basket.at("hat"), 1);

  ASSERT_TRUE(coordinator->reserve({.id = "r3", .basket = {{"shirt", 2}}, .ttl = 100ms}));
  const auto taken = [&] { return coordinator->reserve({.id = "r4", .basket = {{"shirt", 2}}}); };
  auto reserved = taken();
  for (const auto until = std::chrono::steady_clock::now() + generous;
       !reserved && std::chrono::steady_clock::now() < until;) {
    std::this_thread::sleep_for(1ms);
    reserved = taken();  // what expired returns to who needs it
  }
  EXPECT_TRUE(reserved);
  EXPECT_EQ(coordinator->reservation("r3")->state, Reservation::State::expired);
  EXPECT_EQ(coordinator->cancel("r4")->state, Reservation::State::cancelled);
  EXPECT_EQ(*coordinator->return_expired(), 0U);
  EXPECT_EQ(*coordinator->number(To::stock, "shirt"), 2);
}

TEST_F(DataTest, a_queue_from_sending_to_its_dead_letters) {
  const auto coordinator = open();
  for (const char* body : {"one", "two", "three"}) {
    ASSERT_TRUE(coordinator->send({.queue = "mails", .group = "u", .body = body, .dedup_id = body}));
  }
  EXPECT_TRUE(coordinator->send({.queue = "mails", .group = "u", .body = "one", .dedup_id = "one"})->was_duplicate);
  auto batch = coordinator->receive("mails", {.max = 2});
  ASSERT_TRUE(batch && *batch);
  ASSERT_EQ((*batch)->messages.size(), 2U);
  EXPECT_EQ((*batch)->messages[0].body, "one");
  EXPECT_FALSE(*coordinator->receive("mails")) << "the group is leased";
  EXPECT_TRUE(coordinator->extend((*batch)->receipt, 1min));
  EXPECT_EQ(coordinator->ack((*batch)->receipt, 1)->left, 2);
  EXPECT_EQ(coordinator->nack((*batch)->receipt)->left, 2);
  EXPECT_EQ(kind_of(coordinator->ack((*batch)->receipt)), Kind::refused) << "it is over";
  batch = coordinator->receive("mails");
  ASSERT_TRUE(batch && *batch);
  EXPECT_EQ((*batch)->messages[0].body, "two");
  EXPECT_TRUE(coordinator->nack((*batch)->receipt));

  const auto seen = coordinator->peek("mails", "u");
  ASSERT_TRUE(seen && *seen);
  EXPECT_EQ((*seen)->messages[0].body, "two");
  EXPECT_EQ((*seen)->group.size(), 2);
  EXPECT_FALSE(*coordinator->peek("mails", "nobody"));

  // It was received once; not to be received again.
  batch = coordinator->receive("mails",
                               {.poison = QueueOptions::Poison::move, .receives_most = 1, .dead_letter = "dead"});
  ASSERT_TRUE(batch && *batch);
  EXPECT_EQ((*batch)->messages[0].body, "three");
  EXPECT_EQ((*coordinator->peek("dead", "u"))->messages[0].body, "two");
  EXPECT_TRUE(coordinator->park((*batch)->receipt, "unknown customer"));
  auto groups = coordinator->stats("mails");
  ASSERT_TRUE(groups);
  ASSERT_EQ(groups->groups.size(), 1U);
  EXPECT_EQ(groups->groups.front().state, Group::State::parked);
  EXPECT_EQ(groups->groups.front().parked_because, "unknown customer");
  EXPECT_EQ(coordinator->redrive("mails", "u", true)->left, 0);
  EXPECT_THAT(coordinator->stats("mails")->groups, IsEmpty());
}

TEST_F(DataTest, what_makes_no_sense_is_refused_before_the_store_is_asked) {
  const auto coordinator = open();
  const std::string endless(501, 'k');
  EXPECT_EQ(kind_of(coordinator->acquire("")), Kind::rejected);
  EXPECT_EQ(kind_of(coordinator->acquire("t", {.lease = {.lease = 1ms}})), Kind::rejected);
  EXPECT_EQ(kind_of(coordinator->decide(endless, 1)), Kind::rejected);
  EXPECT_EQ(kind_of(coordinator->run_once("", {})), Kind::rejected);
  EXPECT_EQ(kind_of(coordinator->run_once("k", {}, {.abandoned = Abandoned::reconcile})), Kind::rejected);
  EXPECT_EQ(kind_of(coordinator->add({.key = "k", .delta = 1})), Kind::rejected) << "no op_id";
  EXPECT_EQ(kind_of(coordinator->reserve({.id = "r"})), Kind::rejected) << "nothing in it";
  EXPECT_EQ(kind_of(coordinator->reserve({.id = "r", .basket = {{"a", 0}}})), Kind::rejected);
  EXPECT_EQ(kind_of(coordinator->receive("q", {.visibility = 1ms})), Kind::rejected);
  EXPECT_EQ(kind_of(coordinator->send({.queue = "a#b", .group = "g"})), Kind::rejected);
  EXPECT_EQ(kind_of(coordinator->send({.queue = "a", .group = "g", .body = std::string(350'001, 'x')})),
            Kind::rejected);
  EXPECT_EQ(kind_of(coordinator->receive("q", {.max = 0})), Kind::rejected);
  EXPECT_EQ(kind_of(coordinator->receive("q", {.poison = QueueOptions::Poison::move, .dead_letter = "q"})),
            Kind::rejected);
  EXPECT_THAT(coordinator->receive("q", {.poison = QueueOptions::Poison::move}).error().error.detail,
              testing::HasSubstr("dead_letter"));
  EXPECT_EQ(kind_of(coordinator->redrive_to("q", "g", "q")), Kind::rejected);
  const Receipt two{.queue = "q", .group = "g", .owner = {}, .epoch = {}, .first = 1, .last = 2};
  EXPECT_EQ(kind_of(coordinator->ack(two, 3)), Kind::rejected);
  EXPECT_EQ(kind_of(coordinator->ack(two, 0)), Kind::rejected) << "who handled none does not lose all";

  EXPECT_EQ(Coordinator::open({.store = "postgres:x"}).error().code, Code::usage);
  EXPECT_EQ(Coordinator::open({.store = url(), .patience = 0s}).error().code, Code::usage);
  EXPECT_EQ(Coordinator::open({.store = url(), .id = "a b"}).error().code, Code::usage);
  EXPECT_FALSE(Coordinator::open({.store = "sqlite:" + file("not/there.db")}));
  EXPECT_FALSE(Coordinator::open({.store = "sqlite:" + file("none.db"), .make_table = false}));
  EXPECT_FALSE(std::filesystem::exists(file("none.db")));
}

// ---- What all of this stands on ----

TEST(EngineTest, nobody_waits_for_a_loop_that_has_ended_by_itself) {
  Loop* its_loop = nullptr;
  const auto engine = coord::Engine::start("memory:", coord::Engine::First::nothing, generous,
                                           [&](Store&, Loop& loop) -> Result<std::shared_ptr<void>> {
                                             its_loop = &loop;
                                             return std::make_shared<int>();
                                           });
  ASSERT_TRUE(engine) << engine.error().detail;
  const auto waiting = (*engine)->call<int>([&](const auto& answer) {
    its_loop->call_after(1h, [answer] { answer(1); });
    its_loop->call_after(20ms, [] { throw std::runtime_error("a fault of ours"); });
  });
  EXPECT_EQ(kind_of(waiting), Kind::unknown);
  const auto after = (*engine)->call<int>([](const auto& answer) { answer(1); });
  EXPECT_EQ(kind_of(after), Kind::unknown);
  EXPECT_THAT(after.error().error.detail, HasSubstr("a fault of ours"));
}

TEST(EngineTest, what_cannot_be_made_is_told) {
  const auto made = coord::Engine::start(
      "memory:", coord::Engine::First::make_table, generous,
      [](Store&, Loop&) -> Result<std::shared_ptr<void>> { return fail(Code::denied, "not today"); });
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().detail, "not today");
  const auto thrown = coord::Engine::start(
      "memory:", coord::Engine::First::make_table, generous,
      [](Store&, Loop&) -> Result<std::shared_ptr<void>> { throw std::runtime_error("out of luck"); });
  ASSERT_FALSE(thrown);
  EXPECT_THAT(thrown.error().detail, HasSubstr("out of luck"));
}

}  // namespace
}  // namespace holdfast
