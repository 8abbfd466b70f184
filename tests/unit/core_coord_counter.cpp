// Adding once, and setting goods aside.
#include <gmock/gmock.h>

#include <memory>

#include "core/coord/counter.hpp"
#include "core/coord/names.hpp"
#include "core/coord/stock.hpp"
#include "support/procedure_run.hpp"

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using test::every_mishap;
using test::Mishap;
using testing::HasSubstr;

class CounterTest : public testing::Test {
 protected:
  Ended<Added> add(std::int64_t delta, std::string op_id, std::optional<std::int64_t> floor = std::nullopt) {
    Add adding({"visits", delta, std::move(op_id), floor}, run_.now.instant + 10s, random_);
    run_.run(adding);
    return *adding.result();
  }
  std::int64_t value() {
    const Row* row = table_.find("COUNTER#visits");
    return row == nullptr ? 0 : row->number(coord::value);
  }

  test::LeaseTable table_;
  test::ProcedureRun run_{table_};
  Random random_{7};
};

TEST_F(CounterTest, it_counts) {
  EXPECT_EQ(add(3, "a")->value, 3);
  EXPECT_EQ(add(-1, "b")->value, 2);
  EXPECT_EQ(run_.writes, 2);
}

TEST_F(CounterTest, f29_an_operation_counts_once_however_often_it_is_repeated) {
  EXPECT_FALSE(add(3, "a")->was_repeat);
  add(1, "b");
  const auto again = add(3, "a");
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->was_repeat);
  EXPECT_EQ(again->value, 4) << "the counter as it is now";
  EXPECT_EQ(run_.writes, 2);
}

TEST_F(CounterTest, the_same_operation_with_another_amount_is_a_mismatch) {
  add(3, "a");
  const auto other = add(4, "a");
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().kind, Failure::Kind::mismatch);
}

TEST_F(CounterTest, it_does_not_go_below_its_floor_and_a_refusal_leaves_no_trace) {
  add(5, "a");
  const auto refused = add(-6, "b", 0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Failure::Kind::refused);
  EXPECT_EQ(value(), 5);
  add(1, "c");
  EXPECT_EQ(add(-6, "b", 0)->value, 0) << "the same operation, now that there is enough";
  EXPECT_FALSE(add(-1, "d", 0));
}

TEST_F(CounterTest, two_that_subtract_at_once_do_not_go_below_the_floor_together) {
  add(5, "a");
  Add first({"visits", -4, "b", 0}, run_.now.instant + 10s, random_);
  Add second({"visits", -4, "c", 0}, run_.now.instant + 10s, random_);
  ASSERT_TRUE(run_.step(first) && run_.step(second)) << "both have seen 5";
  run_.run(first);
  run_.run(second);
  EXPECT_TRUE(*first.result());
  ASSERT_FALSE(*second.result());
  EXPECT_EQ(second.result()->error().kind, Failure::Kind::refused);
  EXPECT_EQ(value(), 1);
}

TEST_F(CounterTest, it_does_not_wrap_around) {
  add(INT64_MAX, "a");
  EXPECT_EQ(add(1, "b").error().kind, Failure::Kind::refused);
  EXPECT_EQ(value(), INT64_MAX);
  EXPECT_EQ(add(INT64_MIN, "c", 0).error().kind, Failure::Kind::refused);
}

TEST_F(CounterTest, operations_whose_names_look_alike_are_not_the_same) {
  EXPECT_NE(operation_key("a", "b#c"), operation_key("a#b", "c"));
  EXPECT_NE(operation_key("1#a", "b"), operation_key("a", "b"));
}

TEST_F(CounterTest, something_else_in_its_row_is_left_alone) {
  table_.add("COUNTER#visits").attributes.insert_or_assign(std::string(coord::value), Value("many"));
  EXPECT_EQ(add(1, "a").error().kind, Failure::Kind::rejected);
}

