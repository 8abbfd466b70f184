#include "core/lease_write.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "core/number.hpp"
#include "support/lease_table.hpp"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

const WorkerId me("me#1");
constexpr WallTime noon{std::chrono::milliseconds(1'700'000'000'000)};

LeaseWrite claim_of(const Candidate& seen) {
  LeaseWrite write;
  write.kind = LeaseWrite::Kind::claim;
  write.key = seen.key;
  write.attempt = {1, 2};
  write.epoch = {seen.epoch.value + 1};
  write.expires_at = noon + 20s;
  write.at = noon;
  write.seen_owner = seen.owner;
  write.seen_expires_at = seen.expires_at;
  write.free_before = noon - 1s;
  return write;
}

class ClaimOf : public testing::Test {
 protected:
  Outcome claim_as_seen(const Row& seen) {
    return table_.carry_out(render(claim_of(*candidate_from(seen)), me)).outcome;
  }
  void set(std::string_view name, Value value) { row_.attributes[std::string(name)] = std::move(value); }
  test::LeaseTable table_;
  Row& row_ = table_.add("CONN#a");
};

TEST_F(ClaimOf, a_row_that_never_had_an_owner) {
  EXPECT_EQ(claim_as_seen(row_), Outcome::applied);
  EXPECT_EQ(row_.text(attribute::owner), "me#1");
  EXPECT_EQ(row_.number(attribute::epoch), 1);
  EXPECT_EQ(row_.text(attribute::attempt), "00000000000000010000000000000002");
  EXPECT_EQ(row_.number(attribute::expires_at), 1'700'000'020'000);
}

TEST_F(ClaimOf, a_row_without_any_lease_attribute_as_other_programs_write_it) {
  row_.attributes.erase("lease_expires_at_ms");
  EXPECT_EQ(claim_as_seen(row_), Outcome::applied);
}

TEST_F(ClaimOf, a_row_that_a_plain_worker_released_but_left_its_name_on) {
  set(attribute::owner, "plain");
  EXPECT_EQ(claim_as_seen(row_), Outcome::applied);
}

TEST_F(ClaimOf, an_owner_whose_lease_ran_out_before_the_skew) {
  set(attribute::owner, "other");
  set(attribute::epoch, 4);
  set(attribute::expires_at, std::int64_t{(noon - 1s).time_since_epoch().count()});
  EXPECT_EQ(claim_as_seen(row_), Outcome::applied);
  EXPECT_EQ(row_.number(attribute::epoch), 5);
}

TEST_F(ClaimOf, an_owner_within_the_skew_is_refused) {
  set(attribute::owner, "other");
  set(attribute::epoch, 4);
  set(attribute::expires_at, std::int64_t{(noon - 999ms).time_since_epoch().count()});
  EXPECT_EQ(claim_as_seen(row_), Outcome::conflict);
}

TEST_F(ClaimOf, a_row_that_is_to_be_stopped_is_refused) {
  const Row seen = row_;
  set(attribute::desired_state, state::stopped);
  EXPECT_EQ(claim_as_seen(seen), Outcome::conflict);
}

TEST_F(ClaimOf, a_row_that_is_gone_creates_nothing) {
  const Row seen = row_;
  table_.erase("CONN#a");
  EXPECT_EQ(claim_as_seen(seen), Outcome::conflict);
  EXPECT_EQ(table_.find("CONN#a"), nullptr);
}

TEST_F(ClaimOf, a_row_that_changed_since_it_was_seen_is_refused_whatever_changed) {
  set(attribute::owner, "other");
  set(attribute::epoch, 4);
  set(attribute::expires_at, std::int64_t{1000});
  const Row seen = row_;
  const std::pair<std::string_view, Value> changes[] = {
      {attribute::epoch, 5}, {attribute::owner, "plain"}, {attribute::expires_at, std::int64_t{2000}}};
  for (const auto& [name, value] : changes) {
    row_ = seen;
    set(name, value);
    EXPECT_EQ(claim_as_seen(seen), Outcome::conflict) << name;
  }
  row_ = seen;
  EXPECT_EQ(claim_as_seen(seen), Outcome::applied);
}

TEST_F(ClaimOf, a_row_that_a_plain_worker_took_meanwhile_is_refused_although_the_epoch_is_as_it_was) {
  const Row seen = row_;
  set(attribute::owner, "plain");
  set(attribute::expires_at, std::int64_t{(noon + 20s).time_since_epoch().count()});
  EXPECT_EQ(claim_as_seen(seen), Outcome::conflict);
}

