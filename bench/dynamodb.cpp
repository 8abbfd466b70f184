// The DynamoDB store beside boto3 and the AWS SDK for JavaScript, and what renewing many leases takes.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "dynamodb_stub.hpp"
#include "harness.hpp"
#include "holdfast/lease.hpp"
#include "holdfast/store.hpp"
#include "runtime/asio_loop.hpp"
#include "runtime/http_client.hpp"
#include "runtime/log.hpp"
#include "runtime/signals.hpp"
#include "servers.hpp"
#include "store/dynamodb/context.hpp"
#include "store/dynamodb/expression.hpp"
#include "store/open.hpp"
#include "support/counting_resource.hpp"
#include "worker/worker.hpp"

namespace holdfast::bench {
namespace {

using namespace std::chrono_literals;
using namespace store::dynamodb;

constexpr int window = 64;  // requests in flight, and so connections
constexpr int keys = 1000;
constexpr const char* python = "/usr/bin/python3";

/// The table of that name at an endpoint, by credentials that are invented.
std::unique_ptr<Store> open(runtime::AsioLoop& loop, const std::string& table, const std::string& endpoint) {
  for (const auto& [name, value] : {std::pair("AWS_ACCESS_KEY_ID", "test"),
                                    {"AWS_SECRET_ACCESS_KEY", "test-secret"},
                                    {"AWS_SESSION_TOKEN", ""},
                                    {"AWS_PROFILE", ""}}) {
    ::setenv(name, value, 1);
  }
  auto store = store::open_store("dynamodb://" + table + "?region=us-east-1&endpoint=" + endpoint, loop,
                                 [&] { return std::make_unique<runtime::HttpClient>(loop); });
  if (!store) throw std::runtime_error(store.error().detail);
  return *std::move(store);
}

/// What a renewal is: mine, this epoch; a new expiry, a new attempt, a new number, the checkpoint.
Update renewal(int number) {
  return {stub_key(number % keys),
          {Change::set(attribute::expires_at, std::int64_t{1'700'000'000'001} + number),
           Change::set(attribute::attempt, "fedcba9876543210fedcba9876543210"),
           Change::set(attribute::renewal, number), Change::set(attribute::last_seq, 123'456'789 + number)},
          Condition::equals(attribute::owner, "worker-7f3a#0a1b2c3d") && Condition::equals(attribute::epoch, 7)};
}

/// The same as the parameters of the peers' call.
std::string renewal_as_json() {
  const auto options = parse_table_url("dynamodb://bench");
  std::string body = begin_body(*options) + ",";
  if (auto written = write_update(renewal(0), options->names, body); !written) {
    throw std::runtime_error(written.error().detail);
  }
  return body + R"(,"ReturnValues":"ALL_NEW","ReturnValuesOnConditionCheckFailure":"ALL_OLD"})";
}

/// So many updates through the store, `window` of them in flight.
void update(Store& store, runtime::AsioLoop& loop, int count) {
  int asked = 0;
  int open = 0;
  std::function<void()> next = [&] {
    if (asked == count) {
      if (open == 0) loop.stop();
      return;
    }
    ++open;
    store.update(renewal(asked++), loop.instant() + 10s, [&](const RowReply& reply) {
      if (!reply.ok()) throw std::runtime_error("an update failed: " + reply.error.detail);
      --open;
      next();
    });
  };
  for (int i = 0; i < std::min(window, count); ++i) next();
  loop.run();
}

Figures through_store(const DynamoDbStub& stub, int count) {
  runtime::ignore_broken_pipes();
  runtime::AsioLoop loop(1);
  const auto store = open(loop, "bench", stub.endpoint());
  update(*store, loop, count / 4);
  return measure(static_cast<std::uint64_t>(count), [&] { update(*store, loop, count); });
}

/// Adds how busy the stub was: near 1, it would be what is measured.
Figures with_stub(const DynamoDbStub& stub, const std::function<Figures()>& body) {
  const double cpu = stub.cpu_s();
  const double wall = wall_s();
  Figures figures = body();
  figures["stub_cores"] = (stub.cpu_s() - cpu) / (wall_s() - wall);
  figures["stub_share"] = (stub.cpu_s() - cpu) / (stub.cpu_s() - cpu + figures.at("cpu_s"));
  return figures;
}

void compare_clients(Run& run) {
  run.version("boto3", first_line({python, "-c", "import boto3; print(boto3.__version__)"}));
  run.version("Python", first_line({python, "--version"}));
  run.version(
      "@aws-sdk/client-dynamodb",
      first_line({"node", "-p",
                  "require('" + source_path("tests/peers/node_modules/@aws-sdk/client-dynamodb/package.json") +
                      "').version"}));
  run.version("Node", first_line({"node", "--version"}));
  const DynamoDbStub stub(DynamoDbStub::Kind::canned);
  const std::string request = renewal_as_json();
  const int many = run.quick() ? 2'000 : 30'000;
  const int of_sdk = run.quick() ? 400 : 8'000;
  const int of_boto3 = run.quick() ? 200 : 2'000;
  const auto peer = [&](std::vector<std::string> command) { return with_stub(stub, [&] { return child(command); }); };
  run.compare(
      {.name = "conditional updates",
       .subjects = {{"holdfast",
                     [&] {
                       return with_stub(stub, [&] { return in_fork([&] { return through_store(stub, many); }); });
                     }},
                    {"AWS SDK for JavaScript",
                     [&] {
                       return peer({"node", source_path("bench/peers/dynamodb_sdk.mjs"), stub.endpoint(),
                                    std::to_string(of_sdk), std::to_string(window), request});
                     }},
                    {"boto3",
                     [&] {
                       return peer({python, source_path("bench/peers/dynamodb_boto3.py"), stub.endpoint(),
                                    std::to_string(of_boto3), request});
                     }}},
       .ratios = {
           {.subject = "holdfast", .to = "boto3", .figure = "per_core_second", .goal = at_least(10)},
           {.subject = "holdfast", .to = "AWS SDK for JavaScript", .figure = "per_core_second", .goal = at_least(3)},
           {.subject = "holdfast", .figure = "per_core_second"},
           {.subject = "AWS SDK for JavaScript", .figure = "per_core_second"},
           {.subject = "boto3", .figure = "per_core_second"},
           {.subject = "holdfast", .figure = "stub_cores", .goal = at_most(0.9)}}});
}

/// Passes on what a worker asks, and notes when each lease was confirmed: by its row's key, at each write that moved
/// the expiry.
class Watched final : public Store {
 public:
  Watched(Store& store, Loop& loop) : store_(store), loop_(loop) {}

