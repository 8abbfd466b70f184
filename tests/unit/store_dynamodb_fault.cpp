// What DynamoDB's errors mean (S5), and what they advise.
#include "store/dynamodb/fault.hpp"

#include <gmock/gmock.h>

#include <tuple>

namespace holdfast::store::dynamodb {
namespace {

using testing::HasSubstr;

const TableOptions options = parse_table_url("dynamodb://jobs?region=eu-west-1").value();
const Call update{"UpdateItem", "{}", true};
const Call query{"Query", "{}", false};

CallReply reply_of(const char* type, const char* message, Outcome outcome = Outcome::rejected) {
  CallReply reply;
  reply.outcome = outcome;
  reply.aws_type = type;
  reply.error_body = {{"message", message}};
  return reply;
}

struct Case {
  const char* type;
  const char* message;
  Outcome outcome;
  Code code;
  const char* advice;
};

class EachFault : public testing::TestWithParam<Case> {};

TEST_P(EachFault, has_its_outcome_and_says_what_to_do) {
  const Case& expected = GetParam();
  const Fault fault = fault_of(query, reply_of(expected.type, expected.message), options);
  EXPECT_EQ(fault.outcome, expected.outcome);
  EXPECT_EQ(fault.error.code, expected.code);
  EXPECT_THAT(fault.error.detail, HasSubstr(expected.advice));
  EXPECT_EQ(fault.error.detail.find('\n'), std::string::npos);
}

using enum Outcome;
INSTANTIATE_TEST_SUITE_P(
    Dynamo, EachFault,
    testing::Values(
        Case{"ResourceNotFoundException", "Requested resource not found", rejected, Code::not_found,
             "there is no table jobs in eu-west-1: make it with `holdfast init --store 'dynamodb://jobs"},
        Case{"AccessDeniedException", "User: x is not authorized to perform: dynamodb:Query", rejected, Code::denied,
             "allow dynamodb:Query on the table and on its /index/*"},
        Case{"UnrecognizedClientException", "The security token included in the request is invalid.", rejected,
             Code::denied, "credentials are refused"},
        Case{"ExpiredTokenException", "expired", rejected, Code::denied, "credentials are refused"},
        Case{"ValidationException", "The table does not have the specified index: i", rejected, Code::not_found,
             "has no index desired_state-lease_expires_at_ms-index: make it with `holdfast init"},
        Case{"ValidationException", "Cannot read from backfilling global secondary index: i", throttled,
             Code::unavailable, "still being made"},
        Case{"ValidationException", "The provided key element does not match the schema", rejected, Code::usage,
             "name its own with key="},
        Case{"ValidationException", "One of the required keys was not given a value", rejected, Code::usage,
             "name its own with key="},
        Case{"ValidationException", "Item size to update has exceeded the maximum allowed size", rejected,
             Code::usage, "400 KB"},
        Case{"ValidationException", "Item size has exceeded the maximum allowed size", rejected, Code::usage,
             "400 KB"},
        Case{"ValidationException", "Invalid UpdateExpression: …", rejected, Code::usage, "Invalid UpdateExpression"},
        Case{"ProvisionedThroughputExceededException", "m", throttled, Code::unavailable, "no more for now"},
        Case{"ThrottlingException", "m", throttled, Code::unavailable, "no more for now"},
        Case{"RequestLimitExceeded", "m", throttled, Code::unavailable, "no more for now"},
        Case{"TransactionConflictException", "m", throttled, Code::unavailable, "no more for now"},
        Case{"TransactionInProgressException", "m", unknown, Code::unavailable, "still being carried out"},
        Case{"IdempotentParameterMismatchException", "m", rejected, Code::usage, "token"},
        Case{"UnknownOperationException", "", rejected, Code::usage, "does not know Query"},
        Case{"ResourceInUseException", "m", throttled, Code::unavailable, "being made or changed"}));

TEST(DynamoFault, a_condition_that_failed_is_a_conflict_even_after_a_try_of_unknown_outcome) {
  CallReply reply = reply_of("ConditionalCheckFailedException", "The conditional request failed", conflict);
  reply.maybe_applied = true;
  EXPECT_EQ(fault_of(update, reply, options).outcome, conflict);
}

TEST(DynamoFault, s05_a_write_that_may_have_been_made_by_an_earlier_try_stays_unknown) {
  for (const char* type : {"ThrottlingException", "AccessDeniedException", "ExpiredTokenException"}) {
    CallReply reply = reply_of(type, "m", throttled);
    reply.maybe_applied = true;
    EXPECT_EQ(fault_of(update, reply, options).outcome, unknown) << type;
    EXPECT_NE(fault_of(query, reply, options).outcome, unknown) << "a read changes nothing";
  }
}

TEST(DynamoFault, an_error_that_is_not_known_keeps_what_the_client_made_of_it) {
  CallReply reply = reply_of("SomethingNew", "m", throttled);
  reply.error = {Code::unavailable, "the client's words"};
  const Fault fault = fault_of(update, reply, options);
  EXPECT_EQ(fault.outcome, throttled);
  EXPECT_EQ(fault.error.detail, "the client's words");
}

TEST(DynamoFault, an_error_without_words_gets_some) {
  EXPECT_THAT(fault_of(update, CallReply{}, options).error.detail, HasSubstr("table jobs in eu-west-1"));
}

}  // namespace
}  // namespace holdfast::store::dynamodb
