// A process in available mode that is killed at every point: before and after each commit to its journal, each
// request to the store, each compensation. Whoever starts it again finds everything as if it had never been killed.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coord/available.hpp"
#include "core/coord/names.hpp"
#include "runtime/asio_loop.hpp"
#include "store/open.hpp"
#include "support/gated_store.hpp"
#include "support/run_until.hpp"
#include "support/temporary_folder.hpp"

namespace holdfast::coord {
namespace {

using namespace std::chrono_literals;
using test::GatedStore;
using Way = GatedStore::Way;

/// What a shop does in a day, each step under a ticket of its own, so that it can be begun again from the start. Runs
/// in a process of its own.
class Day {
 public:
  Day(const test::TemporaryFolder& folder, int killed_at) : folder_(folder), killed_at_(killed_at) {}

  /// False: something was not as it should be.
  bool run() {
    auto inner = store::open_store("sqlite:" + folder_.file("store") + "?sync=normal", loop_, {});
    if (!inner) return false;
    store_ = std::make_unique<GatedStore>(*std::move(inner), loop_);
    store_->before = store_->after = [this] { point(); };
    JournalOptions options;
    options.path = folder_.file("journal");
    options.at_moment = [this](JournalOptions::Moment) { point(); };
    auto journal = Journal::open(options);
    if (!journal) return false;
    journal_ = *std::move(journal);
    AvailableOptions mode;
    mode.patience = 10ms;
    mode.proposer = "shop";
    available_ = std::make_unique<Available>(*journal_, *store_, loop_, mode);
    const bool fine = morning() && cut_off() && reconcile() && journal_->count_open() == 0U;
    available_.reset();
    std::ofstream(folder_.file("points")) << points_;
    return fine;
  }

 private:
  void point() {
    if (++points_ == killed_at_) ::kill(::getpid(), SIGKILL);
  }

  template <class Call>
  bool wait(Call call) {
    bool done = false;
    bool fine = false;
    call([&](const auto& result) {
      fine = result.has_value();
      done = true;
    });
    return test::run_until(loop_, [&] { return done; }) && fine;
  }

  bool morning() {
    // Slow disks are no reason to fail: it is asked again, as a caller would.
    for (int tries = 0; tries < 50; ++tries) {
      if (wait([&](auto then) { available_->set_aside("quota", {{"hat", 5}}, 48h, then); })) return true;
      if (was_given_back()) return true;  // refused: he was killed later in the day
    }
    return false;
  }

  bool was_given_back() {
    const auto quotas = journal_->quotas();
    if (!quotas || quotas->empty()) return false;
    const Quota::State is = quotas->front().state;
    return is == Quota::State::closing || is == Quota::State::returned;
  }

  /// A ticket that has been rejected meanwhile is told to be.
  template <class Call>
  bool accept(const std::string& ticket, Call call) {
    if (wait([&](auto then) { call(ticket, then); })) return true;
    const auto found = journal_->find(ticket);
    return found && *found && (*found)->state == Intent::State::rejected;
  }

  bool cut_off() {
    store_->way = Way::breaking;
    bool fine = accept("add", [&](auto& ticket, auto then) { available_->add({"c", 5, {}}, ticket, then); });
    store_->way = Way::shut;
    fine &= accept("decide", [&](auto& ticket, auto then) { available_->decide("k", "ours", ticket, then); });
    fine &= accept("too-much", [&](auto& ticket, auto then) { available_->add({"d", -1, 0}, ticket, then); });
    for (const char* body : {"1", "2"}) {
      fine &= accept(body, [&](auto& ticket, auto then) { available_->send({"q", "g", body, 0ms}, ticket, then); });
    }
    return fine && available_->sell({{"hat", 2}}, "pair") && available_->sell({{"hat", 1}}, "single") &&
           available_->give_back("quota").has_value();
  }

  bool reconcile() {
    store_->way = Way::open;
    ReconcileOptions options;
    options.patience = 10s;
    options.compensate = [this](const Intent& intent, bool is_repeat, const auto& done) {
      point();
      std::ofstream(folder_.file("compensated"), std::ios::app) << intent.ticket << (is_repeat ? " again\n" : "\n");
      point();
      done({});
    };
    return wait([&](auto then) { available_->reconcile(options, then); });
  }

  const test::TemporaryFolder& folder_;
  const int killed_at_;
  int points_ = 0;
  runtime::AsioLoop loop_{1};
  std::unique_ptr<GatedStore> store_;
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<Available> available_;
};

/// The day in a process of its own; how that ended.
int live(const test::TemporaryFolder& folder, int killed_at) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(Day(folder, killed_at).run() ? 0 : 1);
  int status = -1;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

/// The table, from another process than those that are killed.
class Table {
 public:
  explicit Table(const test::TemporaryFolder& folder)
      : store_(*store::open_store("sqlite:" + folder.file("store"), loop_, {})) {}
  ~Table() {
    bool closed = false;
    store_->close([&] { closed = true; });
    EXPECT_TRUE(test::run_until(loop_, [&] { return closed; }));
  }

