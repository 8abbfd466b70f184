#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "store/json.hpp"

namespace holdfast::store {
namespace {

Value round_trip(const Value& value) {
  const Result<Value> back = value_from_json(to_json(value));
  EXPECT_TRUE(back.has_value()) << back.error().detail << " in " << to_json(value);
  return back.value_or(Value("did not come back"));
}

TEST(Json, is_short_and_in_the_order_of_the_keys) {
  const Attributes attributes{{"b", Value::List{1, 2.0, nullptr, true}}, {"a", "x"}, {"c", Value::Map{}}};
  EXPECT_EQ(to_json(attributes), R"({"a":"x","b":[1,2.0,null,true],"c":{}})");
  EXPECT_EQ(to_json(Attributes{}), "{}");
  EXPECT_EQ(to_json(Value(Value::List{})), "[]");
}

TEST(Json, escapes_what_must_be_and_leaves_other_characters_alone) {
  EXPECT_EQ(to_json(Value(std::string("\"\\\n\0\x1f/é😀", 12))), "\"\\\"\\\\\\u000a\\u0000\\u001f/é😀\"");
}

TEST(Json, reads_what_others_write) {
  const Result<Attributes> read = attributes_from_json(" { \"a\" : \"\\u00e9\\ud83d\\ude00\\n\" , \"b\":[ ] } ");
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(*read, (Attributes{{"a", "é😀\n"}, {"b", Value::List{}}}));
}

TEST(Json, of_a_name_that_comes_twice_the_last_value_counts) {
  EXPECT_EQ(*attributes_from_json(R"({"b":1,"a":2,"b":{"d":3,"c":4,"d":5}})"),
            (Attributes{{"a", 2}, {"b", Value::Map{{"c", 4}, {"d", 5}}}}));
}

TEST(Json, keeps_integers_exactly_in_64_bits) {
  for (const std::int64_t number :
       {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max(),
        std::int64_t{9007199254740993}, std::int64_t{0}, std::int64_t{-1}}) {
    EXPECT_EQ(round_trip(number), Value(number));
  }
}

TEST(Json, keeps_doubles_apart_from_integers) {
  for (const double number : {0.0, 1.0, -1.0, 1e15, 1e22, 1e300, 0.1, 5e-324, std::numeric_limits<double>::max()}) {
    EXPECT_EQ(round_trip(number), Value(number)) << to_json(Value(number));
  }
  EXPECT_TRUE(std::signbit(std::get<double>(round_trip(-0.0).data())));
}

RC_GTEST_PROP(Json, gives_back_every_finite_double_to_the_last_bit, (std::uint64_t bits)) {
  double number = 0;
  std::memcpy(&number, &bits, sizeof number);
  RC_PRE(std::isfinite(number));
  const Result<Value> back = value_from_json(to_json(Value(number)));
  RC_ASSERT(back.has_value());
  RC_ASSERT(*back == Value(number));
}

RC_GTEST_PROP(Json, gives_back_every_string_of_ascii, (const std::string& text)) {
  std::string ascii = text;
  for (char& c : ascii) c = static_cast<char>(c & 0x7f);
  const Result<Value> back = value_from_json(to_json(Value(Value::Map{{ascii, ascii}})));
  RC_ASSERT(back.has_value());
  RC_ASSERT(*back == Value(Value::Map{{ascii, ascii}}));
}

TEST(Json, a_number_beyond_64_bits_becomes_the_nearest_double_and_one_beyond_double_is_an_error) {
  EXPECT_EQ(value_from_json("9223372036854775808").value(), Value(9223372036854775808.0));
  EXPECT_EQ(value_from_json("-9223372036854775809").value(), Value(-9223372036854775808.0));
  EXPECT_EQ(value_from_json("1e-400").value(), Value(0.0));
  EXPECT_FALSE(value_from_json("1e400").has_value());
  EXPECT_FALSE(value_from_json("-1e400").has_value());
}

TEST(Json, nested_values_come_back) {
  const Value deep(Value::Map{{"list", Value::List{Value::Map{{"x", Value::List{}}}, Value::List{1, "a"}}}, {"", 1}});
  EXPECT_EQ(round_trip(deep), deep);
}

TEST(Json, says_what_is_wrong) {
  for (const char* text : {"", "{", "{\"a\":1}x", "{\"a\":1,}", "nul", "[1 2]", "\"\xff\"", "{\"a\":NaN}", "'a'"}) {
    const Result<Value> read = value_from_json(text);
    ASSERT_FALSE(read.has_value()) << text;
    EXPECT_EQ(read.error().code, Code::corrupt);
    EXPECT_NE(read.error().detail.find("not valid JSON at byte"), std::string::npos);
  }
  EXPECT_FALSE(attributes_from_json("[]").has_value());
  EXPECT_FALSE(attributes_from_json("1").has_value());
}

TEST(Json, depth_is_bounded) {
  const std::string deep = std::string(depth_max, '[') + std::string(depth_max, ']');
  EXPECT_TRUE(value_from_json(deep).has_value());
  EXPECT_FALSE(value_from_json('[' + deep + ']').has_value());
}

}  // namespace
}  // namespace holdfast::store
