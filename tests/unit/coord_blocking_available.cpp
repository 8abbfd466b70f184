// AvailableCoordinator, on a file whose disk may not be there.
#include <gmock/gmock.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <variant>

#include "holdfast/holdfast.hpp"
#include "support/temporary_folder.hpp"

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::HasSubstr;
using Kind = Failure::Kind;

/// A table in a folder of its own, which can be away, as a disk that is not mounted: the place is there, and empty.
class DiskTest : public testing::Test {
 protected:
  DiskTest() { std::filesystem::create_directory(folder_.file("disk")); }

  [[nodiscard]] CoordinatorOptions options(bool make_table) const {
    return {.store = "sqlite:" + folder_.file("disk/shop.db"), .make_table = make_table, .patience = 500ms};
  }
  std::unique_ptr<AvailableCoordinator> open(bool make_table = true, AvailableMode mode = {}) {
    mode.journal = folder_.file("shop.journal");
    auto opened = AvailableCoordinator::open(options(make_table), std::move(mode));
    EXPECT_TRUE(opened) << opened.error().detail;
    return opened ? *std::move(opened) : nullptr;
  }
  void take_away() {
    std::filesystem::rename(folder_.file("disk"), folder_.file("elsewhere"));
    std::filesystem::create_directory(folder_.file("disk"));
  }
  void bring_back() {
    ASSERT_TRUE(std::filesystem::is_empty(folder_.file("disk"))) << "another table was made in its place";
    std::filesystem::remove(folder_.file("disk"));
    std::filesystem::rename(folder_.file("elsewhere"), folder_.file("disk"));
  }
  [[nodiscard]] std::int64_t count(const std::string& key) const {
    return *(*Coordinator::open(options(false)))->number(AddOptions::To::counter, key);
  }

  test::TemporaryFolder folder_;
};

template <class T>
bool is_provisional(const Ended<Accepted<T>>& result) {
  EXPECT_TRUE(result) << result.error().error.detail;
  return result && std::holds_alternative<Provisional>(*result);
}

TEST_F(DiskTest, who_has_a_journal_makes_no_other_table_in_the_place_of_one_that_is_away) {
  for (const bool make_table : {true, false}) {
    const std::string key = make_table ? "made" : "not made";
    SCOPED_TRACE(key);
    ASSERT_TRUE(open()->add({.key = key, .delta = 1}, key + "1"));
    take_away();
    {
      const auto here = open(make_table);
      ASSERT_TRUE(here);
      const auto added = here->add({.key = key, .delta = 2}, key + "2");
      ASSERT_TRUE(is_provisional(added));
      EXPECT_THAT(std::get<Provisional>(*added).why, HasSubstr("is the disk that it is on there?"));
      EXPECT_TRUE(is_provisional(here->decide(key, "us", key + " decided")));
      EXPECT_TRUE(is_provisional(here->send({"mails", key, "hello", {}}, key + " sent")));
      EXPECT_EQ(here->set_aside(key, {{"shirt", 1}}, 48h).error().kind, Kind::unavailable);
      const auto report = here->reconcile();
      ASSERT_TRUE(report);
      EXPECT_TRUE(report->store_is_away);
      EXPECT_EQ(report->rejected, 0U);
      bring_back();
      EXPECT_TRUE(here->reconcile()->is_all()) << "it is found as soon as it is there";
    }
    EXPECT_EQ(count(key), 3);
  }
}

TEST_F(DiskTest, what_may_be_asked_for_has_its_bounds) {
  for (const Duration age : {Duration::zero(), Duration(24h * 366), Duration::max()}) {
    AvailableMode mode{.journal = folder_.file("shop.journal"), .max_age = age};
    const auto refused = AvailableCoordinator::open(options(true), mode);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::usage);
  }
  AvailableMode short_lived;
  short_lived.max_age = 1ms;
  const auto here = open(true, short_lived);
  for (const Duration ttl : {Duration(2ms), Duration(24h * 367), Duration::max()}) {
    EXPECT_EQ(here->set_aside("till", {{"shirt", 1}}, ttl).error().kind, Kind::rejected);
  }
}

// It ended the coordinator.
TEST_F(DiskTest, a_merge_that_throws_leaves_its_proposal_to_another_pass) {
  bool throws = true;
  AvailableMode mode;
  mode.merge = [&](const DecideWish&, const Decided&) {
    if (throws) throw std::runtime_error("no such person");
    return true;
  };
  const auto here = open(true, mode);
  take_away();
  ASSERT_TRUE(is_provisional(here->decide("k", "ours", "d")));
  ASSERT_TRUE(is_provisional(here->add({.key = "c", .delta = 1}, "a")));
  bring_back();
  ASSERT_TRUE((*Coordinator::open(options(false)))->decide("k", "theirs"));
  const auto report = here->reconcile();
  ASSERT_TRUE(report) << report.error().error.detail;
  EXPECT_EQ(report->confirmed, 1U) << "the other one";
  EXPECT_EQ(report->left, 1U);
  EXPECT_THAT(report->notes, Contains(HasSubstr("the merge threw: no such person")));
  throws = false;
  EXPECT_TRUE(here->reconcile()->is_all());
  EXPECT_EQ((*here->find("d"))->state, Intent::State::confirmed);
}

}  // namespace
}  // namespace holdfast
