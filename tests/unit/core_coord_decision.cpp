// The first proposal wins, and stays.
#include <gmock/gmock.h>

#include <memory>

#include "core/coord/decision.hpp"
#include "core/coord/names.hpp"
#include "support/procedure_run.hpp"

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using test::every_mishap;
using test::Mishap;
using testing::HasSubstr;

class DecisionTest : public testing::Test {
 protected:
  Decide propose(const char* value, const char* proposer, Duration patience = 10s) {
    return {"order", Value(value), proposer, run_.now.instant + patience, random_};
  }

  test::LeaseTable table_;
  test::ProcedureRun run_{table_};
  Random random_{7};
};

TEST_F(DecisionTest, the_first_proposal_wins_with_one_write) {
  Decide first = propose("A", "alice");
  run_.run(first);
  ASSERT_TRUE(*first.result());
  EXPECT_EQ((*first.result())->value, Value("A"));
  EXPECT_EQ((*first.result())->proposer, "alice");
  EXPECT_TRUE((*first.result())->was_ours);
  EXPECT_EQ(run_.writes, 1);
}

TEST_F(DecisionTest, what_is_decided_is_told_without_a_write) {
  Decide first = propose("A", "alice");
  run_.run(first);
  Decide second = propose("B", "bob");
  run_.run(second);
  EXPECT_EQ((*second.result())->value, Value("A"));
  EXPECT_EQ((*second.result())->proposer, "alice");
  EXPECT_EQ((*second.result())->at, (*first.result())->at);
  EXPECT_FALSE((*second.result())->was_ours);
  EXPECT_EQ(run_.writes, 1);
}

TEST_F(DecisionTest, the_same_proposal_made_again_is_not_the_one_that_won) {
  Decide first = propose("A", "alice");
  run_.run(first);
  Decide again = propose("A", "alice");
  run_.run(again);
  EXPECT_FALSE((*again.result())->was_ours) << "two callers must not both think that theirs won";
}

TEST_F(DecisionTest, whoever_loses_the_race_for_the_write_learns_what_won) {
  Decide first = propose("A", "alice");
  Decide second = propose("B", "bob");
  ASSERT_TRUE(run_.step(first) && run_.step(second)) << "both have read";
  ASSERT_TRUE(run_.step(second) && run_.step(first)) << "both have written";
  run_.run(first);
  run_.run(second);
  EXPECT_EQ((*first.result())->value, Value("B"));
  EXPECT_FALSE((*first.result())->was_ours);
  EXPECT_TRUE((*second.result())->was_ours);
  EXPECT_EQ(run_.writes, 2);
}

TEST_F(DecisionTest, whatever_befalls_one_request_the_result_is_right) {
  for (const Mishap mishap : every_mishap) {
    for (int nth = 0; nth < 6; ++nth) {
      SCOPED_TRACE(testing::Message() << "mishap " << static_cast<int>(mishap) << " at request " << nth);
      test::LeaseTable table;
      test::ProcedureRun run(table);
      run.mishap = [&](int request, bool) { return request == nth ? mishap : Mishap::none; };
      Decide first("order", Value("A"), "alice", run.now.instant + 10s, random_);
      run.run(first);
      ASSERT_TRUE(*first.result());
      EXPECT_TRUE((*first.result())->was_ours) << "S5: one's own lost success is known by its attempt";
      run.arrive_late();
      Decide second("order", Value("B"), "bob", run.now.instant + 10s, random_);
      run.run(second);
      EXPECT_EQ((*second.result())->value, Value("A"));
      run.arrive_late();
      EXPECT_EQ(decided_in(*table.find(first.key()))->value, Value("A"));
    }
  }
}

TEST_F(DecisionTest, all_who_race_are_told_the_same_and_one_of_them_that_it_was_theirs) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Random chance(seed);
    test::LeaseTable table;
    test::ProcedureRun run(table);
    run.mishap = [&](int, bool) {
      return chance.below(4) == 0 ? every_mishap[chance.below(std::size(every_mishap))] : Mishap::none;
    };
    std::vector<std::unique_ptr<Decide>> all, going;
    for (int i = 0; i < 6; ++i) {
      all.push_back(std::make_unique<Decide>("k", Value(i), "p", run.now.instant + 1h, random_));
    }
    std::vector<Decide*> open;
    for (const auto& each : all) open.push_back(each.get());
    while (!open.empty()) {
      const std::size_t at = chance.below(open.size());
      if (!run.step(*open[at])) open.erase(open.begin() + static_cast<std::ptrdiff_t>(at));
      if (chance.below(5) == 0) run.arrive_late();
    }
    int ours = 0;
    for (const auto& each : all) {
      ASSERT_TRUE(*each->result());
      EXPECT_EQ((*each->result())->value, (*all.front()->result())->value) << seed;
      ours += (*each->result())->was_ours ? 1 : 0;
    }
    EXPECT_EQ(ours, 1) << seed;
  }
}

TEST_F(DecisionTest, a_store_that_is_away_is_told_apart_by_what_may_have_happened) {
  run_.mishap = [](int, bool) { return Mishap::lost_request; };
  Decide never_written = propose("A", "alice", 2s);
  run_.run(never_written);
  ASSERT_FALSE(*never_written.result());
  EXPECT_EQ(never_written.result()->error().kind, Failure::Kind::unavailable);
  EXPECT_THAT(never_written.result()->error().error.detail, HasSubstr("Nothing happened"));

  run_.mishap = [](int, bool is_write) { return is_write ? Mishap::lost_request : Mishap::none; };
  Decide maybe_written = propose("A", "alice", 2s);
  run_.run(maybe_written);
  ASSERT_FALSE(*maybe_written.result());
  EXPECT_EQ(maybe_written.result()->error().kind, Failure::Kind::unknown);
}

TEST_F(DecisionTest, a_row_that_holds_no_decision_is_not_overwritten) {
  table_.add(Decide::row_key("order"));
  Decide first = propose("A", "alice");
  run_.run(first);
  ASSERT_FALSE(*first.result());
  EXPECT_EQ(first.result()->error().kind, Failure::Kind::rejected);
  EXPECT_THAT(first.result()->error().error.detail, HasSubstr("DECISION#order"));
  EXPECT_EQ(run_.writes, 0);
}

TEST_F(DecisionTest, null_can_be_decided_too) {
  Decide first("order", Value(nullptr), "alice", run_.now.instant + 1s, random_);
  run_.run(first);
  Decide second = propose("B", "bob");
  run_.run(second);
  EXPECT_EQ((*second.result())->value, Value(nullptr));
}

}  // namespace
}  // namespace holdfast
