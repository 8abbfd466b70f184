// holdfast journal: the real program; what it accepted is settled by another process, and a rejected ticket is made
// good for by a command.
#include <gmock/gmock.h>

#include <boost/json.hpp>
#include <filesystem>

#include "coord/available.hpp"
#include "runtime/asio_loop.hpp"
#include "store/open.hpp"
#include "support/eventually.hpp"
#include "support/gated_store.hpp"
#include "support/process_ended.hpp"
#include "support/program.hpp"
#include "support/run_until.hpp"

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using test::expect_one_line;
using test::GatedStore;
using test::Program;
using testing::HasSubstr;

class CoordJournal : public testing::Test {
 protected:
  CoordJournal() { EXPECT_EQ(program.run({"init", "--store", "sqlite:holdfast.db"}).code, 0); }

  /// What a program that embeds us accepts while the store is away.
  void accept(const std::function<void(coord::Available&, std::function<void()>)>& call) {
    runtime::AsioLoop loop(1);
    const std::string url = "sqlite:" + program.file("holdfast.db");
    GatedStore store(*store::open_store(url, loop, {}), loop);
    store.way = GatedStore::Way::shut;
    coord::JournalOptions options;
    options.path = program.file("holdfast.journal");
    options.store = url;
    const auto journal = coord::Journal::open(options);
    ASSERT_TRUE(journal) << journal.error().detail;
    coord::AvailableOptions mode;
    mode.patience = 10ms;
    coord::Available available(**journal, store, loop, mode);
    bool done = false;
    call(available, [&] { done = true; });
    ASSERT_TRUE(test::run_until(loop, [&] { return done; }));
  }
  void add(std::int64_t delta, const std::string& ticket) {
    accept([&](coord::Available& by, auto done) {
      by.add({"c", delta, 0}, ticket, [done](const auto& result) {
        EXPECT_TRUE(result && std::holds_alternative<Provisional>(*result));
        done();
      });
    });
  }
  boost::json::array list(std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"journal", "ls", "--json"});
    return boost::json::parse(program.run(more).out).as_array();
  }

  Program program;
};

TEST_F(CoordJournal, what_was_accepted_is_listed_and_carried_out_once) {
  add(3, "a");
  const auto waiting = list();
  ASSERT_EQ(waiting.size(), 1U);
  EXPECT_EQ(waiting[0].at("ticket"), "a");
  EXPECT_EQ(waiting[0].at("state"), "begun") << "its caller brought the ticket: he may have asked before";
  const auto ended = program.run({"journal", "reconcile"});
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.out, "1 confirmed, 0 rejected, 0 compensated, 0 left\n");
  EXPECT_TRUE(list().empty());
  EXPECT_EQ(list({"--all"})[0].at("state"), "confirmed");
  EXPECT_EQ(program.run({"journal", "reconcile"}).out, "0 confirmed, 0 rejected, 0 compensated, 0 left\n");
}

TEST_F(CoordJournal, a_rejected_ticket_waits_for_its_compensation_which_is_run_once) {
  add(-1, "a");
  const auto left = program.run({"journal", "reconcile"});
  EXPECT_EQ(left.code, 1);
  EXPECT_THAT(left.err, HasSubstr("1 left"));
  EXPECT_THAT(left.err, HasSubstr("-- CMD"));
  EXPECT_THAT(program.run({"journal", "ls"}).out, HasSubstr("rejected, to be compensated"));
  const std::vector<std::string> reconcile{
      "journal", "reconcile", "--", "/bin/sh", "-c", "echo $HOLDFAST_TICKET $HOLDFAST_KIND $HOLDFAST_REPEAT >>done"};
  EXPECT_EQ(program.run(reconcile).code, 0);
  EXPECT_EQ(program.run(reconcile).code, 0);
  EXPECT_EQ(program.read("done"), "a add 0\n");
}

TEST_F(CoordJournal, what_a_compensation_prints_does_not_come_between_what_is_one_document) {
  add(-1, "a");
  const auto ended = program.run({"journal", "reconcile", "--json", "--", "echo", "told the customer"});
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(boost::json::parse(ended.out).at("compensated"), 1);
  EXPECT_EQ(ended.err, "told the customer\n");
}

TEST_F(CoordJournal, a_compensation_that_fails_is_run_again_and_told_so) {
  add(-1, "a");
  const std::vector<std::string> failing{"journal", "reconcile", "--", "false"};
  const auto ended = program.run(failing);
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, HasSubstr("false ended with 1"));
  EXPECT_EQ(program.run({"journal", "reconcile", "--", "/bin/sh", "-c", "exit $((1 - HOLDFAST_REPEAT))"}).code, 0);
}

