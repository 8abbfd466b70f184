// The coordinators: what a right costs that a process takes anew, beside flock, etcd, Redis and boto3.
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "coord/coordinator.hpp"
#include "core/coord/queue.hpp"
#include "harness.hpp"
#include "holdfast/store.hpp"
#include "runtime/asio_loop.hpp"
#include "servers.hpp"
#include "store/counting.hpp"

namespace holdfast::bench {
namespace {

using namespace std::chrono_literals;

constexpr const char* python = "/usr/bin/python3";

/// A coordinator on a table in a SQLite file, which is made; each call waits for its result.
class Desk {
 public:
  explicit Desk(const std::string& url) : store_(opened(url)), counted_(*store_) {
    store_->initialize(loop_.instant() + 60s, [&](const Reply<std::string>& reply) {
      if (!reply.ok()) throw std::runtime_error("cannot make the table: " + reply.error.detail);
      loop_.stop();
    });
    loop_.run();
    coordinator_.emplace("bench", counted_, loop_);
    task_.terms = make_terms({.lease = 10s}).value();
  }
  ~Desk() {
    coordinator_.reset();
    store_->close([&] { loop_.stop(); });
    loop_.run();
  }
  Desk(const Desk&) = delete;
  Desk& operator=(const Desk&) = delete;

  /// So many rights on tasks of their own are taken and given back, so many of them at a time.
  void take_and_give_back(int count, int at_a_time) {
    int begun = 0;
    int done = 0;
    std::function<void()> next = [&] {
      if (begun == count) return;
      take("task-" + std::to_string(begun++ % at_a_time), [&] {
        if (++done == count) return loop_.stop();
        next();
      });
    };
    for (int i = 0; i < at_a_time; ++i) next();
    loop_.run();
  }

  /// How many requests that write a call made. Those of a transaction are one.
  double writes(const std::function<void()>& call) {
    const double before = writes();
    call();
    return writes() - before;
  }
  void take_one() { take_and_give_back(1, 1); }
  void run_once(const std::string& key) {
    OnceOptions options;
    options.key = key;
    coord::Coordinator::OnceEvents events;
    const auto turn = std::make_shared<coord::Coordinator::Turn>();
    events.turn = [this, turn](Ended<coord::Coordinator::Turn> got) {
      *turn = std::move(expect(got));
      if (turn->done) return loop_.stop();
      if (!coordinator_->finish(*turn, {true, "done", loop_.wall()}, 24h)) throw std::runtime_error("not recorded");
    };
    events.lost = [](LossReason) { throw std::runtime_error("lost"); };
    events.finished = [this](Ended<std::optional<OnceResult>> finished) {
      (void)expect(finished);
      loop_.stop();
    };
    coordinator_->once(options, task_, std::move(events));
    loop_.run();
  }
  void decide(const std::string& key) {
    coordinator_->decide(key, Value("mine"), 10s, ended<Decided>());
    loop_.run();
  }
  void send() {
    run<Sent>(std::make_unique<Send>(SendOptions{"queue", "group", "body"}, loop_.instant() + 10s, loop_.random()));
  }
  void receive() {
    ReceiveOptions options;
    options.queue = "queue";
    coordinator_->receive(options, {}, 0s, 10s, [this](Ended<std::optional<Batch>> batch) {
      receipt_ = expect(batch).value().receipt;
      loop_.stop();
    });
    loop_.run();
  }
  void acknowledge() {
    run<Settled>(std::make_unique<Settle>(receipt_, Settlement{.kind = Settlement::Kind::ack, .count = 1},
                                          loop_.instant() + 10s, loop_.random()));
  }

