// --mode available: the real program while the store is there, while it is away, and killed at every point.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <csignal>
#include <filesystem>

#include "support/eventually.hpp"
#include "support/program.hpp"
#include "support/sanitized.hpp"

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using test::expect_one_line;
using test::Program;
using testing::HasSubstr;

using Words = std::vector<std::string>;

Words available(Words words, const std::string& ticket) {
  words.insert(words.end(), {"--mode", "available", "--ticket", ticket});
  return words;
}

class CoordMode : public testing::Test {
 protected:
  CoordMode() { EXPECT_EQ(program.run({"init", "--store", "sqlite:holdfast.db"}).code, 0); }

  void move(const std::string& from, const std::string& to) {
    for (const std::string end : {"", "-wal", "-shm"}) {
      std::error_code ignored;  // what is there of them
      std::filesystem::rename(program.file(from + end), program.file(to + end), ignored);
    }
  }
  void take_away() { move("holdfast.db", "away.db"); }
  void bring_back() { move("away.db", "holdfast.db"); }
  std::string out(const Words& words) {
    const auto ended = program.run(words);
    EXPECT_EQ(ended.code, 0) << ended.err;
    return ended.out;
  }
  void expect_provisional(const Words& words, const std::string& ticket) {
    const auto ended = program.run(words);
    EXPECT_EQ(ended.code, 79) << ended.err;
    EXPECT_EQ(ended.out, "provisional " + ticket + "\n");
    EXPECT_THAT(ended.err, HasSubstr("provisionally: there is no file"));
    EXPECT_THAT(ended.err, testing::Not(HasSubstr("holdfast init"))) << "all would be settled against an empty table";
  }

  Program program;
};

TEST_F(CoordMode, while_the_store_is_there_the_answer_is_as_in_the_other_mode) {
  EXPECT_EQ(out(available({"decide", "k", "ours"}, "a")), "ours\n");
  EXPECT_EQ(out(available({"counter", "add", "c", "5"}, "b")), "5\n");
  EXPECT_EQ(out(available({"queue", "send", "q", "g", "hello"}, "m")), "1\n");
  EXPECT_EQ(out({"journal", "ls", "--all", "--json"}), "[]\n");
  // Again, by another process: the same operations.
  EXPECT_THAT(out(available({"decide", "k", "ours", "--json"}, "a")), HasSubstr(R"("was_ours":true)"));
  EXPECT_EQ(out({"counter", "add", "c", "5", "--op", "b"}), "5\n") << "a ticket is an operation's id";
  EXPECT_EQ(out({"queue", "send", "q", "g", "hello", "--mode", "available", "--dedup-id", "m"}), "1 sent before\n");
  EXPECT_THAT(out(available({"decide", "k", "theirs", "--json"}, "c")), HasSubstr(R"("was_ours":false)"));
}

TEST_F(CoordMode, while_the_store_is_away_they_are_accepted_and_cannot_be_taken_for_committed) {
  take_away();
  expect_provisional(available({"decide", "k", "ours"}, "a"), "a ours");
  expect_provisional(available({"counter", "add", "c", "5"}, "b"), "b");
  expect_provisional({"counter", "add", "d", "1", "--mode", "available", "--op", "o"}, "o");
  expect_provisional(available({"queue", "send", "q", "g", "hello"}, "m"), "m");
  expect_provisional(available({"decide", "k", "ours"}, "a"), "a ours");  // by another process
  expect_provisional(available({"decide", "k", "late"}, "c"), "a ours");  // what is proposed, and whose ticket it is
  const auto json =
      boost::json::parse(program.run(available({"decide", "k", "late", "--json"}, "c")).out).as_object();
  EXPECT_TRUE(json.at("provisional").as_bool());
  EXPECT_FALSE(json.contains("value"));
  EXPECT_EQ(json.at("ticket"), "a") << "here too the first proposal wins";
  EXPECT_EQ(json.at("proposed"), "ours");
  EXPECT_TRUE(json.at("was_there").as_bool());
  expect_one_line(program.run(available({"counter", "add", "c", "6"}, "b")), 64, "used for something else");
  EXPECT_FALSE(std::filesystem::exists(program.file("holdfast.db"))) << "no other one in its place";

  bring_back();
  const auto waits = program.run(available({"counter", "add", "c", "1"}, "later"));
  EXPECT_EQ(waits.code, 79) << "its turn comes after those that wait";
  EXPECT_THAT(waits.err, HasSubstr("waits in the journal"));
  EXPECT_EQ(out({"journal", "reconcile"}), "5 confirmed, 0 rejected, 0 compensated, 0 left\n");
  EXPECT_EQ(out(available({"decide", "k", "ours"}, "a")), "ours\n");
  EXPECT_EQ(out({"counter", "show", "c"}), "6\n");
  EXPECT_THAT(out({"queue", "peek", "q", "g"}), HasSubstr("hello"));
}

