// AvailableCoordinator: real threads, a real file, which may be locked, or on a disk that is not there.
#include <gmock/gmock.h>
#include <sqlite3.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "holdfast/holdfast.hpp"
#include "support/temporary_folder.hpp"

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using Kind = Failure::Kind;

// ---- A store that is away ----

/// While it lives nobody writes to this store.
class Locked {
 public:
  explicit Locked(const std::string& path) {
    EXPECT_EQ(sqlite3_open(path.c_str(), &database_), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(database_, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  }
  ~Locked() { sqlite3_close(database_); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  sqlite3* database_ = nullptr;
};

template <class T>
std::optional<Kind> kind_of(const Ended<T>& ended) {
  if (ended) return std::nullopt;
  return ended.error().kind;
}

class AvailableCoordinatorTest : public testing::Test {
 protected:
  void SetUp() override { coordinator_ = *Coordinator::open({.store = url(), .patience = 30s}); }  // makes the table
  [[nodiscard]] std::string file(const std::string& name) const { return folder_.file(name); }
  [[nodiscard]] std::string url() const { return "sqlite:" + file("agreed.db"); }
  std::unique_ptr<AvailableCoordinator> available(const AvailableMode& mode) {
    auto opened = AvailableCoordinator::open({.store = url(), .make_table = false, .patience = 200ms}, mode);
    EXPECT_TRUE(opened) << opened.error().detail;
    return *std::move(opened);
  }
  const test::TemporaryFolder folder_;
  std::unique_ptr<Coordinator> coordinator_;
};

TEST_F(AvailableCoordinatorTest, what_is_accepted_while_the_store_is_away_is_settled_when_it_is_there) {
  std::vector<std::string> compensated;
  AvailableMode mode{.journal = file("shop.journal")};
  mode.compensate = [&](const Intent& rejected, bool is_repeat) -> Result<void> {
    EXPECT_FALSE(is_repeat);
    compensated.push_back(rejected.ticket);
    return {};
  };
  const auto here = available(mode);
  ASSERT_TRUE(coordinator_->add({.key = "m", .delta = 1, .op_id = "one"}));
  {
    const Locked away(file("agreed.db"));
    const auto added = here->add({.key = "n", .delta = 2}, "a1");
    ASSERT_TRUE(added) << added.error().error.detail;
    ASSERT_TRUE(std::holds_alternative<Provisional>(*added));
    EXPECT_EQ(std::get<Provisional>(*added).ticket, "a1");
    EXPECT_TRUE(std::holds_alternative<Provisional>(*here->add({.key = "m", .delta = -1, .floor = 0}, "a2")));
    EXPECT_TRUE(std::holds_alternative<Provisional>(*here->send({"mails", "u", "hello", {}}, "s1")));
    EXPECT_TRUE(std::holds_alternative<Provisional>(*here->decide("other", "us", "d1")));
    EXPECT_EQ(kind_of(here->sell({{"shirt", 1}})), Kind::refused) << "nothing was set aside";
    EXPECT_FALSE((*here->find("a1"))->is_settled());
  }
  ASSERT_TRUE(coordinator_->add({.key = "m", .delta = -1, .op_id = "somebody was faster"}));
  const auto report = here->reconcile();
  ASSERT_TRUE(report) << report.error().error.detail;
  EXPECT_EQ(report->confirmed, 3U);
  EXPECT_EQ(report->rejected, 1U);
  EXPECT_THAT(compensated, ElementsAre("a2"));
  EXPECT_EQ((*here->find("a2"))->state, Intent::State::rejected);
  EXPECT_EQ((*here->find("d1"))->state, Intent::State::confirmed);
  EXPECT_FALSE(*here->find("never"));
  EXPECT_EQ(*coordinator_->number(AddOptions::To::counter, "n"), 2);

  const auto now = here->add({.key = "n", .delta = 1}, "a3");
  ASSERT_TRUE(now && std::holds_alternative<Committed<Added>>(*now));
  EXPECT_EQ(std::get<Committed<Added>>(*now).value.value, 3);
}

TEST_F(AvailableCoordinatorTest, a_quota_is_sold_and_what_is_left_goes_back) {
  ASSERT_TRUE(coordinator_->add({.key = "shirt", .delta = 5, .op_id = "s", .to = AddOptions::To::stock}));
  const auto here = available({.journal = file("shop.journal"), .max_age = 1h});
  EXPECT_EQ(kind_of(here->set_aside("till", {{"shirt", 3}}, 30min)), Kind::rejected) << "shorter than max_age";
  Ended<Quota> quota = here->set_aside("till", {{"shirt", 3}}, 24h);
  ASSERT_TRUE(quota) << quota.error().error.detail;
  EXPECT_TRUE(here->sell({{"shirt", 2}}, "order-1"));
  EXPECT_EQ(kind_of(here->sell({{"shirt", 2}}, "order-2")), Kind::refused);
  EXPECT_TRUE(*here->give_back("till"));
  EXPECT_FALSE(*here->give_back("none"));
  EXPECT_TRUE(here->reconcile()->is_all());
  EXPECT_EQ(*coordinator_->number(AddOptions::To::stock, "shirt"), 3);
}

TEST_F(AvailableCoordinatorTest, a_compensation_runs_on_its_callers_thread_and_uses_the_coordinator) {
  AvailableCoordinator* to_use = nullptr;
  std::vector<std::string> compensated;
  AvailableMode mode{.journal = file("shop.journal")};
  mode.compensate = [&, caller = std::this_thread::get_id()](const Intent& rejected, bool) -> Result<void> {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_TRUE(to_use->add({.key = "sorry", .delta = 1}, "sorry-" + rejected.ticket));
    EXPECT_EQ(kind_of(to_use->reconcile()), Kind::busy);
    compensated.push_back(rejected.ticket);
    return {};
  };
  const auto here = available(mode);
  to_use = here.get();
  ASSERT_TRUE(coordinator_->add({.key = "n", .delta = 2, .op_id = "two"}));
  {
    const Locked away(file("agreed.db"));
    ASSERT_TRUE(here->add({.key = "n", .delta = -2, .floor = 0}, "a1"));
    ASSERT_TRUE(here->add({.key = "n", .delta = -1, .floor = 0}, "a2"));
  }
  ASSERT_TRUE(coordinator_->add({.key = "n", .delta = -2, .op_id = "somebody was faster"}));
  const auto report = here->reconcile();
  ASSERT_TRUE(report) << report.error().error.detail;
  EXPECT_EQ(report->compensated, 2U);
  EXPECT_THAT(compensated, ElementsAre("a1", "a2"));
  EXPECT_EQ(*coordinator_->number(AddOptions::To::counter, "sorry"), 2);
}

TEST_F(AvailableCoordinatorTest, a_compensation_that_throws_stays_due) {
  AvailableMode mode{.journal = file("shop.journal")};
  mode.compensate = [](const Intent&, bool) -> Result<void> { throw std::runtime_error("mail is down"); };
  const auto here = available(mode);
  ASSERT_TRUE(coordinator_->add({.key = "n", .delta = 1, .op_id = "one"}));
  {
    const Locked away(file("agreed.db"));
    ASSERT_TRUE(here->add({.key = "n", .delta = -1, .floor = 0}, "a1"));
  }
  ASSERT_TRUE(coordinator_->add({.key = "n", .delta = -1, .op_id = "somebody was faster"}));
  const auto report = here->reconcile();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->left, 1U) << "its compensation is due";
  ASSERT_FALSE(report->notes.empty());
  EXPECT_THAT(report->notes.front(), HasSubstr("mail is down"));
}

// ---- A disk that is away ----

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
