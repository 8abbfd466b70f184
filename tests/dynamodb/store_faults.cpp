// Every fault of the proxy meets every request of the store's contract, once and for as long as it lasts: each ends
// as it must (fault_table.hpp), by its deadline, and nothing is done twice, whenever the server gets to do it (S5,
// S10).
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <variant>

#include "fault_table.hpp"
#include "runtime/asio_loop.hpp"
#include "runtime/clock.hpp"
#include "support/dynamodb_call.hpp"
#include "support/dynamodb_proxy.hpp"
#include "support/dynamodb_servers.hpp"
#include "support/dynamodb_store.hpp"
#include "support/eventually.hpp"
#include "support/run_until.hpp"

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using store::dynamodb::RetryOptions;

constexpr std::size_t read = 0, claim = 1, refused = 2, add = 3, transact = 4, create = 5, describe = 6;  // columns

/// What a request came to, of whichever kind it was.
struct End {
  Outcome outcome = Outcome::unknown;
  std::vector<Row> rows;
  Error error;
  Instant at{};
};

/// A request on its way.
struct Asked {
  std::string name;
  std::size_t column = 0;
  std::string call;      // the operation of DynamoDB that is harmed
  std::string contains;  // and what its body contains
  std::function<void(Store&, Instant, std::function<void(End)>)> ask;
  std::optional<End> end{};
};

End end_of(Outcome outcome, std::vector<Row> rows, Error error) {
  return {outcome, std::move(rows), std::move(error), runtime::boot_now()};
}
Handler<RowReply> of_row(std::function<void(End)> done) {
  return [done = std::move(done)](const RowReply& reply) {
    done(end_of(reply.outcome, reply.value ? std::vector<Row>{*reply.value} : std::vector<Row>{}, reply.error));
  };
}
Handler<RowsReply> of_rows(std::function<void(End)> done) {
  return [done = std::move(done)](const RowsReply& reply) { done(end_of(reply.outcome, reply.value, reply.error)); };
}

Update claim_of(const std::string& key, std::int64_t epoch_seen, const std::string& attempt) {
  return {key,
          {Change::set(attribute::owner, "worker-" + attempt), Change::set(attribute::epoch, epoch_seen + 1),
           Change::set(attribute::attempt, attempt)},
          Condition::equals(attribute::epoch, epoch_seen)};
}

class FaultyTable : public testing::Test {
 protected:
  FaultyTable() {
    create_fleet_table(server_.port(), table_);
    for (const std::string key : {"read-1", "read-2", "read-3"}) {
      put(key, {{std::string(attribute::desired_state), "STARTED"},
                {std::string(attribute::expires_at), 5},
                {std::string(attribute::owner), "reader"}});
    }
    for (const std::string key : {"claim", "refused"}) put(key, {{std::string(attribute::epoch), 0}});
  }
  void TearDown() override {
    for (const auto& store : stores_) {
      bool closed = false;
      store->close([&] { closed = true; });
      EXPECT_TRUE(run_until(loop_, [&] { return closed; }));
    }
  }

  Store& open(const std::string& endpoint, const std::string& table, RetryOptions retry = {}) {
    return *stores_.emplace_back(open_dynamodb(loop_, endpoint, "dynamodb://" + table, retry));
  }
  void put(const std::string& key, const Attributes& attributes) {
    std::vector<Change> changes;
    for (const auto& [name, value] : attributes) changes.push_back(Change::set(name, value));
    ASSERT_EQ(update(direct_, {key, changes, Condition::always()}).outcome, Outcome::applied);
  }
  /// As it is on the server.
  Row row(const std::string& key) {
    std::optional<RowReply> reply;
    direct_.get(key, patience_ends(), [&](RowReply given) { reply = std::move(given); });
    EXPECT_TRUE(run_until(loop_, [&] { return reply.has_value(); }));
    return reply && reply->value ? *reply->value : Row{};
  }
  End update(Store& store, const Update& update) {
    std::optional<End> end;
    store.update(update, patience_ends(), of_row([&](End given) { end = std::move(given); }));
    EXPECT_TRUE(run_until(
        loop_, [&] { return end.has_value(); }, 2 * patience));
    return end.value_or(End{});
  }
  [[nodiscard]] static Instant patience_ends() { return runtime::boot_now() + patience; }