TEST_F(CoordMode, a_table_that_nobody_may_make_is_away_where_its_file_is) {
  program.set("HOLDFAST_STORE", "sqlite:holdfast.db?create=never&sync=full");
  EXPECT_EQ(out({"counter", "add", "c", "5"}), "5\n");
  take_away();
  for (const Words& words :
       {Words{"run", "t", "--", "true"}, Words{"once", "k", "--", "true"}, Words{"counter", "add", "c", "1"},
        Words{"counter", "show", "c"}, Words{"queue", "send", "q", "g", "m"}, Words{"stock", "add", "s", "1"},
        Words{"decide", "k", "v"}}) {
    expect_one_line(program.run(words), 69, "create=never");
  }
  EXPECT_NE(program.run({"serve", "--listen", "127.0.0.1:0"}).code, 0);
  EXPECT_FALSE(std::filesystem::exists(program.file("holdfast.db"))) << "no other one in its place";
  bring_back();
  EXPECT_EQ(out({"counter", "show", "c"}), "5\n");
}

// A call that the store has carried out under a ticket may wait in a journal as well, from a try before.
TEST_F(CoordMode, what_has_a_ticket_is_remembered_in_the_store_for_as_long_as_in_a_journal) {
  EXPECT_EQ(out({"counter", "add", "c", "5", "--ticket", "o"}), "5\n");
  EXPECT_EQ(out({"queue", "send", "q", "g", "m", "--ticket", "d"}), "1\n");
  const auto days = program.run_command(
      {"/usr/bin/python3", "-c",
       "import json, sqlite3, time\n"
       "for key, item in sorted(sqlite3.connect('holdfast.db').execute('SELECT pk, item FROM rows')):\n"
       "    if key.startswith(('OP#', 'DEDUP#')):\n"
       "        print(key, round((json.loads(item)['tombstone_expires_at'] - time.time()) / 86400))"});
  EXPECT_EQ(days.out, "DEDUP#q#d 365\nOP#9#COUNTER#c#o 365\n") << days.err;
}

TEST_F(CoordMode, what_had_reached_the_store_before_is_confirmed_however_late_it_is_settled) {
  EXPECT_EQ(out(available({"counter", "add", "c", "1"}, "a")), "1\n");
  take_away();  // and its caller asks again
  expect_provisional(available({"counter", "add", "c", "1", "--max-age", "1ms"}, "a"), "a");
  bring_back();
  EXPECT_EQ(program.run({"journal", "reconcile"}).out, "1 confirmed, 0 rejected, 0 compensated, 0 left\n");
}

TEST_F(CoordMode, what_is_accepted_has_its_bounds) {
  take_away();
  expect_provisional(available({"counter", "add", "c", "1", "--max-age", "1ms"}, "a"), "a");
  expect_one_line(program.run(available({"counter", "add", "c", "1", "--max-provisional", "1"}, "b")), 1,
                  "no more are given out");
  bring_back();
  EXPECT_EQ(program.run({"journal", "reconcile"}).out, "0 confirmed, 1 rejected, 0 compensated, 1 left\n");
  expect_one_line(program.run(available({"counter", "add", "c", "1"}, "a")), 1, "was rejected");
}

TEST_F(CoordMode, a_store_that_does_not_answer_is_waited_for_as_long_as_the_caller_says) {
  auto blocker =
      program.start_command({"/usr/bin/python3", "-c",
                             "import sqlite3, time\n"
                             "c = sqlite3.connect('holdfast.db', isolation_level=None)\n"
                             "c.execute('BEGIN EXCLUSIVE')\nopen('blocked', 'w').close()\ntime.sleep(100)"});
  ASSERT_TRUE(blocker);
  ASSERT_TRUE(test::eventually([&] { return std::filesystem::exists(program.file("blocked")); }));
  const auto ended = program.run(available({"counter", "add", "c", "5", "--store-patience", "300ms"}, "a"));
  EXPECT_EQ(ended.code, 79) << ended.err;
  EXPECT_EQ(ended.out, "provisional a\n");
  blocker->kill(SIGKILL);
  ASSERT_TRUE(blocker->wait(30s));
  EXPECT_THAT(out({"journal", "reconcile"}), HasSubstr("1 confirmed"));
  EXPECT_EQ(out({"counter", "show", "c"}), "5\n");
}

TEST_F(CoordMode, what_makes_no_sense_is_64_and_says_what_to_do) {
  expect_one_line(program.run({"decide", "k", "v", "--mode", "both"}), 64, "consistent, available");
  expect_one_line(program.run(available({"counter", "add", "c", "1", "--op", "x"}, "y")), 64, "--op and --ticket");
  expect_one_line(program.run({"stock", "reserve", "r", "hat=1", "--mode", "available"}), 64, "journal sell");
  expect_one_line(program.run(available({"queue", "send", "q", "", "x"}, "m")), 64, "no name");
}

