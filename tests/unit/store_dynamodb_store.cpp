// The store on a server that says what the test wants: what is asked, and what is made of the answers.
#include "store/dynamodb/dynamodb_store.hpp"

#include <gmock/gmock.h>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <deque>
#include <memory>
#include <optional>

#include "support/virtual_loop.hpp"

namespace holdfast::store::dynamodb {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

struct Asked {
  Call call;
  Instant deadline;
  std::function<void(CallReply)> handler;
  [[nodiscard]] boost::json::object body() const { return boost::json::parse(call.body).as_object(); }
};

/// Keeps what it is asked until the test answers.
class FakeCaller final : public Caller {
 public:
  explicit FakeCaller(std::deque<Asked>& asked) : asked_(asked) {}
  void call(Call call, Instant deadline, std::function<void(CallReply)> handler) override {
    asked_.push_back({std::move(call), deadline, std::move(handler)});
  }

 private:
  std::deque<Asked>& asked_;
};

CallReply applied(const std::string& answer) {
  CallReply reply;
  reply.outcome = Outcome::applied;
  reply.answer = boost::json::parse(answer).as_object();
  return reply;
}

CallReply failed(Outcome outcome, const std::string& type, const std::string& body = "{}") {
  CallReply reply;
  reply.outcome = outcome;
  reply.aws_type = type;
  reply.error_body = boost::json::parse(body).as_object();
  reply.error = {Code::unavailable, "the client's words"};
  return reply;
}

const char* const conditional = "ConditionalCheckFailedException";

class DynamoStore : public testing::Test {
 protected:
  void open(const std::string& url = "dynamodb://jobs") {
    store_ = make_dynamodb_store(parse_table_url(url).value(), std::make_unique<FakeCaller>(asked_), loop_);
  }
  DynamoStore() { open(); }

  /// The next call that is asked for, answered; what was asked.
  boost::json::object answer(const char* operation, CallReply reply) {
    loop_.settle();
    EXPECT_FALSE(asked_.empty()) << operation;
    if (asked_.empty()) return {};
    const Asked asked = std::move(asked_.front());
    asked_.pop_front();
    EXPECT_EQ(asked.call.operation, operation);
    asked.handler(std::move(reply));
    loop_.settle();
    return asked.body();
  }

  void update(Update update, Duration limit = 5s) {
    store_->update(std::move(update), loop_.instant() + limit, [this](RowReply reply) { row_ = std::move(reply); });
    loop_.settle();
  }
  void get(const std::string& key, Duration limit = 5s) {
    store_->get(key, loop_.instant() + limit, [this](RowReply reply) { row_ = std::move(reply); });
    loop_.settle();
  }
  void batch_get(std::vector<std::string> keys) {
    store_->batch_get(std::move(keys), loop_.instant() + 5s, [this](RowsReply reply) { rows_ = std::move(reply); });
    loop_.settle();
  }
  void transact(std::vector<Update> updates, std::string token = "") {
    store_->transact(std::move(updates), std::move(token), loop_.instant() + 5s,
                     [this](RowsReply reply) { rows_ = std::move(reply); });
    loop_.settle();
  }
  void query(QueryDue query) {
    store_->query_due(std::move(query), loop_.instant() + 5s, [this](PageReply reply) { page_ = std::move(reply); });
    loop_.settle();
  }