  std::vector<Asked> all_requests() {
    const std::string table_name = R"("TableName":")" + table_ + '"';
    std::vector<Asked> all = {
        {"get", read, "GetItem", "read-1",
         [](Store& store, Instant deadline, auto done) { store.get("read-1", deadline, of_row(done)); }},
        {"batch_get", read, "BatchGetItem", "read-1",
         [](Store& store, Instant deadline, auto done) {
           store.batch_get({"read-1", "read-2", "read-3"}, deadline, of_rows(done));
         }},
        {"query_due", read, "Query", table_name,
         [](Store& store, Instant deadline, auto done) {
           QueryDue query;
           query.state = state::started;
           query.before = WallTime::max();
           store.query_due(query, deadline, [done](const PageReply& reply) {
             done(end_of(reply.outcome, reply.value.rows, reply.error));
           });
         }},
        {"query_owned", read, "Scan", table_name,
         [](Store& store, Instant deadline, auto done) { store.query_owned("reader", deadline, of_rows(done)); }},
        {"update that claims", claim, "UpdateItem", "\"claim\"",
         [](Store& store, Instant deadline, auto done) {
           store.update(claim_of("claim", 0, "ours"), deadline, of_row(done));
         }},
        {"update that is refused", refused, "UpdateItem", "\"refused\"",
         [](Store& store, Instant deadline, auto done) {
           store.update(claim_of("refused", 7, "ours"), deadline, of_row(done));
         }},
        {"update that adds", add, "UpdateItem", "\"add\"",
         [](Store& store, Instant deadline, auto done) {
           store.update({"add", {Change::add("n", 1)}, Condition::always()}, deadline, of_row(done));
         }},
        {"transact", transact, "TransactWriteItems", "both-1",
         [this](Store& store, Instant deadline, auto done) { ask_transaction(store, deadline, done); }},
        {"initialize what is missing", create, "CreateTable", new_table_,
         [this](Store&, Instant deadline, auto done) { ask_initialize(*new_store_, deadline, done); }},
        {"initialize what is there", describe, "DescribeTable", table_name,
         [](Store& store, Instant deadline, auto done) { ask_initialize(store, deadline, done); }},
    };
    return all;
  }
  void ask_transaction(Store& store, Instant deadline, const std::function<void(End)>& done) {
    const auto one_more = [](const char* key) { return Update{key, {Change::add("n", 1)}, Condition::always()}; };
    store.transact({one_more("both-1"), one_more("both-2")}, token_, deadline, of_rows(done));
  }
  static void ask_initialize(Store& store, Instant deadline, const std::function<void(End)>& done) {
    store.initialize(deadline,
                     [done](const Reply<std::string>& reply) { done(end_of(reply.outcome, {}, reply.error)); });
  }

  /// Asks everything at once, all of it harmed, and waits for the ends.
  std::vector<Asked> ask_all(DynamoDbProxy::Rule rule, int times, RetryOptions retry, Duration time) {
    Store& store = open(proxy_.endpoint(), table_, retry);
    new_store_ = &open(proxy_.endpoint(), new_table_, retry);
    std::vector<Asked> all = all_requests();
    for (const Asked& asked : all) {
      rule.operation = asked.call;
      rule.contains = asked.contains;
      rule.times = times;
      proxy_.plan(rule);
    }
    deadline_ = runtime::boot_now() + time;
    for (Asked& asked : all) asked.ask(store, deadline_, [&asked](End end) { asked.end = std::move(end); });
    EXPECT_TRUE(run_until(
        loop_,
        [&] { return std::all_of(all.begin(), all.end(), [](const Asked& one) { return one.end.has_value(); }); },
        time + patience))
        << "not all were answered";
    proxy_.clear();
    return all;
  }

  void expect(const Asked& asked, char letter);
  void expect_rows(const Asked& asked);
  void expect_settled(const std::vector<Asked>& all, bool reached_server);
  void expect_all(const std::vector<Asked>& all, const std::string& letters) {
    for (const Asked& asked : all) {
      SCOPED_TRACE(asked.name);
      ASSERT_TRUE(asked.end.has_value());
      expect(asked, letters.at(asked.column));
      EXPECT_LE(asked.end->at, deadline_ + patience) << "long after its deadline";
    }
  }
  /// The server has answered whatever it was ever given.
  void wait_for_the_server() {
    proxy_.release();
    EXPECT_TRUE(eventually([&] {
      auto counts = proxy_.counts();
      int under_way = counts.held;
      for (const auto& [call, seen] : counts.seen) under_way += seen - counts.answered[call];
      for (const auto& [fault, harmed] : counts.faults) {
        if (!reaches_server(fault_named(fault))) under_way -= harmed;
      }
      return under_way == 0;
    }));
  }
  static DynamoDbFault fault_named(const std::string& name) {
    for (const DynamoDbFault fault : all_dynamodb_faults()) {
      if (to_string(fault) == name) return fault;
    }
    throw std::runtime_error("there is no fault " + name);
  }

  static constexpr Duration patience = 30s;  // for a machine that is very busy, on top of deadlines

  const DynamoDbServer& server_ = DynamoDbServer::local();
  const std::string table_ = random_table_name("faults");
  const std::string new_table_ = random_table_name("faults-new");
  const std::string token_ = random_table_name("t").substr(0, 36);
  runtime::AsioLoop loop_{1};
  DynamoDbProxy proxy_{server_.port()};
  std::vector<std::unique_ptr<Store>> stores_;
  Store& direct_ = open(server_.endpoint(), table_);
  Store* new_store_ = nullptr;
  Instant deadline_{};
};