  void initialize(Instant deadline, Handler<Reply<std::string>> handler) override {
    store_.initialize(deadline, std::move(handler));
  }
  void get(std::string key, Instant deadline, Handler<RowReply> handler) override {
    store_.get(std::move(key), deadline, std::move(handler));
  }
  void batch_get(std::vector<std::string> keys_, Instant deadline, Handler<RowsReply> handler) override {
    store_.batch_get(std::move(keys_), deadline, std::move(handler));
  }
  void update(Update update, Instant deadline, Handler<RowReply> handler) override {
    if (update.purpose != Purpose::renew) return store_.update(std::move(update), deadline, std::move(handler));
    store_.update(update, deadline,
                  [this, key = update.key, sent = loop_.instant(), handler = std::move(handler)](RowReply reply) {
                    if (reply.ok()) confirmed(key, sent);
                    handler(std::move(reply));
                  });
  }
  void transact(std::vector<Update> updates, std::string token, Instant deadline,
                Handler<RowsReply> handler) override {
    store_.transact(std::move(updates), std::move(token), deadline, std::move(handler));
  }
  void query_due(QueryDue query, Instant deadline, Handler<PageReply> handler) override {
    store_.query_due(std::move(query), deadline, std::move(handler));
  }
  void query_owned(std::string owner, Instant deadline, Handler<RowsReply> handler) override {
    store_.query_owned(std::move(owner), deadline, std::move(handler));
  }
  void changes(ChangeListener listener) override { store_.changes(std::move(listener)); }
  [[nodiscard]] Capabilities capabilities() const override { return store_.capabilities(); }
  [[nodiscard]] ConsumedByKind consumed() const override { return store_.consumed(); }
  void close(std::function<void()> done) override { store_.close(std::move(done)); }