  void set_up() {
    bool made = false;
    store_->initialize(loop_.instant() + 10s, [&](const auto& reply) { made = reply.ok(); });
    ASSERT_TRUE(test::run_until(loop_, [&] { return made; }));
    write({"STOCK#hat", {Change::set(coord::available, 10)}, Condition::always()});
    write({"DECISION#k",
           {Change::set(coord::value, "theirs"), Change::set(coord::proposer, "them"),
            Change::set(coord::decided_at, 1)},
           Condition::always()});
  }
  std::optional<Row> row(const std::string& key) {
    std::optional<RowReply> got;
    store_->get(key, loop_.instant() + 10s, [&](RowReply reply) { got = std::move(reply); });
    EXPECT_TRUE(test::run_until(loop_, [&] { return got.has_value(); }));
    return got->value;
  }
  std::int64_t number(const std::string& key, std::string_view name) { return row(key).value_or(Row{}).number(name); }

 private:
  void write(Update update) {
    bool written = false;
    store_->update(std::move(update), loop_.instant() + 10s, [&](const RowReply& reply) { written = reply.ok(); });
    ASSERT_TRUE(test::run_until(loop_, [&] { return written; }));
  }
  runtime::AsioLoop loop_{2};
  std::unique_ptr<Store> store_;
};

/// Each rejected ticket was compensated: for the first time once, and again only where it was killed within.
void expect_compensated_once(const test::TemporaryFolder& folder) {
  std::ifstream file(folder.file("compensated"));
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  for (const std::string ticket : {"decide", "too-much"}) {
    const auto firsts = std::count(lines.begin(), lines.end(), ticket);
    const auto repeats = std::count(lines.begin(), lines.end(), ticket + " again");
    EXPECT_LE(firsts, 1) << ticket;
    EXPECT_LE(repeats, 1) << ticket;
    EXPECT_GE(firsts + repeats, 1) << ticket;
  }
  EXPECT_LE(lines.size(), 3U) << "one kill, one repeat";
}

void expect_settled(const test::TemporaryFolder& folder) {
  Table table(folder);
  EXPECT_EQ(table.number("COUNTER#c", coord::value), 5);
  EXPECT_FALSE(table.row("COUNTER#d"));
  EXPECT_EQ(table.row("DECISION#k")->text(coord::value), "theirs");
  EXPECT_EQ(table.row(message_key("q", "g", 1)).value_or(Row{}).text(coord::body), "1");
  EXPECT_EQ(table.row(message_key("q", "g", 2)).value_or(Row{}).text(coord::body), "2");
  EXPECT_EQ(table.number(group_key("q", "g"), coord::tail), 2);
  EXPECT_EQ(table.number("STOCK#hat", coord::available), 7);
  EXPECT_EQ(table.row("RESERVATION#quota")->text(coord::outcome), "cancelled");

  JournalOptions options;
  options.path = folder.file("journal");
  const auto journal = Journal::open(options);
  ASSERT_TRUE(journal);
  const auto all = (*journal)->list(Journal::Which::all, 0, 100);
  ASSERT_TRUE(all);
  // Whoever was killed when the addition had arrived and was not yet in the journal is told by the store, when he
  // asks again, that it is committed: then there is no ticket for it.
  const bool was_provisional = (*journal)->find("add").value().has_value();
  EXPECT_EQ(all->size(), was_provisional ? 7U : 6U);
  for (const Intent& intent : *all) {
    const bool rejected = intent.ticket == "decide" || intent.ticket == "too-much";
    EXPECT_EQ(intent.state, rejected ? Intent::State::rejected : Intent::State::confirmed) << intent.ticket;
    EXPECT_TRUE(intent.is_over()) << intent.ticket;
  }
}

TEST(Killed, at_any_point_it_is_settled_by_whoever_comes_next) {
  int points = 1;
  for (int killed_at = 0; killed_at <= points; ++killed_at) {
    SCOPED_TRACE(testing::Message() << "killed at point " << killed_at << " of " << points);
    const test::TemporaryFolder folder;
    Table(folder).set_up();
    const int status = live(folder, killed_at);
    if (killed_at == 0) {  // nobody was: how many points there are
      ASSERT_EQ(status, 0);
      std::ifstream(folder.file("points")) >> points;
      ASSERT_GT(points, 60);
    } else if (WIFSIGNALED(status)) {
      ASSERT_EQ(live(folder, 0), 0);
    } else {
      ASSERT_EQ(status, 0) << "fewer points this time";
    }
    expect_settled(folder);
    expect_compensated_once(folder);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace holdfast::coord