TEST_F(CounterTest, whatever_befalls_one_request_it_counts_once) {
  for (const Mishap mishap : every_mishap) {
    for (int nth = 0; nth < 6; ++nth) {
      SCOPED_TRACE(testing::Message() << "mishap " << static_cast<int>(mishap) << " at request " << nth);
      test::LeaseTable table;
      test::ProcedureRun run(table);
      run.mishap = [&](int request, bool) { return request == nth ? mishap : Mishap::none; };
      Add adding({"visits", 3, "a"}, run.now.instant + 10s, random_);
      run.run(adding);
      ASSERT_TRUE(*adding.result());
      EXPECT_FALSE((*adding.result())->was_repeat);
      run.arrive_late();
      EXPECT_EQ(table.find("COUNTER#visits")->number(coord::value), 3);
    }
  }
}

// Found by the simulation: it was told "refused", and the try that had got no answer arrived when there was enough.
TEST_F(CounterTest, it_is_not_refused_for_good_while_an_earlier_try_may_still_arrive) {
  add(5, "a");
  const int first_write = run_.requests + 1;
  run_.mishap = [&](int request, bool) {
    if (request != first_write) return Mishap::none;
    (void)table_.carry_out({"COUNTER#visits", {Change::set(coord::value, 1)}, Condition::always()});
    return Mishap::late_request;
  };
  const auto subtracted = add(-3, "b", 0);
  ASSERT_FALSE(subtracted);
  EXPECT_EQ(subtracted.error().kind, Failure::Kind::unknown);
  (void)table_.carry_out({"COUNTER#visits", {Change::set(coord::value, 9)}, Condition::always()});
  run_.arrive_late();
  EXPECT_EQ(value(), 6) << "it happened after all";
}

TEST_F(CounterTest, in_any_mixture_of_mishaps_the_sum_is_that_of_the_operations) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Random chance(seed);
    test::LeaseTable table;
    test::ProcedureRun run(table);
    run.mishap = [&](int, bool) {
      return chance.below(4) == 0 ? every_mishap[chance.below(std::size(every_mishap))] : Mishap::none;
    };
    std::int64_t sum = 0;
    std::vector<std::unique_ptr<Add>> open;
    for (int i = 0; i < 5; ++i) {
      const auto delta = static_cast<std::int64_t>(chance.below(9)) - 4;
      sum += delta;
      // Each operation by two callers.
      for (int twice = 0; twice < 2; ++twice) {
        open.push_back(
            std::make_unique<Add>(AddOptions{"visits", delta, std::to_string(i)}, run.now.instant + 1h, random_));
      }
    }
    while (!open.empty()) {
      const std::size_t at = chance.below(open.size());
      if (!run.step(*open[at])) {
        ASSERT_TRUE(*open[at]->result());
        open.erase(open.begin() + static_cast<std::ptrdiff_t>(at));
      }
      if (chance.below(5) == 0) run.arrive_late();
    }
    run.arrive_late();
    EXPECT_EQ(table.find("COUNTER#visits")->number(coord::value), sum) << seed;
  }
}

// ---- Stock ----

class StockTest : public testing::Test {
 protected:
  void put(std::string_view sku, std::int64_t count) {
    table_.add(Reserve::stock_key(sku)).attributes.insert_or_assign(std::string(coord::available), Value(count));
  }
  std::int64_t available(std::string_view sku) {
    return table_.find(Reserve::stock_key(sku))->number(coord::available);
  }
  Ended<Reservation> reserve(std::string id, Basket basket, Duration ttl = 10min) {
    Reserve reserving({std::move(id), std::move(basket), ttl}, run_.now.instant + 10s, random_);
    run_.run(reserving);
    return *reserving.result();
  }
  Ended<Reservation> end(const Reservation& reservation, Reservation::State into) {
    EndReservation ending(reservation, into, 500ms, run_.now.instant + 10s, random_);
    run_.run(ending);
    return *ending.result();
  }

  test::LeaseTable table_;
  test::ProcedureRun run_{table_};
  Random random_{7};
};

using State = Reservation::State;

