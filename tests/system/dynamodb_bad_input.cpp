// What is wrong around a table or in it: each case a clear error or a repaired state, nothing lost, the others'
// leases untouched. With the program as people run it, on DynamoDB Local, and a proxy for what that cannot be brought
// to say.
#include <gmock/gmock.h>

#include "support/dynamodb_call.hpp"
#include "support/dynamodb_proxy.hpp"
#include "support/fleet_processes.hpp"

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using boost::json::object;
using testing::AllOf;
using testing::HasSubstr;

class DynamoDbBadInput : public Processes {
 protected:
  void SetUp() override {
    for (const auto& [name, value] : DynamoDbServer::environment()) program.set(name, value);
    // As on a machine where nothing is set up.
    program.set("AWS_CONFIG_FILE", "");
    program.set("AWS_SHARED_CREDENTIALS_FILE", "");
    program.set("HOME", program.folder().path().string());
  }
  [[nodiscard]] static object call(std::string_view operation, const object& body) {
    return dynamodb_call(DynamoDbServer::local().port(), operation, body);
  }
  /// A connection to the feed as somebody else wrote it, with these attributes instead of ours.
  void put(const std::string& id, const std::string& url, const object& attributes) const {
    object item{{"Pk", {{"S", "CONN#" + id}}},
                {"desired_state", {{"S", "STARTED"}}},
                {"lease_expires_at_ms", {{"N", "0"}}},
                {"ws_url", {{"S", url}}},
                {"options", {{"M", {{"seq.pointer", {{"S", "/seq"}}}}}}}};
    for (const auto& [name, value] : attributes) item[name] = value;
    (void)call("PutItem", {{"TableName", table}, {"Item", item}});
  }
  [[nodiscard]] object item(const std::string& id) const {
    return call("GetItem", {{"TableName", table}, {"ConsistentRead", true}, {"Key", {{"Pk", {{"S", "CONN#" + id}}}}}})
        .at("Item")
        .as_object();
  }
  /// What a claim changes.
  [[nodiscard]] object lease(const std::string& id) const {
    return call("GetItem", {{"TableName", table},
                            {"ConsistentRead", true},
                            {"ProjectionExpression",
                             "desired_state, lease_owner, lease_epoch, lease_attempt, lease_expires_at_ms"},
                            {"Key", {{"Pk", {{"S", "CONN#" + id}}}}}})
        .at("Item")
        .as_object();
  }
  [[nodiscard]] std::string url(const std::string& endpoint = DynamoDbServer::local().endpoint()) const {
    return "dynamodb://" + table + "?region=us-east-1&endpoint=" + endpoint;
  }
  Program::Ended list(const std::string& store) { return program.run({"conn", "ls", "--store", store}); }
  void expect_drained(runtime::Child& worker) {
    worker.kill(SIGTERM);
    EXPECT_EQ(worker.wait(generous), (runtime::Exit{0, 0}));
  }

  const std::string table = random_table_name("bad-input");
};

// What the URL and the machine say

TEST_F(DynamoDbBadInput, a_region_that_is_none_is_told_before_anybody_is_asked) {
  expect_one_line(list("dynamodb://feeds?region=eu/west"), 2, "the region is a name like eu-west-1, not \"eu/west\"");
  program.set("AWS_REGION", "");
  program.set("AWS_DEFAULT_REGION", "");
  expect_one_line(list("dynamodb://feeds"), 2, "no AWS region: write region=eu-west-1");
}

TEST_F(DynamoDbBadInput, a_region_whose_server_does_not_take_the_signature_is_told_with_what_the_server_says) {
  be_on_dynamodb(table);
  DynamoDbProxy proxy(DynamoDbServer::local().port());
  proxy.plan({.fault = DynamoDbFault::error,
              .times = 0,
              .type = "InvalidSignatureException",
              .message = "Credential should be scoped to a valid region."});
  expect_one_line(list(url(proxy.endpoint())), 1, "Credential should be scoped to a valid region");
}

TEST_F(DynamoDbBadInput, an_endpoint_of_another_scheme_is_told) {
  expect_one_line(list("dynamodb://feeds?region=us-east-1&endpoint=ftp://h"), 2, "http:// or https://");
  expect_one_line(list("dynamodb://feeds?region=us-east-1&endpoint=localhost:8000"), 2, "http:// or https://");
  program.set("AWS_ENDPOINT_URL", "localhost:8000");
  expect_one_line(list("dynamodb://feeds?region=us-east-1"), 2, "AWS_ENDPOINT_URL");
}

TEST_F(DynamoDbBadInput, an_endpoint_that_speaks_no_tls_is_told_by_name) {
  std::string secure = DynamoDbServer::local().endpoint();
  secure.insert(4, "s");
  expect_one_line(list(url(secure)), 1, "127.0.0.1");
}

