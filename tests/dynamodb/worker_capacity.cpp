// What a worker asks of DynamoDB while it holds connections, and what that costs: as the server counts it, and as
// `holdfast cost` foretells it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>

#include "cli/cost_estimate.hpp"
#include "holdfast/store.hpp"
#include "runtime/asio_loop.hpp"
#include "runtime/http_client.hpp"
#include "runtime/log.hpp"
#include "runtime/signals.hpp"
#include "store/open.hpp"
#include "support/counting_resource.hpp"
#include "support/dynamodb_servers.hpp"
#include "support/run_until.hpp"
#include "worker/worker.hpp"

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

/// A worker on a table of its own on DynamoDB Local, with leases of 4 s that are renewed every second.
class WorkerCapacity : public testing::Test {
 protected:
  static constexpr int connections = 10;

  WorkerCapacity() {
    for (const auto& [name, value] : DynamoDbServer::environment()) ::setenv(name.c_str(), value.c_str(), 1);
    runtime::ignore_broken_pipes();
    url_ = "dynamodb://" + random_table_name("capacity") +
           "?region=us-east-1&endpoint=" + DynamoDbServer::local().endpoint();
    people_ = open();
    store_ = open();
  }

  ~WorkerCapacity() override {
    worker_.reset();
    bool closed = false;
    for (Store* store : {people_.get(), store_.get()}) store->close([&] { closed = true; });
    (void)run_until(loop_, [&] { return closed; });
  }

  std::unique_ptr<Store> open() {
    auto store = store::open_store(url_, loop_, [this] { return std::make_unique<runtime::HttpClient>(loop_); });
    if (!store) throw std::runtime_error(store.error().detail);
    return *std::move(store);
  }

  void begin() {
    int written = 0;
    people_->initialize(loop_.instant() + 60s, [&](const Reply<std::string>& reply) {
      ASSERT_TRUE(reply.ok()) << reply.error.detail;
      for (int i = 0; i < connections; ++i) {
        Update row;
        row.key = std::string(key_prefix::connection) + std::to_string(i);
        row.changes = {Change::set(attribute::desired_state, state::started), Change::set(attribute::expires_at, 0),
                       Change::set(attribute::url, "wss://feed.example/stream/1"),
                       Change::set(attribute::last_seq, 7)};
        people_->update(std::move(row), loop_.instant() + 60s,
                        [&](const RowReply& reply_) { written += reply_.ok(); });
      }
    });
    ASSERT_TRUE(run_until(
        loop_, [&] { return written == connections; }, 90s));
    LeaseOptions lease;
    lease.lease = 4s;
    worker::WorkerOptions options;
    options.name = "w";
    options.incarnation = "0a1b2c3d";
    options.terms = terms_ = make_terms(lease).value();
    worker_.emplace(
        std::move(options), loop_, std::vector<Loop*>{&loop_}, *store_,
        [](const Row&, Loop&) { return std::make_unique<CountingResource>(); }, log_, [] {});
    worker_->start();
  }

  [[nodiscard]] bool renewed(int times) {
    const std::int64_t wanted = worker_->report().renewals + std::int64_t{times} * connections;
    return run_until(
        loop_, [&] { return worker_->report().renewals >= wanted; }, 60s);
  }

  runtime::AsioLoop loop_{1};
  runtime::Log log_ = runtime::Log::nowhere();
  std::string url_;
  std::unique_ptr<Store> people_, store_;
  LeaseTerms terms_;
  std::optional<worker::Worker> worker_;
};

TEST_F(WorkerCapacity, holding_takes_renewals_looks_and_the_workers_own_row_and_no_read_of_a_row) {
  ASSERT_NO_FATAL_FAILURE(begin());
  ASSERT_TRUE(renewed(5));
  const ConsumedByKind all = worker_->report().capacity;
  for (const char* operation : {"GetItem", "BatchGetItem", "Scan", "UpdateItem", "Query"}) {
    EXPECT_FALSE(all.contains(operation)) << operation << ": " << all.at(operation).requests << " times";
  }
  const Consumed& renew = all.at("renew");
  EXPECT_GE(renew.counted, 5U * connections);
  EXPECT_EQ(renew.table_write_units, static_cast<double>(renew.counted));
  EXPECT_EQ(renew.index_write_units, 2.0 * static_cast<double>(renew.counted)) << "a delete and a put";
  EXPECT_EQ(renew.read_units(), 0);
  EXPECT_EQ(all.at("claim").write_units(), 3.0 * static_cast<double>(all.at("claim").counted));
  EXPECT_EQ(all.at("session").table_write_units, static_cast<double>(all.at("session").counted));
  EXPECT_EQ(all.at("look").write_units(), 0);
  EXPECT_EQ(all.at("look").table_read_units, 0);
}

TEST_F(WorkerCapacity, checkpoints_ride_on_renewals) {
  ASSERT_NO_FATAL_FAILURE(begin());
  ASSERT_TRUE(renewed(3));
  EXPECT_FALSE(worker_->report().capacity.contains("checkpoint"));
  int moved = 0;
  for (int i = 0; i < connections; ++i) {
    people_->get(std::string(key_prefix::connection) + std::to_string(i), loop_.instant() + 60s,
                 [&](const RowReply& reply) {
                   ASSERT_TRUE(reply.ok() && reply.value) << reply.error.detail;
                   moved += reply.value->number(attribute::last_seq) > 7;
                 });
  }
  EXPECT_TRUE(run_until(
      loop_, [&] { return moved == connections; }, 60s));
}

TEST_F(WorkerCapacity, is_what_the_estimate_of_costs_foretells) {
  ASSERT_NO_FATAL_FAILURE(begin());
  const cli::CostEstimate estimate = cli::estimate_cost({.connections = connections,
                                                         .workers = 1,
                                                         .renew_every = terms_.renew_every,
                                                         .reconcile_every = terms_.reconcile_every,
                                                         .moves_per_day = 0});
  ASSERT_TRUE(renewed(1));
  const std::uint64_t before = worker_->report().capacity.at("renew").counted;
  const Instant begun = loop_.instant();
  ASSERT_TRUE(renewed(5));
  // A machine that is busy with other things is late, and makes fewer in a second; never more.
  const double seconds = std::chrono::duration<double>(loop_.instant() - begun).count();
  const auto made = static_cast<double>(worker_->report().capacity.at("renew").counted - before);
  EXPECT_LE(made, estimate.lines.front().requests * seconds + 2 * connections);
  const ConsumedByKind all = worker_->report().capacity;
  for (const cli::CostLine& line : estimate.lines) {
    const auto found = all.find(line.kind);
    if (line.requests == 0 || found == all.end() || line.kind == "look") continue;
    EXPECT_NEAR(found->second.write_units() / static_cast<double>(found->second.counted),
                line.write_units() / line.requests, 0.2)
        << line.kind;
  }
}

}  // namespace
}  // namespace holdfast::test