 private:
  std::unique_ptr<Store> opened(const std::string& url) {
    auto store = open_store(url, loop_);
    if (!store) throw std::runtime_error(store.error().detail);
    return *std::move(store);
  }
  template <class T>
  static T& expect(Ended<T>& result) {
    if (!result) throw std::runtime_error("a call failed: " + result.error().error.detail);
    return *result;
  }
  template <class T>
  std::function<void(Ended<T>)> ended() {
    return [this](Ended<T> result) {
      (void)expect(result);
      loop_.stop();
    };
  }
  template <class T, class P>
  void run(std::unique_ptr<P> procedure) {
    coordinator_->run(std::move(procedure), ended<T>());
    loop_.run();
  }
  void take(const std::string& task, std::function<void()> given_back) {
    coord::TaskEvents events;
    events.acquired = [](Ended<std::shared_ptr<coord::Held>> got) { expect(got)->release({}); };
    events.lost = [](LossReason) { throw std::runtime_error("lost"); };
    events.ended = [given_back = std::move(given_back)](coord::HoldEnd how, const Error& error) {
      if (how != coord::HoldEnd::released) throw std::runtime_error("not given back: " + error.detail);
      given_back();
    };
    coordinator_->acquire(task, task_, std::move(events));
  }
  double writes() const {
    double sum = 0;
    for (const auto& [kind, outcomes] : counted_.counts()) {
      if (kind != "update" && kind != "transact") continue;
      for (const auto& [outcome, count] : outcomes) sum += static_cast<double>(count);
    }
    return sum;
  }

