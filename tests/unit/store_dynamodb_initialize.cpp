// initialize() on a server that says what the test wants.
#include <gmock/gmock.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <map>
#include <optional>
#include <set>

#include "store/dynamodb/dynamodb_store.hpp"
#include "store/dynamodb/table_shape.hpp"
#include "support/virtual_loop.hpp"

namespace holdfast::store::dynamodb {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

/// A table that changes as it is told to, and needs a few looks until it is ready.
class FakeTable final : public Caller {
 public:
  struct State {
    bool is_there = false;
    int looks_until_active = 0;
    std::string table = R"({"TableStatus":"ACTIVE"})";  // what DescribeTable gives
    std::string ttl_attribute;
    std::map<std::string, std::string> refused;  // operation -> error
    std::vector<std::string> changes;            // operations that change something, in order
    std::map<std::string, std::string> due;      // state -> items
    std::set<std::string> deleted;
    std::string created;
  };

  FakeTable(State& state, Loop& loop) : state_(state), loop_(loop) {}

  void call(Call call, Instant, std::function<void(CallReply)> handler) override {
    loop_.post([this, call = std::move(call), handler = std::move(handler)] { handler(reply_to(call)); });
  }

 private:
  static CallReply applied(const std::string& answer) {
    CallReply reply;
    reply.outcome = Outcome::applied;
    reply.answer = boost::json::parse(answer).as_object();
    return reply;
  }
  static CallReply failed(const std::string& type) {
    CallReply reply;
    reply.outcome = Outcome::rejected;
    reply.aws_type = type;
    reply.error = {Code::usage, type};
    return reply;
  }

  CallReply reply_to(const Call& call) {
    if (const auto refused = state_.refused.find(call.operation); refused != state_.refused.end()) {
      return failed(refused->second);
    }
    const boost::json::object body = boost::json::parse(call.body).as_object();
    if (call.operation == "DescribeTable") return describe();
    if (call.operation == "DescribeTimeToLive") return describe_ttl();
    if (call.operation == "Query") {
      const auto& state = body.at("ExpressionAttributeValues").at(":0").at("S").as_string();
      return applied(R"({"Items":[)" + state_.due[std::string(state)] + "]}");
    }
    if (call.operation == "TransactWriteItems") return failed("TransactionCanceledException");
    state_.changes.push_back(call.operation);
    if (call.operation == "DeleteItem") {
      state_.deleted.insert(std::string(body.at("Key").at("Pk").at("S").as_string()));
      EXPECT_THAT(std::string(body.at("ConditionExpression").as_string()), StartsWith("attribute_exists(#0) AND "));
    }
    if (call.operation == "CreateTable") {
      state_.is_there = true;
      state_.created = call.body;
    }
    if (call.operation == "UpdateTable") state_.table = good_table;
    return applied("{}");
  }

  CallReply describe() {
    if (!state_.is_there) return failed("ResourceNotFoundException");
    if (state_.looks_until_active-- > 0) return applied(R"({"Table":)" + std::string(creating_table) + "}");
    return applied(R"({"Table":)" + state_.table + "}");
  }
  CallReply describe_ttl() {
    if (state_.ttl_attribute.empty()) {
      return applied(R"({"TimeToLiveDescription":{"TimeToLiveStatus":"DISABLED"}})");
    }
    return applied(R"({"TimeToLiveDescription":{"TimeToLiveStatus":"ENABLED","AttributeName":")" +
                   state_.ttl_attribute + R"("}})");
  }

 public:
  static constexpr const char* good_table = R"({"TableStatus":"ACTIVE",
      "AttributeDefinitions":[{"AttributeName":"Pk","AttributeType":"S"},
        {"AttributeName":"desired_state","AttributeType":"S"},
        {"AttributeName":"lease_expires_at_ms","AttributeType":"N"}],
      "KeySchema":[{"AttributeName":"Pk","KeyType":"HASH"}],
      "StreamSpecification":{"StreamEnabled":true},
      "GlobalSecondaryIndexes":[{"IndexName":"desired_state-lease_expires_at_ms-index","IndexStatus":"ACTIVE",
        "KeySchema":[{"AttributeName":"desired_state","KeyType":"HASH"},
          {"AttributeName":"lease_expires_at_ms","KeyType":"RANGE"}],"Projection":{"ProjectionType":"ALL"}}]})";
  static constexpr const char* creating_table = R"({"TableStatus":"CREATING",
      "AttributeDefinitions":[{"AttributeName":"Pk","AttributeType":"S"}],
      "KeySchema":[{"AttributeName":"Pk","KeyType":"HASH"}]})";
  static constexpr const char* bare_table = R"({"TableStatus":"ACTIVE",
      "AttributeDefinitions":[{"AttributeName":"Pk","AttributeType":"S"}],
      "KeySchema":[{"AttributeName":"Pk","KeyType":"HASH"}]})";

 private:
  State& state_;
  Loop& loop_;
};