  test::VirtualLoop loop_;
  std::deque<Asked> asked_;
  std::unique_ptr<Store> store_;
  std::optional<RowReply> row_;
  std::optional<RowsReply> rows_;
  std::optional<PageReply> page_;
};

const Update set_x{"k", {Change::set("x", 2)}, Condition::equals("x", 1)};

// Reading and writing one row

TEST_F(DynamoStore, a_row_is_read_consistently) {
  get("k");
  const auto body = answer("GetItem", applied(R"({"Item":{"Pk":{"S":"k"},"x":{"N":"1"}}})"));
  EXPECT_EQ(body.at("ConsistentRead"), boost::json::value(true));
  EXPECT_EQ(body.at("TableName"), boost::json::value("jobs"));
  EXPECT_EQ(row_->value, (Row{"k", {{"x", 1}}}));
  get("k");
  answer("GetItem", applied("{}"));
  EXPECT_TRUE(row_->ok());
  EXPECT_FALSE(row_->value);
}

TEST_F(DynamoStore, an_update_asks_for_the_row_after_it_or_as_it_was) {
  update(set_x);
  EXPECT_TRUE(asked_.front().call.is_write);
  EXPECT_TRUE(asked_.front().call.repeatable);
  EXPECT_EQ(asked_.front().deadline, loop_.instant() + 5s);
  const auto body = answer("UpdateItem", applied(R"({"Attributes":{"Pk":{"S":"k"},"x":{"N":"2"}}})"));
  EXPECT_EQ(body.at("ReturnValues"), boost::json::value("ALL_NEW"));
  EXPECT_EQ(body.at("ReturnValuesOnConditionCheckFailure"), boost::json::value("ALL_OLD"));
  EXPECT_EQ(body.at("ReturnConsumedCapacity"), boost::json::value("INDEXES"));
  EXPECT_EQ(row_->value, (Row{"k", {{"x", 2}}}));
}

TEST_F(DynamoStore, an_update_that_adds_is_not_repeated_by_the_client) {
  update({"k", {Change::add("x", 1)}, {}});
  EXPECT_FALSE(asked_.front().call.repeatable);
}

TEST_F(DynamoStore, a_conflict_shows_the_row_as_it_was) {
  update(set_x);
  answer("UpdateItem", failed(Outcome::conflict, conditional, R"({"Item":{"Pk":{"S":"k"},"x":{"N":"7"}}})"));
  EXPECT_EQ(row_->outcome, Outcome::conflict);
  EXPECT_EQ(row_->value, (Row{"k", {{"x", 7}}}));
}

TEST_F(DynamoStore, where_the_server_shows_no_row_it_is_read) {
  update(set_x);
  answer("UpdateItem", failed(Outcome::conflict, conditional));
  EXPECT_FALSE(row_) << "not yet";
  answer("GetItem", applied(R"({"Item":{"Pk":{"S":"k"},"x":{"N":"7"}}})"));
  EXPECT_EQ(row_->outcome, Outcome::conflict);
  EXPECT_EQ(row_->value, (Row{"k", {{"x", 7}}}));
}

TEST_F(DynamoStore, a_server_that_shows_rows_is_believed_when_it_shows_none) {
  update(set_x);
  answer("UpdateItem", failed(Outcome::conflict, conditional, R"({"Item":{"Pk":{"S":"k"},"x":{"N":"7"}}})"));
  row_.reset();
  update(set_x);
  answer("UpdateItem", failed(Outcome::conflict, conditional));
  ASSERT_TRUE(row_);
  EXPECT_EQ(row_->outcome, Outcome::conflict);
  EXPECT_FALSE(row_->value);
}

TEST_F(DynamoStore, s06_a_row_that_cannot_be_read_after_a_conflict_is_not_taken_for_gone) {
  update(set_x);
  answer("UpdateItem", failed(Outcome::conflict, conditional));
  answer("GetItem", failed(Outcome::throttled, "ThrottlingException"));
  EXPECT_EQ(row_->outcome, Outcome::unknown);
  EXPECT_THAT(row_->error.detail, HasSubstr("the row could not be read"));
}

TEST_F(DynamoStore, an_add_past_64_bits_is_rejected_although_the_server_calls_it_a_failed_condition) {
  const std::string item = R"({"Item":{"Pk":{"S":"k"},"x":{"N":"9223372036854775807"}}})";
  update({"k", {Change::add("x", 1)}, {}});
  answer("UpdateItem", failed(Outcome::conflict, conditional, item));
  EXPECT_EQ(row_->outcome, Outcome::rejected);
  update({"k", {Change::add("x", 1)}, Condition::equals("y", 1)});
  answer("UpdateItem", failed(Outcome::conflict, conditional, item));
  EXPECT_EQ(row_->outcome, Outcome::conflict) << "the condition comes first";
}

TEST_F(DynamoStore, an_answer_without_a_row_that_can_be_read_is_unknown) {
  update(set_x);
  answer("UpdateItem", applied("{}"));
  EXPECT_EQ(row_->outcome, Outcome::unknown);
  EXPECT_EQ(row_->error.code, Code::corrupt);
}

TEST_F(DynamoStore, an_update_that_cannot_be_told_to_this_table_is_rejected_unasked) {
  update({"k", {Change::set("Pk", 2)}, {}});
  ASSERT_TRUE(row_);
  EXPECT_EQ(row_->outcome, Outcome::rejected);
  EXPECT_TRUE(asked_.empty());
}

// Batches

TEST_F(DynamoStore, batches_go_in_hundreds_and_what_is_left_over_is_asked_again) {
  std::vector<std::string> keys;
  for (int i = 0; i < 150; ++i) keys.push_back("k" + std::to_string(i));
  keys.push_back("k7");
  batch_get(keys);
  const auto first = answer("BatchGetItem", applied(R"({"Responses":{"jobs":[{"Pk":{"S":"k0"}}]},
      "UnprocessedKeys":{"jobs":{"ConsistentRead":true,"Keys":[{"Pk":{"S":"k7"}}]}}})"));
  EXPECT_EQ(first.at("RequestItems").at("jobs").at("Keys").as_array().size(), 100U);
  const auto second = answer("BatchGetItem", applied(R"({"Responses":{"jobs":[{"Pk":{"S":"k7"}}]}})"));
  EXPECT_EQ(second.at("RequestItems").at("jobs").at("Keys").as_array().size(), 51U);
  ASSERT_TRUE(rows_);
  EXPECT_TRUE(rows_->ok());
  EXPECT_EQ(rows_->value, (std::vector<Row>{{"k0", {}}, {"k7", {}}}));
}

TEST_F(DynamoStore, s10_a_batch_that_gets_nothing_waits_between_its_tries_and_ends_by_its_deadline) {
  batch_get({"a"});
  int tries = 0;
  while (!rows_ && tries < 10'000) {
    if (asked_.empty()) {
      ASSERT_TRUE(loop_.advance_until([&] { return !asked_.empty() || rows_; }, 10s));
      continue;
    }
    ++tries;
    answer("BatchGetItem", applied(R"({"Responses":{},"UnprocessedKeys":{"jobs":{"Keys":[{"Pk":{"S":"a"}}]}}})"));
  }
  ASSERT_TRUE(rows_);
  EXPECT_EQ(rows_->outcome, Outcome::throttled);
  EXPECT_LT(tries, 100);
  EXPECT_GT(tries, 3);
}

// Transactions

TEST_F(DynamoStore, a_transaction_has_a_token_and_gives_the_rows_in_order) {
  transact({{"b", {Change::set("x", 1)}, {}}, {"a", {}, Condition::row_missing()}}, "my-token");
  const auto body = answer("TransactWriteItems", applied("{}"));
  EXPECT_EQ(body.at("ClientRequestToken"), boost::json::value("my-token"));
  const auto& items = body.at("TransactItems").as_array();
  EXPECT_EQ(items.at(1).at("Update").at("UpdateExpression"), boost::json::value("REMOVE #1"));
  answer("BatchGetItem", applied(R"({"Responses":{"jobs":[{"Pk":{"S":"a"}},{"Pk":{"S":"b"},"x":{"N":"1"}}]}})"));
  ASSERT_TRUE(rows_);
  EXPECT_EQ(rows_->value, (std::vector<Row>{{"b", {{"x", 1}}}, {"a", {}}}));
}

TEST_F(DynamoStore, a_transaction_without_a_token_gets_one_so_that_it_can_be_repeated) {
  transact({{"a", {Change::add("x", 1)}, {}}});
  EXPECT_TRUE(asked_.front().call.repeatable);
  const auto token = answer("TransactWriteItems", applied("{}")).at("ClientRequestToken");
  EXPECT_EQ(token.as_string().size(), 32U);
}

TEST_F(DynamoStore, two_stores_on_loops_of_one_seed_come_to_different_tokens) {
  const auto token = [] {
    std::string body;
    test::VirtualLoop loop;
    struct Catcher final : Caller {
      explicit Catcher(std::string& to) : to_(to) {}
      void call(Call call, Instant, std::function<void(CallReply)>) override { to_ = call.body; }
      std::string& to_;
    };
    const auto store =
        make_dynamodb_store(parse_table_url("dynamodb://jobs").value(), std::make_unique<Catcher>(body), loop);
    store->transact({{"a", {Change::set("x", 1)}, {}}}, "", loop.instant() + std::chrono::seconds(1),
                    [](const RowsReply&) {});
    loop.advance(std::chrono::milliseconds(1));
    return std::string(boost::json::parse(body).at("ClientRequestToken").as_string());
  };
  EXPECT_NE(token(), token());
}

TEST_F(DynamoStore, a_transaction_that_was_carried_out_is_applied_even_where_its_rows_cannot_be_read) {
  transact({{"a", {Change::set("x", 1)}, {}}});
  answer("TransactWriteItems", applied("{}"));
  answer("BatchGetItem", failed(Outcome::unknown, "InternalServerError"));
  EXPECT_EQ(rows_->outcome, Outcome::applied);
  EXPECT_THAT(rows_->error.detail, StartsWith("the transaction was carried out"));
}

TEST_F(DynamoStore, a_cancelled_transaction_is_judged_by_its_reasons_a_conflict_first) {
  const std::vector<Update> updates{{"a", {Change::set("x", 1)}, {}}, {"b", {Change::set("x", 1)}, {}}};
  const auto outcome_of = [&](const std::string& reasons) {
    transact(updates);
    answer("TransactWriteItems",
           failed(Outcome::rejected, "TransactionCanceledException", R"({"CancellationReasons":)" + reasons + "}"));
    return rows_->outcome;
  };
  EXPECT_EQ(outcome_of(R"([{"Code":"TransactionConflict"},{"Code":"ConditionalCheckFailed",
      "Item":{"Pk":{"S":"b"},"x":{"N":"5"}}}])"),
            Outcome::conflict);
  EXPECT_EQ(rows_->value, (std::vector<Row>{{"b", {{"x", 5}}}}));
  EXPECT_EQ(outcome_of(R"([{"Code":"None"},{"Code":"ConditionalCheckFailed"}])"), Outcome::conflict);
  EXPECT_EQ(outcome_of(R"([{"Code":"ValidationError","Message":"m"},{"Code":"None"}])"), Outcome::rejected);
  EXPECT_THAT(rows_->error.detail, HasSubstr("a cannot be made: m"));
  EXPECT_EQ(outcome_of(R"([{"Code":"TransactionConflict"},{"Code":"None"}])"), Outcome::throttled);
  EXPECT_EQ(outcome_of("[]"), Outcome::throttled);
}