TEST_F(ClaimOf, takes_away_the_time_of_the_last_release) {
  set(attribute::released_at, std::int64_t{5});
  EXPECT_EQ(candidate_from(row_)->released_at, WallTime(5ms));
  EXPECT_EQ(claim_as_seen(row_), Outcome::applied);
  EXPECT_EQ(row_.find(attribute::released_at), nullptr);
}

TEST_F(ClaimOf, s10_a_row_in_which_others_wrote_null_where_we_write_nothing) {
  set(attribute::owner, nullptr);
  set(attribute::epoch, nullptr);
  set(attribute::expires_at, nullptr);
  EXPECT_EQ(claim_as_seen(row_), Outcome::applied);
  EXPECT_EQ(row_.text(attribute::owner), "me#1");
  EXPECT_EQ(row_.number(attribute::epoch), 1);
}

TEST_F(ClaimOf, s10_whatever_is_a_candidate_can_be_claimed_as_it_was_seen_and_whatever_is_none_is_called_damaged) {
  const std::vector<Value> values{nullptr, true, 0,  1,   -1,  INT64_MAX,     INT64_MIN,
                                  1.0,     1.5,  "", "7", "w", Value::List{}, Value::Map{}};
  for (const auto name : {attribute::owner, attribute::epoch}) {
    for (const Value& value : values) {
      SCOPED_TRACE(std::string(name) + " of kind " + std::to_string(value.data().index()));
      Row& row = table_.add("CONN#a");
      row.attributes[std::string(name)] = value;
      const auto candidate = candidate_from(row);
      EXPECT_NE(candidate.has_value(), damage_of(row).has_value());
      if (candidate) {
        EXPECT_EQ(claim_as_seen(row), Outcome::applied);
      }
    }
  }
}

TEST(Damage, s10_is_told_in_words) {
  test::LeaseTable table;
  Row& row = table.add("CONN#a");
  EXPECT_EQ(damage_of(row), std::nullopt);
  row.attributes["lease_epoch"] = Value("7");
  EXPECT_EQ(damage_of(row), "lease_epoch is a text: 7");
  row.attributes["lease_epoch"] = Value(7.5);
  EXPECT_EQ(damage_of(row), "lease_epoch is the float 7.5");
  row.attributes["lease_epoch"] = Value(std::int64_t{INT64_MAX});
  EXPECT_EQ(damage_of(row), "lease_epoch is the number 9223372036854775807, which has no successor");
  row.attributes["lease_owner"] = Value(5);
  EXPECT_EQ(damage_of(row), "lease_owner is the number 5");
}

TEST(WholeNumber, is_read_from_what_other_programs_write) {
  EXPECT_EQ(whole_number(100), 100);
  EXPECT_EQ(whole_number(100.0), 100);
  EXPECT_EQ(whole_number("100"), 100);
  EXPECT_EQ(whole_number("-1"), -1);
  EXPECT_EQ(whole_number(100.5), std::nullopt);
  EXPECT_EQ(whole_number(100.5, Fraction::rounded_up), 101);
  EXPECT_EQ(whole_number(1e16), std::nullopt) << "no longer exact";
  EXPECT_EQ(whole_number(std::numeric_limits<double>::infinity()), std::nullopt);
  for (const char* text : {"", " 1", "1 ", "1.0", "0x1", "9223372036854775808", "seven"}) {
    EXPECT_EQ(whole_number(text), std::nullopt) << text;
  }
  EXPECT_EQ(whole_number(nullptr), std::nullopt);
  EXPECT_EQ(whole_number(true), std::nullopt);
}

TEST(Candidate, is_only_what_shall_run_and_has_an_epoch_with_a_successor) {
  test::LeaseTable table;
  Row& row = table.add("CONN#a");
  EXPECT_TRUE(candidate_from(row));
  row.attributes["lease_epoch"] = Value(std::int64_t{INT64_MAX});
  EXPECT_FALSE(candidate_from(row));
  row.attributes["lease_epoch"] = Value(-1);
  EXPECT_FALSE(candidate_from(row));
  row.attributes["lease_epoch"] = Value(3);
  row.attributes["desired_state"] = Value(state::removed);
  EXPECT_FALSE(candidate_from(row));
}

TEST(Candidate, with_an_absurd_expiry_is_never_claimable_rather_than_long_ago) {
  EXPECT_EQ(claimable_from("other", WallTime::max(), 1s), WallTime::max());
  EXPECT_EQ(claimable_from("other", noon, 1s), noon + 1s);
  EXPECT_EQ(claimable_from("", noon, 1s), WallTime::min());
  EXPECT_EQ(claimable_from("other", WallTime{}, 1s), WallTime::min());
}

}  // namespace
}  // namespace holdfast
