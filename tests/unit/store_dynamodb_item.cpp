// Rows and items.
#include "store/dynamodb/item.hpp"

#include <gmock/gmock.h>

#include <boost/json/parse.hpp>

#include "core/lease_write.hpp"
#include "core/number.hpp"
#include "store/json.hpp"
#include "store/request.hpp"

namespace holdfast::store::dynamodb {
namespace {

Row row_from(const std::string& item, const Names& names = {}) {
  auto row = row_from_item(boost::json::parse(item).as_object(), names);
  EXPECT_TRUE(row) << row.error().detail;
  return row.value_or(Row{});
}

std::string written(const Value& value) {
  std::string out;
  write_value(value, out);
  return out;
}

Names names_of(Names::Renamed renamed, ExpiryUnit unit = ExpiryUnit::milliseconds) {
  return Names::make("tarefa_id", std::move(renamed), unit).value();
}

TEST(DynamoItem, every_type_comes_back_as_it_was_written) {
  const Value::Map attributes{{"text", "é\n\"\\"},
                              {"empty", ""},
                              {"number", -42},
                              {"double", 0.1},
                              {"yes", true},
                              {"no", false},
                              {"nothing", nullptr},
                              {"list", Value::List{1, "two", Value::List{}, nullptr}},
                              {"map", Value::Map{{"inner", Value::Map{{"x", -1}}}, {"none", Value::Map{}}}}};
  std::string item = R"({"Pk":{"S":"CONN#a"})";
  for (const auto& [name, value] : attributes) item += ",\"" + name + "\":" + written(value);
  EXPECT_EQ(row_from(item + "}"), (Row{"CONN#a", attributes}));
}

TEST(DynamoItem, values_are_written_in_dynamodbs_words) {
  EXPECT_EQ(written("x"), R"({"S":"x"})");
  EXPECT_EQ(written(7), R"({"N":"7"})");
  EXPECT_EQ(written(nullptr), R"({"NULL":true})");
  EXPECT_EQ(written(true), R"({"BOOL":true})");
  EXPECT_EQ(written(Value::List{1, "a"}), R"({"L":[{"N":"1"},{"S":"a"}]})");
  EXPECT_EQ(written(Value::Map{{"a", 1}, {"b", Value::Map{}}}), R"({"M":{"a":{"N":"1"},"b":{"M":{}}}})");
}

TEST(DynamoItem, types_that_rows_do_not_have_are_named_and_spoil_nothing_else) {
  const Row row = row_from(R"({"Pk":{"S":"k"},"ok":{"N":"1"},"bytes":{"B":"AAE="},"texts":{"SS":["a"]},
      "numbers":{"NS":["1"]},"blobs":{"BS":["AA=="]},"huge":{"N":"123456789012345678901"},"new":{"XYZ":1},
      "deep":{"M":{"a":{"L":[{"B":"AA=="}]}}},"odd":5})");
  EXPECT_EQ(row.number("ok"), 1);
  const auto what = [&](const char* name) { return describe(*row.find(name)); };
  EXPECT_EQ(what("bytes"), "a binary");
  EXPECT_EQ(what("texts"), "a set of texts");
  EXPECT_EQ(what("numbers"), "a set of numbers");
  EXPECT_EQ(what("blobs"), "a set of binaries");
  EXPECT_EQ(what("huge"), "a number that needs more than 64 bits: 123456789012345678901");
  EXPECT_EQ(what("new"), "a value of an unknown type (XYZ)");
  EXPECT_EQ(what("odd"), "a value that is none of DynamoDB's");
  EXPECT_EQ(to_json(*row.find("deep")), R"j({"a":["(a binary)"]})j");
}

TEST(DynamoItem, what_could_not_be_read_cannot_be_written_back_by_itself_or_inside_a_map) {
  const Row row = row_from(R"({"Pk":{"S":"k"},"options":{"M":{"a":{"B":"AA=="}}},"tags":{"SS":["a"]}})");
  for (const char* name : {"options", "tags"}) {
    const auto problem = check(Request(Update{"k", {Change::set(name, *row.find(name))}, {}}));
    ASSERT_TRUE(problem) << name;
    EXPECT_THAT(problem->detail, testing::HasSubstr("can be neither read nor written here"));
  }
}

TEST(DynamoItem, s08_s09_an_unreadable_owner_epoch_or_last_seq_is_damage_and_not_absence) {
  EXPECT_EQ(damage_of(row_from(R"({"Pk":{"S":"k"},"lease_owner":{"SS":["w1"]}})")), "lease_owner is a set of texts");
  EXPECT_TRUE(damage_of(row_from(R"({"Pk":{"S":"k"},"lease_epoch":{"N":"99999999999999999999"}})")));
  EXPECT_FALSE(last_seq_of(row_from(R"({"Pk":{"S":"k"},"last_seq":{"NS":["1"]}})")));
}

TEST(DynamoItem, an_item_without_a_text_as_its_key_is_told) {
  for (const char* item : {R"({"x":{"S":"k"}})", R"({"Pk":{"N":"1"}})", R"({"Pk":"k"})"}) {
    const auto row = row_from_item(boost::json::parse(item).as_object(), {});
    ASSERT_FALSE(row) << item;
    EXPECT_EQ(row.error().code, Code::corrupt);
  }
}

TEST(DynamoItem, a_tables_own_names_are_ours_in_the_row) {
  const Names names =
      names_of({{"lease_owner", "instancia_id"}, {"lease_expires_at_ms", "expiracao"}}, ExpiryUnit::seconds);
  const Row row =
      row_from(R"({"tarefa_id":{"S":"t"},"instancia_id":{"S":"w1"},"expiracao":{"N":"20"},"x":{"N":"1"}})", names);
  EXPECT_EQ(row, (Row{"t", {{"lease_owner", "w1"}, {"lease_expires_at_ms", 21000}, {"x", 1}}}));
}

TEST(DynamoItem, an_attribute_that_bears_our_name_for_another_one_is_not_taken_for_it) {
  const Names names = names_of({{"lease_owner", "instancia_id"}});
  const Row row = row_from(R"({"tarefa_id":{"S":"t"},"lease_owner":{"S":"someone"},"Pk":{"S":"p"}})", names);
  EXPECT_EQ(row, (Row{"t", {{"Pk", "p"}}}));
}

TEST(DynamoItem, an_expiry_that_is_no_number_is_shown_as_it_is) {
  EXPECT_EQ(*row_from(R"({"Pk":{"S":"k"},"lease_expires_at_ms":{"S":"12"}})").find("lease_expires_at_ms"),
            Value("12"));
  EXPECT_EQ(*row_from(R"({"Pk":{"S":"k"},"lease_expires_at_ms":{"NULL":true}})").find("lease_expires_at_ms"),
            Value());
}

TEST(DynamoNames, no_two_things_have_one_name) {
  EXPECT_FALSE(Names::make("Pk", {{"lease_owner", "Pk"}}, ExpiryUnit::milliseconds));
  EXPECT_FALSE(Names::make("Pk", {{"lease_owner", "x"}, {"ws_url", "x"}}, ExpiryUnit::milliseconds));
  const Names names = names_of({{"lease_owner", "instancia_id"}});
  EXPECT_TRUE(names.refusal("tarefa_id")) << "the key";
  EXPECT_TRUE(names.refusal("instancia_id")) << "the table's name for the owner";
  EXPECT_FALSE(names.refusal("lease_owner"));
  EXPECT_FALSE(names.refusal("ws_url"));
}

TEST(DynamoNames, two_names_may_be_exchanged) {
  const Names names = names_of({{"status", "address"}, {"address", "status"}});
  EXPECT_EQ(names.theirs("status"), "address");
  EXPECT_EQ(names.ours("status"), "address");
  EXPECT_FALSE(names.refusal("status"));
}

}  // namespace
}  // namespace holdfast::store::dynamodb