TEST_F(DynamoDbBadInput, without_credentials_each_place_that_was_looked_at_is_named) {
  program.set("AWS_ACCESS_KEY_ID", "");
  program.set("AWS_SECRET_ACCESS_KEY", "");
  expect_one_line(list(url()), 1, "no AWS credentials (");
  const auto refused = program.run({"worker", "--sink", "stdout", "--store", url()});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("AWS_ACCESS_KEY_ID is not set"), HasSubstr("AWS_PROFILE")));
}

// The table and its index

TEST_F(DynamoDbBadInput, an_index_that_is_missing_is_told_and_init_adds_it_to_what_is_there) {
  create_fleet_table(DynamoDbServer::local().port(), table, "Pk", "", "");
  program.set("HOLDFAST_STORE", url());
  put("early", "ws://h/", {});
  const std::string advice = "has no index desired_state-lease_expires_at_ms-index: make it with `holdfast init";
  expect_one_line(program.run({"conn", "ls"}), 1, advice);
  const auto refused = program.run({"worker", "--sink", "stdout"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr(advice));

  const auto made = program.run({"init"});
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("was there; added the index"));
  EXPECT_THAT(program.run({"conn", "ls"}).out, HasSubstr("early")) << "what was there before is found";
}

TEST_F(DynamoDbBadInput, f19_an_index_that_goes_away_and_is_made_anew_costs_no_lease_that_is_held) {
  DynamoDbProxy proxy(DynamoDbServer::local().port());
  be_on_dynamodb(table, proxy.endpoint());
  add_streams(2, feed());
  runtime::Child holder = worker("w", {}, long_lease);
  ASSERT_TRUE(wait_until([&] { return flowing("w") == 2; }));
  const auto queries = [&] { return proxy.counts().seen["Query"]; };
  // First it is gone, then still being filled.
  for (const std::string message :
       {"The table does not have the specified index: desired_state-lease_expires_at_ms-index",
        "Cannot read from backfilling global secondary index: desired_state-lease_expires_at_ms-index"}) {
    proxy.plan({.fault = DynamoDbFault::error,
                .operation = "Query",
                .times = 0,
                .type = "ValidationException",
                .message = message});
    const int before = queries();
    ASSERT_TRUE(wait_until([&] { return queries() >= before + 3; })) << "it goes on asking";
    proxy.clear();
  }
  const std::int64_t there_again = now_ms();
  ASSERT_TRUE(wait_until([&] { return flowing("w", there_again) == 2; }));
  put("late", "ws://127.0.0.1:1/", {});
  ASSERT_TRUE(wait_until([&] { return text("late", "owner") != ""; })) << "and finds what is new";
  expect_drained(holder);
  EXPECT_EQ(report("w").at("leases").at("claims").as_int64(), 3) << "each was claimed once";
  expect_no_hole();
}

TEST_F(DynamoDbBadInput, a_table_that_is_deleted_ends_what_is_held_and_the_worker_lives_and_can_be_stopped) {
  be_on_dynamodb(table);
  add_streams(2, feed());
  runtime::Child holder = worker("w");
  ASSERT_TRUE(wait_until([&] { return flowing("w") == 2; }));
  (void)call("DeleteTable", {{"TableName", table}});
  ASSERT_TRUE(wait_until([&] { return flowing("w", now_ms() - 1500) == 0; }));
  EXPECT_TRUE(holder.running());
  expect_drained(holder);
}

TEST_F(DynamoDbBadInput, without_a_stream_all_is_found_by_looking_and_init_turns_one_on) {
  be_on_dynamodb(table);
  EXPECT_FALSE(call("DescribeTable", {{"TableName", table}}).at("Table").as_object().contains("LatestStreamArn"));
  runtime::Child holder = worker("w");
  add_streams(1, feed());
  ASSERT_TRUE(wait_until([&] { return flowing("w") == 1; }));
  const auto turned_on = program.run({"init", "--stream"});
  EXPECT_EQ(turned_on.code, 0) << turned_on.err;
  EXPECT_THAT(turned_on.out, HasSubstr("turned its stream on"));
  EXPECT_TRUE(call("DescribeTable", {{"TableName", table}}).at("Table").as_object().contains("LatestStreamArn"));
  const std::int64_t turned_on_at = now_ms();
  EXPECT_TRUE(wait_until([&] { return flowing("w", turned_on_at) == 1; })) << "the lease is kept";
  expect_drained(holder);
  expect_no_hole();
}

// Rows

