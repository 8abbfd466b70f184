// `holdfast cost` as a user calls it; its arithmetic is in tests/unit/cli_cost.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "support/program.hpp"

namespace holdfast {
namespace {

using test::expect_one_line;
using test::Program;
using testing::HasSubstr;

TEST(CliCost, prints_units_and_money_for_people_and_for_programs) {
  Program program;
  const auto people = program.run({"cost", "--connections", "200", "--workers", "2", "--renew", "5s"});
  EXPECT_EQ(people.code, 0) << people.err;
  EXPECT_THAT(people.out, HasSubstr("199.45 a month, 0.9972 for each connection"));
  EXPECT_THAT(people.out, HasSubstr("table: 58 write and 1 read units; index: 116 and 1"));

  const auto programs = program.run(
      {"cost", "--connections", "200", "--workers", "2", "--renew", "5s", "--price-write", "2", "--json"});
  ASSERT_EQ(programs.code, 0) << programs.err;
  const auto answer = boost::json::parse(programs.out);
  const auto& renew = answer.at("kinds").at("renew");
  EXPECT_DOUBLE_EQ(renew.at("index_write_units_per_second").as_double(), 80);
  EXPECT_NEAR(renew.at("on_demand_per_month").as_double(), 630.72, 1e-6);
  EXPECT_EQ(answer.at("connections").as_int64(), 200);
  EXPECT_EQ(answer.at("provisioned").at("table_write_units").as_int64(), 58);
  EXPECT_DOUBLE_EQ(answer.at("prices").at("million_write_units").as_double(), 2);
}

TEST(CliCost, refuses_what_makes_no_sense) {
  Program program;
  expect_one_line(program.run({"cost"}), 2, "--connections");
  expect_one_line(program.run({"cost", "--connections", "5", "--mode", "free"}), 2, "--mode is lease or session");
  expect_one_line(program.run({"cost", "--connections", "5", "--renew", "0s"}), 2, "1ms at least");
  expect_one_line(program.run({"cost", "--connections", "5", "--utilization", "0"}), 2, "--utilization");
}

}  // namespace
}  // namespace holdfast
