// What becomes of a call (S5), for each thing that can befall an attempt: on virtual time, with a server that is a
// list of answers.
#include "store/dynamodb/client.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <boost/json/serialize.hpp>
#include <deque>

#include "support/virtual_loop.hpp"

namespace holdfast::store::dynamodb {
namespace {

using namespace std::chrono_literals;
using runtime::HttpAnswer;
using runtime::HttpFailure;
using runtime::HttpReply;
using runtime::HttpStage;
using testing::Each;
using testing::HasSubstr;
using testing::Not;

/// Answers attempts in the order of a script; the last answer of the script is given again and again.
class ScriptedServer final : public runtime::HttpTransport {
 public:
  struct Line {
    std::optional<HttpReply> reply;  ///< nothing: silence, until the attempt's deadline
    Duration takes = 2ms;
  };

  explicit ScriptedServer(Loop& loop) : loop_(loop) {}
  ~ScriptedServer() override { EXPECT_TRUE(timers_.empty()) << "requests were left behind"; }

  RequestId send(runtime::HttpRequest request, Instant deadline, Handler handler) override {
    const RequestId id = ++last_id_;
    requests.push_back(std::move(request));
    deadlines.push_back(deadline);
    sent_at.push_back(loop_.instant());
    EXPECT_FALSE(script.empty());
    Line line = script.front();
    if (script.size() > 1) script.pop_front();
    Instant when = loop_.instant() + line.takes;
    if (!line.reply || when > deadline) {
      line.reply = tl::unexpected(HttpFailure{HttpStage::sent, "host: no answer in time"});
      when = deadline;
    }
    timers_[id] = loop_.call_at(when, [this, id, reply = std::move(*line.reply), handler = std::move(handler)] {
      timers_.erase(id);
      handler(reply);
    });
    return id;
  }
  void cancel(RequestId request) override {
    ++cancelled;
    loop_.cancel(timers_[request]);
    timers_.erase(request);
  }

  std::deque<Line> script;
  std::vector<runtime::HttpRequest> requests;
  std::vector<Instant> deadlines, sent_at;
  int cancelled = 0;

 private:
  Loop& loop_;
  RequestId last_id_ = 0;
  std::map<RequestId, TimerId> timers_;
};

/// Credentials as the test has them at the moment.
class TestCredentials final : public CredentialSource {
 public:
  explicit TestCredentials(Loop& loop) : loop_(loop) {}
  void get(Instant, Handler handler) override {
    ++asked;
    loop_.post([this, handler = std::move(handler)] { handler(now); });
  }
  void refused() override {
    ++refusals;
    if (renewed) now = *renewed;
  }

  Result<Credentials> now = Credentials{"AKID1", "SECRET-KEY-ONE", "TOKEN-ONE", std::nullopt, "test"};
  std::optional<Credentials> renewed;
  int asked = 0, refusals = 0;

 private:
  Loop& loop_;
};

HttpReply answer(int status, std::string body, std::vector<runtime::HttpHeader> headers = {}) {
  HttpAnswer answer;
  answer.status = status;
  answer.body = std::move(body);
  answer.headers = std::move(headers);
  return answer;
}
HttpReply error(const std::string& type, const std::string& message = "words", int status = 400,
                std::vector<runtime::HttpHeader> headers = {}) {
  return answer(status,
                R"({"__type":"com.amazonaws.dynamodb.v20120810#)" + type + R"(","message":")" + message + R"("})",
                std::move(headers));
}
HttpReply failure(HttpStage stage) {
  return tl::unexpected(HttpFailure{stage, "host: went wrong"});
}
const HttpReply fine = answer(200, R"({"Attributes":{"a":{"N":"1"}}})");

struct DynamoClientTest : testing::Test {
  /// What the call comes to, with these answers to its attempts.
  CallReply run(std::deque<ScriptedServer::Line> script, Call call, Duration limit = 10s) {
    server.script = std::move(script);
    std::optional<CallReply> reply;
    client.call(std::move(call), loop.instant() + limit, [&](CallReply came) { reply = std::move(came); });
    EXPECT_FALSE(reply) << "answered inside the call";
    const Instant end = loop.instant() + limit;
    EXPECT_TRUE(loop.advance_until([&] { return reply.has_value(); })) << "never answered";
    EXPECT_LE(loop.instant(), end + 1ms) << "answered too late";
    return reply.value_or(CallReply{});
  }
  std::size_t tries() const { return server.requests.size(); }