TEST_F(StockTest, goods_are_set_aside_all_or_none) {
  put("shirt", 5);
  put("hat", 1);
  const auto both = reserve("r1", {{"shirt", 2}, {"hat", 1}});
  ASSERT_TRUE(both);
  EXPECT_EQ(both->state, State::held);
  EXPECT_EQ(available("shirt"), 3);
  EXPECT_EQ(available("hat"), 0);
  const auto refused = reserve("r2", {{"shirt", 1}, {"hat", 1}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Failure::Kind::refused);
  EXPECT_THAT(refused.error().error.detail, HasSubstr("Of hat there are 0"));
  EXPECT_EQ(available("shirt"), 3);
  EXPECT_FALSE(reserve("r3", {{"unheard of", 1}}));
}

TEST_F(StockTest, goods_are_put_in_once_and_never_more_taken_out_than_there_are) {
  const auto put_in = [&](std::int64_t count, std::string op) {
    AddOptions options{"shirt", count, std::move(op), 0};
    options.to = AddOptions::To::stock;
    Add adding(options, run_.now.instant + 10s, random_);
    run_.run(adding);
    return *adding.result();
  };
  EXPECT_EQ(put_in(5, "a")->value, 5);
  EXPECT_TRUE(put_in(5, "a")->was_repeat);
  EXPECT_EQ(available("shirt"), 5);
  EXPECT_TRUE(reserve("r", {{"shirt", 2}}));
  EXPECT_EQ(put_in(-4, "b").error().kind, Failure::Kind::refused);
  EXPECT_EQ(put_in(-3, "b")->value, 0);
}

TEST_F(StockTest, a_repeat_sets_nothing_aside_and_another_basket_under_its_id_is_a_mismatch) {
  put("shirt", 5);
  EXPECT_FALSE(reserve("r", {{"shirt", 2}})->was_repeat);
  EXPECT_TRUE(reserve("r", {{"shirt", 2}})->was_repeat);
  EXPECT_EQ(available("shirt"), 3);
  EXPECT_EQ(reserve("r", {{"shirt", 3}}).error().kind, Failure::Kind::mismatch);
}

// Found by an attacker: goods that were set aside for a journal were promised to whoever used the same id, too.
TEST_F(StockTest, a_journals_quota_is_nobody_elses_reservation) {
  put("shirt", 10);
  const auto ask = [&](const std::string& id, const std::string& journal) {
    Reserve reserving({id, {{"shirt", 5}}, 10min}, run_.now.instant + 10s, random_, journal);
    run_.run(reserving);
    return *reserving.result();
  };
  const auto quota = ask("q", "a");
  ASSERT_TRUE(quota && reserve("r", {{"shirt", 5}}));
  EXPECT_TRUE(ask("q", "a")->was_repeat);
  EXPECT_EQ(ask("q", "b").error().kind, Failure::Kind::mismatch);
  EXPECT_EQ(ask("r", "a").error().kind, Failure::Kind::mismatch);
  EXPECT_EQ(reserve("q", {{"shirt", 5}}).error().kind, Failure::Kind::mismatch);
  for (const State into : {State::confirmed, State::cancelled}) {
    EXPECT_EQ(end(*quota, into).error().kind, Failure::Kind::mismatch);
  }
  for (const auto& [journal, works] : {std::pair{"b", false}, std::pair{"a", true}}) {
    EndReservation ending(*quota, State::cancelled, 500ms, run_.now.instant + 10s, random_, journal);
    run_.run(ending);
    EXPECT_EQ(ending.result()->has_value(), works);
  }
  EXPECT_EQ(available("shirt"), 5);
}

TEST_F(StockTest, a_quota_that_expired_is_returned_by_anybody) {
  put("shirt", 5);
  Reserve reserving({"q", {{"shirt", 5}}, 10min}, run_.now.instant + 10s, random_, "a");
  run_.run(reserving);
  run_.pass(1h);
  EXPECT_EQ(end(**reserving.result(), State::expired)->state, State::expired);
  EXPECT_EQ(available("shirt"), 5);
}

// Found by an attacker: whatever expired after a page full of what cannot be returned never came back.
TEST_F(StockTest, what_cannot_be_returned_holds_up_nothing_that_can) {
  put("hat", 10);
  put("shirt", 10);
  for (const std::string id : {"a1", "a2", "a3", "a4", "a5"}) ASSERT_TRUE(reserve(id, {{"hat", 1}}, 1min));
  for (const std::string id : {"b1", "b2", "b3"}) ASSERT_TRUE(reserve(id, {{"shirt", 1}}, 1min));
  for (const std::string id : {"a1", "a2", "a3", "a4", "a5"}) {
    Row& row = table_.add(Reserve::row_key(id));
    row.attributes.insert_or_assign(std::string(coord::outcome), Value("?"));
    row.attributes.insert_or_assign(std::string(attribute::desired_state), Value(coord::reserved_state));
    row.attributes.insert_or_assign(std::string(attribute::expires_at), Value(std::int64_t{1}));
  }
  run_.pass(1h);
  for (const std::size_t returned : {2U, 1U, 0U}) {
    ReturnExpired returning(500ms, 2, run_.now.instant + 10s, random_);
    run_.run(returning);
    EXPECT_EQ(returning.result()->value_or(0), returned) << "at most two at once";
    EXPECT_EQ(returning.result()->has_value(), returned > 0) << "where only damaged ones are left, that is told";
  }
  EXPECT_EQ(available("shirt"), 10);
}

TEST_F(StockTest, why_nothing_could_be_returned_is_told) {
  put("hat", 10);
  for (const char* id : {"a", "b"}) ASSERT_TRUE(reserve(id, {{"hat", 1}}, 1min));
  run_.pass(1h);
  const auto sweep = [&] {
    ReturnExpired returning(500ms, 10, run_.now.instant + 10s, random_);
    run_.run(returning);
    return *returning.result();
  };
  run_.damaged.insert(Reserve::stock_key("hat"));
  const auto none = sweep();
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().kind, Failure::Kind::rejected);
  EXPECT_THAT(none.error().error.detail, HasSubstr("STOCK#hat"));
  run_.damaged.clear();
  run_.mishap = [](int, bool is_write) { return is_write ? Mishap::throttled : Mishap::none; };
  EXPECT_EQ(sweep().error().kind, Failure::Kind::unavailable) << "the store was gone after the look";
  run_.mishap = [](int, bool) { return Mishap::none; };
  run_.damaged.insert(Reserve::row_key("a"));
  EXPECT_EQ(sweep().value(), 1U) << "the other one was";
}

