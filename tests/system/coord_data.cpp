// holdfast counter, stock and queue: the real program, on SQLite and on DynamoDB Local.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "support/eventually.hpp"
#include "support/on_dynamodb.hpp"
#include "support/program.hpp"

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using test::eventually;
using test::expect_one_line;
using test::Program;
using testing::HasSubstr;

class CoordData : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (GetParam() == std::string("dynamodb")) test::use_dynamodb(program);
  }

  Program program;

  std::string out(const std::vector<std::string>& arguments) {
    const auto ended = program.run(arguments);
    EXPECT_EQ(ended.code, 0) << ended.err;
    return ended.out;
  }
  boost::json::object receive(std::vector<std::string> options = {}) {
    options.insert(options.begin(), {"queue", "receive", "q", "--skew", "0s", "--json"});
    return boost::json::parse(out(options)).as_object();
  }
  static std::string receipt(const boost::json::object& batch) {
    return std::string(batch.at("receipt").as_string());
  }
  static std::vector<std::string> bodies(const boost::json::object& batch) {
    std::vector<std::string> all;
    for (const auto& each : batch.at("messages").as_array()) all.emplace_back(each.at("body").as_string());
    return all;
  }
};

INSTANTIATE_TEST_SUITE_P(, CoordData, testing::Values("sqlite", "dynamodb"),
                         [](const auto& store) { return std::string(store.param); });

// ---- counter ----

TEST_P(CoordData, a_counter_adds_and_an_operation_counts_once) {
  EXPECT_EQ(out({"counter", "add", "visits", "3", "--op", "a"}), "3\n");
  EXPECT_EQ(out({"counter", "add", "visits", "3", "--op", "a"}), "3\n");
  EXPECT_EQ(out({"counter", "add", "visits", "-1"}), "2\n");
  EXPECT_EQ(out({"counter", "show", "visits"}), "2\n");
  EXPECT_EQ(out({"counter", "show", "nothing"}), "0\n");
  EXPECT_THAT(out({"counter", "add", "visits", "3", "--op", "a", "--json"}), HasSubstr("\"was_repeat\":true"));
}

TEST_P(CoordData, a_counter_refuses_what_it_must) {
  ASSERT_EQ(out({"counter", "add", "seats", "5", "--op", "a"}), "5\n");
  expect_one_line(program.run({"counter", "add", "seats", "-6", "--floor", "0"}), 1, "below 0");
  expect_one_line(program.run({"counter", "add", "seats", "4", "--op", "a"}), 64, "used before to add 5");
  expect_one_line(program.run({"counter", "add", "seats", "many"}), 64, "DELTA");
  EXPECT_EQ(out({"counter", "show", "seats"}), "5\n");
}

// ---- stock ----

TEST_P(CoordData, goods_are_reserved_confirmed_and_cancelled_once) {
  EXPECT_EQ(out({"stock", "add", "shirt", "5", "--op", "d1"}), "5\n");
  EXPECT_EQ(out({"stock", "add", "shirt", "5", "--op", "d1"}), "5\n");
  EXPECT_EQ(out({"stock", "add", "hat", "1"}), "1\n");
  EXPECT_EQ(out({"stock", "reserve", "r1", "shirt=2", "hat=1"}), "r1 held\n");
  EXPECT_EQ(out({"stock", "reserve", "r1", "shirt=2", "hat=1"}), "r1 held\n");
  EXPECT_EQ(out({"stock", "show", "shirt"}), "3\n");
  expect_one_line(program.run({"stock", "reserve", "r2", "shirt=1", "hat=1"}), 1, "Of hat there are 0");
  expect_one_line(program.run({"stock", "reserve", "r1", "shirt=1"}), 64, "of other goods");
  EXPECT_EQ(out({"stock", "confirm", "r1"}), "r1 confirmed\n");
  EXPECT_EQ(out({"stock", "confirm", "r1"}), "r1 confirmed\n");
  expect_one_line(program.run({"stock", "cancel", "r1"}), 1, "confirmed already");
  EXPECT_EQ(out({"stock", "reserve", "r3", "shirt=1"}), "r3 held\n");
  EXPECT_EQ(out({"stock", "cancel", "r3"}), "r3 cancelled\n");
  EXPECT_EQ(out({"stock", "show", "shirt"}), "3\n");
  EXPECT_THAT(out({"stock", "reservation", "r1", "--json"}), HasSubstr(R"("items":{"hat":1,"shirt":2})"));
  expect_one_line(program.run({"stock", "reservation", "nothing"}), 1, "nothing");
  expect_one_line(program.run({"stock", "reserve", "r4", "shirt"}), 64, "SKU=COUNT");
  expect_one_line(program.run({"stock", "add", "shirt", "-4"}), 1, "below 0");
}

