// Histories of one row that can be explained, and histories that are wrong in known ways.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>

#include "core/lease_write.hpp"
#include "sim/history/linearizability.hpp"

namespace holdfast::sim {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;

Instant at(int ms) {
  return Instant(milliseconds(ms));
}

/// A register: a row with the attribute x.
std::optional<Row> holding(int x) {
  return Row{"r", {{"x", x}}};
}
Update set_x(int x, Condition condition = Condition::always()) {
  return {"r", {Change::set("x", x)}, std::move(condition)};
}
Update swap_x(int from, int to) {
  return set_x(to, Condition::equals("x", from));
}
Update add_1() {
  return {"r", {Change::add("x", 1)}, Condition::always()};
}

Operation get(int from, int until, std::optional<Row> row) {
  return {"reader", "r", at(from), at(until), std::nullopt, Outcome::applied, std::move(row)};
}
Operation update(int from, int until, Update what, Outcome outcome, std::optional<Row> row) {
  return {"writer", "r", at(from), at(until), std::move(what), outcome, std::move(row)};
}
Operation applied(int from, int until, Update what, std::optional<Row> after) {
  return update(from, until, std::move(what), Outcome::applied, std::move(after));
}
Operation conflict(int from, int until, Update what, std::optional<Row> as_it_was) {
  return update(from, until, std::move(what), Outcome::conflict, std::move(as_it_was));
}
Operation unknown(int from, Update what) {
  return update(from, from, std::move(what), Outcome::unknown, std::nullopt);
}

Verdict judged(const History& history, const std::optional<Row>& initial = holding(0)) {
  return linearize(history, initial).verdict;
}

// ---- Right ----

TEST(Linearizability, one_after_the_other_is_explained_in_that_order) {
  const History history = {applied(1, 2, set_x(1), holding(1)), get(3, 4, holding(1)),
                           conflict(5, 6, swap_x(7, 8), holding(1)), applied(7, 8, swap_x(1, 2), holding(2))};
  const Linearization found = linearize(history, holding(0));
  EXPECT_TRUE(found.verdict.good()) << found.verdict.words;
  EXPECT_THAT(found.order, ElementsAre(0, 1, 2, 3));
}

TEST(Linearizability, an_empty_history_is_right) {
  EXPECT_TRUE(judged({}).good());
}

TEST(Linearizability, at_first_there_is_no_row_unless_told) {
  const Update create{"r", {Change::set("x", 1)}, Condition::row_missing()};
  EXPECT_TRUE(judged({get(1, 2, std::nullopt), applied(3, 4, create, holding(1))}, std::nullopt).good());
  EXPECT_TRUE(judged({applied(3, 4, create, holding(1))}, holding(0)).bad());
}

TEST(Linearizability, of_two_at_once_either_may_be_first) {
  EXPECT_TRUE(
      judged({applied(1, 9, set_x(1), holding(1)), applied(2, 8, set_x(2), holding(2)), get(10, 11, holding(1))})
          .good());
  EXPECT_TRUE(
      judged({applied(1, 9, set_x(1), holding(1)), applied(2, 8, set_x(2), holding(2)), get(10, 11, holding(2))})
          .good());
}

TEST(Linearizability, the_order_may_have_to_be_another_than_that_of_the_invocations) {
  const Linearization found =
      linearize({applied(1, 9, swap_x(2, 3), holding(3)), applied(2, 8, swap_x(0, 2), holding(2))}, holding(0));
  EXPECT_TRUE(found.verdict.good());
  EXPECT_THAT(found.order, ElementsAre(1, 0));
}

TEST(Linearizability, an_unknown_update_may_never_happen) {
  EXPECT_TRUE(judged({unknown(1, set_x(5)), get(2, 3, holding(0)), get(1000, 1001, holding(0))}).good());
}

TEST(Linearizability, an_unknown_update_may_happen_much_later) {
  const History history = {unknown(1, set_x(5)), get(2, 3, holding(0)), applied(4, 5, set_x(1), holding(1)),
                           get(6, 7, holding(1)), get(8, 9, holding(5))};
  const Linearization found = linearize(history, holding(0));
  EXPECT_TRUE(found.verdict.good());
  EXPECT_THAT(found.order, ElementsAre(1, 2, 3, 0, 4));
}

TEST(Linearizability, an_unknown_get_throttled_and_rejected_updates_say_nothing) {
  Operation lost = get(1, 2, std::nullopt);
  lost.outcome = Outcome::unknown;
  EXPECT_TRUE(judged({lost, update(1, 2, set_x(1), Outcome::throttled, std::nullopt),
                      update(1, 2, set_x(2), Outcome::rejected, std::nullopt), get(3, 4, holding(0))})
                  .good());
}

TEST(Linearizability, a_duplicate_is_an_unknown_operation_of_its_own) {
  const History history = {applied(1, 2, add_1(), holding(1)), get(3, 4, holding(2))};
  EXPECT_TRUE(judged(history).bad());
  History with_copy = history;
  with_copy.push_back(unknown(1, add_1()));
  EXPECT_TRUE(judged(with_copy).good());
}

// ---- Wrong ----

TEST(Linearizability, a_lost_update_is_refused) {
  EXPECT_TRUE(judged({applied(1, 2, set_x(1), holding(1)), get(3, 4, holding(0))}).bad());
  // Both read 0 and both were told that their swap worked.
  EXPECT_TRUE(judged({applied(1, 9, swap_x(0, 1), holding(1)), applied(2, 8, swap_x(0, 2), holding(2))}).bad());
}

TEST(Linearizability, a_stale_read_is_refused) {
  EXPECT_TRUE(
      judged({applied(1, 2, set_x(1), holding(1)), applied(3, 4, set_x(2), holding(2)), get(5, 6, holding(1))})
          .bad());
}

TEST(Linearizability, reads_that_see_two_updates_in_different_orders_are_refused) {
  EXPECT_TRUE(judged({applied(1, 9, set_x(1), holding(1)), applied(1, 9, set_x(2), holding(2)), get(2, 3, holding(1)),
                      get(4, 5, holding(2)), get(6, 7, holding(1))})
                  .bad());
}

TEST(Linearizability, an_update_applied_twice_is_refused) {
  EXPECT_TRUE(judged({applied(1, 2, add_1(), holding(1)), get(3, 4, holding(2))}).bad());
  // Unknown: once or never, not twice.
  EXPECT_TRUE(judged({unknown(1, add_1()), get(3, 4, holding(1)), get(5, 6, holding(2))}).bad());
}

TEST(Linearizability, an_unknown_update_that_took_effect_before_its_invocation_is_refused) {
  EXPECT_TRUE(judged({get(1, 2, holding(5)), unknown(3, set_x(5))}).bad());
  EXPECT_TRUE(judged({get(1, 3, holding(5)), unknown(3, set_x(5))}).good());
}

TEST(Linearizability, an_unknown_update_that_is_seen_and_unseen_again_is_refused) {
  EXPECT_TRUE(judged({unknown(1, set_x(5)), get(2, 3, holding(5)), get(4, 5, holding(0))}).bad());
}

TEST(Linearizability, a_throttled_or_rejected_update_that_happened_is_refused) {
  for (const Outcome outcome : {Outcome::throttled, Outcome::rejected}) {
    EXPECT_TRUE(judged({update(1, 2, set_x(5), outcome, std::nullopt), get(3, 4, holding(5))}).bad());
  }
}

TEST(Linearizability, a_conflict_whose_condition_held_is_refused) {
  EXPECT_TRUE(judged({conflict(1, 2, swap_x(0, 1), holding(0))}).bad());
}

TEST(Linearizability, a_conflict_that_shows_another_row_than_there_was_is_refused) {
  EXPECT_TRUE(judged({conflict(1, 2, swap_x(5, 1), holding(3))}).bad());
  EXPECT_TRUE(judged({conflict(1, 2, swap_x(5, 1), std::nullopt)}).bad());
}

TEST(Linearizability, a_conflict_that_changed_the_row_is_refused) {
  EXPECT_TRUE(judged({conflict(1, 2, swap_x(7, 1), holding(0)), get(3, 4, holding(1))}).bad());
}

TEST(Linearizability, an_update_applied_against_its_condition_is_refused) {
  EXPECT_TRUE(judged({applied(1, 2, swap_x(7, 1), holding(1))}).bad());
}

TEST(Linearizability, an_update_that_changed_something_else_too_is_refused) {
  EXPECT_TRUE(judged({applied(1, 2, set_x(1), Row{"r", {{"x", 1}, {"y", 2}}})}).bad());
}

TEST(Linearizability, a_row_that_disappears_is_refused) {
  EXPECT_TRUE(judged({get(1, 2, holding(0)), get(3, 4, std::nullopt)}).bad());
}

TEST(Linearizability, values_of_other_types_are_other_values) {
  EXPECT_TRUE(judged({get(1, 2, Row{"r", {{"x", 0.0}}})}).bad());
}

// ---- Leases ----

struct Worker {
  WorkerId id;
  Attempt attempt;
  [[nodiscard]] Update claim(std::int64_t epoch, std::string_view seen_owner, int seen_expiry, int expiry,
                             int now) const {
    LeaseWrite write;
    write.kind = LeaseWrite::Kind::claim;
    write.key = "CONN#a";
    write.attempt = attempt;
    write.epoch = {epoch};
    write.seen_owner = seen_owner;
    write.seen_expires_at = WallTime(milliseconds(seen_expiry));
    write.expires_at = WallTime(milliseconds(expiry));
    write.free_before = WallTime(milliseconds(now));
    return render(write, id);
  }
};

Row free_connection() {
  return {"CONN#a", {{"desired_state", "STARTED"}, {"lease_expires_at_ms", 0}}};
}
Row after(const Update& update, Row row) {
  EXPECT_TRUE(holdfast::apply(update.changes, row));
  return row;
}

TEST(Linearizability, two_claims_of_one_epoch_cannot_both_be_applied) {
  const Update first = Worker{WorkerId("w1"), {1, 1}}.claim(1, "", 0, 1000, 0);
  const Update second = Worker{WorkerId("w2"), {2, 2}}.claim(1, "", 0, 1001, 0);
  const Row of_first = after(first, free_connection());
  const Row of_second = after(second, free_connection());
  const Operation wins{"w1", "CONN#a", at(1), at(5), first, Outcome::applied, of_first};
  const Operation wins_too{"w2", "CONN#a", at(2), at(6), second, Outcome::applied, of_second};
  const Operation loses{"w2", "CONN#a", at(2), at(6), second, Outcome::conflict, of_first};
  EXPECT_TRUE(judged({wins, loses}, free_connection()).good());
  EXPECT_TRUE(judged({wins, wins_too}, free_connection()).bad());
}

TEST(Linearizability, a_claim_whose_reply_was_lost_is_seen_by_the_conflict_of_its_next_try) {
  const Worker worker{WorkerId("w1"), {1, 1}};
  const Update first = worker.claim(1, "", 0, 1000, 0);
  const Update again = worker.claim(1, "", 0, 1100, 100);
  const Operation lost{"w1", "CONN#a", at(1), at(1), first, Outcome::unknown, std::nullopt};
  const Operation settled{
      "w1", "CONN#a", at(101), at(102), again, Outcome::conflict, after(first, free_connection())};
  EXPECT_TRUE(judged({lost, settled}, free_connection()).good());
  EXPECT_TRUE(judged({settled}, free_connection()).bad());
}

// ---- What is said ----

TEST(Linearizability, the_words_name_the_first_operation_that_fits_nowhere_with_its_time_and_why) {
  const Verdict verdict = judged({applied(1, 2, set_x(1), holding(1)), applied(1000, 2500, swap_x(0, 2), holding(2)),
                                  get(3000, 3001, holding(2))});
  ASSERT_TRUE(verdict.bad());
  EXPECT_THAT(verdict.words, HasSubstr("1 of 3 were explained"));
  EXPECT_THAT(verdict.words, HasSubstr("the row then: {x: 1}"));
  EXPECT_THAT(verdict.words, HasSubstr("left by: writer, 0.001 s to 0.002 s: update r x := 1 if always -> applied"));
  EXPECT_THAT(verdict.words, HasSubstr("writer, 1.000 s to 2.500 s: update r x := 2 if x = 0 -> applied, {x: 2}"));
  EXPECT_THAT(verdict.words, HasSubstr("but its condition does not hold on that row"));
  EXPECT_THAT(verdict.words, testing::Not(HasSubstr("3.001")));
}

TEST(Linearizability, a_search_that_gives_up_says_so_and_does_not_pass) {
  History history;
  // Additions without a reply: which of them happened is seen only at the end, and there wrongly.
  for (int i = 0; i < 24; ++i) history.push_back(unknown(i, {"r", {Change::add("x", 1 << i)}, Condition::always()}));
  history.push_back(get(1000, 1001, holding(-1)));
  SearchLimits limits;
  limits.bytes_max = 1'000'000;
  const Linearization memory = linearize(history, holding(0), limits);
  EXPECT_EQ(Verdict::Kind::undecided, memory.verdict.kind);
  EXPECT_FALSE(memory.verdict.good());
  EXPECT_THAT(memory.verdict.words, HasSubstr("gave up on r after"));
  limits = {};
  limits.steps_max = 1000;
  EXPECT_EQ(Verdict::Kind::undecided, linearize(history, holding(0), limits).verdict.kind);
}

TEST(Linearizability, each_row_is_judged_by_itself) {
  Operation other = get(1, 2, Row{"s", {{"x", 9}}});
  other.key = "s";
  const History history = {applied(1, 2, set_x(1), holding(1)), other};
  const std::map<std::string, Row> initial = {{"r", *holding(0)}, {"s", Row{"s", {{"x", 9}}}}};
  EXPECT_TRUE(check_linearizable(history, initial).good());
  const Verdict verdict = check_linearizable(history, {{"r", *holding(0)}});
  ASSERT_TRUE(verdict.bad());
  EXPECT_THAT(verdict.words, HasSubstr("operations on s"));
}

}  // namespace
}  // namespace holdfast::sim