  void begin() {
    gap_max = answer_max = Duration::zero();
    count = 0;
  }
  Duration gap_max{};     ///< the longest from one confirmed renewal of a lease to its next
  Duration answer_max{};  ///< the longest from sending to the answer
  double count = 0;

 private:
  void confirmed(const std::string& key, Instant sent) {
    const Instant now = loop_.instant();
    auto [last, first] = last_.try_emplace(key, now);
    if (!first) gap_max = std::max(gap_max, now - std::exchange(last->second, now));
    answer_max = std::max(answer_max, now - sent);
    ++count;
  }

  Store& store_;
  Loop& loop_;
  std::map<std::string, Instant> last_;
};

Consumed all_of(const ConsumedByKind& kinds) {
  Consumed all;
  for (const auto& [kind, consumed] : kinds) all += consumed;
  return all;
}

double milliseconds(Duration duration) {
  return std::chrono::duration<double, std::milli>(duration).count();
}

/// A table with so many connections that are to run.
void make_table(Store& store, runtime::AsioLoop& loop, int connections) {
  int left = connections;
  const auto one_less = [&](const RowReply& reply) {
    if (!reply.ok()) throw std::runtime_error("cannot prepare the table: " + reply.error.detail);
    if (--left == 0) loop.stop();
  };
  store.initialize(loop.instant() + 60s, [&](const Reply<std::string>& reply) {
    if (!reply.ok()) throw std::runtime_error("cannot make the table: " + reply.error.detail);
    for (int i = 0; i < connections; ++i) {
      Update row;
      row.key = stub_key(i);
      row.changes = {Change::set(attribute::desired_state, state::started), Change::set(attribute::expires_at, 0),
                     Change::set(attribute::url, "wss://feed.example/stream/1"),
                     Change::set(attribute::last_seq, 123'456)};
      store.update(std::move(row), loop.instant() + 60s, one_less);
    }
  });
  loop.run();
}

/// A worker with so many leases, renewed every 5 s, from when all have been renewed twice.
Figures hold_leases(Store& table, runtime::AsioLoop& loop, int leases, Duration time) {
  Watched store(table, loop);
  runtime::Log log = runtime::Log::to_stderr(runtime::LogLevel::error);
  LeaseOptions lease;
  lease.lease = 20s;
  lease.renew_every = 5s;
  worker::WorkerOptions options;
  options.name = "bench";
  options.incarnation = "0a1b2c3d";
  options.terms = make_terms(lease).value();
  options.max_connections = static_cast<std::size_t>(leases);
  worker::Worker worker(
      std::move(options), loop, {&loop}, store,
      [](const Row&, Loop&) { return std::make_unique<test::CountingResource>(); },  // renewals carry checkpoints
      log, [&] { loop.stop(); });
  worker.start();
  Figures figures;
  double cpu = 0;
  double wall = 0;
  Consumed consumed;
  const auto finish = [&] {
    const double used = process_cpu_s() - cpu;
    const double seconds = wall_s() - wall;
    const Consumed now = all_of(store.consumed());
    figures = {{"cpu_s", used},
               {"cores", used / seconds},
               {"renewals_per_second", store.count / seconds},
               {"write_units_per_second", (now.write_units() - consumed.write_units()) / seconds},
               {"read_units_per_second", (now.read_units() - consumed.read_units()) / seconds},
               {"late_ms_max", milliseconds(store.gap_max) - 5000},
               {"answer_ms_max", milliseconds(store.answer_max)}};
    worker.stop();
  };
  const auto begin = [&] {
    store.begin();
    consumed = all_of(store.consumed());
    cpu = process_cpu_s();
    wall = wall_s();
    loop.call_after(time, finish);
  };
  std::function<void()> wait = [&] {
    const bool all = worker.held() == static_cast<std::size_t>(leases) && worker.report().renewals >= 2 * leases;
    all ? begin() : void(loop.call_after(100ms, wait));
  };
  loop.post(wait);
  loop.run();
  return figures;
}

void renew_many(Run& run) {
  const int leases = run.quick() ? 200 : 5'000;
  const Duration time = run.quick() ? Duration(2s) : Duration(20s);
  run.compare({.name = std::to_string(leases) + " leases renewed every 5 s",
               .subjects = {{"holdfast",
                             [=] {
                               const DynamoDbStub stub(DynamoDbStub::Kind::rows, leases);
                               const auto hold = [&] {
                                 runtime::ignore_broken_pipes();
                                 runtime::AsioLoop loop(1);
                                 const auto store = open(loop, "bench", stub.endpoint());
                                 return hold_leases(*store, loop, leases, time);
                               };
                               return with_stub(stub, [&] { return in_fork(hold); });
                             }}},
               .ratios = {{.subject = "holdfast", .figure = "cores", .goal = at_most(0.15)},
                          {.subject = "holdfast", .figure = "late_ms_max", .goal = at_most(500)},
                          {.subject = "holdfast", .figure = "answer_ms_max"},
                          {.subject = "holdfast", .figure = "renewals_per_second"},
                          {.subject = "holdfast", .figure = "stub_cores", .goal = at_most(0.9)}},
               .rounds = run.quick() ? 1 : 3,
               .warm_up = false});
}

void count_units(Run& run) {
  const int connections = run.quick() ? 20 : 200;
  const Duration time = run.quick() ? Duration(5s) : Duration(60s);
  const DynamoDbLocal server;
  int round = 0;
  const auto hold = [&] {
    runtime::ignore_broken_pipes();
    runtime::AsioLoop loop(1);
    const auto store = open(loop, "bench-" + std::to_string(round), server.endpoint());
    make_table(*store, loop, connections);
    return hold_leases(*store, loop, connections, time);
  };
  const std::string seconds = std::to_string(std::chrono::duration_cast<std::chrono::seconds>(time).count());
  run.compare({.name = std::to_string(connections) + " connections for " + seconds + " s",
               .subjects = {{"holdfast",
                             [&] {
                               ++round;
                               return in_fork(hold, 300);
                             }},
                            {"plain loop",
                             [&] {
                               return child({python, source_path("bench/peers/dynamodb_plain.py"), server.endpoint(),
                                             std::to_string(connections), seconds},
                                            300);
                             }}},
               .ratios = {{.subject = "holdfast", .to = "plain loop", .figure = "write_units_per_second"},
                          {.subject = "holdfast", .to = "plain loop", .figure = "read_units_per_second"},
                          {.subject = "holdfast", .figure = "write_units_per_second"},
                          {.subject = "plain loop", .figure = "write_units_per_second"},
                          {.subject = "holdfast", .figure = "read_units_per_second"},
                          {.subject = "plain loop", .figure = "read_units_per_second"},
                          {.subject = "holdfast", .figure = "renewals_per_second"},
                          {.subject = "plain loop", .figure = "renewals_per_second"}},
               .rounds = 1,
               .warm_up = false});
}

void dynamodb(Run& run) {
  compare_clients(run);
  renew_many(run);
  count_units(run);
}

const Register registered{
    "dynamodb", "the DynamoDB store beside boto3 and the AWS SDK for JavaScript; many leases; units consumed",
    "Updates: a stub server of our own on loopback, in a process of its own, gives every UpdateItem the same row at "
    "once; all three send the same renewal (four attributes set under a condition of two, the row returned, capacity "
    "told) to 1,000 keys in turn, signed, over kept connections. Holdfast goes through its store, with 64 in flight; "
    "so does the SDK; boto3 makes one call after the other, which suits it best. Counted is each client's processor "
    "time, user and system, after a quarter as many calls have passed. stub_cores is the share of a core that the "
    "stub "
    "was "
    "busy. Leases: a worker whose resources do nothing but count, so that each renewal carries a checkpoint; the "
    "stub "
    "keeps rows. cores is the whole process's processor time over 20 s, after each lease was renewed twice. "
    "late_ms_max is the longest time from one confirmed renewal of a lease to its next, over all leases, less 5 s: "
    "the "
    "request's way, the stub's and the loop's delays are in it. Units: the same worker on Amazon's DynamoDB Local, "
    "as "
    "the server told them (ReturnConsumedCapacity), over a minute in which all leases are held; beside it a loop in "
    "boto3 that renews each lease, and reads each row (eventually consistent), every 5 s. Own row and looks of the "
    "worker are in its figures. DynamoDB Local counts no units for a look that finds nothing, where AWS charges "
    "half.",
    dynamodb};

}  // namespace
}  // namespace holdfast::bench
