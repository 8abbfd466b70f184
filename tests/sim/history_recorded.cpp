#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "sim/history/recorded.hpp"

namespace holdfast::sim {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

Instant at(std::int64_t ns) {
  return Instant(Duration(ns));
}

Update some_update() {
  using Compare = Condition::Compare;
  const Condition condition =
      (Condition::row_exists() && (Condition::equals("a", "x'\n") || !Condition::exists("b")) &&
       Condition::not_exists("c") && Condition::is("d", Compare::less_equal, std::int64_t{9007199254740993})) ||
      Condition::is("e", Compare::not_equal, 1.5) ||
      Condition::is("f", Compare::greater, Value::Map{{"g", nullptr}}) || Condition::always();
  return {"r",
          {Change::set("a", 1), Change::set_if_absent("b", Value::List{true, 2.0}), Change::add("c", -3),
           Change::remove("d")},
          condition};
}

Result<Recorded> read(const std::string& text) {
  std::istringstream in(text);
  return read_recorded(in);
}

TEST(RecordedHistory, operations_come_back_as_they_were) {
  const Row row{"r", {{"a", 1}, {"half", 0.5}}};
  const History history = {{"w1", "r", at(1), at(2), some_update(), Outcome::applied, row},
                           {"w1", "r", at(3), at(4), some_update(), Outcome::conflict, std::nullopt},
                           {"w2", "r", at(5), Instant{}, some_update(), Outcome::unknown, std::nullopt},
                           {"w2", "r", at(6), at(7), std::nullopt, Outcome::applied, std::nullopt},
                           {"w2", "r", at(8), at(9), std::nullopt, Outcome::throttled, std::nullopt}};
  std::string text = to_line(Row{"q", {{"x", 1}}}) + "\n\n";
  for (const Operation& operation : history) text += to_line(operation) + "\n";
  const auto found = read(text);
  ASSERT_TRUE(found) << found.error().detail;
  EXPECT_EQ((std::map<std::string, Row>{{"q", Row{"q", {{"x", 1}}}}}), found->initial);
  ASSERT_THAT(found->operations, SizeIs(history.size()));
  for (std::size_t i = 0; i < history.size(); ++i) {
    const Operation& was = history[i];
    const Operation& is = found->operations[i];
    EXPECT_EQ(was.client, is.client);
    EXPECT_EQ(was.key, is.key);
    EXPECT_EQ(was.invoked, is.invoked);
    EXPECT_EQ(was.returned, is.returned);
    EXPECT_EQ(was.update, is.update) << to_line(was) << "\n" << to_line(is);
    EXPECT_EQ(was.outcome, is.outcome);
    EXPECT_EQ(was.row, is.row);
  }
}

TEST(RecordedHistory, every_other_kind_of_line_comes_back_as_the_same_line) {
  const std::vector<std::string> lines = {
      to_line(Grant{"a", "w1", {3}, at(1), at(2)}),       to_line(Belief{"a", "w1", {3}, at(1), at(2)}),
      to_line(Effect{"a", "w1", {3}, at(1), at(2), "x"}), to_line(Produced{"c", 1, "i", at(1)}),
      to_line(Delivered{"c", {3}, 1, "i", at(1), "w"}),   to_line(Gap{"c", {3}, 1, 2, at(1)}),
      to_line(Enqueued{"g", "i", at(1), at(2)}),          to_line(Enqueued{"g", "j", at(1), Instant::max()}),
      to_line(Dequeued{"g", "i", {3}, at(1), "w"})};
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  const auto found = read(text);
  ASSERT_TRUE(found) << found.error().detail;
  EXPECT_EQ(lines[0], to_line(found->grants.at(0)));
  EXPECT_EQ(lines[1], to_line(found->beliefs.at(0)));
  EXPECT_EQ(lines[2], to_line(found->effects.at(0)));
  EXPECT_EQ(lines[3], to_line(found->produced.at(0)));
  EXPECT_EQ(lines[4], to_line(found->delivered.at(0)));
  EXPECT_EQ(lines[5], to_line(found->gaps.at(0)));
  EXPECT_EQ(lines[6], to_line(found->enqueued.at(0)));
  EXPECT_EQ(lines[7], to_line(found->enqueued.at(1)));
  EXPECT_EQ(lines[8], to_line(found->dequeued.at(0)));
}

TEST(RecordedHistory, what_cannot_be_read_is_told_with_its_line) {
  for (
      const auto& [line, words] : std::map<std::string, std::string>{
          {"{", "line 2: "},
          {"[]", "a line is a JSON object"},
          {"{}", "nothing in it says what it is"},
          {R"({"op":"put","client":"c","key":"r","invoked_ns":1,"outcome":"unknown"})", "no operation 'put'"},
          {R"({"op":"get","client":"c","key":"r","invoked_ns":1,"outcome":"fine"})", "no outcome 'fine'"},
          {R"({"op":"get","client":"c","key":"r","invoked_ns":1,"outcome":"applied"})", "'returned_ns' is missing"},
          {R"({"op":"get","client":"c","key":"r","invoked_ns":5,"returned_ns":4,"outcome":"applied","row":null})",
           "returned before it was invoked"},
          {R"({"op":"get","client":"c","key":"r","invoked_ns":1,"returned_ns":4,"outcome":"applied","row":7})",
           "attributes should be where 7 is"},
          {R"({"op":"update","client":"c","key":"r","invoked_ns":1,"outcome":"unknown","changes":[],"if":["near","a"]})",
           "no condition 'near'"},
          {R"({"op":"update","client":"c","key":"r","invoked_ns":1,"outcome":"unknown","changes":[["set","a"]],"if":["always"]})",
           "a list of 3 or more"},
          {R"({"belief":"c","owner":"w","epoch":1,"from_ns":3,"until_ns":2})", "ends before it begins"},
          {R"({"enqueued":"g","item":"i","from_ns":3,"until_ns":2})", "ends before it begins"},
          {R"({"gap":"c","epoch":"1","first":1,"last":2,"at_ns":3})", "an integer should be where"}}) {
    const auto found = read(to_line(Gap{"c", {3}, 1, 2, at(1)}) + "\n" + line + "\n");
    ASSERT_FALSE(found) << line;
    EXPECT_EQ(Code::corrupt, found.error().code);
    EXPECT_THAT(found.error().detail, HasSubstr(words)) << line;
    EXPECT_THAT(found.error().detail, HasSubstr("line 2: "));
  }
}

TEST(RecordedHistory, what_is_empty_or_cannot_be_read_to_its_end_is_not_good) {
  EXPECT_FALSE(read(""));
  EXPECT_FALSE(read("\n\n"));
  std::ifstream folder("/");
  const auto found = read_recorded(folder);
  ASSERT_FALSE(found);
  EXPECT_EQ(Code::unavailable, found.error().code);
}

TEST(RecordedHistory, each_check_looks_at_what_there_is_for_it) {
  Recorded right;
  const Update claim{"a", {Change::set("lease_owner", "w1"), Change::set("lease_epoch", 1)}, Condition::always()};
  const Row row{"a", {{"lease_owner", "w1"}, {"lease_epoch", 1}}};
  right.operations = {{"w1", "a", at(1), at(2), claim, Outcome::applied, row}};
  right.produced = {{"c", 1, "i", at(1)}};
  right.delivered = {{"c", {1}, 1, "i", at(2), "w1"}};
  for (const auto& [name, verdict, counted] : judge(right))
    EXPECT_TRUE(verdict.good()) << name << ": " << verdict.words;

  const auto fails = [&](const std::string& check, auto&& break_it) {
    Recorded wrong = right;
    break_it(wrong);
    for (const auto& [name, verdict, counted] : judge(wrong))
      EXPECT_EQ(name == check, verdict.bad()) << check << "/" << name;
  };
  fails("linearizability", [](Recorded& it) { it.operations[0].row->attributes["x"] = 1; });
  fails("epochs", [](Recorded& it) { it.grants = {{"a", "w1", {1}, at(1), at(2)}, {"a", "w1", {1}, at(3), at(4)}}; });
  fails("one believer", [](Recorded& it) {
    it.beliefs = {{"a", "w1", {1}, at(1), at(4)}, {"a", "w2", {2}, at(3), at(5)}};
  });
  fails("owners", [](Recorded& it) { it.effects = {{"a", "w2", {1}, at(1), at(1), ""}}; });
  fails("writers", [](Recorded& it) {
    const Update checkpoint{"a", {Change::set("last_seq", 9)}, Condition::always()};
    const Row after{"a", {{"lease_owner", "w1"}, {"lease_epoch", 1}, {"last_seq", 9}}};
    it.operations.push_back({"w2", "a", at(3), at(4), checkpoint, Outcome::applied, after});
  });
  fails("fence of effects", [](Recorded& it) {
    it.effects = {{"a", "w2", {2}, at(1), at(1), ""}, {"a", "w1", {1}, at(2), at(2), ""}};
  });
  fails("account", [](Recorded& it) { it.delivered.clear(); });
  fails("order", [](Recorded& it) { it.dequeued = {{"g", "i", {1}, at(1), "w"}}; });
}

}  // namespace
}  // namespace holdfast::sim
