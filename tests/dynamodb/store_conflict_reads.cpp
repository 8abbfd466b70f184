// A server that does not show the row on a conflict (dynalite): the store reads it, and believes nothing if it
// cannot.
#include <gtest/gtest.h>

#include <optional>

#include "runtime/clock.hpp"
#include "support/dynamodb_call.hpp"
#include "support/dynamodb_proxy.hpp"
#include "support/dynamodb_servers.hpp"
#include "support/dynamodb_store.hpp"
#include "support/run_until.hpp"

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

class ConflictWithoutRow : public testing::TestWithParam<DynamoDbFault> {
 protected:
  ConflictWithoutRow() { create_fleet_table(server_.port(), table_); }
  void TearDown() override {
    bool closed = false;
    store_->close([&] { closed = true; });
    EXPECT_TRUE(run_until(loop_, [&] { return closed; }));
  }
  RowReply update(std::int64_t epoch_seen, Duration time) {
    std::optional<RowReply> reply;
    store_->update({"CONN#1",
                    {Change::set(attribute::epoch, epoch_seen + 1)},
                    epoch_seen == 0 ? Condition::row_missing() : Condition::equals(attribute::epoch, epoch_seen)},
                   runtime::boot_now() + time, [&](RowReply given) { reply = std::move(given); });
    EXPECT_TRUE(run_until(
        loop_, [&] { return reply.has_value(); }, 2min));
    return reply.value_or(RowReply{});
  }

  const DynamoDbServer& server_ = DynamoDbServer::dynalite();
  const std::string table_ = random_table_name("conflict");
  runtime::AsioLoop loop_{1};
  DynamoDbProxy proxy_{server_.port()};
  std::unique_ptr<Store> store_ = open_dynamodb(loop_, proxy_.endpoint(), "dynamodb://" + table_);
};

TEST_P(ConflictWithoutRow, is_a_conflict_once_the_row_was_read_and_unknown_where_it_cannot_be) {
  ASSERT_EQ(update(0, 1min).outcome, Outcome::applied);
  proxy_.plan({.fault = GetParam(), .operation = "GetItem", .times = 1, .seconds = 0.1});
  const RowReply once = update(7, 1min);
  EXPECT_EQ(once.outcome, Outcome::conflict);
  ASSERT_TRUE(once.value.has_value());
  EXPECT_EQ(once.value->number(attribute::epoch), 1);

  proxy_.clear();
  proxy_.plan({.fault = GetParam(), .operation = "GetItem", .times = 0, .seconds = 60});
  const RowReply always = update(7, 2s);
  EXPECT_EQ(always.outcome, Outcome::unknown);
  EXPECT_NE(always.error.detail, "");
}

INSTANTIATE_TEST_SUITE_P(Each, ConflictWithoutRow,
                         testing::Values(DynamoDbFault::delay_reply, DynamoDbFault::cut_before_request,
                                         DynamoDbFault::status_500, DynamoDbFault::throttle, DynamoDbFault::garbage,
                                         DynamoDbFault::wrong_crc, DynamoDbFault::half_body),
                         [](const auto& fault) { return std::string(to_string(fault.param)); });

}  // namespace
}  // namespace holdfast::test
