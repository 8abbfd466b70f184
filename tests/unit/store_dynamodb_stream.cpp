// Reading a stream from a server that says what the test wants: shards and their ends, what expires, is trimmed, is
// turned off.
#include <gmock/gmock.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <deque>
#include <memory>
#include <numeric>
#include <optional>

#include "store/dynamodb/dynamodb_store.hpp"
#include "store/dynamodb/stream_reader.hpp"
#include "support/virtual_loop.hpp"

namespace holdfast::store::dynamodb {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

CallReply applied(const std::string& answer) {
  CallReply reply;
  reply.outcome = Outcome::applied;
  reply.answer = boost::json::parse(answer).as_object();
  return reply;
}

CallReply refused(const std::string& type, Code code = Code::usage) {
  CallReply reply;
  reply.outcome = Outcome::rejected;
  reply.aws_type = type;
  reply.error = {code, "the server said: " + type};
  return reply;
}

CallReply throttled() {
  CallReply reply;
  reply.outcome = Outcome::throttled;
  reply.aws_type = "ThrottlingException";
  return reply;
}

const char* const with_stream =
    R"({"Table":{"StreamSpecification":{"StreamEnabled":true},"LatestStreamArn":"arn:s"}})";
const char* const without_stream = R"({"Table":{"TableName":"jobs"}})";

struct ShardText {
  std::string id, parent;
  bool closed = false;
};

std::string shards(const std::vector<ShardText>& all, const std::string& rest = {}) {
  boost::json::array list;
  for (const ShardText& one : all) {
    boost::json::object shard{{"ShardId", one.id}, {"SequenceNumberRange", {{"StartingSequenceNumber", "1"}}}};
    if (!one.parent.empty()) shard["ParentShardId"] = one.parent;
    if (one.closed) shard["SequenceNumberRange"].as_object()["EndingSequenceNumber"] = "9";
    list.push_back(std::move(shard));
  }
  boost::json::object stream{{"StreamStatus", "ENABLED"}, {"Shards", std::move(list)}};
  if (!rest.empty()) stream["LastEvaluatedShardId"] = rest;
  return boost::json::serialize(boost::json::object{{"StreamDescription", std::move(stream)}});
}

std::string record(const std::string& number, const std::string& image, const std::string& what = "MODIFY") {
  return R"({"eventName":")" + what + R"(","dynamodb":{"Keys":{"Pk":{"S":"CONN#a"}},"SequenceNumber":")" + number +
         "\"" + (image.empty() ? "" : R"(,"NewImage":)" + image) + "}}";
}

std::string records(const std::string& list, const std::string& next) {
  return R"({"Records":[)" + list + "]" + (next.empty() ? "" : R"(,"NextShardIterator":")" + next + "\"") + "}";
}

std::string row(const std::string& attributes) {
  return R"({"Pk":{"S":"CONN#a"})" + attributes + "}";
}
const std::string free_row = row(R"(,"desired_state":{"S":"STARTED"},"lease_expires_at_ms":{"N":"0"})");
const std::string held_row =
    row(R"(,"desired_state":{"S":"STARTED"},"lease_owner":{"S":"w"},"lease_expires_at_ms":{"N":"99"})");

class StreamReading : public testing::Test {
 protected:
  /// The next call, as soon as there is one: time goes on by itself.
  StreamReader::Ask next_ask() {
    for (int i = 0; i < 3; ++i) {
      if (auto asked = reader_.poll(now_)) {
        body_ = boost::json::parse(asked->call.body).as_object();
        return *std::move(asked);
      }
      const auto next = reader_.next();
      if (!next) break;
      now_ = std::max(now_, *next);
    }
    ADD_FAILURE() << "nothing is asked";
    return {};
  }
  StreamReader::Ask ask(const char* operation) {
    auto asked = next_ask();
    EXPECT_EQ(asked.call.operation, operation);
    return asked;
  }
  std::size_t reply(const char* operation, const CallReply& reply) {
    return reader_.answered(ask(operation).id, reply, now_);
  }
  std::size_t reply(const char* operation, const std::string& answer) { return reply(operation, applied(answer)); }
  [[nodiscard]] std::string said(const char* member) const {
    const auto* value = body_.if_contains(member);
    return value != nullptr && value->is_string() ? std::string(value->get_string()) : "";
  }
  /// Reads one shard, `s1`, from the newest record on.
  void begin() {
    reply("DescribeTable", with_stream);
    reply("DescribeStream", shards({{"s1", "", false}}));
    EXPECT_EQ(reply("GetShardIterator", R"({"ShardIterator":"i1"})"), Changed::any);
  }