TEST_F(DynamoStore, a_server_without_transactions_is_found_out) {
  EXPECT_TRUE(store_->capabilities().transactions) << "until it says otherwise";
  transact({{"a", {}, {}}});
  answer("TransactWriteItems", failed(Outcome::rejected, "UnknownOperationException"));
  EXPECT_EQ(rows_->outcome, Outcome::rejected);
  EXPECT_THAT(rows_->error.detail, HasSubstr("does not know TransactWriteItems"));
  EXPECT_FALSE(store_->capabilities().transactions);
}

// Queries

TEST_F(DynamoStore, due_rows_are_asked_of_the_index_and_pages_go_on_where_they_ended) {
  query({"STARTED", WallTime(5000ms), 2, ""});
  const auto body = answer("Query", applied(R"({"Items":[{"Pk":{"S":"a:b"},"lease_expires_at_ms":{"N":"7.5"}}],
      "LastEvaluatedKey":{"Pk":{"S":"a:b"},"desired_state":{"S":"STARTED"},"lease_expires_at_ms":{"N":"7.5"}}})"));
  EXPECT_EQ(body.at("IndexName"), boost::json::value("desired_state-lease_expires_at_ms-index"));
  EXPECT_EQ(body.at("Limit"), boost::json::value(2));
  EXPECT_EQ(body.at("KeyConditionExpression"), boost::json::value("#0 = :0 AND #1 <= :1"));
  EXPECT_EQ(boost::json::serialize(body.at("ExpressionAttributeValues")),
            R"({":0":{"S":"STARTED"},":1":{"N":"4999"}})");
  ASSERT_TRUE(page_);
  EXPECT_EQ(page_->value.rows, (std::vector<Row>{{"a:b", {{"lease_expires_at_ms", 8}}}}));
  query({"STARTED", WallTime(5000ms), 2, page_->value.next});
  const auto next = answer("Query", applied(R"({"Items":[]})"));
  EXPECT_EQ(boost::json::serialize(next.at("ExclusiveStartKey")),
            R"({"Pk":{"S":"a:b"},"desired_state":{"S":"STARTED"},"lease_expires_at_ms":{"N":"7.5"}})");
  EXPECT_EQ(page_->value.next, "");
}