TEST_F(CoordJournal, s10_a_compensation_that_does_not_end_is_ended_with_all_that_it_has_started_and_is_run_again) {
  add(-1, "a");
  add(-2, "b");
  program.write("slow", R"(
echo $HOLDFAST_TICKET $HOLDFAST_REPEAT >>runs
[ $HOLDFAST_TICKET$HOLDFAST_REPEAT != a0 ] && exit 0
trap "" TERM
sleep 1000 &
echo $! >left
wait
)");
  const auto reconcile = [&](const std::string& limit) {
    return program.run({"journal", "reconcile", "--compensation-limit", limit, "--", "/bin/sh", "slow"});
  };
  const auto ended = reconcile("1s");
  EXPECT_EQ(ended.code, 1);
  EXPECT_THAT(ended.err, HasSubstr("a: its compensation failed: /bin/sh was ended: it has 1s"));
  EXPECT_EQ(ended.out, "0 confirmed, 2 rejected, 1 compensated, 1 left\n");
  EXPECT_EQ(program.read("runs"), "a 0\nb 0\n");
  const std::string left = program.read("left");
  EXPECT_TRUE(test::eventually([&] { return test::has_ended(std::stoi(left)); })) << left;
  EXPECT_EQ(reconcile("1h").code, 0);
  EXPECT_EQ(program.read("runs"), "a 0\nb 0\na 1\n");
  EXPECT_EQ(reconcile("1ms").code, 64);
}

TEST_F(CoordJournal, who_is_asked_to_end_passes_that_on_and_notes_what_came_of_it) {
  add(-1, "a");
  add(-2, "b");
  auto child = program.start({"journal", "reconcile", "--", "/bin/sh", "-c",
                              "trap 'echo $HOLDFAST_TICKET >>done; exit 0' TERM; echo begun; "
                              "while :; do sleep 0.01; done"});
  ASSERT_TRUE(child);
  ASSERT_TRUE(child->read_line(60s));
  child->kill(SIGTERM);
  const auto exit = child->wait(60s);
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 128 + SIGTERM);
  EXPECT_EQ(program.read("done"), "a\n");
  const auto waiting = list();
  ASSERT_EQ(waiting.size(), 1U);
  EXPECT_EQ(waiting[0].at("ticket"), "b");
  EXPECT_EQ(waiting[0].at("compensation"), "due");
}

TEST_F(CoordJournal, goods_that_were_set_aside_are_sold_without_the_store_and_no_more_than_those) {
  EXPECT_EQ(program.run({"journal", "set-aside", "till", "hat=2"}).code, 1) << "there are none";
  accept([&](coord::Available&, auto done) { done(); });
  EXPECT_EQ(program.run({"journal", "sell", "hat=1"}).code, 1);
  EXPECT_EQ(program.run({"journal", "sell", "hat"}).code, 64);
  EXPECT_EQ(program.run({"journal", "give-back", "till"}).code, 1);
}

TEST_F(CoordJournal, a_journal_is_for_one_store_and_has_to_be_there) {
  EXPECT_EQ(program.run({"journal", "ls"}).code, 1);
  EXPECT_EQ(program.run({"journal", "ls", "--colour"}).code, 64);
  EXPECT_EQ(program.run({"journal", "reconcile"}).code, 1);
  add(1, "a");
  const auto other = program.run({"journal", "reconcile", "--store", "sqlite:other.db"});
  EXPECT_EQ(other.code, 64);
  EXPECT_THAT(other.err, HasSubstr("is for the store"));
  EXPECT_EQ(program.run({"journal", "reconcile", "--merge", "some"}).code, 64);
}

