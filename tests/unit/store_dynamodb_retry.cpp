#include "store/dynamodb/retry.hpp"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "store/dynamodb/answer.hpp"

namespace holdfast::store::dynamodb {
namespace {

using namespace std::chrono_literals;

TEST(DynamoVerdict, goes_by_the_error_s_type_then_by_the_status) {
  EXPECT_EQ(classify(400, "ConditionalCheckFailedException", ""), Verdict::conflict);
  for (const char* type : {"ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded",
                           "LimitExceededException", "TransactionConflictException"}) {
    EXPECT_EQ(classify(400, type, ""), Verdict::throttled) << type;
    EXPECT_EQ(classify(503, type, ""), Verdict::throttled) << type;
  }
  EXPECT_EQ(classify(429, "", ""), Verdict::throttled);
  for (const int status : {500, 502, 503, 504, 408, 302, 204})
    EXPECT_EQ(classify(status, "", ""), Verdict::uncertain);
  EXPECT_EQ(classify(500, "InternalServerError", ""), Verdict::uncertain);
  EXPECT_EQ(classify(400, "TransactionInProgressException", ""), Verdict::uncertain);
  for (const char* type : {"ResourceNotFoundException", "ValidationException", "AccessDeniedException",
                           "IdempotentParameterMismatchException", "SerializationException", ""}) {
    EXPECT_EQ(classify(400, type, ""), Verdict::rejected) << type;
  }
  EXPECT_EQ(classify(413, "", ""), Verdict::rejected);
}

TEST(DynamoVerdict, tells_a_signature_s_date_from_its_keys) {
  EXPECT_EQ(classify(400, "InvalidSignatureException", "Signature expired: 20150830T123600Z is now earlier than"),
            Verdict::wrong_clock);
  EXPECT_EQ(classify(403, "InvalidSignatureException", "Signature not yet current: 20290830T123600Z is still later"),
            Verdict::wrong_clock);
  EXPECT_EQ(classify(403, "RequestTimeTooSkewed", ""), Verdict::wrong_clock);
  EXPECT_EQ(classify(400, "InvalidSignatureException", "The request signature we calculated does not match"),
            Verdict::rejected);
  EXPECT_EQ(classify(400, "ExpiredTokenException", ""), Verdict::stale_keys);
  EXPECT_EQ(classify(400, "UnrecognizedClientException", ""), Verdict::stale_keys);
}

Attempted cancelled(const std::string& reasons) {
  runtime::HttpAnswer answer;
  answer.status = 400;
  answer.body = R"({"__type":"x#TransactionCanceledException","CancellationReasons":)" + reasons + "}";
  return read_attempt(answer, {});
}

TEST(DynamoVerdict, of_a_cancelled_transaction_is_that_of_its_gravest_reason) {
  EXPECT_EQ(cancelled(R"([{"Code":"None"},{"Code":"ConditionalCheckFailed"}])").verdict, Verdict::conflict);
  EXPECT_EQ(cancelled(R"([{"Code":"ThrottlingError"},{"Code":"None"}])").verdict, Verdict::throttled);
  EXPECT_EQ(cancelled(R"([{"Code":"TransactionConflict"},{"Code":"ConditionalCheckFailed"}])").verdict,
            Verdict::conflict);
  EXPECT_EQ(cancelled(R"([{"Code":"ConditionalCheckFailed"},{"Code":"TransactionConflict"}])").verdict,
            Verdict::conflict);
  EXPECT_EQ(cancelled(R"([{"Code":"ConditionalCheckFailed"},{"Code":"ValidationError"}])").verdict,
            Verdict::rejected);
  EXPECT_EQ(cancelled(R"([])").verdict, Verdict::throttled) << "it says that nothing happened, and nothing more";
  EXPECT_EQ(cancelled("7").verdict, Verdict::throttled);
  EXPECT_EQ(cancelled("[7]").verdict, Verdict::rejected);
}

TEST(DynamoWait, is_anywhere_below_a_bound_that_doubles_up_to_a_limit) {
  RetryOptions options;
  options.tries_max = 100;
  Random random(7);
  RetryBudget budget(1'000'000);
  for (std::size_t tries = 1; tries < 12; ++tries) {
    const Duration bound = std::min<Duration>(options.first * (1 << (tries - 1)), options.longest);
    Duration least = Duration::max(), most{};
    for (int i = 0; i < 2000; ++i) {
      const auto wait = wait_before_retry(options, tries, 1h, random, budget);
      ASSERT_TRUE(wait);
      least = std::min(least, *wait);
      most = std::max(most, *wait);
    }
    EXPECT_LE(most, bound);
    EXPECT_GT(most, bound * 95 / 100);
    EXPECT_LT(least, bound * 5 / 100) << "full jitter begins at zero";
  }
}

TEST(DynamoWait, leaves_enough_time_for_an_attempt_or_gives_up) {
  const RetryOptions options;
  Random random(7);
  RetryBudget budget(1'000'000);
  for (int i = 0; i < 1000; ++i) {
    const auto wait = wait_before_retry(options, 6, options.useful_min + 7ms, random, budget);
    ASSERT_TRUE(wait);
    EXPECT_LE(*wait, 7ms);
  }
  EXPECT_FALSE(wait_before_retry(options, 1, options.useful_min - 1ns, random, budget));
  EXPECT_FALSE(wait_before_retry(options, 1, -1s, random, budget));
  EXPECT_FALSE(wait_before_retry(options, options.tries_max, 1h, random, budget));
}

TEST(DynamoBudget, is_used_up_by_retries_and_filled_by_successes_up_to_its_size) {
  const RetryOptions options;
  Random random(7);
  RetryBudget budget(12);
  EXPECT_TRUE(wait_before_retry(options, 1, 1h, random, budget));
  EXPECT_TRUE(wait_before_retry(options, 1, 1h, random, budget));
  EXPECT_FALSE(wait_before_retry(options, 1, 1h, random, budget));
  EXPECT_EQ(budget.tokens(), 2);
  for (int i = 0; i < 3; ++i) budget.succeeded(0);
  EXPECT_TRUE(wait_before_retry(options, 1, 1h, random, budget));
  budget.succeeded(2);
  EXPECT_EQ(budget.tokens(), 11);
  budget.succeeded(100);
  EXPECT_EQ(budget.tokens(), 12);
  EXPECT_FALSE(wait_before_retry(options, 1, 1ms, random, budget));
  EXPECT_EQ(budget.tokens(), 12) << "a retry that is not made costs nothing";
}

TEST(DynamoBudget, is_one_for_all_threads) {
  RetryBudget budget(RetryBudget::retry_cost * 1000);
  std::vector<std::thread> threads;
  std::atomic<int> taken = 0;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 1000; ++k) taken += budget.take() ? 1 : 0;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(taken, 1000);
  EXPECT_EQ(budget.tokens(), 0);
}

}  // namespace
}  // namespace holdfast::store::dynamodb
