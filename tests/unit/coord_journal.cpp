// The journal as a file: what is told to be in it stays, and what is wrong with it is said.
#include "coord/journal.hpp"

#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "store/sqlite/connection.hpp"
#include "support/no_room_in_files.hpp"
#include "support/temporary_folder.hpp"

namespace holdfast::coord {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr WallTime t0{1'700'000'000'000ms};

class JournalTest : public testing::Test {
 protected:
  [[nodiscard]] JournalOptions options() const {
    JournalOptions options;
    options.path = path_;
    options.store = "sqlite:/shop.db";
    return options;
  }
  [[nodiscard]] std::unique_ptr<Journal> open() const {
    auto journal = Journal::open(options());
    EXPECT_TRUE(journal) << journal.error().detail;
    return journal ? *std::move(journal) : nullptr;
  }
  static Intent draft(Wish wish, std::string ticket) {
    Intent intent;
    intent.ticket = std::move(ticket);
    intent.wish = std::move(wish);
    intent.accepted_at = t0;
    intent.expires_at = t0 + 24h;
    return intent;
  }
  static Ended<Journal::Appended> add(Journal& journal, const std::string& ticket, std::int64_t delta = 1) {
    return journal.append(draft(AddWish{"c", delta, {}}, ticket), limits, t0);
  }
  static std::vector<std::string> tickets(Journal& journal, Journal::Which which = Journal::Which::all) {
    std::vector<std::string> all;
    const auto intents = journal.list(which, 0, 1000);
    EXPECT_TRUE(intents);
    for (const Intent& each : *intents) all.push_back(each.ticket);
    return all;
  }
  void run_sql(const char* sql) const {
    auto connection = store::Connection::open(path_, false);
    ASSERT_TRUE(connection);
    ASSERT_TRUE(connection->run(sql)) << sql;
  }