  TableOptions options_ = parse_table_url("dynamodb://jobs").value();
  Random random_{1};
  StreamReader reader_{options_, random_};
  Instant now_{1s};
  boost::json::object body_;  // of the latest call
};

TEST_F(StreamReading, begins_with_what_is_new_and_says_that_anything_may_have_changed_before) {
  EXPECT_TRUE(ask("DescribeTable").of_table);
  EXPECT_EQ(said("TableName"), "jobs");
  EXPECT_FALSE(reader_.poll(now_)) << "one question at a time";
  EXPECT_EQ(reader_.state(), StreamReader::State::unknown);
  EXPECT_EQ(reader_.answered(1, applied(with_stream), now_), 0U);
  EXPECT_EQ(reader_.state(), StreamReader::State::on);
  reply("DescribeStream", shards({{"old", "", true}, {"s1", "old", false}}));
  EXPECT_EQ(said("StreamArn"), "arn:s");
  EXPECT_EQ(reply("GetShardIterator", R"({"ShardIterator":"i1"})"), Changed::any);
  EXPECT_EQ(said("ShardId"), "s1") << "what is closed is the past";
  EXPECT_EQ(said("ShardIteratorType"), "LATEST");
  EXPECT_EQ(reply("GetRecords", records(record("10", free_row), "i2")), 1U);
  EXPECT_EQ(said("ShardIterator"), "i1");
  ask("GetRecords");
  EXPECT_EQ(said("ShardIterator"), "i2");
  EXPECT_EQ(body_.at("Limit").to_number<std::size_t>(), StreamReader::records_per_read);
}

TEST_F(StreamReading, f46_tells_only_of_rows_that_somebody_can_want) {
  begin();
  const std::string stopped = row(R"(,"desired_state":{"S":"STOPPED"})");
  const std::string given_back_plainly =
      row(R"(,"desired_state":{"S":"STARTED"},"lease_owner":{"S":"w"},"lease_expires_at_ms":{"N":"0"})");
  const std::string worker = R"({"Pk":{"S":"WORKER#w1"},"desired_state":{"S":"WORKER"}})";
  const auto told = [&](const std::string& one) { return reply("GetRecords", records(one, "i2")); };
  EXPECT_EQ(told(record("1", held_row)), 0U) << "a renewal or a claim";
  EXPECT_EQ(told(record("2", stopped)), 0U);
  EXPECT_EQ(told(record("3", worker)), 0U);
  EXPECT_EQ(told(record("4", "", "REMOVE")), 0U);
  EXPECT_EQ(told(record("5", free_row, "INSERT")), 1U);
  EXPECT_EQ(told(record("6", free_row)), 1U);
  EXPECT_EQ(told(record("7", given_back_plainly)), 1U);
  EXPECT_EQ(told(record("8", "")), 1U) << "a stream of keys only";
  EXPECT_EQ(told(record("9", held_row) + "," + record("10", free_row) + "," + record("11", free_row)), 2U);
}

TEST_F(StreamReading, children_are_read_from_their_beginning_after_their_parent_has_ended) {
  begin();
  reply("GetRecords", records(record("10", free_row), ""));  // the last of s1
  const std::string list = shards({{"s1", "", true}, {"a", "s1", true}, {"b", "s1", false}, {"aa", "a", false}});
  std::vector<std::string> order;
  int reads_of_a = 0;
  for (int i = 0; i < 20; ++i) {
    const auto next = next_ask();
    if (next.call.operation == "DescribeStream") {
      (void)reader_.answered(next.id, applied(list), now_);
    } else if (next.call.operation == "GetShardIterator") {
      EXPECT_EQ(said("ShardIteratorType"), "TRIM_HORIZON");
      order.push_back(said("ShardId"));
      (void)reader_.answered(next.id, applied(R"({"ShardIterator":")" + said("ShardId") + "\"}"), now_);
    } else {
      const std::string of = said("ShardIterator");
      const bool ends = of == "a" && ++reads_of_a == 2;
      if (ends) order.emplace_back("end of a");
      (void)reader_.answered(next.id, applied(records("", ends ? "" : of)), now_);
    }
  }
  EXPECT_THAT(order, testing::ElementsAre("a", "b", "end of a", "aa"));
}

