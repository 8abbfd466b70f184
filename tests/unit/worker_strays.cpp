// What a worker says about rows that only people can mend.
#include "worker/strays.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/worker_town.hpp"

namespace holdfast::worker {
namespace {

using namespace std::chrono_literals;
using test::FaultyStore;
using test::Town;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

struct StraysTest : testing::Test {
  std::vector<std::string> lines;
  runtime::Log log{runtime::LogLevel::info,
                   [this](runtime::LogLevel, std::string_view line) { lines.emplace_back(line); }};
  Strays strays{log};
};

TEST_F(StraysTest, f20_are_told_when_they_appear_when_they_grow_and_when_they_are_over) {
  for (int i = 0; i < 5; ++i) strays.unclaimable({2, "CONN#a", "lease_epoch is a text: 7"});
  EXPECT_THAT(lines, ElementsAre(AllOf(HasSubstr("2 connections"), HasSubstr("CONN#a"), HasSubstr("a text: 7"),
                                       HasSubstr("conn start"))));
  strays.unclaimable({3, "CONN#a", "lease_epoch is a text: 7"});
  EXPECT_EQ(lines.size(), 2U);
  strays.unclaimable({1, "CONN#a", "lease_epoch is a text: 7"});
  EXPECT_EQ(lines.size(), 2U);
  strays.unclaimable({});
  strays.unclaimable({});
  EXPECT_EQ(lines.size(), 3U);
}

TEST_F(StraysTest, f20_leases_far_ahead_are_told_once_with_what_to_do) {
  for (int i = 0; i < 5; ++i) strays.far_ahead({1, false, "CONN#dead", "gone#1", 24h * 3650});
  EXPECT_THAT(lines, ElementsAre(AllOf(HasSubstr("CONN#dead"), HasSubstr("gone#1"), HasSubstr("3650 days"),
                                       HasSubstr("conn release"))));
}

TEST_F(StraysTest, f10_a_row_that_is_nobodys_and_that_no_worker_looks_at_is_told_with_what_repairs_it) {
  strays.far_ahead({1, false, "CONN#lost", "", 24h * 3650});
  EXPECT_THAT(lines, ElementsAre(AllOf(HasSubstr("CONN#lost is nobody's"), HasSubstr("conn start"))));
}

TEST_F(StraysTest, f20_rows_that_cannot_be_read_are_told_once_each_and_not_without_end) {
  for (int look = 0; look < 3; ++look) {
    strays.unreadable({Code::corrupt, "row a"});
    strays.unreadable({});
    strays.unreadable({Code::corrupt, "row b"});
  }
  EXPECT_EQ(lines.size(), 2U);
  for (int i = 0; i < 100; ++i) strays.unreadable({Code::corrupt, std::to_string(i)});
  EXPECT_EQ(lines.size(), 10U);
}

TEST_F(StraysTest, a_key_that_is_no_text_is_shown_harmlessly) {
  strays.unclaimable({1, "CONN#\xff\n", "why"});
  EXPECT_THAT(lines, ElementsAre(HasSubstr("CONN#??")));
}

TEST(Faults, f10_rows_with_nobody_as_null_are_taken_like_any_other) {
  Town town(3s);
  town.add_many(50);
  for (int i = 0; i < 50; ++i) town.edit("c" + std::to_string(i), attribute::owner, nullptr);
  Town::Citizen& worker = town.join("w");
  EXPECT_TRUE(town.all_flow(50, 10s));
  EXPECT_EQ(worker.worker->report().conflicts, 0);
}

TEST(Faults, f10_rows_that_nobody_can_claim_are_told_of_and_others_are_taken_all_the_same) {
  Town town(3s);
  town.add_many(1);
  for (int i = 0; i < 1'100; ++i) {
    const std::string id = "bad" + std::to_string(i);
    town.add(id);
    town.edit(id, attribute::epoch, "7");
  }
  Town::Citizen& worker = town.join("w");
  EXPECT_TRUE(town.all_flow(1, 10s));
  town.nodes.advance(30s);
  EXPECT_EQ(worker.worker->report().conflicts, 0);
  EXPECT_EQ(worker.said("1100 connections cannot be claimed"), 1U);
}

TEST(Faults, f10_leases_that_end_far_in_the_future_are_told_of) {
  Town town(3s);
  town.add("c0");
  town.edit("c0", attribute::owner, "gone#1");
  town.edit("c0", attribute::expires_at, std::int64_t{1} << 60U);
  Town::Citizen& worker = town.join("w");
  town.nodes.advance(30s);
  EXPECT_EQ(worker.said("CONN#c0 is held by gone#1"), 1U);
}

// Somebody has taken a dead owner out of the row by hand, and has left its expiry.
TEST(Faults, f10_a_connection_of_nobody_whose_expiry_lies_far_in_the_future_is_told_of) {
  Town town(3s);
  town.add("c0");
  town.edit("c0", attribute::expires_at, std::int64_t{1} << 60U);
  Town::Citizen& worker = town.join("w");
  town.nodes.advance(30s);
  EXPECT_EQ(worker.said("CONN#c0 is nobody's"), 1U);
}

// As without the permission to write: it is the store that is told of, once, and no row is at fault.
TEST(Faults, f20_a_store_that_rejects_every_claim_is_no_reason_to_repair_connections) {
  Town town(3s);
  town.add_many(20);
  Town::Citizen& worker = town.join("w");
  worker.store.judge = [](const Update* update) {
    return update != nullptr ? FaultyStore::Fault::rejected : FaultyStore::Fault::none;
  };
  town.nodes.advance(30s);
  EXPECT_EQ(worker.said("cannot be claimed"), 0U);
  EXPECT_EQ(worker.said("store: there is no such table"), 1U);
  worker.store.judge = nullptr;
  EXPECT_TRUE(town.all_flow(20, 10s));
}

TEST(Faults, f15_a_claim_that_the_store_rejects_for_its_row_is_no_outage_and_holds_up_nobody) {
  Town town(3s);
  town.add_many(20);
  for (int i = 0; i < 60; ++i) town.add("bad" + std::to_string(i));
  Town::Citizen& worker = town.join("w");
  worker.store.judge = [](const Update* update) {
    return update != nullptr && update->key.starts_with("CONN#bad") ? FaultyStore::Fault::invalid
                                                                    : FaultyStore::Fault::none;
  };
  EXPECT_TRUE(town.all_flow(20, 2s));
  town.nodes.advance(10s);
  EXPECT_GE(worker.said("60 connections cannot be claimed"), 1U);
  EXPECT_EQ(worker.said("store: the key is no UTF-8"), 0U);
}

}  // namespace
}  // namespace holdfast::worker