class DynamoInitialize : public testing::Test {
 protected:
  DynamoInitialize() { state_.table = FakeTable::good_table; }

  Reply<std::string> initialize(const std::string& url = "dynamodb://jobs", Duration limit = 60s,
                                const Making& making = {}) {
    TableOptions options = parse_table_url(url).value();
    options.making = making;
    const auto store = make_dynamodb_store(std::move(options), std::make_unique<FakeTable>(state_, loop_), loop_);
    std::optional<Reply<std::string>> reply;
    store->initialize(loop_.instant() + limit, [&](Reply<std::string> given) { reply = std::move(given); });
    EXPECT_TRUE(loop_.advance_until([&] { return reply.has_value(); }, limit + 1s));
    return reply.value_or(Reply<std::string>{});
  }

  static constexpr const char* provisioned_table = R"({"TableStatus":"ACTIVE",
      "ProvisionedThroughput":{"ReadCapacityUnits":5,"WriteCapacityUnits":7},
      "AttributeDefinitions":[{"AttributeName":"Pk","AttributeType":"S"},
        {"AttributeName":"desired_state","AttributeType":"S"},
        {"AttributeName":"lease_expires_at_ms","AttributeType":"N"}],
      "KeySchema":[{"AttributeName":"Pk","KeyType":"HASH"}],
      "GlobalSecondaryIndexes":[{"IndexName":"desired_state-lease_expires_at_ms-index","IndexStatus":"ACTIVE",
        "ProvisionedThroughput":{"ReadCapacityUnits":5,"WriteCapacityUnits":9},
        "KeySchema":[{"AttributeName":"desired_state","KeyType":"HASH"},
          {"AttributeName":"lease_expires_at_ms","KeyType":"RANGE"}],"Projection":{"ProjectionType":"ALL"}}]})";

  test::VirtualLoop loop_;
  FakeTable::State state_;
};

TEST_F(DynamoInitialize, makes_the_table_waits_until_it_is_ready_and_sets_its_ttl) {
  state_.looks_until_active = 4;
  const auto reply = initialize();
  ASSERT_EQ(reply.outcome, Outcome::applied) << reply.error.detail;
  EXPECT_EQ(reply.value, "made table jobs with its index desired_state-lease_expires_at_ms-index");
  EXPECT_THAT(state_.changes, ElementsAre("CreateTable", "UpdateTimeToLive"));
  const auto body = boost::json::parse(state_.created).as_object();
  EXPECT_EQ(body.at("BillingMode"), boost::json::value("PAY_PER_REQUEST"));
  EXPECT_FALSE(body.contains("StreamSpecification"));
  EXPECT_FALSE(body.contains("ProvisionedThroughput"));
}

