// The shell of the coordinators, several of them on one table, in virtual time.
#include "coord/coordinator.hpp"

#include <gmock/gmock.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/coord/counter.hpp"
#include "core/coord/names.hpp"
#include "store/memory/memory_store.hpp"
#include "support/faulty_store.hpp"
#include "support/virtual_loop.hpp"

namespace holdfast::coord {
namespace {

using namespace std::chrono_literals;
using test::FaultyStore;
using Fault = FaultyStore::Fault;
using testing::HasSubstr;

/// One process: a store of its own on the common table.
struct Process {
  Process(std::string name, const std::shared_ptr<store::MemoryTable>& table, Loop& loop)
      : store(store::make_memory_store(table, loop), loop),
        coordinator(std::make_unique<Coordinator>(name, store, loop)) {}
  [[nodiscard]] std::size_t writes() const { return store.updates.size(); }

  FaultyStore store;
  std::unique_ptr<Coordinator> coordinator;
};

/// One try to get a task, and what became of it.
struct Try {
  std::optional<Ended<std::shared_ptr<Held>>> got;
  std::optional<LossReason> lost;
  std::optional<HoldEnd> ended;
  [[nodiscard]] bool holds() const { return got && *got && **got; }
  void let_go() { (**got)->release({}); }
};

class CoordinatorTest : public testing::Test {
 protected:
  Process& join(const std::string& name) {
    processes_.push_back(std::make_unique<Process>(name, table_, loop_));
    return *processes_.back();
  }
  std::shared_ptr<Try> acquire(Process& by, const std::string& task, TaskOptions options) {
    auto tried = std::make_shared<Try>();
    by.coordinator->acquire(task, options,
                            {.acquired = [tried](auto got) { tried->got = std::move(got); },
                             .lost = [tried](LossReason reason) { tried->lost = reason; },
                             .ended = [tried](HoldEnd how, const Error&) { tried->ended = how; }});
    return tried;
  }
  TaskOptions options(Duration wait = 0s) {
    TaskOptions options;
    options.terms = *make_terms({.lease = 10s});
    options.wait = wait;
    return options;
  }
  bool until(const std::function<bool()>& condition, Duration limit = 1min) {
    return loop_.advance_until(condition, limit);
  }
  Row row(const std::string& key) {
    std::optional<Row> row;
    bool answered = false;
    const auto store = store::make_memory_store(table_, loop_);
    store->get(key, loop_.instant() + 1s, [&](RowReply reply) {
      row = reply.value;
      answered = true;
    });
    EXPECT_TRUE(until([&] { return answered; }));
    store->close([] {});
    loop_.settle();
    return row.value_or(Row{});
  }

