#include "holdfast/function_sink.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "support/sink_records.hpp"

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using test::text_record;

TEST(FunctionSink, a_record_is_acknowledged_when_the_call_returns) {
  std::vector<std::int64_t> seen;
  FunctionSink sink([&](const Record& record) { seen.push_back(record.seq); });
  const std::vector<Record> records = {text_record("c", 1, "a"), text_record("c", 2, "b")};
  EXPECT_EQ(sink.write(records), 2U);
  EXPECT_EQ(sink.acknowledged(), 2U);
  EXPECT_EQ(seen, (std::vector<std::int64_t>{1, 2}));
}

TEST(FunctionSink, a_throw_is_a_failure_and_nothing_from_there_on_is_acknowledged) {
  std::vector<std::int64_t> seen;
  FunctionSink sink([&](const Record& record) {
    if (record.seq == 2) throw std::runtime_error("no room");
    seen.push_back(record.seq);
  });
  int told = 0;
  sink.on_progress([&] { ++told; });
  const std::vector<Record> records = {text_record("c", 1, "a"), text_record("c", 2, "b"), text_record("c", 3, "c")};
  EXPECT_EQ(sink.write(records), 3U);
  EXPECT_EQ(sink.acknowledged(), 1U);
  ASSERT_TRUE(sink.failure());
  EXPECT_THAT(sink.failure()->detail, ::testing::HasSubstr("no room"));
  EXPECT_TRUE(sink.behind());
  EXPECT_EQ(told, 1);
  sink.write({records.data() + 2, 1});
  EXPECT_EQ(sink.acknowledged(), 1U);
  EXPECT_EQ(seen, (std::vector<std::int64_t>{1}));
}

TEST(Faults, f01_a_function_is_not_called_for_a_lease_that_ended) {
  Instant now(10s);
  int calls = 0;
  FunctionSink sink(
      [&](const Record&) {
        ++calls;
        now += 1s;
      },
      [&] { return now; });
  const auto guard = std::make_shared<LeaseGuard>(Epoch{1}, Instant(12s));
  const std::vector<Record> records(5, text_record("c", 1, "x", &guard));
  EXPECT_EQ(sink.write(records), 5U);
  EXPECT_EQ(calls, 2) << "the belief ran out during the second call";
  EXPECT_EQ(sink.acknowledged(), 5U) << "positions still progress";
  EXPECT_FALSE(guard->holds(Instant(11s))) << "and the belief is over for good";
}

TEST(FunctionSink, with_several_threads_only_what_is_done_up_to_there_is_acknowledged) {
  FunctionSink* self = nullptr;
  Position seen_inside = 99;
  FunctionSink sink([&](const Record& record) {
    if (record.seq != 1) return;
    // While the first is under way, a second comes and is done.
    std::thread([&] {
      const Record second = text_record("d", 2, "b");
      self->write({&second, 1});
    }).join();
    seen_inside = self->acknowledged();
  });
  self = &sink;
  const Record first = text_record("c", 1, "a");
  sink.write({&first, 1});
  EXPECT_EQ(seen_inside, 0U) << "the second was done, but not the first";
  EXPECT_EQ(sink.acknowledged(), 2U);
}

}  // namespace
}  // namespace holdfast