TEST_P(CoordData, what_expired_comes_back_to_who_finds_too_little) {
  EXPECT_EQ(out({"stock", "add", "hat", "1"}), "1\n");
  EXPECT_EQ(out({"stock", "reserve", "r1", "hat=1", "--ttl", "100ms"}), "r1 held\n");
  EXPECT_TRUE(eventually([&] { return out({"stock", "reservation", "r1"}) == "r1 expired\n"; })) << "by nobody yet";
  EXPECT_TRUE(eventually([&] {
    return program.run({"stock", "reserve", "r2", "hat=1", "--skew", "100ms"}).code == 0;
  }));
  EXPECT_EQ(out({"stock", "reservation", "r1"}), "r1 expired\n");
  EXPECT_EQ(out({"stock", "show", "hat"}), "0\n");
  expect_one_line(program.run({"stock", "confirm", "r1"}), 1, "expired already");
  EXPECT_EQ(out({"stock", "sweep"}), "returned 0\n");
}

// ---- queue ----

TEST_P(CoordData, messages_are_received_in_order_and_acknowledged) {
  EXPECT_EQ(out({"queue", "send", "q", "g", "one"}), "1\n");
  EXPECT_EQ(out({"queue", "send", "q", "g", "two", "--dedup-id", "x"}), "2\n");
  EXPECT_EQ(out({"queue", "send", "q", "g", "two", "--dedup-id", "x"}), "2 sent before\n");
  expect_one_line(program.run({"queue", "send", "q", "g", "other", "--dedup-id", "x"}), 64, "another message");
  const auto sent = program.run({"queue", "send", "q", "g", "-"}, "three\n");
  EXPECT_EQ(sent.out, "3\n");
  const auto batch = receive({"--max", "2"});
  EXPECT_EQ(bodies(batch), (std::vector<std::string>{"one", "two"}));
  expect_one_line(program.run({"queue", "receive", "q"}), 75, "nothing is due");
  EXPECT_EQ(out({"queue", "ack", receipt(batch), "--count", "1"}), "2 left\n");
  EXPECT_EQ(out({"queue", "extend", receipt(batch), "--visibility", "1m"}), "2 left\n");
  EXPECT_EQ(out({"queue", "ack", receipt(batch)}), "1 left\n");
  expect_one_line(program.run({"queue", "nack", receipt(batch)}), 1, "no longer leased");
  EXPECT_THAT(out({"queue", "peek", "q", "g"}), HasSubstr("3  three"));
  EXPECT_EQ(bodies(receive()), (std::vector<std::string>{"three\n"}));
}

TEST_P(CoordData, the_receipt_that_is_printed_is_good_whatever_the_group_is_called) {
  out({"queue", "send", "q", "two words#é/%0A ", "x"});
  std::istringstream printed(out({"queue", "receive", "q"}));
  std::string word;
  std::string receipt;
  printed >> word >> receipt;
  EXPECT_EQ(word, "receipt");
  EXPECT_EQ(out({"queue", "ack", receipt}), "0 left\n");
}

TEST_P(CoordData, a_group_that_fails_is_parked_and_goes_on_by_hand) {
  out({"queue", "send", "q", "bad", "1"});
  out({"queue", "send", "q", "bad", "2"});
  EXPECT_EQ(out({"queue", "park", receipt(receive()), "--reason", "no such customer"}), "2 left\n");
  EXPECT_THAT(out({"queue", "stats", "q"}), HasSubstr("parked"));
  EXPECT_THAT(out({"queue", "stats", "q"}), HasSubstr("no such customer"));
  expect_one_line(program.run({"queue", "receive", "q"}), 75, "nothing is due");
  EXPECT_EQ(out({"queue", "redrive", "q", "bad", "--skip"}), "1 left\n");
  EXPECT_EQ(bodies(receive()), (std::vector<std::string>{"2"}));
  expect_one_line(program.run({"queue", "redrive", "q", "bad"}), 1, "The queue q has no parked group bad");
}

