// What a request comes to: reading, conditional writes, transactions, queries.
#include "store_contract.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <cstdint>
#include <limits>
#include <set>

namespace holdfast::test {
namespace {

using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

constexpr std::int64_t smallest = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

// Reading

TEST_P(StoreContract, a_missing_row_is_an_answer_not_an_error) {
  const RowReply reply = store_.get("CONN#nobody");
  EXPECT_EQ(reply.outcome, Outcome::applied);
  EXPECT_FALSE(reply.value.has_value());
}

TEST_P(StoreContract, a_row_comes_back_as_it_was_written) {
  const Attributes attributes{{"text", "é😀\n\"\\"},
                              {"empty", ""},
                              {"number", 42},
                              {"double", 0.1},
                              {"one", 1.0},
                              {"yes", true},
                              {"no", false},
                              {"nothing", nullptr},
                              {"list", Value::List{1, "two", Value::List{}, nullptr}},
                              {"map", Value::Map{{"inner", Value::Map{{"x", -1}}}, {"none", Value::Map{}}}}};
  const RowReply written = store_.put("CONN#a", attributes);
  ASSERT_EQ(written.outcome, Outcome::applied) << written.error.detail;
  Attributes expected = attributes;
  if (!store_->capabilities().has_doubles) expected["one"] = 1;
  EXPECT_EQ(written.value, (Row{"CONN#a", expected}));
  EXPECT_EQ(attributes_of("CONN#a"), expected);
}

TEST_P(StoreContract, integers_keep_all_64_bits) {
  const Attributes attributes{
      {"low", smallest}, {"high", largest}, {"beyond_double", std::int64_t{9007199254740993}}};
  store_.put("k", attributes);
  EXPECT_EQ(attributes_of("k"), attributes);
}

TEST_P(StoreContract, a_batch_gives_each_row_that_exists_once) {
  for (const char* key : {"a", "b", "c"}) store_.put(key, {{"x", key}});
  const RowsReply reply = store_.batch_get({"a", "nobody", "c", "a"});
  ASSERT_EQ(reply.outcome, Outcome::applied);
  EXPECT_THAT(reply.value, UnorderedElementsAre(Row{"a", {{"x", "a"}}}, Row{"c", {{"x", "c"}}}));
}

TEST_P(StoreContract, an_empty_batch_is_empty) {
  const RowsReply reply = store_.batch_get({});
  EXPECT_EQ(reply.outcome, Outcome::applied);
  EXPECT_THAT(reply.value, IsEmpty());
}

TEST_P(StoreContract, a_batch_may_be_large) {
  std::vector<std::string> keys;
  for (int i = 0; i < 300; ++i) keys.push_back("row-" + std::to_string(i));
  for (const std::string& key : keys) store_->update({key, {}, {}}, store_.deadline(), [](auto) {});
  EXPECT_EQ(store_.batch_get(keys).value.size(), 300U);
}

// Conditional writes

TEST_P(StoreContract, an_update_that_applies_returns_the_row_after) {
  store_.put("k", {{"x", 1}, {"y", 2}, {"z", 3}});
  const RowReply reply = store_.update(
      {"k",
       {Change::set("x", 10), Change::add("y", 5), Change::remove("z"), Change::set_if_absent("x2", "new")},
       Condition::equals("x", 1)});
  ASSERT_EQ(reply.outcome, Outcome::applied);
  EXPECT_EQ(reply.value->attributes, (Attributes{{"x", 10}, {"y", 7}, {"x2", "new"}}));
  EXPECT_EQ(attributes_of("k"), reply.value->attributes);
}

TEST_P(StoreContract, a_condition_that_fails_changes_nothing_and_returns_the_row_as_it_was) {
  const Attributes before{{"x", 1}, {"y", 2}};
  store_.put("k", before);
  const RowReply reply = store_.update({"k", {Change::set("x", 9), Change::remove("y")}, Condition::equals("x", 2)});
  EXPECT_EQ(reply.outcome, Outcome::conflict);
  EXPECT_EQ(reply.value, (Row{"k", before}));
  EXPECT_EQ(attributes_of("k"), before);
}

TEST_P(StoreContract, a_conflict_on_a_missing_row_says_that_there_is_none_and_makes_none) {
  const RowReply reply = store_.update({"k", {Change::set("x", 1)}, Condition::row_exists()});
  EXPECT_EQ(reply.outcome, Outcome::conflict);
  EXPECT_FALSE(reply.value.has_value());
  EXPECT_FALSE(exists("k"));
}

TEST_P(StoreContract, row_missing_creates_once) {
  const Update create{"k", {Change::set("x", 1)}, Condition::row_missing()};
  EXPECT_EQ(store_.update(create).outcome, Outcome::applied);
  const RowReply again = store_.update({"k", {Change::set("x", 2)}, Condition::row_missing()});
  EXPECT_EQ(again.outcome, Outcome::conflict);
  EXPECT_EQ(again.value, (Row{"k", {{"x", 1}}}));
}

TEST_P(StoreContract, an_update_without_changes_makes_a_row_without_attributes) {
  EXPECT_EQ(store_.update({"k", {}, Condition::row_missing()}).outcome, Outcome::applied);
  EXPECT_EQ(attributes_of("k"), Attributes{});
}

TEST_P(StoreContract, conditions_nest) {
  store_.put("k", {{"owner", "w1"}, {"epoch", 7}, {"expires", 100}});
  const Condition mine = Condition::equals("owner", "w1") && Condition::equals("epoch", 7);
  const Condition expired = Condition::is("expires", Condition::Compare::less, 50);
  EXPECT_EQ(store_.update({"k", {Change::set("x", 1)}, mine && expired}).outcome, Outcome::conflict);
  EXPECT_EQ(store_.update({"k", {Change::set("x", 2)}, mine && !expired}).outcome, Outcome::applied);
  EXPECT_EQ(store_.update({"k", {Change::set("x", 3)}, expired || !mine}).outcome, Outcome::conflict);
  EXPECT_EQ(attributes_of("k").at("x"), Value(2));
}

TEST_P(StoreContract, a_comparison_with_a_missing_attribute_is_false_unless_not_equal) {
  store_.put("k", {{"x", 1}});
  using enum Condition::Compare;
  for (const auto compare : {equal, less, less_equal, greater, greater_equal}) {
    EXPECT_EQ(store_.update({"k", {}, Condition::is("absent", compare, 0)}).outcome, Outcome::conflict);
  }
  EXPECT_EQ(store_.update({"k", {}, Condition::is("absent", not_equal, 0)}).outcome, Outcome::applied);
  EXPECT_EQ(store_.update({"k", {}, Condition::not_exists("absent")}).outcome, Outcome::applied);
  EXPECT_EQ(store_.update({"k", {}, Condition::exists("absent")}).outcome, Outcome::conflict);
}

TEST_P(StoreContract, a_comparison_with_another_type_is_false) {
  store_.put("k", {{"x", 1}, {"t", "1"}});
  EXPECT_EQ(store_.update({"k", {}, Condition::equals("x", "1")}).outcome, Outcome::conflict);
  EXPECT_EQ(store_.update({"k", {}, Condition::is("t", Condition::Compare::less, 2)}).outcome, Outcome::conflict);
}

TEST_P(StoreContract, numbers_are_compared_at_the_ends_of_64_bits) {
  store_.put("k", {{"high", largest}, {"low", smallest}});
  using enum Condition::Compare;
  EXPECT_EQ(store_.update({"k", {}, Condition::is("high", greater, largest - 1)}).outcome, Outcome::applied);
  EXPECT_EQ(store_.update({"k", {}, Condition::equals("high", largest - 1)}).outcome, Outcome::conflict);
  EXPECT_EQ(store_.update({"k", {}, Condition::is("low", less, smallest + 1)}).outcome, Outcome::applied);
}

TEST_P(StoreContract, adding_to_what_is_no_number_or_past_64_bits_is_rejected_and_changes_nothing) {
  const Attributes before{{"text", "x"}, {"high", largest}};
  store_.put("k", before);
  for (const char* name : {"text", "high"}) {
    const RowReply reply = store_.update({"k", {Change::set("y", 1), Change::add(name, 1)}, Condition::always()});
    EXPECT_EQ(reply.outcome, Outcome::rejected) << name;
    EXPECT_FALSE(reply.error.detail.empty());
  }
  EXPECT_EQ(attributes_of("k"), before);
}

TEST_P(StoreContract, a_conflict_comes_before_a_change_that_cannot_be_made) {
  store_.put("k", {{"text", "x"}});
  const RowReply reply = store_.update({"k", {Change::add("text", 1)}, Condition::equals("text", "other")});
  EXPECT_EQ(reply.outcome, Outcome::conflict);
}

TEST_P(StoreContract, two_changes_of_one_attribute_are_rejected) {
  EXPECT_EQ(store_.update({"k", {Change::set("x", 1), Change::add("x", 1)}, {}}).outcome, Outcome::rejected);
  EXPECT_FALSE(exists("k"));
}

// Keys and values

TEST_P(StoreContract, keys_may_be_long_and_of_any_characters) {
  const std::string long_key(2048, 'k');
  for (const std::string& key : {std::string("é😀 %'\"\\?*#:/\n"), std::string("nul\0nul", 7), long_key}) {
    ASSERT_EQ(store_.put(key, {{"x", "here"}}).outcome, Outcome::applied) << key;
    EXPECT_EQ(attributes_of(key), (Attributes{{"x", "here"}}));
  }
  EXPECT_FALSE(exists("nul"));
}

TEST_P(StoreContract, keys_differ_by_case_and_by_form) {
  store_.put("A", {{"x", 1}});
  store_.put("a", {{"x", 2}});
  store_.put("a ", {{"x", 3}});
  EXPECT_EQ(attributes_of("A").at("x"), Value(1));
  EXPECT_EQ(attributes_of("a").at("x"), Value(2));
  EXPECT_EQ(attributes_of("a ").at("x"), Value(3));
}

TEST_P(StoreContract, keys_that_are_empty_too_long_or_no_utf8_are_rejected_with_a_reason) {
  for (const std::string& key : {std::string(), std::string(2049, 'k'), std::string("\xff")}) {
    const RowReply written = store_.put(key, {{"x", 1}});
    EXPECT_EQ(written.outcome, Outcome::rejected);
    EXPECT_THAT(written.error.detail, HasSubstr("key"));
    EXPECT_EQ(store_.get(key).outcome, Outcome::rejected);
    EXPECT_EQ(store_.batch_get({"fine", key}).outcome, Outcome::rejected);
    EXPECT_EQ(store_.transact({{key, {}, {}}}).outcome, Outcome::rejected);
  }
}

TEST_P(StoreContract, values_that_could_not_be_read_back_are_rejected_and_nothing_is_written) {
  Value deep(1);
  for (int i = 0; i < 40; ++i) deep = Value(Value::List{deep});
  const std::vector<Value> bad{"\xc3",
                               Value::List{"\xed\xa0\x80"},
                               Value::Map{{"\xff", 1}},
                               std::numeric_limits<double>::quiet_NaN(),
                               std::numeric_limits<double>::infinity(),
                               deep};
  for (const Value& value : bad) EXPECT_EQ(store_.put("k", {{"fine", 1}, {"x", value}}).outcome, Outcome::rejected);
  EXPECT_EQ(store_.put("k", {{"", 1}}).outcome, Outcome::rejected);
  EXPECT_FALSE(exists("k"));
}

TEST_P(StoreContract, a_row_may_be_large_but_not_larger_than_400_kib) {
  EXPECT_EQ(store_.put("k", {{"x", std::string(300'000, 'x')}}).outcome, Outcome::applied);
  EXPECT_EQ(store_.put("k", {{"y", std::string(200'000, 'y')}}).outcome, Outcome::rejected);
  EXPECT_EQ(attributes_of("k").size(), 1U);
}

TEST_P(StoreContract, what_a_write_takes_away_from_a_large_row_does_not_count) {
  store_.put("k", {{"x", std::string(300'000, 'x')}, {"y", 1}});
  EXPECT_EQ(store_.put("k", {{"x", std::string(350'000, 'z')}}).outcome, Outcome::applied);
  const Update exchange{"k", {Change::remove("x"), Change::set("y", std::string(390'000, 'y'))}, Condition::always()};
  EXPECT_EQ(store_.update(exchange).outcome, Outcome::applied);
  EXPECT_EQ(attributes_of("k"), (Attributes{{"y", std::string(390'000, 'y')}}));
}

// Transactions

TEST_P(StoreContract, a_store_without_transactions_refuses_them_with_a_reason_and_writes_nothing) {
  const RowsReply reply = store_.transact({{"a", {Change::set("x", 1)}, {}}, {"b", {Change::set("x", 1)}, {}}});
  if (store_->capabilities().transactions) {
    EXPECT_EQ(reply.outcome, Outcome::applied);
  } else {
    EXPECT_EQ(reply.outcome, Outcome::rejected);
    EXPECT_FALSE(reply.error.detail.empty());
  }
  EXPECT_EQ(exists("a"), store_->capabilities().transactions);
  EXPECT_EQ(exists("b"), store_->capabilities().transactions);
}

TEST_P(StoreContract, a_transaction_writes_all_and_returns_them_in_order) {
  if (!store_->capabilities().transactions) return;  // see the first of these tests
  store_.put("b", {{"x", 1}});
  const RowsReply reply = store_.transact({{"c", {Change::set("x", 3)}, Condition::row_missing()},
                                           {"b", {Change::add("x", 1)}, Condition::equals("x", 1)},
                                           {"a", {Change::set("x", 5)}, Condition::always()}});
  ASSERT_EQ(reply.outcome, Outcome::applied);
  EXPECT_EQ(reply.value, (std::vector<Row>{{"c", {{"x", 3}}}, {"b", {{"x", 2}}}, {"a", {{"x", 5}}}}));
  EXPECT_EQ(store_.batch_get({"a", "b", "c"}).value.size(), 3U);
}

TEST_P(StoreContract, a_transaction_writes_nothing_where_one_condition_fails_and_returns_the_rows_that_failed) {
  if (!store_->capabilities().transactions) return;  // see the first of these tests
  store_.put("a", {{"x", 1}});
  store_.put("b", {{"x", 1}});
  const RowsReply reply = store_.transact({{"a", {Change::set("x", 2)}, Condition::equals("x", 1)},
                                           {"b", {Change::set("x", 2)}, Condition::equals("x", 7)},
                                           {"new", {Change::set("x", 2)}, Condition::row_missing()},
                                           {"gone", {}, Condition::row_exists()}});
  EXPECT_EQ(reply.outcome, Outcome::conflict);
  EXPECT_EQ(reply.value, (std::vector<Row>{{"b", {{"x", 1}}}}));
  EXPECT_EQ(attributes_of("a").at("x"), Value(1));
  EXPECT_FALSE(exists("new"));
}

TEST_P(StoreContract, a_transaction_writes_nothing_where_one_change_cannot_be_made) {
  store_.put("b", {{"x", "text"}});
  const RowsReply reply = store_.transact({{"a", {Change::set("x", 1)}, {}}, {"b", {Change::add("x", 1)}, {}}});
  EXPECT_EQ(reply.outcome, Outcome::rejected);
  EXPECT_FALSE(exists("a"));
}

TEST_P(StoreContract, a_transaction_has_one_to_a_hundred_rows_each_once) {
  if (!store_->capabilities().transactions) return;  // see the first of these tests
  EXPECT_EQ(store_.transact({}).outcome, Outcome::rejected);
  EXPECT_EQ(store_.transact({{"a", {}, {}}, {"a", {}, {}}}).outcome, Outcome::rejected);
  std::vector<Update> many;
  for (int i = 0; i < 100; ++i) many.push_back({"row-" + std::to_string(i), {Change::set("x", i)}, {}});
  EXPECT_EQ(store_.transact(many).outcome, Outcome::applied);
  many.push_back({"one-more", {}, {}});
  EXPECT_EQ(store_.transact(many).outcome, Outcome::rejected);
}

// Queries

WallTime at_ms(std::int64_t ms) {
  return WallTime(std::chrono::milliseconds(ms));
}

TEST_P(StoreContract, due_rows_come_by_expiry_below_the_bound_and_of_that_state_only) {
  store_.put("late", due("STARTED", 300));
  store_.put("b", due("STARTED", 200));
  store_.put("a", due("STARTED", 200));
  store_.put("free", due("STARTED", 0));
  store_.put("past", due("STARTED", -5));
  store_.put("other", due("STOPPED", 100));
  const PageReply reply = store_.query_due({"STARTED", at_ms(300), 100, ""});
  ASSERT_EQ(reply.outcome, Outcome::applied);
  EXPECT_THAT(keys_of(reply.value.rows),
              AnyOf(ElementsAre("past", "free", "a", "b"), ElementsAre("past", "free", "b", "a")));
  EXPECT_EQ(reply.value.rows.front().attributes, due("STARTED", -5));
  EXPECT_EQ(reply.value.next, "");
}

TEST_P(StoreContract, the_largest_time_asks_for_all_rows_and_the_smallest_for_none) {
  store_.put("low", due("STARTED", smallest));
  store_.put("high", due("STARTED", largest));
  EXPECT_EQ(keys_of(store_.query_due({"STARTED", WallTime::max(), 9, ""}).value.rows),
            (std::vector<std::string>{"low", "high"}));
  EXPECT_EQ(keys_of(store_.query_due({"STARTED", at_ms(largest - 1), 9, ""}).value.rows),
            (std::vector<std::string>{"low"}));
  EXPECT_THAT(store_.query_due({"STARTED", WallTime::min(), 9, ""}).value.rows, IsEmpty());
}

TEST_P(StoreContract, rows_without_the_indexs_two_attributes_are_not_due) {
  store_.put("no-expiry", {{"desired_state", "STARTED"}});
  store_.put("no-state", {{"lease_expires_at_ms", 1}});
  store_.put("wrong-types", {{"desired_state", 1}, {"lease_expires_at_ms", "1"}});
  store_.put("half-wrong", {{"desired_state", "STARTED"}, {"lease_expires_at_ms", 1.0}});
  // Where there is one type of number, 1.0 is as good as 1.
  const std::vector<std::string> due_after_all =
      store_->capabilities().has_doubles ? std::vector<std::string>{} : std::vector<std::string>{"half-wrong"};
  EXPECT_EQ(keys_of(store_.query_due({"STARTED", WallTime::max(), 9, ""}).value.rows), due_after_all);
}

TEST_P(StoreContract, a_row_moves_in_the_index_with_its_attributes) {
  store_.put("k", due("STARTED", 100));
  const auto keys = [&](const char* state, std::int64_t before) {
    return keys_of(store_.query_due({state, at_ms(before), 9, ""}).value.rows).size();
  };
  store_.update({"k", {Change::set("lease_expires_at_ms", 500)}, {}});
  EXPECT_EQ(keys("STARTED", 200), 0U);
  EXPECT_EQ(keys("STARTED", 501), 1U);
  store_.update({"k", {Change::set("desired_state", "STOPPED")}, {}});
  EXPECT_EQ(keys("STARTED", 501), 0U);
  EXPECT_EQ(keys("STOPPED", 501), 1U);
  store_.update({"k", {Change::set("last_seq", 9)}, {}});
  EXPECT_EQ(keys("STOPPED", 501), 1U);
  EXPECT_EQ(store_.query_due({"STOPPED", at_ms(501), 9, ""}).value.rows.front().number("last_seq"), 9);
  store_.update({"k", {Change::remove("lease_expires_at_ms")}, {}});
  EXPECT_EQ(keys("STOPPED", 501), 0U);
}

TEST_P(StoreContract, pages_lead_to_the_end_without_repeats_or_misses_even_among_equal_expiries) {
  std::set<std::string> expected;
  for (int i = 0; i < 57; ++i) {
    const std::string key = "row:" + std::to_string(i);
    expected.insert(key);
    store_->update({key, {Change::set("desired_state", "STARTED"), Change::set("lease_expires_at_ms", i / 20)}, {}},
                   store_.deadline(), [](auto) {});
  }
  // An index need not have seen what is not answered yet; a batch waits for the writes before it.
  ASSERT_EQ(store_.batch_get({expected.begin(), expected.end()}).value.size(), expected.size());
  for (const std::size_t limit : {1U, 7U, 19U, 57U, 58U}) {
    std::vector<std::string> seen;
    QueryDue query{"STARTED", WallTime::max(), limit, ""};
    do {
      const PageReply reply = store_.query_due(query);
      ASSERT_EQ(reply.outcome, Outcome::applied);
      ASSERT_LE(reply.value.rows.size(), limit);
      for (const std::string& key : keys_of(reply.value.rows)) seen.push_back(key);
      query.page = reply.value.next;
    } while (!query.page.empty());
    EXPECT_EQ(seen.size(), expected.size()) << limit;
    EXPECT_EQ(std::set<std::string>(seen.begin(), seen.end()), expected) << limit;
  }
}

TEST_P(StoreContract, a_query_may_begin_at_an_expiry_and_goes_on_from_its_pages) {
  for (int i = 0; i < 6; ++i) store_.put("k" + std::to_string(i), due("STARTED", 100 * i));
  QueryDue query{"STARTED", WallTime::max(), 2, ""};
  query.from = at_ms(200);
  std::vector<std::string> keys;
  do {
    const PageReply reply = store_.query_due(query);
    ASSERT_TRUE(reply.ok());
    for (const Row& row : reply.value.rows) keys.push_back(row.key);
    query.page = reply.value.next;
  } while (!query.page.empty());
  EXPECT_EQ(keys, (std::vector<std::string>{"k2", "k3", "k4", "k5"}));
}

TEST_P(StoreContract, a_page_of_no_rows_and_a_token_that_is_none_are_rejected) {
  EXPECT_EQ(store_.query_due({"STARTED", WallTime::max(), 0, ""}).outcome, Outcome::rejected);
  EXPECT_EQ(store_.query_due({"STARTED", WallTime::max(), 9, "nonsense"}).outcome, Outcome::rejected);
}

TEST_P(StoreContract, owned_rows_are_those_with_that_owner) {
  store_.put("a", {{"lease_owner", "w1"}});
  store_.put("b", {{"lease_owner", "w2"}});
  store_.put("c", {{"lease_owner", "w1"}, {"desired_state", "STARTED"}, {"lease_expires_at_ms", 5}});
  store_.put("d", {{"x", 1}});
  EXPECT_THAT(keys_of(store_.query_owned("w1").value), UnorderedElementsAre("a", "c"));
  store_.update({"a", {Change::remove("lease_owner")}, {}});
  store_.update({"c", {Change::set("lease_owner", "w2")}, {}});
  EXPECT_THAT(store_.query_owned("w1").value, IsEmpty());
  EXPECT_THAT(keys_of(store_.query_owned("w2").value), UnorderedElementsAre("b", "c"));
}

INSTANTIATE_TEST_SUITE_P(Every, StoreContract, testing::ValuesIn(all_kinds()),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace holdfast::test