TEST_F(CoordMode, the_mode_may_stand_in_the_environment_and_a_ticket_may_not) {
  program.set("HOLDFAST_MODE", "available");
  program.set("HOLDFAST_TICKET", "of-what-is-compensated");
  take_away();
  const auto ended = program.run({"counter", "add", "c", "1"});
  EXPECT_EQ(ended.code, 79) << ended.err;
  EXPECT_THAT(ended.out, testing::Not(HasSubstr("of-what-is-compensated")));
}

// ---- Killed ----

/// A shop's day, of which one command is killed before each of its writes in turn, and called again.
struct Step {
  const char* name;
  Words words;
};
const std::vector<Step>& steps() {
  static const std::vector<Step> all{
      {"decided", available({"decide", "k", "ours"}, "decide")},
      {"added", available({"counter", "add", "c", "5"}, "add")},
      {"away_added", available({"counter", "add", "c", "2"}, "add-2")},
      {"away_refused", available({"counter", "add", "d", "-1", "--floor", "0"}, "too-much")},
      {"away_sent", available({"queue", "send", "q", "g", "letter"}, "letter")},
      {"away_sold", {"journal", "sell", "hat=2", "--ticket", "pair"}},
      {"back_reconciled",
       {"journal", "reconcile", "--", "/bin/sh", "-c", "echo $HOLDFAST_TICKET $HOLDFAST_REPEAT >>compensated"}},
  };
  return all;
}

class CoordModeKilled : public CoordMode, public testing::WithParamInterface<std::size_t> {
 protected:
  Program::Ended run(const Step& step, int killed_at) {
    Words command{"/usr/bin/env", "LD_PRELOAD=" + std::string(test::kill_at_file),
                  "KILL_AT=" + std::to_string(killed_at), test::program_file};
    command.insert(command.end(), step.words.begin(), step.words.end());
    return program.run_command(command);
  }
  /// A step, with what happens to the store before it.
  void live(std::size_t at) {
    const std::string name = steps()[at].name;
    const auto ended = run(steps()[at], 0);
    const bool is_provisional = name == "away_added" || name == "away_refused" || name == "away_sent";
    EXPECT_EQ(ended.code, is_provisional ? 79 : 0) << name << ": " << ended.err;
  }
  void pass_on(std::size_t to) {
    const std::string name = steps()[to].name;
    if (name == "away_added") take_away();
    if (name == "back_reconciled") bring_back();
  }
  void expect_settled() {
    EXPECT_EQ(out({"decide", "k", "late"}), "ours\n");
    EXPECT_EQ(out({"counter", "show", "c"}), "7\n");
    EXPECT_EQ(out({"counter", "show", "d"}), "0\n");
    EXPECT_EQ(out({"stock", "show", "hat"}), "5\n") << "what was set aside is not back, and two are sold";
    EXPECT_THAT(out({"queue", "stats", "q", "--json"}), HasSubstr(R"("messages":1)"));
    EXPECT_EQ(out({"journal", "ls", "--json"}).find("ticket"), std::string::npos);
    const std::string made_good = program.read("compensated");
    EXPECT_TRUE(made_good == "too-much 0\n" || made_good == "too-much 1\n" || made_good == "too-much 0\ntoo-much 1\n")
        << made_good;
  }
};

INSTANTIATE_TEST_SUITE_P(, CoordModeKilled, testing::Range<std::size_t>(0, steps().size()),
                         [](const auto& step) { return std::string(steps()[step.param].name); });

TEST_P(CoordModeKilled, at_any_point_it_is_as_if_it_had_been_called_once) {
  if (HOLDFAST_SANITIZED) GTEST_SKIP() << "nothing can be preloaded before AddressSanitizer";
  out({"stock", "add", "hat", "10", "--op", "delivery"});
  out({"journal", "set-aside", "till", "hat=5"});
  for (std::size_t at = 0; at < GetParam(); ++at) {
    pass_on(at);
    live(at);
  }
  pass_on(GetParam());
  const test::TemporaryFolder before;
  const auto copy = [](const std::filesystem::path& from, const std::filesystem::path& to) {
    std::filesystem::copy(from, to, std::filesystem::copy_options::recursive);
  };
  copy(program.folder().path(), before.path());
  int killed_at = 1;
  for (bool more = true; more && !HasFailure(); ++killed_at) {
    SCOPED_TRACE("killed at write " + std::to_string(killed_at));
    for (const auto& entry : std::filesystem::directory_iterator(program.folder().path())) {
      std::filesystem::remove_all(entry);
    }
    copy(before.path(), program.folder().path());
    more = run(steps()[GetParam()], killed_at).code == 128 + SIGKILL;  // or it ended before
    for (std::size_t at = GetParam(); at < steps().size(); ++at) {
      if (at > GetParam()) pass_on(at);
      live(at);
    }
    expect_settled();
  }
  EXPECT_GT(killed_at, 4) << "there is something to be killed at";
}

}  // namespace
}  // namespace holdfast