TEST_F(StreamReading, children_that_are_not_listed_yet_are_looked_for_again_at_growing_intervals) {
  begin();
  reply("GetRecords", records("", ""));
  const Instant ended = now_;
  for (int i = 0; i < 4; ++i) reply("DescribeStream", shards({{"s1", "", true}}));
  EXPECT_GT(now_, ended);
  EXPECT_LT(now_, ended + 10s);
  reply("DescribeStream", shards({{"s1", "", true}, {"s2", "s1", false}}));
  ask("GetShardIterator");
  EXPECT_EQ(said("ShardId"), "s2");
}

TEST_F(StreamReading, a_list_of_many_shards_comes_in_pages) {
  reply("DescribeTable", with_stream);
  reply("DescribeStream", shards({{"s1", "", true}}, "s1"));
  reply("DescribeStream", shards({{"s2", "s1", false}}));
  EXPECT_EQ(said("ExclusiveStartShardId"), "s1");
  ask("GetShardIterator");
  EXPECT_EQ(said("ShardId"), "s2");
}

TEST_F(StreamReading, a_list_without_end_ends) {
  reply("DescribeTable", with_stream);
  for (std::size_t i = 0; i < StreamReader::pages_max; ++i) {
    const std::string id = "s" + std::to_string(i);
    reply("DescribeStream", shards({{id, "", false}}, id));
  }
  ask("GetShardIterator");
}

TEST_F(StreamReading, an_iterator_that_has_expired_is_asked_for_again_after_the_last_record) {
  begin();
  reply("GetRecords", records(record("10", free_row), "i2"));
  EXPECT_EQ(reply("GetRecords", refused("ExpiredIteratorException")), 0U);
  EXPECT_EQ(reply("GetShardIterator", R"({"ShardIterator":"i3"})"), 0U) << "nothing was missed";
  EXPECT_EQ(said("ShardIteratorType"), "AFTER_SEQUENCE_NUMBER");
  EXPECT_EQ(said("SequenceNumber"), "10");
  ask("GetRecords");
  EXPECT_EQ(said("ShardIterator"), "i3");
}

TEST_F(StreamReading, one_that_expires_before_the_first_record_begins_anew_and_anything_may_have_changed) {
  begin();
  reply("GetRecords", refused("ExpiredIteratorException"));
  EXPECT_EQ(reply("GetShardIterator", R"({"ShardIterator":"i3"})"), Changed::any);
  EXPECT_EQ(said("ShardIteratorType"), "LATEST");
}

TEST_F(StreamReading, f45_records_that_were_trimmed_mean_that_anything_may_have_changed) {
  begin();
  reply("GetRecords", records(record("10", free_row), "i2"));
  reply("GetRecords", refused("ExpiredIteratorException"));
  reply("GetShardIterator", refused("TrimmedDataAccessException"));
  EXPECT_EQ(reply("GetShardIterator", R"({"ShardIterator":"i3"})"), Changed::any);
  EXPECT_EQ(said("ShardIteratorType"), "LATEST");
  reply("GetRecords", refused("TrimmedDataAccessException"));
  EXPECT_EQ(reply("GetShardIterator", R"({"ShardIterator":"i4"})"), Changed::any);
}

TEST_F(StreamReading, a_shard_or_stream_that_is_gone_is_looked_for_from_the_table_on) {
  begin();
  reply("GetRecords", refused("ResourceNotFoundException"));
  reply("DescribeTable", with_stream);
  reply("DescribeStream", refused("ResourceNotFoundException"));
  reply("DescribeTable", R"({"Table":{"StreamSpecification":{"StreamEnabled":true},"LatestStreamArn":"arn:t"}})");
  reply("DescribeStream", shards({{"t1", "", false}}));
  EXPECT_EQ(said("StreamArn"), "arn:t");
  EXPECT_EQ(reply("GetShardIterator", R"({"ShardIterator":"i"})"), Changed::any);
}

TEST_F(StreamReading, a_table_without_a_stream_is_told_and_asked_again_after_minutes) {
  reply("DescribeTable", without_stream);
  EXPECT_EQ(reader_.state(), StreamReader::State::off);
  EXPECT_THAT(reader_.no_feed(), HasSubstr("holdfast init --stream"));
  const Instant told = now_;
  EXPECT_FALSE(reader_.poll(now_));
  reply("DescribeTable", with_stream);
  EXPECT_GE(now_ - told, 2min);
  EXPECT_LE(now_ - told, 8min);
  EXPECT_EQ(reader_.state(), StreamReader::State::on);
  EXPECT_EQ(reader_.no_feed(), "");
}