  test::VirtualLoop loop{1};
  ScriptedServer server{loop};
  TestCredentials credentials{loop};
  std::shared_ptr<RetryBudget> budget = std::make_shared<RetryBudget>();
  Client client{loop, server, credentials, budget, {.endpoint = "http://dynamo:8000", .region = "eu-west-1"}};

  static Call write(bool repeatable = true) { return {"UpdateItem", R"({"TableName":"t"})", true, repeatable}; }
  static Call read() { return {"GetItem", R"({"TableName":"t"})", false}; }
};

TEST_F(DynamoClientTest, sends_the_operation_signed_and_gives_the_answer) {
  const CallReply reply = run({{fine}}, write());
  EXPECT_EQ(reply.outcome, Outcome::applied);
  EXPECT_TRUE(reply.answer.contains("Attributes"));
  EXPECT_FALSE(reply.maybe_applied);
  ASSERT_EQ(tries(), 1U);
  const runtime::HttpRequest& request = server.requests[0];
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.url, "http://dynamo:8000");
  EXPECT_EQ(request.body, R"({"TableName":"t"})");
  ASSERT_EQ(request.headers.size(), 2U);
  EXPECT_EQ(request.headers[0].value, "application/x-amz-json-1.0");
  EXPECT_EQ(request.headers[1].name, "X-Amz-Target");
  EXPECT_EQ(request.headers[1].value, "DynamoDB_20120810.UpdateItem");
  ASSERT_TRUE(request.signing);
  EXPECT_EQ(request.signing->access_key_id, "AKID1");
  EXPECT_EQ(request.signing->session_token, "TOKEN-ONE");
  EXPECT_EQ(request.signing->region, "eu-west-1");
  EXPECT_EQ(request.signing->service, "dynamodb");
}

TEST_F(DynamoClientTest, a_failed_condition_is_told_with_the_item_and_not_repeated) {
  const CallReply reply =
      run({{answer(400, R"({"__type":"a#ConditionalCheckFailedException","message":"m","Item":{"Pk":{"S":"x"}}})")}},
          write());
  EXPECT_EQ(reply.outcome, Outcome::conflict);
  EXPECT_EQ(reply.aws_type, "ConditionalCheckFailedException");
  EXPECT_TRUE(reply.error_body.contains("Item"));
  EXPECT_FALSE(reply.maybe_applied);
  EXPECT_EQ(tries(), 1U);
}

/// What befalls every attempt of a call, and what the call comes to then.
struct Fault {
  std::string name;
  ScriptedServer::Line line;
  bool is_write = true, repeatable = true;
  Outcome outcome = Outcome::unknown;
  bool maybe_applied = false;
  bool repeated = true;
};

TEST_F(DynamoClientTest, each_fault_that_lasts_comes_to_its_outcome_within_the_deadline) {
  const HttpReply no_json = answer(200, "{\"Attrib");
  const HttpReply wrong_sum = answer(200, "{}", {{"x-amz-crc32", "1"}});
  const HttpReply no_sum = answer(200, "{}", {{"x-amz-crc32", "seven"}});
  const HttpReply throttle = error("ProvisionedThroughputExceededException");
  const HttpReply internal = error("InternalServerError", "m", 500);
  const HttpReply page = answer(503, "<html>busy</html>");
  const HttpReply away = failure(HttpStage::not_sent), cut = failure(HttpStage::sent);
  const std::vector<Fault> faults = {
      {"throttled write", {throttle}, true, true, Outcome::throttled, false, true},
      {"throttled add", {throttle}, true, false, Outcome::throttled, false, true},
      {"throttled read", {throttle}, false, true, Outcome::throttled, false, true},
      {"unreachable write", {away}, true, true, Outcome::throttled, false, true},
      {"unreachable add", {away}, true, false, Outcome::throttled, false, true},
      {"unreachable read", {away}, false, true, Outcome::throttled, false, true},
      {"cut write", {cut}, true, true, Outcome::unknown, true, true},
      {"cut add", {cut}, true, false, Outcome::unknown, true, false},
      {"cut read", {cut}, false, true, Outcome::unknown, false, true},
      {"silent write", {std::nullopt}, true, true, Outcome::unknown, true, true},
      {"silent add", {std::nullopt}, true, false, Outcome::unknown, true, false},
      {"silent read", {std::nullopt}, false, true, Outcome::unknown, false, true},
      {"500 to a write", {internal}, true, true, Outcome::unknown, true, true},
      {"500 to an add", {internal}, true, false, Outcome::unknown, true, false},
      {"500 to a read", {internal}, false, true, Outcome::unknown, false, true},
      {"503 with a page", {page}, true, true, Outcome::unknown, true, true},
      {"half an answer to a write", {no_json}, true, true, Outcome::unknown, true, false},
      {"half an answer to a read", {no_json}, false, true, Outcome::unknown, false, true},
      {"wrong checksum to a write", {wrong_sum}, true, true, Outcome::unknown, true, false},
      {"wrong checksum to a read", {wrong_sum}, false, true, Outcome::unknown, false, true},
      {"checksum that is none", {no_sum}, false, true, Outcome::unknown, false, true},
      {"no such table", {error("ResourceNotFoundException")}, true, true, Outcome::rejected, false, false},
      {"no permission", {error("AccessDeniedException")}, false, true, Outcome::rejected, false, false},
      {"invalid", {error("ValidationException")}, true, true, Outcome::rejected, false, false},
  };
  for (const Fault& fault : faults) {
    server.requests.clear();
    budget->succeeded(RetryBudget::capacity_default);
    const CallReply reply = run({fault.line}, {"UpdateItem", "{}", fault.is_write, fault.repeatable});
    EXPECT_EQ(reply.outcome, fault.outcome) << fault.name << ": " << reply.error.detail;
    EXPECT_EQ(reply.maybe_applied, fault.maybe_applied) << fault.name;
    EXPECT_EQ(tries() > 1, fault.repeated) << fault.name;
    EXPECT_THAT(reply.error.detail, HasSubstr("UpdateItem")) << fault.name;
  }
}

TEST_F(DynamoClientTest, each_passing_fault_ends_in_an_answer) {
  for (const HttpReply& passing :
       {error("ThrottlingException"), error("InternalServerError", "m", 500), failure(HttpStage::not_sent),
        failure(HttpStage::sent), answer(503, ""), error("TransactionInProgressException")}) {
    server.requests.clear();
    EXPECT_EQ(run({{passing}, {passing}, {fine}}, write()).outcome, Outcome::applied);
    EXPECT_EQ(tries(), 3U);
  }
  server.requests.clear();
  EXPECT_EQ(run({{answer(200, "{}", {{"x-amz-crc32", "1"}})}, {fine}}, read()).outcome, Outcome::applied);
  EXPECT_EQ(tries(), 2U);
}

TEST_F(DynamoClientTest, once_a_try_may_have_been_carried_out_nothing_is_said_not_to_have_happened) {
  const HttpReply cut = failure(HttpStage::sent);
  for (const HttpReply& later : {error("ThrottlingException"), failure(HttpStage::not_sent),
                                 error("ResourceNotFoundException"), error("AccessDeniedException")}) {
    const CallReply reply = run({{cut}, {later}}, write());
    EXPECT_EQ(reply.outcome, Outcome::unknown) << reply.error.detail;
    EXPECT_TRUE(reply.maybe_applied);
  }
  const CallReply conflict = run({{cut}, {error("ConditionalCheckFailedException")}}, write());
  EXPECT_EQ(conflict.outcome, Outcome::conflict) << "told as it is: the attempt in the row says whose write it was";
  EXPECT_TRUE(conflict.maybe_applied);
}

TEST_F(DynamoClientTest, a_checksum_that_matches_is_believed) {
  const std::string body = R"({"a":"€"})";
  const auto sum = ::crc32_z(0, reinterpret_cast<const unsigned char*>(body.data()), body.size());
  EXPECT_EQ(run({{answer(200, body, {{"x-amz-crc32", std::to_string(sum)}})}}, write()).outcome, Outcome::applied);
  // An error whose checksum does not match says nothing: not even that the condition failed.
  const CallReply reply =
      run({{error("ConditionalCheckFailedException", "m", 400, {{"x-amz-crc32", "1"}})}}, write());
  EXPECT_EQ(reply.outcome, Outcome::unknown);
  EXPECT_TRUE(reply.maybe_applied);
}

TEST_F(DynamoClientTest, no_attempt_outlasts_its_limit_or_the_call_s_deadline) {
  (void)run({{std::nullopt}}, write(), 5s);
  ASSERT_GE(tries(), 2U);
  const Instant end = server.sent_at[0] + 5s;
  for (std::size_t i = 0; i < tries(); ++i) {
    EXPECT_LE(server.deadlines[i], end);
    EXPECT_LE(server.deadlines[i] - server.sent_at[i], RetryOptions{}.attempt_max);
    EXPECT_GE(server.deadlines[i] - server.sent_at[i], RetryOptions{}.useful_min) << "begun for nothing";
  }
}

TEST_F(DynamoClientTest, gives_up_early_where_another_try_would_be_too_late) {
  const Instant begun = loop.instant();
  const CallReply reply = run({{error("ThrottlingException"), 85ms}}, write(), 100ms);
  EXPECT_EQ(reply.outcome, Outcome::throttled);
  EXPECT_EQ(loop.instant() - begun, 85ms);
  EXPECT_EQ(tries(), 1U);
}

TEST_F(DynamoClientTest, clients_share_what_retries_may_cost) {
  TestCredentials others(loop);
  Client other(loop, server, others, budget, {.endpoint = "http://dynamo:8000", .region = "eu-west-1"});
  std::size_t calls = 0;
  while (budget->tokens() >= RetryBudget::retry_cost) {
    (void)run({{error("ThrottlingException")}}, read(), 60s);
    ++calls;
  }
  EXPECT_EQ(tries(), calls + static_cast<std::size_t>(RetryBudget::capacity_default / RetryBudget::retry_cost));
  server.requests.clear();
  std::optional<CallReply> reply;
  other.call(read(), loop.instant() + 10s, [&](CallReply came) { reply = std::move(came); });
  ASSERT_TRUE(loop.advance_until([&] { return reply.has_value(); }));
  EXPECT_EQ(reply->outcome, Outcome::throttled);
  EXPECT_EQ(tries(), 1U);
  for (int i = 0; i < 10; ++i) (void)run({{fine}}, read());
  server.requests.clear();
  EXPECT_EQ(run({{error("ThrottlingException")}, {fine}}, read()).outcome, Outcome::applied);
}

// ---- The clock ----

/// Virtual time begins at 2023-11-14 22:13:21; the server's clock is an hour and a half ahead.
const std::vector<runtime::HttpHeader> date_ahead = {{"Date", "Tue, 14 Nov 2023 23:43:21 GMT"}};

TEST_F(DynamoClientTest, a_signature_refused_for_its_date_is_dated_by_the_server_s_clock_at_once) {
  for (const auto& [type, message] : std::vector<std::pair<std::string, std::string>>{
           {"InvalidSignatureException", "Signature expired: 20231114T221321Z is now earlier than …"},
           {"InvalidSignatureException", "Signature not yet current: …"},
           {"RequestTimeTooSkewed", "m"}}) {
    test::VirtualLoop fresh;
    ScriptedServer refusing(fresh);
    TestCredentials keys(fresh);
    Client dated(fresh, refusing, keys, budget, {.endpoint = "http://dynamo", .region = "r"});
    refusing.script = {{error(type, message, 400, date_ahead)}, {fine}};
    std::optional<CallReply> reply;
    dated.call(write(), fresh.instant() + 10s, [&](CallReply came) { reply = std::move(came); });
    ASSERT_TRUE(fresh.advance_until([&] { return reply.has_value(); }));
    EXPECT_EQ(reply->outcome, Outcome::applied) << type;
    ASSERT_EQ(refusing.requests.size(), 2U);
    EXPECT_EQ(refusing.requests[0].signing->clock_offset, 0s);
    EXPECT_NEAR(std::chrono::duration<double>(refusing.requests[1].signing->clock_offset - 90min).count(), 0, 1.5);
    EXPECT_EQ(refusing.sent_at[1] - refusing.sent_at[0], 2ms) << "without a wait";
    EXPECT_EQ(dated.clock_offset(), refusing.requests[1].signing->clock_offset);
    EXPECT_EQ(budget->tokens(), RetryBudget::capacity_default);
  }
}

TEST_F(DynamoClientTest, a_date_that_is_refused_again_or_cannot_be_corrected_is_rejected_with_advice) {
  CallReply reply = run({{error("RequestTimeTooSkewed", "m", 400, date_ahead)}}, write());
  EXPECT_EQ(reply.outcome, Outcome::rejected);
  EXPECT_EQ(reply.error.code, Code::denied);
  EXPECT_THAT(reply.error.detail, HasSubstr("set the clock"));
  EXPECT_EQ(tries(), 2U);
  server.requests.clear();
  reply = run({{error("RequestTimeTooSkewed")}}, write());
  EXPECT_EQ(reply.outcome, Outcome::rejected) << "the server does not tell its time";
  EXPECT_EQ(tries(), 1U);
}

TEST_F(DynamoClientTest, measures_the_clocks_difference_at_every_answer) {
  EXPECT_FALSE(client.measured_clock_offset());
  (void)run({{answer(200, "{}", date_ahead)}}, read());
  ASSERT_TRUE(client.measured_clock_offset());
  EXPECT_NEAR(std::chrono::duration<double>(*client.measured_clock_offset() - 90min).count(), 0, 1.5);
  EXPECT_EQ(client.clock_offset(), 0s) << "no signature was refused";
  (void)run({{answer(200, "{}")}}, read());
  EXPECT_FALSE(client.measured_clock_offset());
}

// ---- Credentials ----

TEST_F(DynamoClientTest, credentials_that_are_refused_are_asked_for_anew_once) {
  credentials.renewed = Credentials{"AKID2", "SECRET-KEY-TWO", "", std::nullopt, "test"};
  EXPECT_EQ(run({{error("ExpiredTokenException")}, {fine}}, write()).outcome, Outcome::applied);
  ASSERT_EQ(tries(), 2U);
  EXPECT_EQ(server.requests[1].signing->access_key_id, "AKID2");
  EXPECT_EQ(credentials.refusals, 1);
  server.requests.clear();
  const CallReply reply = run({{error("UnrecognizedClientException")}}, write());
  EXPECT_EQ(reply.outcome, Outcome::rejected);
  EXPECT_EQ(reply.error.code, Code::denied);
  EXPECT_THAT(reply.error.detail, HasSubstr("credentials from test"));
  EXPECT_EQ(tries(), 2U);
}

TEST_F(DynamoClientTest, every_attempt_asks_for_credentials) {
  (void)run({{error("ThrottlingException")}, {error("ThrottlingException")}, {fine}}, write());
  EXPECT_EQ(credentials.asked, 3);
}

TEST_F(DynamoClientTest, without_credentials_nothing_is_sent) {
  credentials.now = fail(Code::unavailable, "the metadata service does not answer");
  CallReply reply = run({{fine}}, write());
  EXPECT_EQ(reply.outcome, Outcome::throttled);
  EXPECT_THAT(reply.error.detail, HasSubstr("metadata service"));
  credentials.now = fail(Code::not_found, "no credentials anywhere");
  reply = run({{fine}}, write());
  EXPECT_EQ(reply.outcome, Outcome::rejected);
  EXPECT_EQ(reply.error.code, Code::not_found);
  EXPECT_EQ(tries(), 0U);
}

TEST_F(DynamoClientTest, secrets_that_the_server_repeats_go_no_further) {
  const std::string leak = "canonical string: x-amz-security-token:TOKEN-ONE, T\\u004fKEN-ONE, SECRET-KEY-ONE\\nmore";
  const auto hides = [](const CallReply& reply) {
    const std::string all = reply.error.detail + boost::json::serialize(reply.error_body);
    EXPECT_THAT(all, Not(HasSubstr("TOKEN-ONE")));
    EXPECT_THAT(all, Not(HasSubstr("SECRET-KEY-ONE")));
    EXPECT_THAT(reply.error.detail, Not(HasSubstr("\n")));
  };
  hides(run({{error("InvalidSignatureException", leak)}}, write()));
  hides(run({{error("ValidationException", leak)}}, read()));
  hides(run({{error("UnrecognizedClientException", leak)}}, read()));
  hides(run({{error("InternalServerError", leak, 500)}}, write(), 100ms));
  hides(run({{tl::unexpected(HttpFailure{HttpStage::sent, "TOKEN-ONE SECRET-KEY-ONE"})}}, write(), 100ms));
}

TEST_F(DynamoClientTest, an_item_that_comes_with_an_error_is_as_it_was_even_where_a_secret_occurs_in_it) {
  credentials.now = Credentials{.access_key_id = "id", .secret_access_key = "y", .session_token = "p"};
  const CallReply reply = run({{answer(400, R"({"__type":"x#ConditionalCheckFailedException","message":"my",)"
                                            R"("Item":{"Pk":{"S":"type y"}}})")}},
                              write());
  EXPECT_EQ(reply.outcome, Outcome::conflict);
  EXPECT_EQ(boost::json::serialize(reply.error_body.at("Item")), R"({"Pk":{"S":"type y"}})");
  EXPECT_EQ(reply.error_body.at("message").as_string(), "m***");
}

TEST_F(DynamoClientTest, a_secret_in_the_reason_of_a_cancelled_transaction_goes_no_further) {
  const CallReply reply =
      run({{answer(400, R"({"__type":"x#TransactionCanceledException","message":"no",)"
                        R"("CancellationReasons":[{"Code":"ValidationError","Message":"SECRET-KEY-ONE"}]})")}},
          {"TransactWriteItems", "{}", true});
  EXPECT_THAT(boost::json::serialize(reply.error_body), Not(HasSubstr("SECRET-KEY-ONE")));
}

TEST_F(DynamoClientTest, long_words_of_the_server_are_cut_between_characters) {
  std::string words;
  for (int i = 0; i < 500; ++i) words += "€";
  const CallReply reply = run({{error("ValidationException", words)}}, read());
  EXPECT_LT(reply.error.detail.size(), 500U);
  EXPECT_TRUE(reply.error.detail.ends_with("€…"));
}

// ---- Counting ----

TEST_F(DynamoClientTest, counts_units_of_table_and_indexes_by_what_they_are_for) {
  const auto costs_three = answer(200, R"({"ConsumedCapacity":{"TableName":"t","CapacityUnits":3.0,
      "Table":{"CapacityUnits":1.0},"GlobalSecondaryIndexes":{"i":{"CapacityUnits":2.0}}}})");
  Call renewal = write();
  renewal.purpose = Purpose::renew;
  (void)run({{error("ThrottlingException")}, {costs_three}}, renewal);
  (void)run({{costs_three}}, renewal);
  (void)run({{costs_three}}, write());
  Call look{"Query", "{}"};
  look.purpose = Purpose::look;
  (void)run({{answer(200, R"({"ConsumedCapacity":{"CapacityUnits":0.5,"Table":{"CapacityUnits":0},
                              "GlobalSecondaryIndexes":{"i":{"CapacityUnits":0.5}}}})")}},
            look);
  const ConsumedByKind all = client.consumed();
  EXPECT_EQ(all.size(), 3U);
  EXPECT_EQ(all.at("renew").table_write_units, 2);
  EXPECT_EQ(all.at("renew").index_write_units, 4);
  EXPECT_EQ(all.at("renew").read_units(), 0);
  EXPECT_EQ(all.at("renew").requests, 2U);
  EXPECT_EQ(all.at("renew").attempts, 3U);
  EXPECT_EQ(all.at("renew").throttled, 1U);
  EXPECT_EQ(all.at("renew").counted, 2U);
  EXPECT_EQ(all.at("UpdateItem").write_units(), 3);
  EXPECT_EQ(all.at("look").table_read_units, 0);
  EXPECT_EQ(all.at("look").index_read_units, 0.5);
  EXPECT_EQ(all.at("look").write_units(), 0);
}

TEST_F(DynamoClientTest, counts_units_however_the_server_tells_them) {
  (void)run({{answer(200, R"({"ConsumedCapacity":{"TableName":"t","CapacityUnits":0.5}})")}}, read());
  (void)run({{answer(200, R"({"ConsumedCapacity":[{"CapacityUnits":2},{"CapacityUnits":4,
                           "GlobalSecondaryIndexes":{"i":{"CapacityUnits":1},"j":{"CapacityUnits":1}}}, 7]})")}},
            {"BatchGetItem", "{}"});
  (void)run({{answer(200, R"({"ConsumedCapacity":"much"})")}}, {"BatchGetItem", "{}"});
  const ConsumedByKind all = client.consumed();
  EXPECT_EQ(all.at("GetItem").table_read_units, 0.5);
  EXPECT_EQ(all.at("BatchGetItem").table_read_units, 4);
  EXPECT_EQ(all.at("BatchGetItem").index_read_units, 2);
  EXPECT_EQ(all.at("BatchGetItem").requests, 2U);
  EXPECT_EQ(all.at("BatchGetItem").counted, 1U) << "not what makes no sense";
}

TEST_F(DynamoClientTest, a_refused_write_is_in_no_figure) {
  (void)run({{error("ConditionalCheckFailedException")}}, write());
  const ConsumedByKind all = client.consumed();
  EXPECT_EQ(all.at("UpdateItem").requests, 1U);
  EXPECT_EQ(all.at("UpdateItem").counted, 0U);
  EXPECT_EQ(all.at("UpdateItem").write_units(), 0);
}

// ---- The end ----

TEST_F(DynamoClientTest, may_be_destroyed_at_any_moment_and_by_a_handler) {
  for (const Duration moment : {0ms, 1ms, 3ms, 10ms, 30ms}) {
    int answered = 0;
    auto doomed = std::make_unique<Client>(loop, server, credentials, budget,
                                           ClientOptions{.endpoint = "http://dynamo", .region = "r"});
    server.script = {{error("ThrottlingException")}};
    for (int i = 0; i < 5; ++i) {
      doomed->call(write(), loop.instant() + 50ms, [&](const CallReply&) { ++answered; });
    }
    loop.advance(moment);
    const int before = answered;
    doomed.reset();
    loop.advance(1s);
    EXPECT_EQ(answered, before);
    EXPECT_EQ(loop.timers(), 0U);
  }
  int answered = 0;
  auto doomed = std::make_unique<Client>(loop, server, credentials, budget,
                                         ClientOptions{.endpoint = "http://dynamo", .region = "r"});
  server.script = {{fine}};
  for (int i = 0; i < 5; ++i) {
    doomed->call(write(), loop.instant() + 1s, [&](const CallReply&) {
      ++answered;
      doomed.reset();
    });
  }
  loop.advance(1s);
  EXPECT_EQ(answered, 1);
}

}  // namespace
}  // namespace holdfast::store::dynamodb