TEST_F(StockTest, a_repeat_of_what_has_ended_is_refused_since_nothing_is_set_aside) {
  put("shirt", 5);
  const auto bought = *reserve("bought", {{"shirt", 1}});
  const auto left = *reserve("left", {{"shirt", 1}});
  ASSERT_TRUE(end(bought, State::confirmed));
  ASSERT_TRUE(end(left, State::cancelled));
  ASSERT_TRUE(reserve("late", {{"shirt", 1}}, 1min));
  const auto repeat = reserve("bought", {{"shirt", 1}});
  EXPECT_TRUE(repeat->was_repeat);
  EXPECT_EQ(repeat->state, State::confirmed);
  const auto of_left = reserve("left", {{"shirt", 1}});
  EXPECT_EQ(of_left.error().kind, Failure::Kind::refused);
  EXPECT_THAT(of_left.error().error.detail, HasSubstr("left has ended: cancelled"));
  run_.pass(1min);
  const auto of_late = reserve("late", {{"shirt", 1}}, 1min);
  EXPECT_EQ(of_late.error().kind, Failure::Kind::refused)
      << "its goods have not come back, but it cannot be confirmed";
  EXPECT_THAT(of_late.error().error.detail, HasSubstr("late has ended: expired"));
  ReadReservation reading("late", run_.now.instant + 10s, random_);
  run_.run(reading);
  EXPECT_EQ((*reading.result())->state, State::expired);
  EXPECT_EQ(available("shirt"), 3);
}