  static constexpr Journal::Limits limits{3, 1h};
  test::TemporaryFolder folder_;
  const std::string path_ = folder_.file("journal");
};

TEST_F(JournalTest, what_was_appended_is_there_in_order_when_it_is_opened_again) {
  {
    const auto journal = open();
    ASSERT_TRUE(add(*journal, "b"));
    ASSERT_TRUE(journal->append(draft(SendWish{"q", "g", "\"body\"\n", 5ms}, "a"), limits, t0));
  }
  const auto journal = open();
  EXPECT_THAT(tickets(*journal), testing::ElementsAre("b", "a"));
  EXPECT_EQ((*journal->find("a"))->wish, Wish(SendWish{"q", "g", "\"body\"\n", 5ms}));
  EXPECT_EQ((*journal->find("a"))->expires_at, t0 + 24h);
  EXPECT_FALSE(*journal->find("c"));
}

TEST_F(JournalTest, the_same_ticket_is_the_same_intent_and_another_wish_under_it_is_a_mismatch) {
  const auto journal = open();
  const auto first = add(*journal, "a");
  const auto again = add(*journal, "a");
  ASSERT_TRUE(first && again);
  EXPECT_TRUE(again->was_there);
  EXPECT_EQ(again->intent, first->intent);
  EXPECT_EQ(add(*journal, "a", 2).error().kind, Failure::Kind::mismatch);
}

TEST_F(JournalTest, no_more_is_open_than_its_limit_and_what_is_settled_makes_room) {
  const auto journal = open();
  for (const char* ticket : {"a", "b", "c"}) ASSERT_TRUE(add(*journal, ticket));
  EXPECT_EQ(add(*journal, "d").error().kind, Failure::Kind::refused);
  Intent intent = **journal->find("a");
  begin(intent, t0);
  confirm(intent, "", t0);
  ASSERT_TRUE(journal->put(intent));
  EXPECT_TRUE(add(*journal, "d"));
}

TEST_F(JournalTest, the_first_proposal_wins_here_too) {
  const auto journal = open();
  ASSERT_TRUE(journal->append(draft(DecideWish{"k", "x", "me"}, "a"), limits, t0));
  const auto second = journal->append(draft(DecideWish{"k", "y", "you"}, "b"), limits, t0);
  ASSERT_TRUE(second);
  EXPECT_TRUE(second->was_there);
  EXPECT_EQ(second->intent.ticket, "a");
}

TEST_F(JournalTest, a_quota_is_drawn_on_and_what_is_rejected_goes_back_once) {
  const auto journal = open();
  const Wish wish = DrawWish{{{"hat", 2}}, ""};
  EXPECT_EQ(journal->append(draft(wish, "a"), limits, t0).error().kind, Failure::Kind::refused);
  ASSERT_TRUE(journal->ask_quota({"q", {{"hat", 3}}, {{"hat", 3}}, t0 + 2h, Quota::State::asked}));
  EXPECT_EQ(journal->append(draft(wish, "a"), limits, t0).error().kind, Failure::Kind::refused)
      << "not set aside yet";
  ASSERT_TRUE(*journal->open_quota("q", t0 + 2h));
  EXPECT_FALSE(*journal->open_quota("q", t0 + 3h));
  auto drawn = journal->append(draft(wish, "a"), limits, t0);
  ASSERT_TRUE(drawn);
  EXPECT_EQ(std::get<DrawWish>(drawn->intent.wish).quota, "q");
  EXPECT_EQ(journal->append(draft(wish, "b"), limits, t0).error().kind, Failure::Kind::refused);
  EXPECT_TRUE(journal->append(draft(wish, "a"), limits, t0)->was_there);
  reject(drawn->intent, "late", t0);
  ASSERT_TRUE(journal->put(drawn->intent));
  begin_compensation(drawn->intent);
  ASSERT_TRUE(journal->put(drawn->intent));
  EXPECT_EQ(journal->quotas()->front().left, (Basket{{"hat", 3}}));
}

TEST_F(JournalTest, a_sale_under_the_name_of_a_quota_is_not_accepted) {
  const auto journal = open();
  for (const char* id : {"q", "other"}) {
    ASSERT_TRUE(journal->ask_quota({id, {{"hat", 3}}, {{"hat", 3}}, t0 + 2h, Quota::State::asked}));
    ASSERT_TRUE(*journal->open_quota(id, t0 + 2h));
  }
  const auto sold = journal->append(draft(DrawWish{{{"hat", 2}}, ""}, "q"), limits, t0);
  ASSERT_FALSE(sold) << "in the store it would be that quota's own reservation";
  EXPECT_EQ(sold.error().kind, Failure::Kind::mismatch);
  const auto quotas = journal->quotas();
  for (const Quota& quota : *quotas) EXPECT_EQ(quota.left, quota.basket);
}

TEST_F(JournalTest, what_is_over_is_forgotten_after_a_while_and_nothing_else) {
  const auto journal = open();
  for (const char* ticket : {"open", "confirmed", "rejected"}) ASSERT_TRUE(add(*journal, ticket));
  Intent confirmed = **journal->find("confirmed");
  begin(confirmed, t0);
  confirm(confirmed, "", t0);
  Intent rejected = **journal->find("rejected");
  reject(rejected, "", t0);
  ASSERT_TRUE(journal->put(confirmed) && journal->put(rejected));
  EXPECT_EQ(*journal->forget(t0), 0U);
  EXPECT_EQ(*journal->forget(t0 + 1ms), 1U);
  EXPECT_THAT(tickets(*journal), testing::ElementsAre("open", "rejected"));
  EXPECT_EQ(*journal->count_open(), 2U);
}

TEST_F(JournalTest, a_journal_for_another_store_is_refused) {
  ASSERT_TRUE(open());
  JournalOptions other = options();
  other.store = "sqlite:/other.db";
  const auto refused = Journal::open(other);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::usage);
  EXPECT_THAT(refused.error().detail, HasSubstr("sqlite:/shop.db"));
  other.store.clear();
  EXPECT_TRUE(Journal::open(other)) << "to look at it";
}