TEST_F(StreamReading, a_stream_that_is_turned_off_is_told_and_anything_may_have_changed) {
  begin();
  reply("GetRecords", records("", ""));
  EXPECT_EQ(reply("DescribeStream", R"({"StreamDescription":{"StreamStatus":"DISABLED","Shards":[]}})"),
            Changed::any);
  EXPECT_EQ(reader_.state(), StreamReader::State::off);
  EXPECT_THAT(reader_.no_feed(), HasSubstr("was turned off"));
  EXPECT_FALSE(reader_.poll(now_));
}

TEST_F(StreamReading, without_permission_it_says_which_is_missing) {
  reply("DescribeTable", with_stream);
  reply("DescribeStream", refused("AccessDeniedException", Code::denied));
  EXPECT_EQ(reader_.state(), StreamReader::State::off);
  EXPECT_THAT(reader_.no_feed(), HasSubstr("dynamodb:DescribeStream, GetShardIterator and GetRecords"));
  reply("DescribeTable", with_stream);
  reply("DescribeStream", shards({{"s1", "", false}}));
  reply("GetShardIterator", R"({"ShardIterator":"i1"})");
  EXPECT_EQ(reply("GetRecords", refused("AccessDeniedException", Code::denied)), Changed::any);
  EXPECT_EQ(reader_.state(), StreamReader::State::off);
}

TEST_F(StreamReading, throttled_it_waits_longer_each_time_and_goes_on_where_it_was) {
  begin();
  const Instant from = now_;
  // Not so often that the shards would be listed again meanwhile.
  for (int i = 0; i < 9; ++i) {
    const Instant before = now_;
    reply("GetRecords", throttled());
    EXPECT_LE(now_ - before, StreamReader::failed_max);
  }
  EXPECT_GT(now_ - from, 5s);
  EXPECT_EQ(reply("GetRecords", records(record("10", free_row), "i2")), 1U);
  EXPECT_EQ(said("ShardIterator"), "i1");
  EXPECT_EQ(reader_.state(), StreamReader::State::on) << "throttling is not the end of a stream";
}

TEST_F(StreamReading, with_nothing_new_it_reads_at_random_intervals_below_a_second) {
  begin();
  std::vector<Duration> waits;
  for (int i = 0; i < 120; ++i) {
    const Instant before = now_;
    reply("GetRecords", records("", "i2"));
    if (i > 10) waits.push_back(now_ - before);
  }
  EXPECT_LE(*std::ranges::max_element(waits), StreamReader::idle_max);
  EXPECT_GT(*std::ranges::max_element(waits), StreamReader::idle_max / 2);
  EXPECT_LT(*std::ranges::min_element(waits), StreamReader::idle_min) << "full jitter";
  EXPECT_GT(std::accumulate(waits.begin(), waits.end(), Duration{}) / static_cast<int>(waits.size()), 250ms);
}

TEST_F(StreamReading, what_is_behind_reads_on_at_once) {
  begin();
  std::string many = record("1", held_row);
  for (std::size_t i = 1; i < StreamReader::records_per_read; ++i) many += "," + record("2", held_row);
  reply("GetRecords", records(many, "i2"));
  const Instant before = now_;
  ask("GetRecords");
  EXPECT_EQ(now_, before);
}

TEST_F(StreamReading, not_more_calls_are_under_way_than_a_few) {
  reply("DescribeTable", with_stream);
  std::vector<ShardText> many;
  for (int i = 0; i < 40; ++i) many.push_back({"s" + std::to_string(i), "", false});
  reply("DescribeStream", shards(many));
  std::vector<std::uint64_t> asked;
  while (auto next = reader_.poll(now_)) asked.push_back(next->id);
  EXPECT_EQ(asked.size(), StreamReader::in_flight_max);
  EXPECT_EQ(reader_.next(), std::nullopt);
  (void)reader_.answered(asked.front(), applied(R"({"ShardIterator":"i"})"), now_);
  EXPECT_TRUE(reader_.poll(now_));
}