TEST_F(DynamoInitialize, is_told_how_it_is_paid_for_and_whether_it_has_a_stream) {
  const Making making{Billing{.on_demand = false, .write_units = 7}, true};
  EXPECT_TRUE(initialize("dynamodb://jobs", 60s, making).ok());
  const auto body = boost::json::parse(state_.created).as_object();
  EXPECT_EQ(body.at("BillingMode"), boost::json::value("PROVISIONED"));
  EXPECT_EQ(body.at("ProvisionedThroughput").at("WriteCapacityUnits"), boost::json::value(7));
  EXPECT_EQ(body.at("StreamSpecification").at("StreamEnabled"), boost::json::value(true));
  EXPECT_TRUE(body.at("GlobalSecondaryIndexes").at(0).as_object().contains("ProvisionedThroughput"));
}

TEST_F(DynamoInitialize, does_nothing_where_all_is_there) {
  state_.is_there = true;
  state_.ttl_attribute = "tombstone_expires_at";
  EXPECT_EQ(initialize().value, "table jobs is there, with its index desired_state-lease_expires_at_ms-index");
  EXPECT_THAT(state_.changes, IsEmpty());
}

TEST_F(DynamoInitialize, another_way_of_paying_than_was_asked_for_is_told_and_left_so) {
  state_.is_there = true;
  state_.ttl_attribute = "tombstone_expires_at";
  state_.table = provisioned_table;
  EXPECT_THAT(initialize().value, Not(HasSubstr("billing"))) << "nothing was asked for";
  EXPECT_THAT(initialize("dynamodb://jobs", 60s, Making{Billing{}, false}).value,
              HasSubstr("; its billing is another than on demand: the table is provisioned with 5 read and 7 write "
                        "units, its index is provisioned with 5 read and 9 write units (left so"));
  const Making almost{Billing{.on_demand = false, .write_units = 7}, false};
  EXPECT_THAT(
      initialize("dynamodb://jobs", 60s, almost).value,
      HasSubstr("another than provisioned with 5 read and 7 write units: its index is provisioned with 5 read "
                "and 9 write units"));
  EXPECT_THAT(state_.changes, IsEmpty());
}

TEST_F(DynamoInitialize, one_that_is_paid_for_as_was_asked_is_not_spoken_of) {
  state_.is_there = true;
  state_.ttl_attribute = "tombstone_expires_at";
  state_.table.insert(1, R"("BillingModeSummary":{"BillingMode":"PAY_PER_REQUEST"},)");
  EXPECT_THAT(initialize("dynamodb://jobs", 60s, Making{Billing{}, false}).value, Not(HasSubstr("billing")));
}

TEST_F(DynamoInitialize, turns_the_stream_of_a_table_on_that_has_none) {
  state_.is_there = true;
  state_.ttl_attribute = "tombstone_expires_at";
  std::string& table = state_.table;
  table.replace(table.find("\"StreamEnabled\":true"), 20, "\"StreamEnabled\":false");
  EXPECT_THAT(initialize("dynamodb://jobs", 60s, Making{{}, true}).value, HasSubstr("turned its stream on"));
  EXPECT_THAT(state_.changes, ElementsAre("UpdateTable"));
}

TEST_F(DynamoInitialize, adds_the_index_to_a_table_that_lacks_it) {
  state_.is_there = true;
  state_.table = FakeTable::bare_table;
  state_.ttl_attribute = "tombstone_expires_at";
  EXPECT_EQ(initialize().value, "table jobs was there; added the index desired_state-lease_expires_at_ms-index");
  EXPECT_THAT(state_.changes, ElementsAre("UpdateTable"));
}

TEST_F(DynamoInitialize, two_that_make_it_at_once_both_succeed) {
  state_.is_there = true;
  state_.table = FakeTable::bare_table;
  state_.refused["UpdateTable"] = "ResourceInUseException";
  EXPECT_EQ(initialize("dynamodb://jobs", 5s).outcome, Outcome::unknown) << "waits for the other";
  state_.table = FakeTable::good_table;
  EXPECT_TRUE(initialize().ok());
}