// Found by an attacker: accepted for a table in one region, it was carried out in that of another.
TEST_F(JournalTest, the_store_it_is_for_is_what_its_name_comes_to) {
  const auto with = [&](const std::string& name, std::map<std::string, std::string> place) {
    JournalOptions all = options();
    all.store = name;
    all.place = std::move(place);
    return Journal::open(all);
  };
  const std::string table = "dynamodb://jobs";
  ASSERT_TRUE(with(table, {{"table", table}}));
  ASSERT_TRUE(with(table, {{"table", table}, {"region", "eu-west-1"}, {"endpoint", "https://a"}}));
  EXPECT_TRUE(
      with(table + "?region=eu-west-1", {{"table", table}, {"region", "eu-west-1"}, {"endpoint", "https://a"}}));
  EXPECT_TRUE(with(table, {{"table", table}})) << "as far as it is known";
  EXPECT_EQ(with(table, {{"table", table}, {"region", "eu-west-2"}, {"endpoint", "https://a"}}).error().code,
            Code::usage);
  const auto refused = with(table, {{"table", table}, {"region", "eu-west-1"}, {"endpoint", "https://b"}});
  EXPECT_THAT(refused.error().detail,
              HasSubstr("is for the store with the endpoint https://a, not for that with https://b"));
  EXPECT_FALSE(with("dynamodb://other", {{"table", "dynamodb://other"}}));
}

TEST_F(JournalTest, one_that_knows_no_more_than_its_stores_name_learns_what_that_comes_to) {
  ASSERT_TRUE(open());
  run_sql("DROP TABLE IF EXISTS facts");
  JournalOptions other = options();
  other.store = "sqlite:/link.db";
  other.place = {{"table", "sqlite:/real.db"}};
  EXPECT_FALSE(Journal::open(other));
  JournalOptions same = options();
  same.place = {{"table", "sqlite:/real.db"}};
  EXPECT_TRUE(Journal::open(same));
  EXPECT_TRUE(Journal::open(other)) << "it is the same file";
}

TEST_F(JournalTest, what_is_no_journal_is_left_alone) {
  std::ofstream(path_)
      << "something else, which is long enough to be taken for a header of a file of some kind or so";
  EXPECT_EQ(Journal::open(options()).error().code, Code::corrupt);
  std::filesystem::remove(path_);
  ASSERT_TRUE(store::Connection::open(path_, true)->run("CREATE TABLE t(x)"));
  EXPECT_EQ(Journal::open(options()).error().code, Code::usage);
  std::filesystem::remove(path_);
  JournalOptions looking = options();
  looking.create = false;
  EXPECT_EQ(Journal::open(looking).error().code, Code::not_found);
}

TEST_F(JournalTest, a_newer_format_is_refused) {
  ASSERT_TRUE(open());
  run_sql("PRAGMA user_version = 2");
  EXPECT_THAT(Journal::open(options()).error().detail, HasSubstr("newer"));
}

TEST_F(JournalTest, a_damaged_file_and_a_damaged_entry_are_told) {
  {
    const auto journal = open();
    ASSERT_TRUE(add(*journal, "a"));
  }
  run_sql("UPDATE intents SET state = 'confirmed', compensation = 'due'");
  EXPECT_EQ(open()->find("a").error().error.code, Code::corrupt);
  EXPECT_EQ(open()->find("a").error().kind, Failure::Kind::rejected) << "to try again does not help";
  {
    std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(4096);
    file << std::string(4096 * 4, 'x');
  }
  const auto damaged = Journal::open(options());
  ASSERT_FALSE(damaged);
  EXPECT_EQ(damaged.error().code, Code::corrupt) << damaged.error().detail;
}

TEST_F(JournalTest, a_full_disk_is_told_and_loses_nothing) {
  JournalOptions small = options();
  small.pages_max = 24;
  auto journal = Journal::open(small);
  ASSERT_TRUE(journal) << journal.error().detail;
  const Journal::Limits many{1000, 1h};
  int accepted = 0;
  Ended<Journal::Appended> last;
  for (; accepted < 1000; ++accepted) {
    last = (*journal)->append(draft(SendWish{"q", "g", std::string(3000, 'x'), 0ms}, std::to_string(accepted)), many,
                              t0);
    if (!last) break;
  }
  ASSERT_FALSE(last);
  EXPECT_EQ(last.error().kind, Failure::Kind::unavailable);
  EXPECT_THAT(last.error().error.detail, HasSubstr("free some space"));
  EXPECT_EQ(tickets(**journal).size(), static_cast<std::size_t>(accepted));
}

