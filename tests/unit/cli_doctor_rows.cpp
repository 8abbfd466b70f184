// What rows come to: which ones the index or a claim cannot make sense of, and what repairs them.
#include "cli/doctor_rows.hpp"

#include <gmock/gmock.h>

namespace holdfast::cli {
namespace {

using store::Finding;
using store::Findings;
using store::Health;
using testing::HasSubstr;

constexpr WallTime now{std::chrono::milliseconds(1'700'000'000'000)};

Row row(const std::string& key, std::initializer_list<std::pair<std::string, Value>> attributes) {
  Row made{key, {}};
  for (const auto& [name, value] : attributes) made.attributes.insert_or_assign(name, value);
  return made;
}

Findings of(std::vector<Row> rows, const std::string& stopped_by = "") {
  RowsExamined examined;
  examined.take({std::move(rows), {}, ""}, now);
  return examined.findings(stopped_by);
}

TEST(DoctorRows, rows_that_are_as_they_should_be_are_counted) {
  const Findings found = of({row("CONN#a", {{"desired_state", "STARTED"}, {"lease_expires_at_ms", 0}}),
                             row("CONN#gone", {{"desired_state", "REMOVED"}}), row("WORKER#w", {}), row("mine", {}),
                             row("DOCTOR#0123456789abcdef", {{"desired_state", "REMOVED"}})});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].health, Health::ok);
  EXPECT_THAT(found[0].detail, HasSubstr("4 rows, 2 of connections"));
}

TEST(DoctorRows, f21_a_row_without_an_attribute_of_the_index_is_told_with_what_repairs_it) {
  for (const Row& lacking :
       {row("CONN#a", {{"desired_state", "STARTED"}}), row("CONN#a", {{"lease_expires_at_ms", 0}}),
        row("CONN#a", {{"desired_state", 5}, {"lease_expires_at_ms", 0}}),
        row("CONN#a", {{"desired_state", "STARTED"}, {"lease_expires_at_ms", "0"}})}) {
    const Findings found = of({lacking});
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].check, "row CONN#a");
    EXPECT_EQ(found[0].health, Health::failed);
    EXPECT_THAT(found[0].detail, HasSubstr("no worker ever finds it"));
    EXPECT_THAT(found[0].advice, HasSubstr("'holdfast conn start a' repairs it"));
  }
}

TEST(DoctorRows, a_row_of_the_coordinators_that_nothing_is_done_with_is_told) {
  const auto group = [](const Value& head) {
    return row("QUEUE#q#g", {{"queue", "q"},
                             {"group", "g"},
                             {"head", head},
                             {"tail", 3},
                             {"desired_state", "QUEUE#q"},
                             {"lease_expires_at_ms", 5}});
  };
  EXPECT_EQ(of({group(1), row("COUNTER#c", {{"value", 1}}), row("OP#1#c#o", {{"outcome", "precluded"}}),
                row("RESERVATION#r", {{"outcome", "precluded"}}), row("TASK#t", {}), row("ONCE#k", {})})
                .at(0)
                .health,
            Health::ok);
  for (const Row& damaged :
       {group("one"), group(0), row("COUNTER#c", {{"value", "x"}}), row("TASK#t", {{"lease_epoch", "x"}}),
        row("ONCE#k", {{"fingerprint", 7}}), row("DECISION#d", {}), row("RESERVATION#r", {{"outcome", "held"}}),
        row("MESSAGE#q#g#1", {{"seq", 1}, {"body", 2}}), row("STOCK#s", {{"available", 1.5}})}) {
    const Findings found = of({damaged});
    ASSERT_EQ(found.size(), 1U) << damaged.key;
    EXPECT_EQ(found[0].check, "row " + damaged.key);
    EXPECT_EQ(found[0].health, Health::failed);
    EXPECT_THAT(found[0].detail, HasSubstr("nothing is done with it"));
  }
}

TEST(DoctorRows, what_is_stopped_or_in_a_state_of_its_own_is_a_warning) {
  const Findings stopped = of({row("CONN#a", {{"desired_state", "STOPPED"}})});
  EXPECT_EQ(stopped.at(0).health, Health::warning);
  EXPECT_THAT(stopped.at(0).detail, HasSubstr("does not list it"));
  const Findings other = of({row("CONN#a", {{"desired_state", "PAUSED"}, {"lease_expires_at_ms", 0}})});
  EXPECT_EQ(other.at(0).health, Health::warning);
  EXPECT_THAT(other.at(0).advice, HasSubstr("conn start a"));
}

TEST(DoctorRows, a_damaged_lease_and_one_that_ends_far_ahead_have_advice) {
  const Findings damaged =
      of({row("CONN#a", {{"desired_state", "STARTED"}, {"lease_expires_at_ms", 0}, {"lease_epoch", "seven"}})});
  EXPECT_EQ(damaged.at(0).health, Health::failed);
  EXPECT_THAT(damaged.at(0).detail, HasSubstr("cannot be claimed"));
  EXPECT_THAT(damaged.at(0).advice, HasSubstr("'holdfast conn start a' repairs it"));
  const Findings far = of({row("CONN#a", {{"desired_state", "STARTED"},
                                          {"lease_owner", "w"},
                                          {"lease_expires_at_ms", std::int64_t{1'700'100'000'000}}})});
  EXPECT_EQ(far.at(0).health, Health::warning);
  EXPECT_THAT(far.at(0).advice, HasSubstr("'holdfast conn release a' frees it"));
}

TEST(DoctorRows, rows_that_cannot_be_read_are_told_by_their_key) {
  RowsExamined examined;
  examined.take({{}, {{"CONN#x", Health::failed, "cannot be read", "delete it"}}, ""}, now);
  const Findings found = examined.findings("");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].check, "row CONN#x");
}

TEST(DoctorRows, of_many_some_are_told_and_the_others_counted_and_what_was_not_looked_at_is_said) {
  std::vector<Row> rows;
  for (int i = 0; i < 50; ++i) rows.push_back(row("CONN#" + std::to_string(i), {}));
  const Findings found = of(std::move(rows), "--max-rows is reached");
  ASSERT_EQ(found.size(), 22U);
  EXPECT_THAT(found[20].detail, HasSubstr("30 more"));
  EXPECT_THAT(found[21].detail, HasSubstr("--max-rows is reached"));
  EXPECT_EQ(found[21].health, Health::warning);
}

}  // namespace
}  // namespace holdfast::cli
