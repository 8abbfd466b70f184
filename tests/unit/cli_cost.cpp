// The arithmetic of `holdfast cost`, against values that were computed by hand from docs/capacity.md.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/cost_estimate.hpp"

namespace holdfast::cli {
namespace {

using namespace std::chrono_literals;

const CostLine& line_of(const CostEstimate& estimate, std::string_view kind) {
  for (const CostLine& line : estimate.lines) {
    if (line.kind == kind) return line;
  }
  throw std::runtime_error("no such line");
}

CostQuestion two_hundred() {
  return {.connections = 200, .workers = 2, .renew_every = 5s, .reconcile_every = 5s};
}

TEST(Cost, of_renewals_is_three_write_units_each_two_of_them_of_the_index) {
  const CostEstimate estimate = estimate_cost(two_hundred());
  const CostLine& renew = line_of(estimate, "renew");
  EXPECT_DOUBLE_EQ(renew.requests, 40);           // 200 / 5
  EXPECT_DOUBLE_EQ(renew.table_write_units, 40);  // one KiB each
  EXPECT_DOUBLE_EQ(renew.index_write_units, 80);  // a delete and a put
  EXPECT_DOUBLE_EQ(renew.read_units(), 0);
  EXPECT_NEAR(renew.on_demand, 197.10, 1e-9);  // 120 x 2,628,000 s x 0.625 / 1,000,000
}

TEST(Cost, of_rows_above_one_kib_is_twice_as_much) {
  CostQuestion question = two_hundred();
  question.row_bytes = 1024;
  EXPECT_DOUBLE_EQ(line_of(estimate_cost(question), "renew").write_units(), 120);
  question.row_bytes = 1025;
  EXPECT_DOUBLE_EQ(line_of(estimate_cost(question), "renew").write_units(), 240);
  EXPECT_DOUBLE_EQ(line_of(estimate_cost(question), "session").write_units(),
                   line_of(estimate_cost(two_hundred()), "session").write_units())
      << "a worker's own row stays small";
}

TEST(Cost, of_checkpoints_is_nothing_unless_they_are_asked_for_more_often) {
  CostQuestion question = two_hundred();
  EXPECT_DOUBLE_EQ(line_of(estimate_cost(question), "checkpoint").write_units(), 0);
  question.checkpoint_every = 1s;
  EXPECT_DOUBLE_EQ(line_of(estimate_cost(question), "checkpoint").table_write_units, 200);
  EXPECT_DOUBLE_EQ(line_of(estimate_cost(question), "checkpoint").index_write_units, 400);
  EXPECT_DOUBLE_EQ(line_of(estimate_cost(question), "renew").write_units(), 120) << "renewals keep their time";
}

TEST(Cost, of_workers_rows_and_looks_grows_with_workers_only) {
  CostQuestion question = two_hundred();
  question.moves_per_day = 0;
  for (const double connections : {200.0, 20'000.0}) {
    question.connections = connections;
    const CostEstimate estimate = estimate_cost(question);
    EXPECT_NEAR(line_of(estimate, "session").requests, 0.457142857, 1e-9);       // 2 / (5 x 7/8)
    EXPECT_NEAR(line_of(estimate, "session").write_units(), 1.371428571, 1e-9);  // three each
    EXPECT_NEAR(line_of(estimate, "look").requests, 0.433333333, 1e-9);          // 2 / 5 x 13/12
    EXPECT_NEAR(line_of(estimate, "look").index_read_units, 0.216666667, 1e-9);  // half a unit each
    EXPECT_DOUBLE_EQ(line_of(estimate, "look").write_units(), 0);
  }
}

TEST(Cost, of_a_move_is_a_release_a_claim_and_being_found_by_each_worker) {
  CostQuestion question = two_hundred();
  question.moves_per_day = 432;  // one a second over all
  const CostEstimate estimate = estimate_cost(question);
  EXPECT_DOUBLE_EQ(line_of(estimate, "claim").requests, 1);
  EXPECT_DOUBLE_EQ(line_of(estimate, "claim").write_units(), 3);
  EXPECT_DOUBLE_EQ(line_of(estimate, "release").write_units(), 3);
  question.moves_per_day = 0;
  const double found = line_of(estimate, "look").read_units() - line_of(estimate_cost(question), "look").read_units();
  EXPECT_NEAR(found, 0.1220703125, 1e-12);  // two workers x 500 / 4096 x 0.5
}

TEST(Cost, of_session_mode_is_the_workers_rows_and_checkpoints_of_their_own) {
  CostQuestion question = two_hundred();
  question.mode = CostMode::session;
  const CostEstimate estimate = estimate_cost(question);
  EXPECT_DOUBLE_EQ(line_of(estimate, "renew").requests, 0);
  EXPECT_DOUBLE_EQ(line_of(estimate, "checkpoint").requests, 40);
  EXPECT_DOUBLE_EQ(line_of(estimate, "checkpoint").write_units(), 80);  // two each: the expiry stays
  EXPECT_NEAR(line_of(estimate, "session").write_units(), 1.371428571, 1e-9);
}

TEST(Cost, in_all_is_the_sum_of_its_kinds) {
  const CostEstimate estimate = estimate_cost(two_hundred());
  double money = 0;
  double writes = 0;
  for (const CostLine& line : estimate.lines) {
    money += line.on_demand;
    writes += line.write_units();
  }
  EXPECT_DOUBLE_EQ(estimate.total.on_demand, money);
  EXPECT_DOUBLE_EQ(estimate.total.write_units(), writes);
  // 120 renewals, 1.371428571 sessions, 0.0138888 claims and releases; 0.216949 reads.
  EXPECT_NEAR(estimate.total.write_units(), 121.3853175, 1e-6);
  EXPECT_NEAR(estimate.total.on_demand, 199.4466518, 1e-6);  // 121.3853175 x 1.6425 + 0.216949229 x 0.3285
}

TEST(Cost, provisioned_is_in_whole_units_of_table_and_index_with_room_to_spare) {
  const CostEstimate estimate = estimate_cost(two_hundred());
  EXPECT_EQ(estimate.provisioned.table_write, 58);   // 40.4618 / 0.7 = 57.8
  EXPECT_EQ(estimate.provisioned.index_write, 116);  // 80.9235 / 0.7 = 115.6
  EXPECT_EQ(estimate.provisioned.table_read, 1);     // nothing is read there, and none below one is sold
  EXPECT_EQ(estimate.provisioned.index_read, 1);
  EXPECT_NEAR(estimate.provisioned_cost, 82.7528, 1e-9);  // (174 x 0.00065 + 2 x 0.00013) x 730
}

TEST(Cost, follows_the_prices_that_are_given) {
  CostQuestion question = two_hundred();
  question.prices = {.write = 1.25, .read = 0, .provisioned_write = 0, .provisioned_read = 0.5};
  const CostEstimate estimate = estimate_cost(question);
  EXPECT_NEAR(line_of(estimate, "renew").on_demand, 394.20, 1e-9);
  EXPECT_DOUBLE_EQ(line_of(estimate, "look").on_demand, 0);
  EXPECT_DOUBLE_EQ(estimate.provisioned_cost, 730);
}

}  // namespace
}  // namespace holdfast::cli