// Told as unavailable, which says that nothing happened.
TEST_F(JournalTest, s5_of_a_commit_that_fails_it_is_unknown_whether_it_happened) {
  JournalOptions hooked = options();
  std::optional<test::NoRoomInFiles> no_room;
  hooked.at_moment = [&](JournalOptions::Moment moment) {
    if (moment == JournalOptions::Moment::before_commit) no_room.emplace();
  };
  const auto kind = [&](const auto& call) {
    const auto result = call();
    no_room.reset();
    EXPECT_FALSE(result);
    return result ? Failure::Kind::busy : result.error().kind;
  };
  ASSERT_TRUE(add(*open(), "a"));
  hooked.store.clear();
  const auto journal = *Journal::open(hooked);
  Intent intent = **journal->find("a");
  begin(intent, t0);
  EXPECT_EQ(kind([&] { return add(*journal, "b"); }), Failure::Kind::unknown);
  EXPECT_EQ(kind([&] { return journal->put(intent); }), Failure::Kind::unknown);
  EXPECT_EQ(kind([&] {
              return journal->ask_quota({"q", {{"hat", 1}}, {{"hat", 1}}, t0, Quota::State::asked});
            }),
            Failure::Kind::unknown);
}

TEST_F(JournalTest, one_that_is_removed_while_it_is_used_accepts_nothing_more) {
  const auto journal = open();
  ASSERT_TRUE(add(*journal, "a"));
  std::filesystem::remove(path_);
  const auto refused = add(*journal, "b");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().error.detail, HasSubstr("removed"));
}

TEST_F(JournalTest, one_reconciles_while_others_append) {
  const auto first = open();
  const auto second = open();
  EXPECT_TRUE(*first->lock());
  EXPECT_FALSE(*second->lock());
  EXPECT_TRUE(add(*second, "a"));
  first->unlock();
  EXPECT_TRUE(*second->lock());
}

// Found by an attacker: two of them made good for the same ticket at once.
TEST_F(JournalTest, one_reconciles_by_whatever_path_it_is_reached) {
  const auto first = open();
  JournalOptions linked = options();
  linked.path = folder_.file("link");
  std::filesystem::create_symlink(path_, linked.path);
  const auto second = Journal::open(linked);
  ASSERT_TRUE(second) << second.error().detail;
  ASSERT_TRUE(*first->lock());
  EXPECT_FALSE(*(*second)->lock());
  first->unlock();
  EXPECT_TRUE(*(*second)->lock());
}

TEST_F(JournalTest, each_has_an_identity_that_stays) {
  const std::string id = *open()->identity();
  EXPECT_EQ(id.size(), 32U);
  EXPECT_EQ(*open()->identity(), id);
  std::filesystem::remove(path_);
  EXPECT_NE(*open()->identity(), id);
}

TEST_F(JournalTest, processes_that_append_at_once_lose_nothing_and_draw_no_more_than_there_is) {
  constexpr int processes = 4;
  constexpr int each = 10;
  {
    const auto journal = open();
    ASSERT_TRUE(journal->ask_quota({"q", {{"hat", 25}}, {{"hat", 25}}, t0 + 2h, Quota::State::asked}));
    ASSERT_TRUE(*journal->open_quota("q", t0 + 2h));
  }
  std::vector<pid_t> children;
  for (int process = 0; process < processes; ++process) {
    const pid_t child = ::fork();
    if (child == 0) {
      const auto journal = open();
      for (int i = 0; journal && i < each; ++i) {
        const auto drawn = journal->append(
            draft(DrawWish{{{"hat", 1}}, ""}, std::to_string(process) + "-" + std::to_string(i)), {1000, 1h}, t0);
        if (!drawn && drawn.error().kind != Failure::Kind::refused) ::_exit(1);
      }
      ::_exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  const auto journal = open();
  EXPECT_EQ(tickets(*journal).size(), 25U);
  EXPECT_TRUE(journal->quotas()->front().left.empty());
}

}  // namespace
}  // namespace holdfast::coord