TEST_F(DynamoDbBadInput, rows_that_nobody_can_take_stay_as_they_are_and_hold_up_no_others) {
  be_on_dynamodb(table);
  const std::string base = feed();
  const std::map<std::string, object> damaged{
      {"text-for-epoch", {{"lease_epoch", {{"S", "7"}}}}},
      {"epoch-beyond-64-bits", {{"lease_epoch", {{"N", "99999999999999999999"}}}}},
      {"number-for-owner", {{"lease_owner", {{"N", "5"}}}}},
      {"set-for-owner", {{"lease_owner", {{"SS", {"a", "b"}}}}}},
      {"almost-400-kb", {{"padding", {{"S", std::string(409'430, 'x')}}}}},
  };
  std::map<std::string, object> before;
  for (const auto& [id, attributes] : damaged) {
    put(id, base + "s0", attributes);
    before[id] = lease(id);
  }
  add_streams(3, base);
  runtime::Child holder = worker("w", {}, long_lease);
  ASSERT_TRUE(wait_until([&] { return flowing("w") == 3; }));
  const std::int64_t held = now_ms();
  ASSERT_TRUE(wait_until([&] { return flowing("w", held + 11'000) == 3; })) << "past a lease, and still";
  for (const auto& [id, was] : before) EXPECT_EQ(lease(id), was) << id;
  for (const auto& [id, attributes] : damaged) {
    if (id == "almost-400-kb") continue;  // only the store can say that it would be too large
    EXPECT_NE(text(id, "problem"), "") << id;
  }
  // One of them is repaired, and taken under a higher epoch; what cannot be is told, and holds up no others.
  const auto started = program.run({"conn", "start", "*epoch*", "set-for-owner"});
  EXPECT_EQ(started.code, 1);
  EXPECT_THAT(started.out, HasSubstr("text-for-epoch started, repaired"));
  EXPECT_THAT(started.err, AllOf(HasSubstr("epoch-beyond-64-bits"), HasSubstr("another name")));
  ASSERT_TRUE(wait_until([&] { return text("text-for-epoch", "epoch") == "8"; }));
  expect_drained(holder);
  EXPECT_EQ(report("w").at("leases").at("claims").as_int64(), 4);
  expect_no_hole();
}

TEST_F(DynamoDbBadInput, a_last_seq_that_is_no_number_parks_its_connection_and_is_never_written_over) {
  be_on_dynamodb(table);
  const std::string base = feed();
  const object beyond{{"N", "99999999999999999999"}};
  const object text_of_letters{{"S", "many"}};
  put("beyond", base + "s0", {{"last_seq", beyond}});
  put("letters", base + "s0", {{"last_seq", text_of_letters}});
  add_streams(1, base);
  runtime::Child holder = worker("w");
  for (const char* id : {"beyond", "letters"}) {
    ASSERT_TRUE(wait_until([&] { return text(id, "status") == "parked"; })) << id;
  }
  ASSERT_TRUE(wait_until([&] { return flowing("w") == 1; }));
  expect_drained(holder);
  EXPECT_EQ(item("beyond").at("last_seq"), beyond);
  EXPECT_EQ(item("letters").at("last_seq"), text_of_letters);
}

TEST_F(DynamoDbBadInput, attributes_of_types_that_rows_do_not_have_outlive_every_owner) {
  be_on_dynamodb(table);
  const object set{{"SS", {"blue", "green"}}};
  const object binary{{"B", "AAEC"}};
  const object long_number{{"N", "12345678901234567890123456789012345678"}};
  put("s0", feed() + "s0", {{"tags", set}, {"key", binary}, {"long", long_number}});
  runtime::Child holder = worker("w");
  ASSERT_TRUE(wait_until([&] { return flowing("w") == 1; }));
  expect_drained(holder);
  const object after = item("s0");
  EXPECT_EQ(after.at("tags"), set);
  EXPECT_EQ(after.at("key"), binary);
  EXPECT_EQ(after.at("long"), long_number);
  EXPECT_EQ(after.at("lease_epoch"), (object{{"N", "1"}}));
}

TEST_F(DynamoDbBadInput, a_row_over_400_kb_is_refused_and_what_is_there_stays) {
  be_on_dynamodb(table);
  add("a", "ws://h/");
  const object before = item("a");
  // Several, since one message has at most 64 KiB.
  std::vector<std::string> large{"conn", "add", "a", "--url", "ws://h/", "--replace"};
  for (int i = 0; i < 8; ++i) {
    large.insert(large.end(), {"--subscribe", "\"" + std::string(60'000, static_cast<char>('a' + i)) + "\""});
  }
  const auto refused = program.run(large);
  EXPECT_NE(refused.code, 0);
  EXPECT_THAT(refused.err, HasSubstr("400 KB"));
  EXPECT_EQ(item("a"), before);
}

TEST_F(DynamoDbBadInput, an_empty_key_is_refused_and_an_empty_name_in_the_table_holds_up_nobody) {
  be_on_dynamodb(table);
  const std::string base = feed();
  EXPECT_EQ(program.run({"conn", "add", "", "--url", "ws://h/"}).code, 2);
  EXPECT_NE(program.run({"conn", "show", ""}).code, 0);
  put("", base + "s0", {});
  add_streams(1, base);
  runtime::Child holder = worker("w");
  ASSERT_TRUE(wait_until([&] {
    const auto all = lines();
    return std::ranges::any_of(all, [](const Line& line) { return line.connection == "s0"; });
  }));
  EXPECT_EQ(program.run({"conn", "ls"}).code, 0);
  expect_drained(holder);
}

}  // namespace
}  // namespace holdfast::test