void FaultyTable::expect(const Asked& asked, char letter) {
  const End& end = *asked.end;
  const bool is_own_conflict =
      end.outcome == Outcome::conflict && end.rows.size() == 1 && end.rows.front().text(attribute::attempt) == "ours";
  bool is_right = false;
  switch (letter) {
    case 'A':
      is_right = end.outcome == Outcome::applied;
      break;
    case 'M':
      is_right = end.outcome == Outcome::applied || is_own_conflict;
      break;
    case 'C':
      is_right = end.outcome == Outcome::conflict && !is_own_conflict;
      break;
    case 'T':
      is_right = end.outcome == Outcome::throttled;
      break;
    case 'U':
      is_right = end.outcome == Outcome::unknown;
      break;
    case 'R':
      is_right = end.outcome == Outcome::rejected;
      break;
    case 'E':
      is_right = end.outcome == Outcome::applied || end.outcome == Outcome::unknown;
      break;
    default:
      FAIL() << "no such letter: " << letter;
  }
  EXPECT_TRUE(is_right) << to_string(end.outcome) << " (" << end.error.detail << ") instead of " << letter;
  if (end.outcome == Outcome::applied) {
    EXPECT_EQ(end.error.detail, "");
  } else if (end.outcome != Outcome::conflict) {
    EXPECT_NE(end.error.detail, "");
  }
  if (end.outcome == Outcome::applied) expect_rows(asked);
}

void FaultyTable::expect_rows(const Asked& asked) {
  const std::vector<Row>& rows = asked.end->rows;
  if (asked.call == "GetItem") {
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_EQ(rows.front().text(attribute::owner), "reader");
  } else if (asked.column == read) {
    EXPECT_EQ(rows.size(), 3U);
  } else if (asked.column == claim) {
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_EQ(rows.front().text(attribute::attempt), "ours");
  } else if (asked.column == add) {
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_EQ(rows.front().number("n"), 1);
  } else if (asked.column == transact) {
    ASSERT_EQ(rows.size(), 2U);
    for (const Row& one : rows) EXPECT_EQ(one.number("n"), 1);
  }
}

/// What has become of it on the server agrees with what was said of it, and stays so: after another one has taken
/// what was claimed, nothing of ours that is still on its way undoes that.
void FaultyTable::expect_settled(const std::vector<Asked>& all, bool reached_server) {
  const auto outcome_of = [&](std::size_t column) {
    return std::find_if(all.begin(), all.end(), [&](const Asked& one) { return one.column == column; })->end->outcome;
  };
  const bool surely_not = outcome_of(claim) == Outcome::throttled || outcome_of(claim) == Outcome::rejected;
  const bool surely = outcome_of(claim) == Outcome::applied || outcome_of(claim) == Outcome::conflict;
  const std::int64_t epoch = row("claim").number(attribute::epoch);
  EXPECT_GE(epoch, surely ? 1 : 0);
  EXPECT_LE(epoch, surely_not ? 0 : 1);

  // The same write again, under its attempt: whatever became of the tries before, it is ours in the end.
  Store& store = open(proxy_.endpoint(), table_);
  Asked again = {"the claim again", claim, "", "", {}, update(store, claim_of("claim", 0, "ours"))};
  if (surely || surely_not) {
    EXPECT_EQ(again.end->outcome, surely ? Outcome::conflict : Outcome::applied);
  }
  expect(again, 'M');
  again.name = "the transaction again";
  again.column = transact;
  again.end.reset();
  ask_transaction(store, patience_ends(), [&](End end) { again.end = std::move(end); });
  ASSERT_TRUE(run_until(
      loop_, [&] { return again.end.has_value(); }, 2 * patience));
  expect(again, 'A');

  EXPECT_EQ(update(direct_, claim_of("claim", 1, "another's")).outcome, Outcome::applied);
  wait_for_the_server();
  EXPECT_EQ(row("claim").text(attribute::attempt), "another's");
  EXPECT_EQ(row("claim").number(attribute::epoch), 2);
  EXPECT_EQ(row("both-1").number("n"), 1);
  EXPECT_EQ(row("both-2").number("n"), 1);
  const bool added = outcome_of(add) == Outcome::applied || (outcome_of(add) == Outcome::unknown && reached_server);
  EXPECT_EQ(row("add").number("n"), added ? 1 : 0);
  EXPECT_EQ(row("refused").number(attribute::epoch), 0);
  EXPECT_FALSE(row("refused").find(attribute::attempt) != nullptr);
  again.end.reset();
  ask_initialize(open(server_.endpoint(), new_table_), patience_ends(), [&](End end) { again.end = std::move(end); });
  ASSERT_TRUE(run_until(
      loop_, [&] { return again.end.has_value(); }, 2 * patience));
  EXPECT_EQ(again.end->outcome, Outcome::applied) << again.end->error.detail;
}

