// Accepting provisionally over HTTP: a table in memory that is away, a journal on the disk, virtual time.
#include <gmock/gmock.h>

#include <boost/json.hpp>

#include "core/coord/queue.hpp"
#include "store/sqlite/connection.hpp"
#include "support/service_test.hpp"
#include "support/temporary_folder.hpp"

namespace holdfast::serve {
namespace {

using namespace std::chrono_literals;
using test::Asked;
using Fault = test::FaultyStore::Fault;

class TicketsTest : public ServiceTest {
 protected:
  ~TicketsTest() override { servers_.clear(); }  // before the journals

  Server& start_with_journal(std::size_t max_provisional = 1000) {
    coord::JournalOptions options;
    options.path = folder_.file("journal");
    journals_.push_back(*coord::Journal::open(options));
    return start({.id = "here",
                  .version = "1",
                  .patience = 2s,
                  .journal = journals_.back().get(),
                  .max_age = 1h,
                  .max_provisional = max_provisional});
  }
  static void take_away(Server& server) {
    server.store.judge = [](const Update*) { return Fault::request_lost; };
  }
  static void bring_back(Server& server) { server.store.judge = {}; }
  bool becomes(Server& server, const std::string& ticket, const std::string& state) {
    return until([&] { return get(server, "/v1/tickets/" + ticket).text("state") == state; });
  }