  runtime::AsioLoop loop_{1};
  std::unique_ptr<Store> store_;
  CountingStore counted_;
  std::optional<coord::Coordinator> coordinator_;
  coord::TaskOptions task_;
  Receipt receipt_;
};

// ---- A command under a right ----

void start_commands(Run& run) {
  run.version("flock", first_line({"flock", "--version"}));
  run.version("etcdctl", first_line({"etcdctl", "version"}));
  run.version("etcd", first_line({"etcd", "--version"}));
  const TemporaryFolder folder;
  std::optional<Etcd> etcd;
  std::string no_etcd;
  try {
    etcd.emplace();
  } catch (const NotHere& why) {
    no_etcd = why.what();
  }
  const int times = run.quick() ? 2 : 20;
  const auto holdfast = [&](const std::string& sync) {
    return [=, url = "sqlite:" + folder.path() + "/" + sync + ".db?sync=" + sync] {
      return start_anew({HOLDFAST_PROGRAM, "run", "T", "--store", url, "--", "true"}, times);
    };
  };
  run.compare(
      {.name = "a command under a right",
       .subjects = {{"holdfast", holdfast("full")},
                    {"holdfast, sync=normal", holdfast("normal")},
                    {"flock",
                     [&] {
                       return start_anew({"flock", folder.path() + "/lock", "true"}, times);
                     }},
                    {"etcdctl",
                     [&] {
                       if (!etcd) throw NotHere(no_etcd);
                       return start_anew({"etcdctl", "--endpoints", etcd->endpoint(), "lock", "T", "true"}, times);
                     }}},
       .ratios = {{.subject = "holdfast", .figure = "wall_ms", .goal = at_most(8)},
                  {.subject = "holdfast", .to = "etcdctl", .figure = "wall_ms", .goal = at_most(1)},
                  {.subject = "holdfast", .to = "flock", .figure = "wall_ms"},
                  {.subject = "holdfast, sync=normal", .to = "flock", .figure = "wall_ms"},
                  {.subject = "holdfast", .to = "etcdctl", .figure = "cpu_ms"},
                  {.subject = "holdfast", .to = "flock", .figure = "cpu_ms"}},
       .rounds = 7});
}

// ---- On DynamoDB Local ----

void start_on_dynamodb(Run& run, const DynamoDbLocal& server) {
  run.version("boto3", first_line({python, "-c", "import boto3; print(boto3.__version__)"}));
  run.version("Python", first_line({python, "--version"}));
  (void)start_anew({HOLDFAST_PROGRAM, "init", "--store", server.url("cold")}, 1);
  const int times = run.quick() ? 1 : 4;
  int names = 0;
  run.compare({.name = "from nothing to a right on DynamoDB Local",
               .subjects = {{"holdfast",
                             [&] {
                               return start_anew({HOLDFAST_PROGRAM, "run", "T", "--store", server.url("cold"), "--",
                                                  "echo", "taken"},
                                                 times);
                             }},
                            {"boto3",
                             [&] {
                               Figures sum;
                               for (int i = 0; i < times; ++i) {
                                 for (const auto& [figure, value] :
                                      start_anew({python, source_path("bench/peers/dynamodb_lock.py"),
                                                  server.endpoint(), "cold", "lock-" + std::to_string(names++)},
                                                 1)) {
                                   sum[figure] += value / times;
                                 }
                               }
                               return sum;
                             }}},
               .ratios = {{.subject = "holdfast", .to = "boto3", .figure = "said_ms", .goal = at_most(0.1)},
                          {.subject = "holdfast", .to = "boto3", .figure = "cpu_ms", .goal = at_most(0.1)},
                          {.subject = "holdfast", .to = "boto3", .figure = "wall_ms"}}});
}

void contend(Run& run, const DynamoDbLocal& server) {
  const int processes = run.quick() ? 20 : 500;
  int tables = 0;
  run.compare({.name = std::to_string(processes) + " processes want one task",
               .subjects = {{"holdfast",
                             [&] {
                               const std::string table = "contended-" + std::to_string(tables++);
                               (void)start_anew({HOLDFAST_PROGRAM, "init", "--store", server.url(table)}, 1);
                               return child({python, source_path("bench/peers/contend.py"), HOLDFAST_PROGRAM,
                                             server.endpoint(), table, std::to_string(processes)},
                                            300);
                             }}},
               .ratios = {{.subject = "holdfast", .figure = "winners", .goal = at_least(1)},
                          {.subject = "holdfast", .figure = "winners", .goal = at_most(1)},
                          {.subject = "holdfast", .figure = "losers_told_busy", .goal = at_least(processes - 1)},
                          {.subject = "holdfast", .figure = "writes_per_loser", .goal = at_most(1)},
                          {.subject = "holdfast", .figure = "writes"},
                          {.subject = "holdfast", .figure = "reads"},
                          {.subject = "holdfast", .figure = "wall_s"}},
               .rounds = 1,
               .warm_up = false});
}

// ---- Within one process ----

Figures on_redis(const std::string& appendfsync, int count, int at_a_time) {
  const Redis server(appendfsync);
  RedisClient client(server.port());
  const std::string script = client
                                 .ask({{"SCRIPT", "LOAD",
                                        "if redis.call('get', KEYS[1]) == ARGV[1] then "
                                        "return redis.call('del', KEYS[1]) else return 0 end"}})
                                 .front();
  std::vector<RedisClient::Command> take;
  std::vector<RedisClient::Command> give_back;
  for (int i = 0; i < at_a_time; ++i) {
    const std::string key = "task-" + std::to_string(i);
    take.push_back({"SET", key, "0123456789abcdef", "NX", "PX", "10000"});
    give_back.push_back({"EVALSHA", script, "1", key, "0123456789abcdef"});
  }
  const auto ask = [&](const std::vector<RedisClient::Command>& commands, const char* expected) {
    for (const std::string& answer : client.ask(commands)) {
      if (answer != expected) throw std::runtime_error("Redis says " + answer);
    }
  };
  const double server_cpu = server.cpu_s();
  const double cpu = process_cpu_s();
  const double wall = wall_s();
  for (int done = 0; done < count; done += at_a_time) {
    ask(take, "+OK");
    ask(give_back, ":1");
  }
  return figures(count, process_cpu_s() - cpu + server.cpu_s() - server_cpu, wall_s() - wall);
}

Figures on_sqlite(const std::string& sync, int count, int at_a_time) {
  const TemporaryFolder folder;
  Desk desk("sqlite:" + folder.path() + "/bench.db?sync=" + sync);
  desk.take_and_give_back(at_a_time, at_a_time);  // the rows are there
  return measure(static_cast<std::uint64_t>(count), [&] { desk.take_and_give_back(count, at_a_time); });
}

void take_and_give_back(Run& run) {
  run.version("Redis", first_line({"redis-server", "--version"}));
  const struct {
    const char *sync, *appendfsync, *name;
  } kinds[] = {{"full", "always", ", each synced"}, {"normal", "no", ", none synced"}};
  for (const auto& kind : kinds) {
    for (const int at_a_time : {1, 64}) {
      const int count = (run.quick() ? 1 : 30) * 64;
      run.compare(
          {.name = "taken and given back, " + std::to_string(at_a_time) + " at a time" + kind.name,
           .subjects = {{"SQLite", [=] { return in_fork([=] { return on_sqlite(kind.sync, count, at_a_time); }); }},
                        {"Redis", [=] { return on_redis(kind.appendfsync, count, at_a_time); }}},
           .ratios = {{.subject = "SQLite", .to = "Redis", .figure = "per_core_second"},
                      {.subject = "SQLite", .to = "Redis", .figure = "per_second"}}});
    }
  }
}

void count_writes(Run& run) {
  const auto count = [] {
    const TemporaryFolder folder;
    Desk desk("sqlite:" + folder.path() + "/bench.db");
    return Figures{{"take_and_give_back", desk.writes([&] { desk.take_one(); })},
                   {"once", desk.writes([&] { desk.run_once("key"); })},
                   {"once_again", desk.writes([&] { desk.run_once("key"); })},
                   {"decide", desk.writes([&] { desk.decide("key"); })},
                   {"decide_again", desk.writes([&] { desk.decide("key"); })},
                   {"send", desk.writes([&] { desk.send(); })},
                   {"receive", desk.writes([&] { desk.receive(); })},
                   {"ack", desk.writes([&] { desk.acknowledge(); })}};
  };
  const std::pair<const char*, double> designed[] = {
      {"take_and_give_back", 2}, {"once", 2}, {"once_again", 0}, {"decide", 1},
      {"decide_again", 0},       {"send", 1}, {"receive", 1},    {"ack", 1}};
  std::vector<Ratio> ratios;
  for (const auto& [figure, most] : designed) {
    ratios.push_back({.subject = "holdfast", .figure = figure, .goal = at_most(most)});
  }
  run.compare({.name = "writes of each call",
               .subjects = {{"holdfast", [=] { return in_fork(count); }}},
               .ratios = std::move(ratios),
               .rounds = 1,
               .warm_up = false});
}

void coordinators(Run& run) {
  count_writes(run);
  start_commands(run);
  take_and_give_back(run);
  const DynamoDbLocal server;
  start_on_dynamodb(run, server);
  contend(run, server);
}

const Register registered{
    "coord", "rights that are taken anew: beside flock, etcd, Redis and boto3; 500 that want one; writes counted",
    "Commands: each program is started anew, runs `true` under a right on a name that nobody else wants, and has "
    "given it back when it ends; wall_ms is the median of 20 starts, cpu_ms the program's own with its command's, "
    "not the server's. holdfast is on a SQLite file and waits for the disk with each of its two writes "
    "(synchronous=FULL), but for sync=normal; flock writes nothing; etcd, with one member, syncs its log, and "
    "etcdctl makes a lease and a key, and takes both away. DynamoDB Local, in memory: `holdfast run T -- echo "
    "taken` beside a script in Python that imports boto3, makes one conditional put, and prints; said_ms is until "
    "that is read, cpu_ms and wall_ms are of the whole, which for holdfast alone has a command and a write that "
    "gives back in it; the server's time is not counted. 500 processes: all are waiting in a shell, are let go at "
    "once on the cores that there are, and start holdfast; the winner holds the task until all others have ended; "
    "a proxy before the server counts UpdateItem and GetItem, up to when the last loser has ended. Taken and "
    "given back: within one process that goes on; SQLite through the coordinator and the store, each with a look "
    "and two writes; Redis with SET NX PX and a script that compares and deletes, by a client that does no more "
    "than write and read its protocol, 64 at a time being one pipeline; processor time of client and server "
    "together. Each synced: synchronous=FULL beside appendfsync always; none synced: synchronous=NORMAL beside "
    "appendfsync no. Writes of each call: requests to the store that write, a transaction being one.",
    coordinators};

}  // namespace
}  // namespace holdfast::bench