TEST_F(DynamoInitialize, s10_a_table_that_does_not_get_ready_in_time_is_told) {
  state_.looks_until_active = 1'000'000;
  const auto reply = initialize();
  EXPECT_EQ(reply.outcome, Outcome::unknown);
  EXPECT_THAT(reply.error.detail, HasSubstr("still being made"));
}

TEST_F(DynamoInitialize, a_table_of_another_shape_is_refused_with_what_differs) {
  state_.is_there = true;
  const auto detail = [&](const std::string& url) {
    const auto reply = initialize(url);
    EXPECT_EQ(reply.outcome, Outcome::rejected);
    return reply.error.detail;
  };
  EXPECT_THAT(detail("dynamodb://jobs?key=id"), HasSubstr("is Pk (S), but should be id (S)"));
  EXPECT_THAT(detail("dynamodb://jobs?state=want&index=desired_state-lease_expires_at_ms-index"),
              HasSubstr("is over desired_state (S), lease_expires_at_ms (N), but should be over want (S)"));
  std::string& table = state_.table;
  table.replace(table.find("\"ALL\""), 5, "\"KEYS_ONLY\"");
  EXPECT_THAT(detail("dynamodb://jobs"), HasSubstr("projects KEYS_ONLY, but should project ALL"));
  EXPECT_THAT(state_.changes, IsEmpty()) << "nothing is touched";
}

TEST_F(DynamoInitialize, a_ttl_on_another_attribute_is_left_alone_and_told) {
  state_.is_there = true;
  state_.ttl_attribute = "expires";
  EXPECT_THAT(initialize().value, HasSubstr("its TTL is on expires instead of tombstone_expires_at"));
  EXPECT_THAT(state_.changes, IsEmpty());
}

TEST_F(DynamoInitialize, a_server_without_ttl_still_gets_its_table) {
  state_.refused["UpdateTimeToLive"] = "UnknownOperationException";
  const auto reply = initialize();
  EXPECT_TRUE(reply.ok());
  EXPECT_THAT(reply.value, HasSubstr("TTL could not be set"));
}

TEST_F(DynamoInitialize, no_permission_is_rejected_with_the_one_that_lacks) {
  state_.refused["DescribeTable"] = "AccessDeniedException";
  const auto reply = initialize();
  EXPECT_EQ(reply.outcome, Outcome::rejected);
  EXPECT_THAT(reply.error.detail, HasSubstr("allow dynamodb:DescribeTable"));
}

TEST_F(DynamoInitialize, s03_forgets_only_rows_that_nothing_depends_on) {
  state_.is_there = true;
  state_.ttl_attribute = "tombstone_expires_at";
  const std::int64_t now_ms = loop_.wall().time_since_epoch().count();
  const auto row = [](const std::string& key, const char* state, std::int64_t expires_ms, std::int64_t tombstone_s) {
    return R"({"Pk":{"S":")" + key + R"("},"desired_state":{"S":")" + state + R"("},"lease_expires_at_ms":{"N":")" +
           std::to_string(expires_ms) + R"("},"tombstone_expires_at":{"N":")" + std::to_string(tombstone_s) +
           R"("}})";
  };
  state_.due["REMOVED"] = row("CONN#dead", "REMOVED", 0, now_ms / 1000 - 1) + "," +
                          row("CONN#not-yet", "REMOVED", 0, now_ms / 1000 + 60) + "," +
                          row("CONN#restarted", "STARTED", 0, now_ms / 1000 - 1);
  state_.due["WORKER"] = row("WORKER#ended", "WORKER", 0, now_ms / 1000 - 1);
  EXPECT_TRUE(initialize().ok());
  EXPECT_THAT(state_.deleted, ElementsAre("CONN#dead", "WORKER#ended"));
}

}  // namespace
}  // namespace holdfast::store::dynamodb