TEST_F(DynamoStore, both_bounds_are_told_and_what_is_read_as_earlier_is_left_out) {
  QueryDue both{"STARTED", WallTime(5000ms), 9, ""};
  both.from = WallTime(1000ms);
  query(both);
  const auto body = answer("Query", applied(R"({"Items":[{"Pk":{"S":"a"},"lease_expires_at_ms":{"N":"999"}},
      {"Pk":{"S":"b"},"lease_expires_at_ms":{"N":"999.1"}}]})"));
  EXPECT_EQ(body.at("KeyConditionExpression"), boost::json::value("#0 = :0 AND #1 BETWEEN :1 AND :2"));
  EXPECT_EQ(page_->value.rows, (std::vector<Row>{{"b", {{"lease_expires_at_ms", 1000}}}}));
}

TEST_F(DynamoStore, bounds_that_let_nothing_in_are_not_asked) {
  QueryDue none{"STARTED", WallTime(5000ms), 9, ""};
  none.from = WallTime(5000ms);
  query(none);
  ASSERT_TRUE(page_);
  EXPECT_TRUE(page_->ok());
  EXPECT_TRUE(asked_.empty());
  page_.reset();
  query({"STARTED", WallTime(5000ms), 9, "12:no-number:k"});
  ASSERT_TRUE(page_);
  EXPECT_EQ(page_->outcome, Outcome::rejected) << "a token of another store";
}

