// dynamodb://TABLE?…
#include "store/dynamodb/table_url.hpp"

#include <gmock/gmock.h>

namespace holdfast::store::dynamodb {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TableOptions parsed(const std::string& url) {
  auto options = parse_table_url(url);
  EXPECT_TRUE(options) << options.error().detail;
  return options.value_or(TableOptions{});
}

std::string refused(const std::string& url) {
  const auto options = parse_table_url(url);
  EXPECT_FALSE(options) << url;
  if (options) return "";
  EXPECT_EQ(options.error().code, Code::usage);
  EXPECT_THAT(options.error().detail, HasSubstr(url)) << "says which";
  return options.error().detail;
}

TEST(DynamoTableUrl, a_table_alone_is_enough) {
  const TableOptions options = parsed("dynamodb://jobs");
  EXPECT_EQ(options.table, "jobs");
  EXPECT_EQ(options.region, "");
  EXPECT_EQ(options.endpoint, "");
  EXPECT_EQ(options.names.key(), "Pk");
  EXPECT_EQ(options.names.expiry_unit(), ExpiryUnit::milliseconds);
  EXPECT_EQ(options.index, "desired_state-lease_expires_at_ms-index");
  EXPECT_FALSE(options.making.billing);
  EXPECT_FALSE(options.making.stream);
}

TEST(DynamoTableUrl, a_table_that_others_made_keeps_its_names_and_its_unit) {
  const TableOptions options = parsed(
      "dynamodb://CoordenadoresEfemeros?region=sa-east-1&endpoint=http%3A%2F%2F127.0.0.1:8000/&key=tarefa_id&"
      "owner=instancia_id&expires=expiracao&expires_unit=s");
  EXPECT_EQ(options.region, "sa-east-1");
  EXPECT_EQ(options.endpoint, "http://127.0.0.1:8000");
  EXPECT_EQ(options.names.key(), "tarefa_id");
  EXPECT_EQ(options.names.theirs("lease_owner"), "instancia_id");
  EXPECT_EQ(options.names.theirs("lease_expires_at_ms"), "expiracao");
  EXPECT_EQ(options.names.expiry_unit(), ExpiryUnit::seconds);
  EXPECT_EQ(options.index, "desired_state-expiracao-index");
  EXPECT_EQ(parsed("dynamodb://jobs?index=by%20state").index, "by state");
}

TEST(DynamoTableUrl, a_table_may_be_named_by_its_arn) {
  EXPECT_EQ(parsed("dynamodb://arn:aws:dynamodb:eu-west-1:123456789012:table/jobs").table,
            "arn:aws:dynamodb:eu-west-1:123456789012:table/jobs");
}

TEST(DynamoTableUrl, what_is_wrong_is_said) {
  EXPECT_THAT(refused("dynamodb://"), HasSubstr("3 to 255"));
  EXPECT_THAT(refused("dynamodb://no spaces"), HasSubstr("3 to 255"));
  EXPECT_THAT(refused("dynamodb://jobs?regoin=x"), AllOf(HasSubstr("regoin"), HasSubstr("region, endpoint, key")));
  EXPECT_THAT(refused("dynamodb://jobs?region="), HasSubstr("region=…"));
  EXPECT_THAT(refused("dynamodb://jobs?region"), HasSubstr("region=…"));
  EXPECT_THAT(refused("dynamodb://jobs?region=eu/west"), HasSubstr("eu-west-1"));
  EXPECT_THAT(refused("dynamodb://jobs?region=a&region=b"), HasSubstr("twice"));
  EXPECT_THAT(refused("dynamodb://jobs?endpoint=ftp://x"), HasSubstr("http:// or https://"));
  EXPECT_THAT(refused("dynamodb://jobs?endpoint=localhost:8000"), HasSubstr("http:// or https://"));
  EXPECT_THAT(refused("dynamodb://jobs?endpoint=http://"), HasSubstr("HOST"));
  EXPECT_THAT(refused("dynamodb://jobs?endpoint=http://user:secret@host"), HasSubstr("HOST"));
  EXPECT_THAT(refused("dynamodb://jobs?expires_unit=minutes"), HasSubstr("s or ms"));
  EXPECT_THAT(refused("dynamodb://jobs?owner=ws_url"), HasSubstr("cannot both be called ws_url"));
  EXPECT_THAT(refused("dynamodb://jobs?key=lease_owner"), HasSubstr("lease_owner"));
  EXPECT_THAT(refused("dynamodb://jobs?owner=a&state=a"), HasSubstr("cannot both be called a"));
  EXPECT_THAT(refused("dynamodb://jobs?key=%f"), HasSubstr("key=…"));
  EXPECT_THAT(refused("dynamodb://jobs?key=%zz"), HasSubstr("key=…"));
  EXPECT_THAT(refused("dynamodb://jobs?key=%ff"), HasSubstr("key=…"));
  EXPECT_THAT(refused("dynamodb://jobs?stream=on"), HasSubstr("no parameter \"stream\"")) << "that is for 'init'";
}

TEST(DynamoTableUrl, the_list_of_parameters_names_all) {
  EXPECT_THAT(table_url_parameters(), AllOf(HasSubstr("expires_unit"), HasSubstr("owner"), HasSubstr("tombstone")));
}

}  // namespace
}  // namespace holdfast::store::dynamodb