TEST_P(CoordData, poison_is_moved_away_and_its_group_goes_on) {
  out({"queue", "send", "q", "g", "poison"});
  out({"queue", "send", "q", "g", "fine"});
  for (int i = 0; i < 2; ++i) out({"queue", "nack", receipt(receive())});
  const auto batch = receive({"--poison", "move", "--poison-after", "2", "--dead-letter", "dead"});
  EXPECT_EQ(bodies(batch), (std::vector<std::string>{"fine"}));
  EXPECT_THAT(out({"queue", "peek", "dead", "g"}), HasSubstr("poison"));
  EXPECT_EQ(out({"queue", "ack", receipt(batch)}), "0 left\n");
  EXPECT_EQ(out({"queue", "redrive", "dead", "g", "--to", "q"}), "1 moved, 0 left\n");
  EXPECT_EQ(out({"queue", "redrive", "dead", "g", "--to", "q"}), "0 moved, 0 left\n");
  EXPECT_EQ(bodies(receive()), (std::vector<std::string>{"poison"}));
  expect_one_line(program.run({"queue", "redrive", "q", "g", "--to", "q"}), 64, "already");
}

TEST_P(CoordData, how_often_is_often_enough_parks_the_group_where_nothing_else_is_said) {
  out({"queue", "send", "q", "g", "poison"});
  const std::vector<std::string> look{"queue", "receive",        "q", "--skew", "0s", "--visibility",
                                      "100ms", "--poison-after", "1"};
  EXPECT_EQ(program.run(look).code, 0);
  EXPECT_TRUE(eventually([&] {
    (void)program.run(look);  // once its lease has run out
    return out({"queue", "stats", "q"}).find("parked") != std::string::npos;
  }));
  expect_one_line(program.run({"queue", "receive", "q", "--poison", "block", "--poison-after", "1"}), 64, "block");
}

TEST_P(CoordData, what_is_remembered_of_goods_and_messages_is_said_and_told) {
  EXPECT_THAT(out({"stock", "add", "shirt", "3", "--op", "o", "--remember", "2d", "--json"}),
              HasSubstr(R"("available":3,"was_repeat":false)"));
  EXPECT_THAT(out({"stock", "add", "shirt", "3", "--op", "o", "--json"}), HasSubstr(R"("was_repeat":true)"));
  EXPECT_EQ(out({"queue", "send", "q", "g", "m", "--dedup-id", "d", "--dedup-window", "1h"}), "1\n");
  EXPECT_EQ(out({"queue", "send", "q", "g", "m", "--dedup-id", "d"}), "1 sent before\n");
  expect_one_line(program.run({"queue", "send", "q", "g", "m", "--dedup-window", "1s"}), 64,
                  "--dedup-window is from 5m");
}

TEST_P(CoordData, input_without_end_is_no_message) {
  auto shell = program.start_command({"/bin/sh", "-c",
                                      R"(ulimit -v 4000000; "$0" queue send q g - </dev/zero 2>told; echo $?)",
                                      test::program_file});
  ASSERT_TRUE(shell);
  EXPECT_EQ(shell->read_line(30s).value_or(""), "64");
  EXPECT_THAT(program.read("told"), HasSubstr("at most 350000 bytes"));
}

TEST_P(CoordData, poison_can_park_its_group) {
  out({"queue", "send", "q", "g", "poison"});
  out({"queue", "nack", receipt(receive())});
  EXPECT_EQ(program.run({"queue", "receive", "q", "--skew", "0s", "--poison", "park", "--poison-after", "1"}).code,
            75);
  EXPECT_THAT(out({"queue", "stats", "q"}), HasSubstr("given out 1 times in vain"));
  EXPECT_THAT(out({"queue", "stats", "q", "--json"}), HasSubstr(R"("receives":1)"));
}