TEST_F(DynamoStore, owned_rows_are_found_on_all_pages) {
  store_->query_owned("w1", loop_.instant() + 5s, [this](RowsReply reply) { rows_ = std::move(reply); });
  const auto first = answer("Scan", applied(R"({"Items":[{"Pk":{"S":"a"}}],"LastEvaluatedKey":{"Pk":{"S":"m"}}})"));
  EXPECT_EQ(first.at("ConsistentRead"), boost::json::value(true));
  const auto second = answer("Scan", applied(R"({"Items":[{"Pk":{"S":"z"}}]})"));
  EXPECT_EQ(boost::json::serialize(second.at("ExclusiveStartKey")), R"({"Pk":{"S":"m"}})");
  EXPECT_EQ(rows_->value.size(), 2U);
}

TEST_F(DynamoStore, a_walk_that_is_cut_short_gives_no_rows_rather_than_some) {
  store_->query_owned("w1", loop_.instant() + 5s, [this](RowsReply reply) { rows_ = std::move(reply); });
  answer("Scan", applied(R"({"Items":[{"Pk":{"S":"a"}}],"LastEvaluatedKey":{"Pk":{"S":"m"}}})"));
  answer("Scan", failed(Outcome::throttled, "ThrottlingException"));
  EXPECT_EQ(rows_->outcome, Outcome::throttled);
  EXPECT_TRUE(rows_->value.empty());
}

// Order and time

TEST_F(DynamoStore, a_request_waits_for_the_earlier_writes_to_its_row_and_for_nothing_else) {
  std::vector<std::string> done;
  const auto note = [&](const char* what) { return [&done, what](const auto&) { done.push_back(what); }; };
  const Instant deadline = loop_.instant() + 5s;
  store_->update({"k", {Change::set("x", 1)}, {}}, deadline, note("first"));
  store_->update({"k", {Change::set("x", 2)}, {}}, deadline, note("second"));
  store_->get("k", deadline, note("read"));
  store_->batch_get({"other", "k"}, deadline, note("batch"));
  store_->get("other", deadline, note("other"));
  loop_.settle();
  EXPECT_EQ(asked_.size(), 2U) << "the first write and the read of the other row";
  const std::string row = R"({"Attributes":{"Pk":{"S":"k"}}})";
  answer("UpdateItem", applied(row));
  answer("GetItem", applied("{}"));
  answer("UpdateItem", applied(row));
  answer("GetItem", applied("{}"));
  answer("BatchGetItem", applied("{}"));
  EXPECT_THAT(done, ElementsAre("first", "other", "second", "read", "batch"));
}