TEST_F(StreamReading, an_answer_about_what_is_no_longer_read_changes_nothing) {
  reply("DescribeTable", with_stream);
  reply("DescribeStream", shards({{"s1", "", false}, {"s2", "", false}}));
  const auto first = ask("GetShardIterator");
  reply("GetShardIterator", refused("ResourceNotFoundException"));
  EXPECT_EQ(reader_.answered(first.id, applied(R"({"ShardIterator":"i1"})"), now_), 0U);
  ask("DescribeTable");
}

// The store's feed.

struct Asked {
  Call call;
  std::function<void(CallReply)> handler;
};

class FakeCaller final : public Caller {
 public:
  explicit FakeCaller(std::deque<Asked>& asked) : asked_(asked) {}
  void call(Call call, Instant /*deadline*/, std::function<void(CallReply)> handler) override {
    asked_.push_back({std::move(call), std::move(handler)});
  }

 private:
  std::deque<Asked>& asked_;
};

class StreamFeedTest : public testing::Test {
 protected:
  StreamFeedTest()
      : store_(make_dynamodb_store(parse_table_url("dynamodb://jobs").value(), std::make_unique<FakeCaller>(table_),
                                   loop_, std::make_unique<FakeCaller>(streams_))) {}
  void answer(std::deque<Asked>& caller, const char* operation, const CallReply& reply) {
    ASSERT_TRUE(loop_.advance_until([&] { return !caller.empty(); }, 10min)) << operation;
    const Asked asked = std::move(caller.front());
    caller.pop_front();
    EXPECT_EQ(asked.call.operation, operation);
    asked.handler(reply);
    loop_.settle();
  }
  void listen() {
    store_->changes([this](const Changed& changed) { told_.push_back(changed.rows); });
  }
  void begin() {
    listen();
    answer(table_, "DescribeTable", applied(with_stream));
    answer(streams_, "DescribeStream", applied(shards({{"s1", "", false}})));
    answer(streams_, "GetShardIterator", applied(R"({"ShardIterator":"i1"})"));
  }

  test::VirtualLoop loop_;
  std::deque<Asked> table_, streams_;
  std::vector<std::size_t> told_;
  std::unique_ptr<Store> store_;
};

TEST_F(StreamFeedTest, asks_nothing_before_somebody_listens) {
  loop_.advance(10s);
  EXPECT_TRUE(table_.empty());
  EXPECT_FALSE(store_->capabilities().changes);
  EXPECT_TRUE(store_->capabilities().changes_need_reader);
}

TEST_F(StreamFeedTest, tells_how_many_rows_may_be_free) {
  begin();
  EXPECT_TRUE(store_->capabilities().changes);
  loop_.advance(100ms);
  ASSERT_FALSE(told_.empty());
  EXPECT_EQ(told_.back(), Changed::any);
  told_.clear();
  answer(streams_, "GetRecords", applied(records(record("1", free_row) + "," + record("2", free_row), "i2")));
  loop_.advance(100ms);
  EXPECT_THAT(told_, testing::ElementsAre(2U));
}

TEST_F(StreamFeedTest, where_there_is_no_stream_the_capability_says_so_and_the_listener_hears_of_it) {
  listen();
  answer(table_, "DescribeTable", applied(without_stream));
  loop_.advance(100ms);
  EXPECT_EQ(told_.size(), 1U);
  EXPECT_FALSE(store_->capabilities().changes);
  EXPECT_THAT(store_->capabilities().no_changes, HasSubstr("init --stream"));
}

TEST_F(StreamFeedTest, nothing_is_asked_once_nobody_listens_and_a_late_answer_is_ignored) {
  begin();
  ASSERT_TRUE(loop_.advance_until([&] { return !streams_.empty(); }));
  store_->changes(nullptr);
  told_.clear();
  streams_.front().handler(applied(records(record("1", free_row), "i2")));
  streams_.clear();
  loop_.advance(1h);
  EXPECT_TRUE(streams_.empty());
  EXPECT_TRUE(told_.empty());
}

TEST_F(StreamFeedTest, begins_anew_for_the_next_listener) {
  begin();
  store_->changes(nullptr);
  streams_.clear();
  told_.clear();
  begin();
  loop_.advance(100ms);
  ASSERT_FALSE(told_.empty());
  EXPECT_EQ(told_.back(), Changed::any) << "what happened meanwhile nobody has read";
}

}  // namespace
}  // namespace holdfast::store::dynamodb