class StoreFaults : public FaultyTable, public testing::WithParamInterface<FaultAndEnds> {};

TEST_P(StoreFaults, once_is_got_over_or_told_and_nothing_is_done_twice) {
  DynamoDbProxy::Rule rule = GetParam().rule;
  rule.seconds = 0.2;
  const auto fault = rule.fault;
  using Fault = DynamoDbFault;
  const bool is_silent = fault == Fault::drop_request || fault == Fault::drop_reply || fault == Fault::hold_request ||
                         fault == Fault::hold_reply;
  RetryOptions retry;
  retry.attempt_max = is_silent ? Duration(1s) : Duration(30s);  // what does answer has the time of a busy machine
  const std::vector<Asked> all = ask_all(rule, 1, retry, 60s);
  expect_all(all, GetParam().once);
  expect_settled(all, reaches_server(fault));
}

TEST_P(StoreFaults, without_end_is_told_by_the_deadline_after_few_tries_and_nothing_is_done_twice) {
  DynamoDbProxy::Rule rule = GetParam().rule;
  rule.seconds = 6;  // of a delay: longer than the deadline
  RetryOptions retry;
  retry.attempt_max = 400ms;
  const std::vector<Asked> all = ask_all(rule, 0, retry, 3s);
  for (const auto& [call, count] : proxy_.counts().seen) {
    const bool has_several = call != "GetItem" && call != "BatchGetItem" && call != "Scan";
    EXPECT_LE(count, static_cast<int>(retry.tries_max) * (has_several ? 4 : 1)) << call;
  }
  expect_all(all, GetParam().always);
  expect_settled(all, reaches_server(rule.fault));
}

TEST_F(FaultyTable, a_server_that_nobody_reaches_has_surely_done_nothing) {
  proxy_.refuse_connections(true);
  std::vector<Asked> all = ask_all({}, 0, {}, 2s);
  expect_all(all, "TTTTTTT");
  proxy_.refuse_connections(false);
  expect_settled(all, false);
}

TEST_F(FaultyTable, a_transaction_whose_rows_cannot_be_read_afterwards_is_applied_all_the_same) {
  proxy_.plan({.fault = DynamoDbFault::status_500, .operation = "BatchGetItem", .times = 0});
  std::optional<End> end;
  ask_transaction(open(proxy_.endpoint(), table_), runtime::boot_now() + 2s,
                  [&](End given) { end = std::move(given); });
  ASSERT_TRUE(run_until(
      loop_, [&] { return end.has_value(); }, patience));
  EXPECT_EQ(end->outcome, Outcome::applied);
  EXPECT_TRUE(end->rows.empty());
  EXPECT_NE(end->error.detail, "");
  EXPECT_EQ(row("both-1").number("n"), 1);
}

TEST_F(FaultyTable, a_lease_is_won_once_though_every_answer_is_lost) {
  // As a holder does it: the same attempt again until the row says what became of it.
  proxy_.plan({.fault = DynamoDbFault::drop_reply, .operation = "UpdateItem", .times = 0});
  RetryOptions retry;
  retry.attempt_max = 300ms;
  Store& store = open(proxy_.endpoint(), table_, retry);
  std::optional<End> end;
  store.update(claim_of("claim", 0, "ours"), runtime::boot_now() + 2s,
               of_row([&](End given) { end = std::move(given); }));
  ASSERT_TRUE(run_until(
      loop_, [&] { return end.has_value(); }, patience));
  EXPECT_EQ(end->outcome, Outcome::unknown);
  EXPECT_EQ(update(direct_, claim_of("claim", 0, "another's")).outcome, Outcome::conflict);
  proxy_.clear();
  const End again = update(store, claim_of("claim", 0, "ours"));
  EXPECT_EQ(again.outcome, Outcome::conflict);
  ASSERT_EQ(again.rows.size(), 1U);
  EXPECT_EQ(again.rows.front().text(attribute::attempt), "ours");
  EXPECT_EQ(again.rows.front().number(attribute::epoch), 1);
}

INSTANTIATE_TEST_SUITE_P(Each, StoreFaults, testing::ValuesIn(fault_table()),
                         [](const auto& fault) { return fault.param.name; });

}  // namespace
}  // namespace holdfast::test