TEST_P(CoordData, a_proposal_with_a_ticket_is_known_again) {
  const auto decide = [&](const std::string& ticket) {
    return out({"decide", "k", "v", "--json", "--ticket", ticket});
  };
  for (int i = 0; i < 2; ++i) EXPECT_THAT(decide("one"), HasSubstr(R"("was_ours":true)"));
  EXPECT_THAT(decide("two"), HasSubstr(R"("was_ours":false)"));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(out({"counter", "add", "c", "1", "--ticket", "one"}), "1\n");
}

TEST_P(CoordData, what_makes_no_sense_is_64) {
  expect_one_line(program.run({"queue", "send", "a#b", "g", "x"}), 64, "no '#'");
  expect_one_line(program.run({"queue", "send", "q", "", "x"}), 64, "no name");
  expect_one_line(program.run({"queue", "ack", "nonsense"}), 64, "RECEIPT");
  const std::string long_name(501, 'x');
  for (const std::string& name : {std::string(), long_name}) {
    const std::string wrong = "1 to 500 bytes, not " + std::to_string(name.size());
    expect_one_line(program.run({"decide", name, "v"}), 64, wrong);
    expect_one_line(program.run({"counter", "add", name, "1"}), 64, wrong);
    expect_one_line(program.run({"counter", "show", name}), 64, wrong);
    expect_one_line(program.run({"stock", "add", name, "1"}), 64, wrong);
    expect_one_line(program.run({"stock", "reserve", name, "hat=1"}), 64, wrong);
    expect_one_line(program.run({"once", name, "--", "true"}), 64, wrong);
    expect_one_line(program.run({"run", name, "--", "true"}), 64, wrong);
    expect_one_line(program.run({"task", "show", name}), 64, wrong);
  }
  expect_one_line(program.run({"counter", "add", "c", "1", "--op", long_name}), 64, "501");
  std::vector<std::string> many{"stock", "reserve", "r"};
  for (int i = 0; i < 100; ++i) many.push_back("sku" + std::to_string(i) + "=1");
  expect_one_line(program.run(many), 64, "1 to 99");
  expect_one_line(program.run({"queue", "receive", "q", "--poison", "pray"}), 64, "pray");
  expect_one_line(program.run({"queue", "receive", "q", "--poison", "move"}), 64, "--dead-letter");
  expect_one_line(program.run({"queue", "send", "q", "g", "\xff"}), 64, "UTF-8");
}

TEST_P(CoordData, who_waits_is_given_what_is_sent_later) {
  ASSERT_EQ(program.run({"init"}).code, 0);
  auto waiting = program.start({"queue", "receive", "q", "--wait", "100s"});
  ASSERT_TRUE(waiting);
  EXPECT_FALSE(waiting->wait(200ms));
  out({"queue", "send", "q", "g", "late"});
  ASSERT_TRUE(waiting->read_line(60s));
  EXPECT_EQ(waiting->read_line(60s).value_or(""), "1 late");
}

TEST(CoordDataWithoutATable, only_what_begins_something_makes_one) {
  Program program;
  const std::vector<std::vector<std::string>> all{{"counter", "show", "visits"}, {"stock", "show", "shirt"},
                                                  {"stock", "reservation", "r"}, {"stock", "confirm", "r"},
                                                  {"stock", "cancel", "r"},      {"stock", "sweep"},
                                                  {"queue", "receive", "q"},     {"queue", "redrive", "q", "g"},
                                                  {"queue", "peek", "q", "g"},   {"queue", "stats", "q"}};
  for (const auto& arguments : all) {
    SCOPED_TRACE(testing::PrintToString(arguments));
    const auto ended = program.run(arguments);
    expect_one_line(ended, 69, "there is no file holdfast.db: make one with 'holdfast init");
    EXPECT_EQ(ended.out, "");
  }
  EXPECT_FALSE(std::filesystem::exists(program.file("holdfast.db")));
  EXPECT_EQ(program.run({"counter", "add", "visits", "1"}).out, "1\n");
}

}  // namespace
}  // namespace holdfast
