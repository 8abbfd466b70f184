// The shell of the coordinators, several of them on one table, in virtual time.
#include "coord/coordinator.hpp"

#include <gmock/gmock.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/coord/counter.hpp"
#include "core/coord/names.hpp"
#include "support/coordinator_test.hpp"

namespace holdfast::coord {
namespace {

using namespace std::chrono_literals;
using test::CoordinatorTest;
using Fault = test::FaultyStore::Fault;
using test::Process;
using test::Try;
using testing::HasSubstr;

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

TEST_F(CoordinatorTest, a_claim_is_given_up_with_the_callers_patience) {
  struct Case {
    Fault fault;
    Failure::Kind kind;
    const char* says;
  };
  for (const Case& each : {Case{Fault::throttled, Failure::Kind::unavailable, "Nothing happened: busy"},
                           Case{Fault::request_lost, Failure::Kind::unknown, "runs out by itself"}}) {
    SCOPED_TRACE(each.says);
    table_ = std::make_shared<store::MemoryTable>();
    Process& me = join("me");
    me.store.judge = [&](const Update* update) { return update == nullptr ? Fault::none : each.fault; };
    TaskOptions impatient = options();
    impatient.patience = 1s;
    const auto mine = acquire(me, "t", impatient);
    const Instant begin = loop_.instant();
    ASSERT_TRUE(until([&] { return mine->got.has_value(); }));
    ASSERT_FALSE(*mine->got);
    EXPECT_EQ(mine->got->error().kind, each.kind);
    EXPECT_THAT(mine->got->error().error.detail, HasSubstr(each.says));
    EXPECT_LE(loop_.instant() - begin, 1100ms) << "S10; its belief would be 9 s";
  }
}

TEST_F(CoordinatorTest, a_claim_of_which_nothing_happened_is_made_again_while_there_is_patience) {
  Process& me = join("me");
  const Instant begin = loop_.instant();
  me.store.judge = [&](const Update* update) {
    return update != nullptr && loop_.instant() - begin < 3s ? Fault::throttled : Fault::none;
  };
  TaskOptions brief = options();
  brief.terms = *make_terms({.lease = 1s});
  brief.patience = 10s;
  const auto mine = acquire(me, "t", brief);
  ASSERT_TRUE(until([&] { return mine->got.has_value(); }));
  EXPECT_TRUE(mine->holds()) << "whatever the lease is";
}

TEST_F(CoordinatorTest, a_row_that_looks_free_and_never_is_keeps_nobody_busy) {
  Process& me = join("me");
  Process& dies = join("a");
  ASSERT_TRUE(acquire(dies, "t", options()));
  loop_.advance(1s);
  dies.coordinator.reset();
  loop_.advance(1min);
  // Whoever claims it finds that its epoch is another by then.
  me.store.judge = [&](const Update* update) {
    if (update != nullptr) {
      (void)table_->execute(Update{"TASK#t", {Change::add(attribute::epoch, 1)}, {}}, loop_.wall());
    }
    return Fault::none;
  };
  const auto mine = acquire(me, "t", options());
  ASSERT_TRUE(until([&] { return mine->got.has_value(); }));
  ASSERT_FALSE(*mine->got);
  EXPECT_EQ(mine->got->error().kind, Failure::Kind::unavailable);
  EXPECT_LE(me.writes(), 40U) << "in 5 s";
}

/// A grant that arrives when its belief is over is given back; by then anybody may have edited the row.
TEST_F(CoordinatorTest, what_was_won_too_late_is_given_back_or_was_taken_by_another) {
  for (const bool taken : {false, true}) {
    SCOPED_TRACE(taken);
    table_ = std::make_shared<store::MemoryTable>();
    Process& me = join("me");
    const Instant begin = loop_.instant();
    wins_too_late(me);
    TaskOptions patient = options();
    patient.patience = 9s;  // as long as its belief
    const auto mine = acquire(me, "t", patient);
    ASSERT_TRUE(until([&] { return loop_.instant() - begin >= 9500ms; }));
    if (taken) {
      (void)table_->execute(
          Update{"TASK#t", {Change::set(attribute::owner, "thief"), Change::add(attribute::epoch, 1)}, {}},
          loop_.wall());
    }
    ASSERT_TRUE(until([&] { return mine->got.has_value(); }));
    ASSERT_FALSE(*mine->got);
    EXPECT_EQ(mine->got->error().kind, Failure::Kind::unavailable);
    EXPECT_EQ(row("TASK#t").text(attribute::owner), taken ? "thief" : "");
  }
}

TEST_F(CoordinatorTest, who_is_not_wanted_any_more_is_told_at_once_and_asks_for_nothing_more) {
  const auto first = acquire(join("a"), "t", options());
  ASSERT_TRUE(until([&] { return first->holds(); }));
  Process& waits = join("b");
  bool is_wanted = true;
  std::optional<Ended<std::shared_ptr<Held>>> got;
  waits.coordinator->acquire(
      "t", options(1h),
      {.acquired = [&](auto how) { got = std::move(how); }, .is_wanted = [&] { return is_wanted; }});
  std::optional<Ended<std::optional<Batch>>> batch;
  waits.coordinator->receive(
      {.queue = "q"}, {}, 1h, 5s, [&](const auto& how) { batch = how; }, [&] { return is_wanted; });
  loop_.advance(10s);
  waits.coordinator->recheck();
  loop_.settle();
  EXPECT_FALSE(got || batch) << "both are wanted";
  const auto asked = waits.store.asked;
  is_wanted = false;
  waits.coordinator->recheck();
  loop_.settle();
  ASSERT_TRUE(got && batch);
  EXPECT_EQ(got->error().kind, Failure::Kind::busy);
  EXPECT_FALSE(**batch);
  EXPECT_EQ(waits.store.asked, asked);
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

TEST_F(PrimitivesTest, f30_poison_that_is_damaged_is_not_dropped_and_its_group_is_set_aside) {
  Process& me = join("a");
  ASSERT_TRUE(send(me, "poison"));
  ASSERT_TRUE(settle(me, (**receive(me)).receipt, {Settlement::Kind::nack}));
  const std::string key = message_key("q", "g", 1);
  (void)table_->execute(Update{key, {Change::set(coord::body, Value(7))}, {}}, loop_.wall());
  const auto got = receive(me, {false, "dead"}, 1);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().kind, Failure::Kind::rejected);
  EXPECT_THAT(got.error().error.detail, HasSubstr(key));
  const Group group = group_in(row(group_key("q", "g"))).value();
  EXPECT_EQ(group.state, Group::State::parked);
  EXPECT_EQ(group.head, 1);
  EXPECT_THAT(group.parked_because, HasSubstr(key));
}

TEST_F(PrimitivesTest, s05_of_dead_letters_it_is_told_how_many_went_and_the_rest_is_given_back) {
  for (const int moved : {0, 1, 2}) {
    for (const Fault fault : {Fault::throttled, Fault::request_lost, Fault::rejected}) {
      SCOPED_TRACE(testing::Message() << moved << " moved, then fault " << static_cast<int>(fault));
      table_ = std::make_shared<store::MemoryTable>();
      Process& me = join("a");
      for (const char* body : {"1", "2", "3"}) ASSERT_TRUE(send(me, body));
      me.store.asked.clear();
      me.store.judge = [&](const Update* update) {
        return update != nullptr && me.store.asked["transact"] > moved && update->key == group_key("q", "g") &&
                       me.store.asked["update"] < 2
                   ? fault
                   : Fault::none;
      };
      const auto redrive = [&] {
        return await<Redriven>(
            [&](auto handler) { me.coordinator->redrive_to("q", "g", "back", 100, 1s, 5s, std::move(handler)); });
      };
      const auto first = redrive();
      me.store.judge = {};
      EXPECT_EQ(group_in(row(group_key("q", "g")))->owner, "");
      if (moved > 0 && fault != Fault::request_lost) {
        ASSERT_TRUE(first);
        EXPECT_EQ(first->moved, moved);
        EXPECT_EQ(first->left, 3 - moved);
      } else {
        ASSERT_FALSE(first);
        EXPECT_EQ(first.error().kind == Failure::Kind::unknown, fault == Fault::request_lost);
        const std::string count = moved > 0 ? std::to_string(moved) + " were moved" : "";
        EXPECT_THAT(first.error().error.detail, HasSubstr(count));
      }
      EXPECT_EQ(redrive()->moved, 3 - moved) << "nobody has to wait for a lease to end";
    }
  }
}

TEST_F(PrimitivesTest, dead_letters_go_back_in_order_each_once_whichever_request_is_lost) {
  for (const Fault fault : {Fault::none, Fault::throttled, Fault::request_lost, Fault::reply_lost}) {
    for (int nth = 0; nth < 7; ++nth) {
      SCOPED_TRACE(testing::Message() << "fault " << static_cast<int>(fault) << " at request " << nth);
      table_ = std::make_shared<store::MemoryTable>();
      Process& me = join("a");
      for (const char* body : {"1", "2", "3"}) ASSERT_TRUE(send(me, body));
      int request = 0;
      me.store.judge = [&](const Update*) { return request++ == nth ? fault : Fault::none; };
      const auto redriven = await<Redriven>(
          [&](auto handler) { me.coordinator->redrive_to("q", "g", "back", 2, 1s, 5s, std::move(handler)); });
      ASSERT_TRUE(redriven) << redriven.error().error.detail;
      EXPECT_EQ(redriven->moved, 2);
      EXPECT_EQ(group_in(row(group_key("q", "g")))->size(), 1);
      EXPECT_EQ(message_in(row(message_key("back", "g", 1)))->body, "1");
      EXPECT_EQ(message_in(row(message_key("back", "g", 2)))->body, "2");
      EXPECT_EQ(group_in(row(group_key("back", "g")))->tail, 2);
      me.store.judge = {};
    }
  }
}

TEST_F(PrimitivesTest, why_dead_letters_stay_is_told) {
  Process& me = join("a");
  const auto redrive = [&] {
    return await<Redriven>(
        [&](auto handler) { me.coordinator->redrive_to("q", "g", "back", 100, 1s, 5s, std::move(handler)); });
  };
  EXPECT_EQ(redrive()->moved, 0) << "there is none";
  ASSERT_TRUE(send(me, "1"));
  const auto batch = receive(me);
  ASSERT_TRUE(batch && *batch);
  EXPECT_EQ(redrive().error().kind, Failure::Kind::busy);
  ASSERT_TRUE(settle(me, (*batch)->receipt, {Settlement::Kind::park}));
  EXPECT_EQ(redrive().error().kind, Failure::Kind::refused);
}

}  // namespace
}  // namespace holdfast::coord