  test::TemporaryFolder folder_;
  std::vector<std::unique_ptr<coord::Journal>> journals_;
};

TEST_F(TicketsTest, who_asks_for_it_is_told_202_and_the_ticket_and_it_is_settled_by_itself) {
  Server& server = start_with_journal();
  take_away(server);
  const Asked refused = post(server, "/v1/counters/c/add", R"({"delta":5,"op_id":"a"})");
  EXPECT_EQ(refused.status(), 503) << "consistent, unless asked";
  const Instant before = loop_.instant();
  const Asked accepted = post(server, "/v1/counters/c/add", R"({"delta":5,"op_id":"a","mode":"available"})");
  EXPECT_LE(loop_.instant() - before, 3s) << "the server's patience";
  EXPECT_EQ(accepted.status(), 202);
  EXPECT_EQ(accepted.text("ticket"), "a");
  EXPECT_FALSE(accepted.json().contains("value"));
  const Asked decided = post(server, "/v1/decide/k", R"({"value":"ours","ticket":"d","mode":"available"})");
  EXPECT_EQ(decided.status(), 202);
  EXPECT_EQ(decided.text("proposed"), "ours");
  const Asked sent =
      post(server, "/v1/queues/q/send", R"({"group":"g","body":"x","dedup_id":"m","mode":"available"})");
  EXPECT_EQ(sent.status(), 202);
  EXPECT_EQ(get(server, "/v1/tickets").json().at("tickets").as_array().size(), 3U);
  EXPECT_EQ(get(server, "/v1/tickets/a").text("kind"), "add");

  bring_back(server);
  EXPECT_TRUE(becomes(server, "a", "confirmed"));
  EXPECT_TRUE(becomes(server, "d", "confirmed"));
  EXPECT_TRUE(becomes(server, "m", "confirmed"));
  EXPECT_EQ(get(server, "/v1/counters/c").json().at("value"), 5);
  EXPECT_TRUE(get(server, "/v1/tickets").json().at("tickets").as_array().empty());
  EXPECT_EQ(get(server, "/v1/tickets?all=true").json().at("tickets").as_array().size(), 3U);
  // And again: the store has the ids.
  EXPECT_EQ(post(server, "/v1/counters/c/add", R"({"delta":5,"op_id":"a","mode":"available"})").status(), 200);
}

TEST_F(TicketsTest, what_is_rejected_waits_until_somebody_says_that_it_was_made_good_for) {
  Server& server = start_with_journal();
  take_away(server);
  const std::string call = R"({"delta":-1,"floor":0,"op_id":"a","mode":"available"})";
  ASSERT_EQ(post(server, "/v1/counters/c/add", call).status(), 202);
  EXPECT_EQ(post(server, "/v1/tickets/a/compensated").status(), 409) << "it may be confirmed yet";
  bring_back(server);
  ASSERT_TRUE(becomes(server, "a", "rejected"));
  EXPECT_EQ(get(server, "/v1/tickets/a").text("compensation"), "due");
  EXPECT_EQ(post(server, "/v1/counters/c/add", call).text("code"), "refused");
  EXPECT_EQ(post(server, "/v1/tickets/a/compensated").json().at("was_repeat"), false);
  EXPECT_EQ(post(server, "/v1/tickets/a/compensated").json().at("was_repeat"), true);
  EXPECT_EQ(get(server, "/v1/tickets/a").text("compensation"), "done");
  EXPECT_EQ(post(server, "/v1/tickets/none/compensated").status(), 404);
}

TEST_F(TicketsTest, goods_are_sold_out_of_a_quota_and_the_rest_goes_back) {
  Server& server = start_with_journal();
  ASSERT_EQ(post(server, "/v1/stock/hat/add", R"({"delta":5,"op_id":"delivery"})").status(), 200);
  EXPECT_EQ(post(server, "/v1/quotas/till", R"({"items":{"hat":9}})").status(), 409);
  const Asked too_short = post(server, "/v1/quotas/shop", R"({"items":{"hat":3},"ttl":"1h"})");
  EXPECT_EQ(too_short.status(), 400) << "as old as a ticket of this server may become: nothing could be sold";
  EXPECT_EQ(too_short.text("member"), "/ttl");
  ASSERT_EQ(post(server, "/v1/quotas/shop", R"({"items":{"hat":3}})").text("state"), "open");
  take_away(server);
  EXPECT_EQ(post(server, "/v1/sales/one", R"({"items":{"hat":2}})").status(), 202);
  EXPECT_EQ(post(server, "/v1/sales/one", R"({"items":{"hat":2}})").json().at("was_there"), true);
  EXPECT_EQ(post(server, "/v1/sales/two", R"({"items":{"hat":2}})").status(), 409) << "one is left";
  EXPECT_EQ(post(server, "/v1/quotas/shop/give-back").status(), 200);
  EXPECT_EQ(post(server, "/v1/quotas/none/give-back").status(), 404);
  bring_back(server);
  ASSERT_TRUE(becomes(server, "one", "confirmed"));
  EXPECT_TRUE(until([&] { return get(server, "/v1/stock/hat").json().at("available") == 3; }));
}

TEST_F(TicketsTest, a_message_is_kept_as_long_as_its_sender_says_in_either_mode) {
  Server& server = start_with_journal();
  for (const std::string mode : {"consistent", "available"}) {
    const std::string call = R"({"group":")" + mode + R"(","body":"x","retention":"1m","mode":")" + mode + "\"}";
    ASSERT_EQ(post(server, "/v1/queues/q/send", call).status(), 200);
    const auto found = table_->execute(store::Get{message_key("q", mode, 1)}, loop_.wall());
    const auto until = std::get<RowReply>(found).value->number(attribute::tombstone_expires_at);
    EXPECT_LE(std::chrono::seconds(until) - loop_.wall().time_since_epoch(), 61s) << mode;
  }
}

TEST_F(TicketsTest, that_the_journal_is_damaged_is_nothing_to_try_again_after) {
  Server& server = start_with_journal();
  take_away(server);
  ASSERT_EQ(post(server, "/v1/counters/c/add", R"({"delta":5,"op_id":"a","mode":"available"})").status(), 202);
  auto file = store::Connection::open(folder_.file("journal"), false);
  ASSERT_TRUE(file && file->run("UPDATE intents SET state = 'confirmed', compensation = 'due'"));
  for (const char* target : {"/v1/tickets?all=true", "/v1/tickets/a"}) {
    const Asked shown = get(server, target);
    EXPECT_EQ(shown.status(), 500);
    EXPECT_EQ(shown.text("code"), "rejected");
  }
}

TEST_F(TicketsTest, there_is_a_bound_and_without_a_journal_there_is_nothing) {
  Server& server = start_with_journal(1);
  take_away(server);
  EXPECT_EQ(post(server, "/v1/counters/c/add", R"({"delta":1,"op_id":"a","mode":"available"})").status(), 202);
  EXPECT_EQ(post(server, "/v1/counters/d/add", R"({"delta":1,"op_id":"b","mode":"available"})").status(), 409);
  Server& without = start();
  for (const char* target : {"/v1/counters/c/add", "/v1/counters/d/add"}) {
    EXPECT_EQ(post(without, target, R"({"delta":1,"op_id":"b","mode":"available"})").text("code"), "rejected");
  }
  EXPECT_EQ(get(without, "/v1/tickets").status(), 422);
  EXPECT_EQ(post(without, "/v1/sales/x", R"({"items":{"hat":1}})").status(), 422);
  EXPECT_EQ(post(server, "/v1/decide/k", R"({"value":1,"ticket":"t"})").status(), 503) << "a ticket asks for no mode";
}

TEST_F(TicketsTest, a_server_that_is_gone_leaves_it_to_the_next_one) {
  Server& server = start_with_journal();
  take_away(server);
  ASSERT_EQ(post(server, "/v1/counters/c/add", R"({"delta":5,"op_id":"a","mode":"available"})").status(), 202);
  servers_.clear();
  journals_.clear();
  Server& next = start_with_journal();
  EXPECT_TRUE(becomes(next, "a", "confirmed"));
  EXPECT_EQ(get(next, "/v1/counters/c").json().at("value"), 5);
}

}  // namespace
}  // namespace holdfast::serve
