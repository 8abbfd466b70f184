// Conditions and changes as DynamoDB's expressions.
#include "store/dynamodb/expression.hpp"

#include <gmock/gmock.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <limits>

namespace holdfast::store::dynamodb {
namespace {

using Compare = Condition::Compare;
using testing::HasSubstr;

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t smallest = std::numeric_limits<std::int64_t>::min();

struct Written {
  boost::json::object json;

  [[nodiscard]] std::string text(const char* name) const {
    const auto* value = json.if_contains(name);
    return value == nullptr ? "" : std::string(value->as_string());
  }
  /// With its placeholders replaced, for reading.
  [[nodiscard]] std::string plain(const char* name) const {
    std::string result = text(name);
    for (const char* table : {"ExpressionAttributeNames", "ExpressionAttributeValues"}) {
      if (json.if_contains(table) == nullptr) continue;
      for (const auto& [placeholder, value] : json.at(table).as_object()) {
        const std::string mark(placeholder);
        const std::string replacement =
            value.is_string() ? std::string(value.as_string()) : boost::json::serialize(value.as_object());
        for (std::size_t at = 0; (at = result.find(mark, at)) != std::string::npos; at += replacement.size()) {
          result.replace(at, mark.size(), replacement);
        }
      }
    }
    return result;
  }
  [[nodiscard]] std::string condition() const { return plain("ConditionExpression"); }
  [[nodiscard]] std::string update() const { return plain("UpdateExpression"); }
};

Written write(const Update& update, const Names& names = {}) {
  std::string out = "{";
  const auto written = write_update(update, names, out);
  EXPECT_TRUE(written) << written.error().detail;
  return {boost::json::parse(out + "}").as_object()};
}

std::string condition(Condition condition, const Names& names = {}) {
  return write({"k", {}, std::move(condition)}, names).condition();
}

Error refusal(const Update& update, const Names& names = {}) {
  std::string out;
  const auto written = write_update(update, names, out);
  EXPECT_FALSE(written);
  return written ? Error{} : written.error();
}

TEST(DynamoExpression, an_update_without_changes_or_condition_is_its_key) {
  EXPECT_EQ(boost::json::serialize(write({"CONN#a", {}, {}}).json), R"({"Key":{"Pk":{"S":"CONN#a"}}})");
}

TEST(DynamoExpression, names_and_values_are_placeholders_each_name_once) {
  const Written written =
      write({"k", {Change::set("status", "x")}, Condition::exists("status") && Condition::equals("status", "y")});
  EXPECT_EQ(written.text("ConditionExpression"), "attribute_exists(#0) AND #0 = :0");
  EXPECT_EQ(written.text("UpdateExpression"), "SET #0 = :1");
  EXPECT_EQ(boost::json::serialize(written.json.at("ExpressionAttributeNames")), R"({"#0":"status"})");
}

TEST(DynamoExpression, each_kind_of_condition_has_its_words) {
  EXPECT_EQ(condition(Condition::row_exists()), "attribute_exists(Pk)");
  EXPECT_EQ(condition(Condition::row_missing()), "NOT attribute_exists(Pk)");
  EXPECT_EQ(condition(Condition::exists("a")), "attribute_exists(a)");
  EXPECT_EQ(condition(Condition::not_exists("a")), "attribute_not_exists(a)");
  EXPECT_EQ(condition(Condition::absent("a")), R"(attribute_not_exists(a) OR a = {"NULL":true})");
  EXPECT_EQ(condition(Condition::is("a", Compare::less, 5)), R"(a < {"N":"5"})");
  EXPECT_EQ(condition(Condition::is("a", Compare::less_equal, 5)), R"(a <= {"N":"5"})");
  EXPECT_EQ(condition(Condition::is("a", Compare::greater, "x")), R"(a > {"S":"x"})");
  EXPECT_EQ(condition(Condition::is("a", Compare::greater_equal, 5)), R"(a >= {"N":"5"})");
  EXPECT_EQ(condition(Condition::is("a", Compare::not_equal, 5)), R"(NOT a = {"N":"5"})");
}

TEST(DynamoExpression, parentheses_stand_where_they_are_needed_only) {
  const Condition a = Condition::exists("a"), b = Condition::exists("b"), c = Condition::exists("c");
  EXPECT_EQ(condition(a && b && c), "attribute_exists(a) AND attribute_exists(b) AND attribute_exists(c)");
  EXPECT_EQ(condition(a && (b || c)), "attribute_exists(a) AND (attribute_exists(b) OR attribute_exists(c))");
  EXPECT_EQ(condition(!(a && b)), "NOT (attribute_exists(a) AND attribute_exists(b))");
  EXPECT_EQ(condition(!!(a || b) && c), "(attribute_exists(a) OR attribute_exists(b)) AND attribute_exists(c)");
}

TEST(DynamoExpression, what_is_known_beforehand_is_not_asked) {
  const Condition a = Condition::exists("a");
  const Condition never = !Condition::always();
  Condition none_of;
  none_of.kind = Condition::Kind::any;
  EXPECT_EQ(condition(Condition::always() && a), "attribute_exists(a)");
  EXPECT_EQ(condition(Condition::always() || a), "");
  EXPECT_EQ(condition(never || a), "attribute_exists(a)");
  // The server is asked all the same: it answers with the row.
  for (const Condition& impossible :
       {never, never && a, a && never, none_of, Condition::is("a", Compare::less, true)}) {
    EXPECT_EQ(condition(impossible), "attribute_exists(Pk) AND attribute_not_exists(Pk)");
  }
  // The server refuses names and values that nothing uses.
  const Written written = write({"k", {Change::remove("x")}, Condition::equals("a", 1) && never});
  EXPECT_EQ(boost::json::serialize(written.json.at("ExpressionAttributeNames")), R"({"#0":"Pk","#1":"x"})");
  EXPECT_FALSE(written.json.contains("ExpressionAttributeValues"));
  const Written with_sum = write({"k", {Change::add("x", 1)}, never});
  EXPECT_EQ(boost::json::serialize(with_sum.json.at("ExpressionAttributeValues")), R"({":0":{"N":"1"}})");
}

TEST(DynamoExpression, changes_are_gathered_by_their_kind) {
  const Written written = write({"k",
                                 {Change::remove("d"), Change::set("a", 1), Change::add("c", -2),
                                  Change::set_if_absent("b", "x"), Change::remove("e")},
                                 {}});
  EXPECT_EQ(written.update(), R"(SET a = {"N":"1"}, b = if_not_exists(b, {"S":"x"}) ADD c {"N":"-2"} REMOVE d, e)");
}

TEST(DynamoExpression, an_add_must_stay_within_64_bits) {
  EXPECT_EQ(write({"k", {Change::add("c", 2)}, Condition::row_exists()}).condition(),
            R"(attribute_exists(Pk) AND NOT c > {"N":"9223372036854775805"})");
  EXPECT_EQ(write({"k", {Change::add("c", -1)}, {}}).condition(), R"(NOT c < {"N":"-9223372036854775807"})");
  const Update update{"k", {Change::add("c", 2)}, Condition::equals("x", 1)};
  EXPECT_TRUE(adds_past_the_end(update, {"k", {{"c", largest - 1}, {"x", 1}}}));
  EXPECT_FALSE(adds_past_the_end(update, {"k", {{"c", largest - 1}, {"x", 2}}})) << "the condition fails anyway";
  EXPECT_FALSE(adds_past_the_end(update, {"k", {{"c", largest - 2}, {"x", 1}}}));
  EXPECT_TRUE(adds(update));
  EXPECT_FALSE(adds({"k", {Change::set("c", 2)}, {}}));
}

TEST(DynamoExpression, an_expiry_is_compared_with_all_that_is_read_as_that_millisecond) {
  const auto expiry = [](Compare compare, std::int64_t ms) {
    return condition(Condition::is(attribute::expires_at, compare, ms));
  };
  const std::string name = "lease_expires_at_ms";
  EXPECT_EQ(expiry(Compare::equal, 100), name + R"( > {"N":"99"} AND )" + name + R"( <= {"N":"100"})");
  EXPECT_EQ(expiry(Compare::not_equal, 100), "NOT (" + expiry(Compare::equal, 100) + ")");
  EXPECT_EQ(expiry(Compare::less, 100), name + R"( <= {"N":"99"})");
  EXPECT_EQ(expiry(Compare::less_equal, 100), name + R"( <= {"N":"100"})");
  EXPECT_EQ(expiry(Compare::greater, 100), name + R"( > {"N":"100"})");
  EXPECT_EQ(expiry(Compare::greater_equal, 100), name + R"( > {"N":"99"})");
  EXPECT_EQ(expiry(Compare::equal, largest), name + R"( > {"N":"9223372036854775806"})");
  EXPECT_EQ(expiry(Compare::equal, smallest), name + R"( <= {"N":"-9223372036854775808"})");
  EXPECT_EQ(expiry(Compare::less, smallest), "attribute_exists(Pk) AND attribute_not_exists(Pk)");
  EXPECT_THAT(expiry(Compare::less_equal, largest), HasSubstr("E+125"));
  EXPECT_THAT(expiry(Compare::greater_equal, smallest), HasSubstr("-9.99"));
}

TEST(DynamoExpression, a_table_in_seconds_with_names_of_its_own) {
  const Names names =
      Names::make("tarefa_id", {{"lease_owner", "instancia_id"}, {"lease_expires_at_ms", "expiracao"}},
                  ExpiryUnit::seconds)
          .value();
  const Written written = write({"t",
                                 {Change::set("lease_owner", "w"), Change::set("lease_expires_at_ms", 20'500)},
                                 Condition::row_exists() && Condition::equals("lease_expires_at_ms", 12'000)},
                                names);
  EXPECT_EQ(boost::json::serialize(written.json.at("Key")), R"({"tarefa_id":{"S":"t"}})");
  EXPECT_EQ(written.update(), R"(SET instancia_id = {"S":"w"}, expiracao = {"N":"21"})");
  EXPECT_EQ(written.condition(),
            R"(attribute_exists(tarefa_id) AND (expiracao > {"N":"10.999"} AND expiracao <= {"N":"11"}))");
}

TEST(DynamoExpression, what_cannot_be_told_to_the_table_is_refused_with_its_name) {
  const Names names = Names::make("id", {{"lease_owner", "who"}}, ExpiryUnit::milliseconds).value();
  EXPECT_THAT(refusal({"k", {Change::set("id", 1)}, {}}, names).detail, HasSubstr("called id"));
  EXPECT_THAT(refusal({"k", {}, Condition::exists("who")}, names).detail, HasSubstr("called who"));
  EXPECT_THAT(refusal({"k", {}, Condition::equals("a", Value::Unreadable{"a binary"})}).detail,
              HasSubstr("a cannot be compared with this: it is or holds a binary"));
  EXPECT_FALSE(refusal({"k", {}, Condition::equals("a", "\xff")}).detail.empty());
  EXPECT_FALSE(refusal({"k", {}, Condition::is("lease_expires_at_ms", Compare::less, 1.5)}).detail.empty());
  EXPECT_FALSE(refusal({"k", {Change::set("lease_expires_at_ms", 1.5)}, {}}).detail.empty());
  EXPECT_FALSE(refusal({"k", {Change::add("lease_expires_at_ms", 1)}, {}}).detail.empty());
}

}  // namespace
}  // namespace holdfast::store::dynamodb