  test::VirtualLoop loop_;
  std::shared_ptr<store::MemoryTable> table_ = std::make_shared<store::MemoryTable>();
  std::vector<std::unique_ptr<Process>> processes_;
};

TEST_F(CoordinatorTest, a_task_is_held_until_it_is_given_back_with_two_writes_in_all) {
  Process& me = join("me");
  const auto mine = acquire(me, "t", options());
  ASSERT_TRUE(until([&] { return mine->got.has_value(); }));
  ASSERT_TRUE(mine->holds());
  EXPECT_EQ(me.store.asked, (std::map<std::string, int>{{"get", 1}, {"update", 1}}));
  EXPECT_TRUE((**mine->got)->guard()->holds(loop_.instant()));
  mine->let_go();
  EXPECT_FALSE((**mine->got)->guard()->holds(loop_.instant())) << "effects are over from here on";
  ASSERT_TRUE(until([&] { return mine->ended.has_value(); }));
  EXPECT_EQ(*mine->ended, HoldEnd::released);
  EXPECT_EQ(me.writes(), 2U);
  EXPECT_FALSE(mine->lost);
}

TEST_F(CoordinatorTest, it_is_renewed_while_it_is_held) {
  Process& me = join("me");
  const auto mine = acquire(me, "t", options());
  ASSERT_TRUE(until([&] { return mine->holds(); }));
  loop_.advance(1min);
  EXPECT_TRUE((**mine->got)->guard()->holds(loop_.instant()));
  EXPECT_GE(me.writes(), 20U);
  EXPECT_LE(me.writes(), 30U);
}

TEST_F(CoordinatorTest, one_that_is_not_to_be_renewed_ends_with_its_lease) {
  Process& me = join("me");
  TaskOptions once = options();
  once.renews = false;
  const auto mine = acquire(me, "t", once);
  ASSERT_TRUE(until([&] { return mine->holds(); }));
  const Instant begin = loop_.instant();
  ASSERT_TRUE(until([&] { return mine->lost.has_value(); }));
  EXPECT_EQ(*mine->lost, LossReason::belief_expired);
  EXPECT_LE(loop_.instant() - begin, 9s) << "S4: before the expiry, by the margin";
  EXPECT_GE(loop_.instant() - begin, 8900ms);
  ASSERT_TRUE(until([&] { return mine->ended.has_value(); }));
  EXPECT_EQ(*mine->ended, HoldEnd::lost);
  EXPECT_EQ(me.writes(), 1U);
}

TEST_F(CoordinatorTest, of_five_hundred_contenders_one_wins_and_no_loser_writes_more_than_once) {
  std::vector<std::shared_ptr<Try>> tries;
  for (int i = 0; i < 500; ++i) tries.push_back(acquire(join("c" + std::to_string(i)), "t", options()));
  ASSERT_TRUE(
      until([&] { return std::ranges::all_of(tries, [](const auto& each) { return each->got.has_value(); }); }));
  int winners = 0;
  for (std::size_t i = 0; i < tries.size(); ++i) {
    if (tries[i]->holds()) {
      ++winners;
    } else {
      EXPECT_EQ(tries[i]->got->error().kind, Failure::Kind::busy);
    }
    EXPECT_LE(processes_[i]->writes(), 1U);
  }
  EXPECT_EQ(winners, 1);
}

TEST_F(CoordinatorTest, who_comes_later_and_loses_writes_nothing) {
  const auto first = acquire(join("a"), "t", options());
  ASSERT_TRUE(until([&] { return first->holds(); }));
  Process& late = join("b");
  const auto second = acquire(late, "t", options());
  ASSERT_TRUE(until([&] { return second->got.has_value(); }));
  EXPECT_EQ(second->got->error().kind, Failure::Kind::busy);
  EXPECT_THAT(second->got->error().error.detail, HasSubstr("a#"));
  EXPECT_EQ(late.writes(), 0U);
}

TEST_F(CoordinatorTest, who_waits_gets_it_as_soon_as_it_is_given_back) {
  const auto first = acquire(join("a"), "t", options());
  ASSERT_TRUE(until([&] { return first->holds(); }));
  const auto second = acquire(join("b"), "t", options(1min));
  loop_.advance(5s);
  EXPECT_FALSE(second->got);
  first->let_go();
  const Instant released = loop_.instant();
  ASSERT_TRUE(until([&] { return second->holds(); }));
  EXPECT_LE(loop_.instant() - released, 300ms) << "a store that tells of changes wakes who waits";
  EXPECT_EQ((**second->got)->epoch(), Epoch{2});
}

TEST_F(CoordinatorTest, a_dead_holder_is_succeeded_after_its_expiry_and_the_skew) {
  Process& dies = join("a");
  const auto first = acquire(dies, "t", options());
  ASSERT_TRUE(until([&] { return first->holds(); }));
  const Instant begin = loop_.instant();
  dies.coordinator.reset();
  const auto second = acquire(join("b"), "t", options(1min));
  ASSERT_TRUE(until([&] { return second->holds(); }));
  EXPECT_GE(loop_.instant() - begin, 10'400ms);
  EXPECT_LE(loop_.instant() - begin, 11s);
}

TEST_F(CoordinatorTest, a_holder_whose_store_is_away_is_told_before_anybody_else_can_have_it) {
  Process& cut_off = join("a");
  const auto first = acquire(cut_off, "t", options());
  ASSERT_TRUE(until([&] { return first->holds(); }));
  cut_off.store.judge = [](const Update*) { return Fault::request_lost; };
  const auto second = acquire(join("b"), "t", options(1min));
  ASSERT_TRUE(until([&] { return first->lost.has_value() || second->holds(); }));
  EXPECT_TRUE(first->lost.has_value()) << "S1, S7";
  EXPECT_FALSE(second->holds());
  ASSERT_TRUE(until([&] { return second->holds(); }));
  EXPECT_FALSE((**first->got)->guard()->holds(loop_.instant()));
}

TEST_F(CoordinatorTest, a_claim_whose_reply_is_lost_is_known_by_its_attempt) {
  Process& me = join("me");
  int updates = 0;
  me.store.judge = [&](const Update* update) {
    return update != nullptr && updates++ == 0 ? Fault::reply_lost : Fault::none;
  };
  const auto mine = acquire(me, "t", options());
  ASSERT_TRUE(until([&] { return mine->got.has_value(); }));
  ASSERT_TRUE(mine->holds()) << "S5";
  EXPECT_EQ((**mine->got)->epoch(), Epoch{1});
}

TEST_F(CoordinatorTest, whichever_request_is_lost_the_task_is_held_by_one_and_given_back) {
  for (const Fault fault : {Fault::throttled, Fault::request_lost, Fault::reply_lost}) {
    for (int nth = 0; nth < 4; ++nth) {
      SCOPED_TRACE(testing::Message() << "fault " << static_cast<int>(fault) << " at request " << nth);
      table_ = std::make_shared<store::MemoryTable>();
      Process& me = join("a");
      int request = 0;
      me.store.judge = [&](const Update*) { return request++ == nth ? fault : Fault::none; };
      const auto mine = acquire(me, "t", options());
      ASSERT_TRUE(until([&] { return mine->holds(); }));
      EXPECT_EQ((**mine->got)->epoch(), Epoch{1});
      const auto other = acquire(join("b"), "t", options());
      ASSERT_TRUE(until([&] { return other->got.has_value(); }));
      EXPECT_FALSE(other->holds());
      mine->let_go();
      ASSERT_TRUE(until([&] { return mine->ended.has_value(); }));
      EXPECT_EQ(*mine->ended, HoldEnd::released);
      me.store.judge = {};
    }
  }
}

TEST_F(CoordinatorTest, a_caller_that_dies_behind_any_request_leaves_a_task_that_the_next_can_have) {
  for (std::size_t dies_after = 1; dies_after <= 4; ++dies_after) {
    for (const bool arrived : {false, true}) {  // the request that it died behind
      SCOPED_TRACE(testing::Message() << dies_after << (arrived ? ", which arrived" : ""));
      table_ = std::make_shared<store::MemoryTable>();
      Process& dies = join("a");
      std::size_t requests = 0;
      dies.store.judge = [&](const Update*) {
        if (++requests < dies_after) return Fault::none;
        return arrived && requests == dies_after ? Fault::reply_lost : Fault::request_lost;
      };
      const auto first = acquire(dies, "t", options());
      loop_.advance(1s);
      if (first->holds()) first->let_go();
      loop_.advance(1s);
      dies.coordinator.reset();
      const auto next = acquire(join("b"), "t", options(1min));
      ASSERT_TRUE(until([&] { return next->holds(); }, 2min));
      next->let_go();
      ASSERT_TRUE(until([&] { return next->ended.has_value(); }));
    }
  }
}

TEST_F(CoordinatorTest, a_store_that_does_not_answer_is_unavailable_within_the_callers_patience) {
  Process& me = join("me");
  me.store.judge = [](const Update*) { return Fault::request_lost; };
  const auto mine = acquire(me, "t", options());
  const Instant begin = loop_.instant();
  ASSERT_TRUE(until([&] { return mine->got.has_value(); }));
  ASSERT_FALSE(*mine->got);
  EXPECT_EQ(mine->got->error().kind, Failure::Kind::unavailable);
  EXPECT_LE(loop_.instant() - begin, 5100ms);
}

TEST_F(CoordinatorTest, one_that_is_forgotten_is_given_back) {
  auto mine = acquire(join("me"), "t", options());
  ASSERT_TRUE(until([&] { return mine->holds(); }));
  mine->got.reset();
  ASSERT_TRUE(until([&] { return mine->ended.has_value(); }));
  EXPECT_EQ(*mine->ended, HoldEnd::released);
}

TEST_F(CoordinatorTest, a_lease_outlives_neither_its_loss_nor_its_coordinator) {
  Process& me = join("me");
  const auto mine = acquire(me, "t", options());
  ASSERT_TRUE(until([&] { return mine->holds(); }));
  me.coordinator.reset();
  EXPECT_FALSE((**mine->got)->guard()->holds(loop_.instant()));
  mine->let_go();  // nobody is there any more: no harm
  loop_.advance(1min);
}

// ---- Once ----

/// One call of once(), and what became of it.
struct Call {
  std::optional<Ended<Coordinator::Turn>> turn;
  std::optional<Ended<std::optional<OnceResult>>> finished;
  bool lost = false;
  [[nodiscard]] bool runs() const { return turn && *turn && (*turn)->held; }
};

class OnceCallTest : public CoordinatorTest {
 protected:
  std::shared_ptr<Call> once(Process& by, Duration wait = 0s,
                             OnceOptions::Abandoned abandoned = OnceOptions::Abandoned::rerun) {
    auto call = std::make_shared<Call>();
    OnceOptions what;
    what.key = "k";
    what.fingerprint = "f";
    what.abandoned = abandoned;
    by.coordinator->once(what, options(wait),
                         {.turn = [call](auto turn) { call->turn = std::move(turn); },
                          .lost = [call](LossReason) { call->lost = true; },
                          .finished = [call](auto finished) { call->finished = std::move(finished); }});
    return call;
  }
  bool finish(Process& by, Call& call, const char* content = "result") {
    return by.coordinator->finish(**call.turn, {true, content, loop_.wall()}, 24h).has_value();
  }
};

TEST_F(OnceCallTest, it_takes_two_writes_and_its_replay_none) {
  Process& first = join("a");
  const auto run = once(first);
  ASSERT_TRUE(until([&] { return run->runs(); }));
  EXPECT_TRUE(finish(first, *run));
  ASSERT_TRUE(until([&] { return run->finished.has_value(); }));
  ASSERT_TRUE(*run->finished);
  EXPECT_EQ(first.writes(), 2U);
  Process& second = join("b");
  const auto replay = once(second);
  ASSERT_TRUE(until([&] { return replay->turn.has_value(); }));
  ASSERT_TRUE(*replay->turn);
  ASSERT_TRUE((*replay->turn)->done);
  EXPECT_EQ((*replay->turn)->done->result.content, "result");
  EXPECT_EQ(second.writes(), 0U);
}

TEST_F(OnceCallTest, a_duplicate_that_waits_is_given_the_result_of_the_first) {
  Process& first = join("a");
  const auto run = once(first);
  ASSERT_TRUE(until([&] { return run->runs(); }));
  const auto waits = once(join("b"), 1min);
  loop_.advance(3s);
  EXPECT_FALSE(waits->turn);
  EXPECT_TRUE(finish(first, *run));
  ASSERT_TRUE(until([&] { return waits->turn.has_value(); }));
  EXPECT_EQ((*waits->turn)->done->result.content, "result");
}

TEST_F(OnceCallTest, one_that_failed_for_now_is_run_by_the_next) {
  auto run = once(join("a"));
  ASSERT_TRUE(until([&] { return run->runs(); }));
  run->turn.reset();  // dropped without a result
  ASSERT_TRUE(until([&] { return run->finished.has_value(); }));
  ASSERT_TRUE(*run->finished);
  EXPECT_FALSE(**run->finished) << "nothing was recorded";
  const auto next = once(join("b"));
  ASSERT_TRUE(until([&] { return next->runs(); }));
  EXPECT_FALSE((*next->turn)->was_abandoned);
}

TEST_F(OnceCallTest, f23_a_zombie_does_not_overwrite_its_successors_result) {
  Process& zombie = join("a");
  const auto first = once(zombie);
  ASSERT_TRUE(until([&] { return first->runs(); }));
  zombie.store.judge = [](const Update*) { return Fault::request_lost; };
  Process& successor = join("b");
  const auto second = once(successor, 1min);
  ASSERT_TRUE(until([&] { return second->runs(); }));
  EXPECT_TRUE((*second->turn)->was_abandoned);
  EXPECT_TRUE(first->lost);
  EXPECT_TRUE(finish(successor, *second, "the successor's"));
  ASSERT_TRUE(until([&] { return second->finished.has_value(); }));
  zombie.store.judge = {};
  EXPECT_FALSE(finish(zombie, *first, "the zombie's"));
  loop_.advance(30s);
  EXPECT_EQ(once_result_in(row("ONCE#k"))->content, "the successor's");
}

TEST_F(OnceCallTest, a_result_whose_reply_is_lost_is_known_to_stand) {
  Process& me = join("a");
  const auto run = once(me);
  ASSERT_TRUE(until([&] { return run->runs(); }));
  // From here on nothing that is written is answered, but what is read is.
  me.store.judge = [](const Update* update) { return update != nullptr ? Fault::reply_lost : Fault::none; };
  EXPECT_TRUE(finish(me, *run));
  ASSERT_TRUE(until([&] { return run->finished.has_value(); }));
  ASSERT_TRUE(*run->finished);
  EXPECT_EQ((**run->finished)->content, "result");
}

TEST_F(OnceCallTest, whether_a_result_stands_is_not_claimed_where_nobody_knows) {
  Process& me = join("a");
  const auto run = once(me);
  ASSERT_TRUE(until([&] { return run->runs(); }));
  me.store.judge = [](const Update*) { return Fault::request_lost; };
  EXPECT_TRUE(finish(me, *run));
  ASSERT_TRUE(until([&] { return run->finished.has_value(); }));
  ASSERT_FALSE(*run->finished);
  EXPECT_EQ(run->finished->error().kind, Failure::Kind::unknown);
}

TEST_F(OnceCallTest, money_that_was_abandoned_waits_for_a_decision) {
  Process& dies = join("a");
  const auto run = once(dies, 0s, OnceOptions::Abandoned::hold);
  ASSERT_TRUE(until([&] { return run->runs(); }));
  dies.coordinator.reset();
  loop_.advance(20s);
  Process& other = join("b");
  const auto next = once(other, 0s, OnceOptions::Abandoned::hold);
  ASSERT_TRUE(until([&] { return next->turn.has_value(); }));
  ASSERT_TRUE((*next->turn)->hold);
  EXPECT_EQ((*next->turn)->hold->epoch, Epoch{1});
  EXPECT_EQ(other.writes(), 0U);
}

TEST_F(OnceCallTest, a_result_that_does_not_fit_is_refused_and_the_lease_is_still_held) {
  Process& me = join("a");
  const auto run = once(me);
  ASSERT_TRUE(until([&] { return run->runs(); }));
  const auto finished =
      me.coordinator->finish(**run->turn, {true, std::string(OnceResult::most + 1, 'x'), loop_.wall()}, 24h);
  ASSERT_FALSE(finished);
  EXPECT_THAT(finished.error().detail, HasSubstr("350000"));
  loop_.advance(1min);
  EXPECT_TRUE((*run->turn)->held->guard()->holds(loop_.instant()));
}

TEST_F(OnceCallTest, whichever_request_is_lost_it_is_run_once_and_all_are_told_the_same_result) {
  for (const Fault fault : {Fault::throttled, Fault::request_lost, Fault::reply_lost}) {
    for (int nth = 0; nth < 4; ++nth) {
      SCOPED_TRACE(testing::Message() << "fault " << static_cast<int>(fault) << " at request " << nth);
      table_ = std::make_shared<store::MemoryTable>();
      Process& me = join("a");
      int request = 0;
      me.store.judge = [&](const Update*) { return request++ == nth ? fault : Fault::none; };
      const auto run = once(me);
      ASSERT_TRUE(until([&] { return run->runs(); }));
      EXPECT_TRUE(finish(me, *run));
      ASSERT_TRUE(until([&] { return run->finished.has_value(); }));
      ASSERT_TRUE(*run->finished) << run->finished->error().error.detail;
      EXPECT_EQ((**run->finished)->content, "result");
      const auto replay = once(join("b"));
      ASSERT_TRUE(until([&] { return replay->turn.has_value(); }));
      ASSERT_TRUE((*replay->turn)->done);
      EXPECT_EQ((*replay->turn)->done->result.content, "result");
      EXPECT_EQ((*replay->turn)->done->epoch, Epoch{1});
      me.store.judge = {};
    }
  }
}

// ---- Decisions ----

TEST_F(CoordinatorTest, all_are_told_the_first_proposal) {
  std::vector<Decided> told;
  for (int i = 0; i < 20; ++i) {
    join("p" + std::to_string(i)).coordinator->decide("order", Value(i), 5s, [&](Ended<Decided> decided) {
      ASSERT_TRUE(decided);
      told.push_back(*decided);
    });
  }
  ASSERT_TRUE(until([&] { return told.size() == 20; }));
  EXPECT_EQ(std::ranges::count_if(told, [](const Decided& each) { return each.was_ours; }), 1);
  for (const Decided& each : told) EXPECT_EQ(each.value, told.front().value);
}

// ---- Stock and queues ----

class PrimitivesTest : public CoordinatorTest {
 protected:
  /// Runs one to its end.
  template <class T>
  Ended<T> await(const std::function<void(std::function<void(Ended<T>)>)>& begin) {
    std::optional<Ended<T>> ended;
    begin([&](Ended<T> got) { ended = std::move(got); });
    EXPECT_TRUE(until([&] { return ended.has_value(); }));
    return *ended;
  }
  void put_in(Process& by, const char* sku, std::int64_t count) {
    AddOptions options{sku, count, sku};
    options.to = AddOptions::To::stock;
    EXPECT_TRUE(await<Added>([&](auto handler) {
      by.coordinator->run(std::make_unique<Add>(options, loop_.instant() + 5s, loop_.random()), handler);
    }));
  }
  Ended<Reservation> reserve(Process& by, const char* id, Basket basket, Duration ttl = 15min) {
    return await<Reservation>([&](auto handler) {
      by.coordinator->reserve({id, basket, ttl}, 500ms, 10s, std::move(handler));
    });
  }
  Ended<Reservation> end(Process& by, const char* id, Reservation::State into) {
    return await<Reservation>(
        [&](auto handler) { by.coordinator->end_reservation(id, into, 500ms, 10s, std::move(handler)); });
  }
  Ended<Sent> send(Process& by, const char* body) {
    return await<Sent>([&](auto handler) {
      by.coordinator->run(std::make_unique<Send>(SendOptions{"q", "g", body}, loop_.instant() + 10s, loop_.random()),
                          handler);
    });
  }
  Ended<std::optional<Batch>> receive(Process& by, Coordinator::Poison poison = {},
                                      std::optional<std::int64_t> receives_most = std::nullopt) {
    ReceiveOptions options;
    options.queue = "q";
    options.receives_most = receives_most;
    return await<std::optional<Batch>>(
        [&](auto handler) { by.coordinator->receive(options, poison, 0s, 10s, std::move(handler)); });
  }
  Ended<Settled> settle(Process& by, const Receipt& receipt, Settlement settlement) {
    return await<Settled>([&](auto handler) {
      by.coordinator->run(
          std::make_unique<Settle>(receipt, std::move(settlement), loop_.instant() + 10s, loop_.random()), handler);
    });
  }
};

TEST_F(PrimitivesTest, each_call_costs_what_the_documents_say) {
  using Asked = std::map<std::string, int>;
  Process& me = join("a");
  const auto cost = [&](const std::function<void()>& call) {
    me.store.asked.clear();
    call();
    return me.store.asked;
  };
  const auto decide = [&] {
    EXPECT_TRUE(await<Decided>([&](auto handler) { me.coordinator->decide("k", Value("v"), 5s, handler); }));
  };
  EXPECT_EQ(cost(decide), (Asked{{"get", 1}, {"update", 1}}));
  EXPECT_EQ(cost(decide), (Asked{{"get", 1}}));
  EXPECT_EQ(cost([&] { put_in(me, "hat", 9); }), (Asked{{"batch_get", 1}, {"transact", 1}}));
  const auto set_aside = [&](const char* id) { EXPECT_TRUE(reserve(me, id, {{"hat", 1}})); };
  EXPECT_EQ(cost([&] { set_aside("r1"); }), (Asked{{"batch_get", 1}, {"transact", 1}}));
  set_aside("r2");
  EXPECT_EQ(cost([&] { EXPECT_TRUE(end(me, "r1", Reservation::State::confirmed)); }),
            (Asked{{"get", 2}, {"update", 1}}));
  EXPECT_EQ(cost([&] { EXPECT_TRUE(end(me, "r2", Reservation::State::cancelled)); }),
            (Asked{{"get", 1}, {"batch_get", 1}, {"transact", 1}}));
  EXPECT_EQ(cost([&] { EXPECT_TRUE(send(me, "x")); }), (Asked{{"batch_get", 1}, {"transact", 1}}));
  std::optional<Batch> batch;
  EXPECT_EQ(cost([&] { batch = receive(me).value(); }),
            (Asked{{"query_due", 1}, {"get", 1}, {"update", 1}, {"batch_get", 1}}));
  ASSERT_TRUE(batch);
  EXPECT_EQ(cost([&] {
              EXPECT_TRUE(settle(me, batch->receipt, {Settlement::Kind::ack, 1}));
            }),
            (Asked{{"get", 1}, {"update", 1}}));
}

TEST_F(PrimitivesTest, who_finds_too_little_is_given_what_has_expired) {
  Process& me = join("a");
  put_in(me, "hat", 1);
  ASSERT_TRUE(reserve(me, "r1", {{"hat", 1}}, 1s));
  EXPECT_EQ(reserve(me, "r2", {{"hat", 1}}).error().kind, Failure::Kind::refused);
  loop_.advance(2s);
  EXPECT_TRUE(reserve(me, "r2", {{"hat", 1}}));
  EXPECT_EQ(end(me, "r1", Reservation::State::confirmed).error().kind, Failure::Kind::refused);
  EXPECT_EQ(end(me, "r2", Reservation::State::confirmed)->state, Reservation::State::confirmed);
  EXPECT_EQ(end(me, "nothing", Reservation::State::cancelled).error().kind, Failure::Kind::refused);
}

TEST_F(PrimitivesTest, whichever_request_is_lost_goods_and_messages_add_up) {
  for (const Fault fault : {Fault::throttled, Fault::request_lost, Fault::reply_lost}) {
    for (int nth = 0; nth < 14; ++nth) {
      SCOPED_TRACE(testing::Message() << "fault " << static_cast<int>(fault) << " at request " << nth);
      table_ = std::make_shared<store::MemoryTable>();
      Process& me = join("a");
      int request = 0;
      me.store.judge = [&](const Update*) { return request++ == nth ? fault : Fault::none; };
      put_in(me, "hat", 3);
      EXPECT_TRUE(reserve(me, "r1", {{"hat", 2}}));
      EXPECT_TRUE(end(me, "r1", Reservation::State::cancelled));
      EXPECT_EQ(send(me, "x")->seq, 1);
      const auto batch = receive(me);
      ASSERT_TRUE(batch && *batch);
      EXPECT_TRUE(settle(me, (*batch)->receipt, {Settlement::Kind::ack, 1}));
      EXPECT_EQ(row("STOCK#hat").number(coord::available), 3);
      EXPECT_EQ(group_in(row(group_key("q", "g")))->state, Group::State::empty);
      me.store.judge = {};
    }
  }
}

TEST_F(PrimitivesTest, poison_is_moved_away_or_its_group_is_parked_and_the_next_is_looked_for) {
  for (const bool parks : {false, true}) {
    table_ = std::make_shared<store::MemoryTable>();
    Process& me = join("a");
    ASSERT_TRUE(send(me, "poison"));
    ASSERT_TRUE(send(me, "fine"));
    const auto batch = receive(me);
    ASSERT_TRUE(batch && *batch);
    ASSERT_TRUE(settle(me, (*batch)->receipt, {Settlement::Kind::nack}));
    const auto next = receive(me, {parks, parks ? "" : "dead"}, 1);
    ASSERT_TRUE(next);
    EXPECT_EQ(next->has_value(), !parks);
    EXPECT_EQ(*next ? (*next)->messages.front().body : "nothing", parks ? "nothing" : "fine");
    EXPECT_EQ(row(group_key("dead", "g")).key.empty(), parks);
  }
}

}  // namespace
}  // namespace holdfast::coord