TEST_F(StockTest, what_is_confirmed_is_gone_and_what_is_cancelled_is_back_once) {
  put("shirt", 5);
  const auto bought = *reserve("buy", {{"shirt", 2}});
  const auto left = *reserve("leave", {{"shirt", 1}});
  EXPECT_EQ(end(bought, State::confirmed)->state, State::confirmed);
  EXPECT_EQ(end(left, State::cancelled)->state, State::cancelled);
  EXPECT_TRUE(end(bought, State::confirmed)->was_repeat);
  EXPECT_TRUE(end(left, State::cancelled)->was_repeat);
  EXPECT_EQ(available("shirt"), 3);
  EXPECT_EQ(end(bought, State::cancelled).error().kind, Failure::Kind::refused);
  EXPECT_EQ(end(left, State::confirmed).error().kind, Failure::Kind::refused);
  EXPECT_EQ(available("shirt"), 3);
}

TEST_F(StockTest, what_expired_returns_after_the_skew_and_cannot_be_confirmed) {
  put("shirt", 5);
  const auto late = *reserve("r", {{"shirt", 2}}, 1min);
  run_.pass(59s);
  EXPECT_FALSE(end(late, State::expired));
  run_.pass(1s);
  EXPECT_EQ(end(late, State::confirmed).error().kind, Failure::Kind::refused);
  EXPECT_FALSE(end(late, State::expired)) << "the clock that confirms may be behind this one";
  run_.pass(500ms);
  EXPECT_EQ(end(late, State::expired)->state, State::expired);
  EXPECT_EQ(available("shirt"), 5);
}

TEST_F(StockTest, a_reservation_is_found_by_its_due_time_and_read_back) {
  put("shirt", 5);
  const auto made = *reserve("r", {{"shirt", 2}});
  const Row& row = *table_.find(Reserve::row_key("r"));
  EXPECT_EQ(row.text(attribute::desired_state), coord::reserved_state);
  EXPECT_EQ(row.number(attribute::expires_at), made.expires_at.time_since_epoch().count());
  EXPECT_EQ(reservation_in(row)->basket, made.basket);
}

TEST_F(StockTest, in_any_mixture_of_mishaps_nothing_is_oversold_and_nothing_vanishes) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Random chance(seed);
    table_ = {};
    put("shirt", 6);
    put("hat", 4);
    test::ProcedureRun run(table_);
    run.mishap = [&](int, bool) {
      return chance.below(4) == 0 ? every_mishap[chance.below(std::size(every_mishap))] : Mishap::none;
    };
    std::vector<std::unique_ptr<Reserve>> open;
    std::vector<Reservation> made;
    for (int i = 0; i < 6; ++i) {
      const Basket basket = i % 2 == 0 ? Basket{{"shirt", 2}} : Basket{{"shirt", 1}, {"hat", 2}};
      for (int twice = 0; twice < 2; ++twice) {
        open.push_back(
            std::make_unique<Reserve>(ReserveOptions{std::to_string(i), basket}, run.now.instant + 1h, random_));
      }
    }
    while (!open.empty()) {
      const std::size_t at = chance.below(open.size());
      if (!run.step(*open[at])) {
        if (*open[at]->result() && !(*open[at]->result())->was_repeat) made.push_back(**open[at]->result());
        open.erase(open.begin() + static_cast<std::ptrdiff_t>(at));
      }
      if (chance.below(5) == 0) run.arrive_late();
    }
    run.arrive_late();
    std::int64_t shirts = available("shirt");
    std::int64_t hats = available("hat");
    EXPECT_GE(shirts, 0);
    EXPECT_GE(hats, 0);
    for (const Reservation& each : made) {
      for (const auto& [sku, count] : each.basket) (sku == "hat" ? hats : shirts) += count;
    }
    EXPECT_EQ(shirts, 6) << seed;
    EXPECT_EQ(hats, 4) << seed;
  }
}

}  // namespace
}  // namespace holdfast