TEST_F(DynamoStore, what_waits_past_its_deadline_was_surely_not_begun_and_those_behind_it_still_wait) {
  std::optional<RowReply> second, third;
  store_->update({"k", {Change::set("x", 1)}, {}}, loop_.instant() + 60s, [](const RowReply&) {});
  store_->update({"k", {Change::set("x", 2)}, {}}, loop_.instant() + 1s, [&](RowReply reply) { second = reply; });
  store_->get("k", loop_.instant() + 60s, [&](RowReply reply) { third = reply; });
  loop_.advance(2s);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->outcome, Outcome::throttled);
  EXPECT_EQ(asked_.size(), 1U);
  answer("UpdateItem", applied(R"({"Attributes":{"Pk":{"S":"k"}}})"));
  answer("GetItem", applied("{}"));
  EXPECT_TRUE(third);
}

TEST_F(DynamoStore, s10_a_client_that_never_answers_holds_up_nobody) {
  get("k", 1s);
  update({"k", {Change::set("x", 1)}, {}}, 1s);
  row_.reset();
  loop_.advance(2s);
  ASSERT_TRUE(row_);
  EXPECT_EQ(row_->outcome, Outcome::unknown);
  update(set_x);
  EXPECT_EQ(asked_.size(), 3U) << "the stuck write stands in nobody's way";
  answer("GetItem", applied("{}"));  // too late: nobody is told twice
}

TEST_F(DynamoStore, closing_answers_what_is_owed_and_lets_nothing_come_after) {
  std::vector<Outcome> outcomes;
  bool closed = false;
  const Instant deadline = loop_.instant() + 5s;
  for (int i = 0; i < 2; ++i) {
    store_->update(set_x, deadline, [&](const RowReply& reply) {
      EXPECT_FALSE(closed);
      outcomes.push_back(reply.outcome);
    });
  }
  store_->close([&] { closed = true; });
  loop_.settle();
  EXPECT_TRUE(closed);
  EXPECT_THAT(outcomes, ElementsAre(Outcome::unknown, Outcome::throttled)) << "in flight; and behind it";
  answer("UpdateItem", applied(R"({"Attributes":{"Pk":{"S":"k"}}})"));
  EXPECT_EQ(outcomes.size(), 2U);
}

TEST_F(DynamoStore, a_handler_may_destroy_the_store) {
  get("a");
  store_->get("k", loop_.instant() + 5s, [this](const RowReply&) { store_.reset(); });
  answer("GetItem", applied("{}"));
  answer("GetItem", applied("{}"));
  EXPECT_EQ(store_, nullptr);
}

// Names and units of others

TEST_F(DynamoStore, a_table_of_others_is_spoken_to_in_its_own_words) {
  open("dynamodb://CoordenadoresEfemeros?key=tarefa_id&owner=instancia_id&expires=expiracao&expires_unit=s");
  update({"t",
          {Change::set("lease_owner", "w"), Change::set("lease_expires_at_ms", 30'100)},
          Condition::is("lease_expires_at_ms", Condition::Compare::less_equal, 21'000)});
  const auto body = answer("UpdateItem", applied(R"({"Attributes":{"tarefa_id":{"S":"t"},"expiracao":{"N":"31"}}})"));
  EXPECT_EQ(boost::json::serialize(body.at("Key")), R"({"tarefa_id":{"S":"t"}})");
  EXPECT_THAT(boost::json::serialize(body.at("ExpressionAttributeValues")), HasSubstr(R"({"N":"20"})"));
  EXPECT_EQ(row_->value, (Row{"t", {{"lease_expires_at_ms", 32'000}}}));
  query({"STARTED", WallTime(21'001ms), 9, ""});
  const auto asked = answer("Query", applied("{}"));
  EXPECT_EQ(asked.at("IndexName"), boost::json::value("desired_state-expiracao-index"));
  EXPECT_THAT(boost::json::serialize(asked.at("ExpressionAttributeValues")), HasSubstr(R"(":1":{"N":"20"})"));
}

}  // namespace
}  // namespace holdfast::store::dynamodb