// Found by an attacker: what was accepted for a table in one region was carried out in that of another.
TEST_F(CoordJournal, a_journal_is_for_the_table_that_its_stores_name_came_to) {
  for (const char* file : {"AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"}) program.set(file, "/dev/null");
  for (const char* key : {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"}) program.set(key, "key");
  const auto in = [&](const std::string& region, const std::string& port, std::vector<std::string> arguments,
                      const std::string& store = "dynamodb://jobs") {
    std::vector<std::string> command{"env", "AWS_REGION=" + region,
                                     "AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:" + port, test::program_file};
    command.insert(command.end(), arguments.begin(), arguments.end());
    command.insert(command.end(), {"--store", store, "--store-patience", "200ms"});
    return program.run_command(command);
  };
  // Nobody is there.
  const auto accepted = in("eu-west-1", "1", {"decide", "k", "v", "--mode", "available", "--ticket", "t"});
  ASSERT_EQ(accepted.code, 79) << accepted.err;
  const std::vector<std::string> reconcile{"journal", "reconcile"};
  EXPECT_EQ(in("eu-west-1", "1", reconcile).code, 69);
  expect_one_line(in("eu-west-2", "1", reconcile), 64, "region eu-west-1");
  expect_one_line(in("eu-west-1", "2", reconcile), 64, "endpoint http://127.0.0.1:1");
  EXPECT_EQ(in("eu-west-2", "1", reconcile, "dynamodb://jobs?region=eu-west-1").code, 69) << "that is the one";
}

TEST_F(CoordJournal, goods_of_another_are_not_sold) {
  ASSERT_EQ(program.run({"stock", "add", "hat", "5", "--op", "delivery"}).code, 0);
  ASSERT_EQ(program.run({"stock", "reserve", "c", "hat=2"}).code, 0);
  const auto refused = program.run({"journal", "set-aside", "c", "hat=2"});
  EXPECT_NE(refused.code, 0) << "it is that customer's";
  EXPECT_THAT(refused.err, HasSubstr("by somebody else"));
  EXPECT_EQ(program.run({"journal", "sell", "hat=2"}).code, 1);
  EXPECT_EQ(program.run({"stock", "confirm", "c"}).code, 0);
  ASSERT_EQ(program.run({"journal", "set-aside", "till", "hat=2"}).code, 0);
  for (const std::string end : {"confirm", "cancel"}) {
    const auto not_theirs = program.run({"stock", end, "till"});
    EXPECT_NE(not_theirs.code, 0);
    EXPECT_THAT(not_theirs.err, HasSubstr("give it back there"));
  }
  EXPECT_NE(program.run({"journal", "set-aside", "till", "hat=2", "--journal", "other.journal"}).code, 0);
  EXPECT_EQ(program.run({"journal", "sell", "hat=2", "--ticket", "t"}).code, 0);
  EXPECT_THAT(program.run({"journal", "reconcile"}).out, HasSubstr("1 confirmed, 0 rejected"));
}

TEST_F(CoordJournal, while_the_file_of_the_store_is_away_goods_are_sold_and_nothing_is_rejected_or_made_anew) {
  ASSERT_EQ(program.run({"stock", "add", "shirt", "5", "--op", "delivery"}).code, 0);
  ASSERT_EQ(program.run({"journal", "set-aside", "quota", "shirt=5", "--ttl", "7d"}).code, 0);
  const auto move = [&](const std::string& from, const std::string& to) {
    for (const std::string end : {"", "-wal", "-shm"}) {
      std::error_code ignored;  // what is there of them
      std::filesystem::rename(program.file(from + end), program.file(to + end), ignored);
    }
  };
  expect_one_line(program.run({"journal", "sell", "shirt=6"}), 1, "no quota has as much left");
  expect_one_line(program.run({"journal", "sell", "shirt=1", "--max-age", "8d"}), 1, "max_age");
  move("holdfast.db", "away.db");
  EXPECT_EQ(program.run({"journal", "sell", "shirt=1", "--ticket", "t"}).out, "t\n");
  expect_one_line(program.run({"journal", "reconcile"}), 69, "no file holdfast.db: is the disk that it is on there?");
  EXPECT_FALSE(std::filesystem::exists(program.file("holdfast.db")));

  move("away.db", "holdfast.db");
  EXPECT_THAT(program.run({"journal", "reconcile"}).out, HasSubstr("1 confirmed, 0 rejected"));
  const auto quota = list().at(0);
  EXPECT_EQ(quota.at("set_aside"), (boost::json::value{{"shirt", 5}}));
  EXPECT_EQ(quota.at("left"), (boost::json::value{{"shirt", 4}}));
  EXPECT_EQ(list({"--all"}).at(1).at("arguments").at("basket"), (boost::json::value{{"shirt", 1}}));
  ASSERT_EQ(program.run({"journal", "give-back", "quota"}).code, 0);
  ASSERT_EQ(program.run({"journal", "reconcile"}).code, 0);
  EXPECT_EQ(program.run({"stock", "show", "shirt"}).out, "4\n");
}

}  // namespace
}  // namespace holdfast
