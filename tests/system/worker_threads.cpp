// The whole program with connections on several threads and everything going on at once. Right in any build; what it
// is for is ThreadSanitizer (./dev test --preset tsan --threaded), which ends a process in which it finds something.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <set>

#include "holdfast/fleet.hpp"
#include "runtime/thread.hpp"
#include "support/fleet_processes.hpp"
#include "support/peer.hpp"

namespace holdfast::test {
namespace {

class WorkerThreads : public Processes {
 protected:
  static constexpr int streams = 96;
  static constexpr std::int64_t messages = 240;  // of each stream

  /// Two feeds, which begin to speak once everything is connected: one cuts connections without a word, the other
  /// closes them.
  void start_feeds() {
    const std::string half = std::to_string(streams / 2);
    const std::vector<std::string> both{"--begin-with",           half,     "--messages",
                                        std::to_string(messages), "--size", "200"};
    const auto one = [&](std::vector<std::string> manner) {
      manner.insert(manner.begin(), both.begin(), both.end());
      return feed(std::move(manner), streams / 2);
    };
    urls_[0] = one({"--drop-every", "100"});
    cutting_ = std::move(feed_);
    urls_[1] = one({"--close-every", "80", "--close-code", "1012"});
  }
  /// Connections t0 and so on, in turn to the one feed and the other, and some by a name, so that each thread has its
  /// resolver at work, too. Those that are there are edited.
  void put(int count, const boost::json::object& options = {}) {
    std::string file;
    for (int i = 0; i < count; ++i) {
      std::string url = urls_.at(static_cast<std::size_t>(i % 2)) + "s" + std::to_string(i / 2);
      if (i % 4 < 2) url.replace(url.find("127.0.0.1"), 9, "localhost");
      boost::json::object all{{"resume.query", "since"}, {"seq.pointer", "/seq"}};
      all.insert(options.begin(), options.end());
      const boost::json::object row{{"id", "t" + std::to_string(i)}, {"url", url}, {"options", all}};
      file += boost::json::serialize(row) + '\n';
    }
    const auto ended = program.run({"conn", "import", "-", "--replace"}, file);
    ASSERT_EQ(ended.code, 0) << ended.err;
  }
  /// A small buffer, so that the sink is behind again and again, and files that change under way.
  runtime::Child spread_worker(const std::string& id, int threads) {
    return start({"worker", "--id", id, "--threads", std::to_string(threads), "--lease", "6s", "--sink",
                  "ndjson:out?fsync=always&buffer=64KiB&rotate=128KiB", "--report", id + ".json"});
  }
  void give_sink_back() const {
    std::filesystem::remove(program.file("out"));
    std::filesystem::create_directory(program.file("out"));
    for (const auto& entry : std::filesystem::directory_iterator(program.file("kept"))) {
      std::filesystem::copy(entry.path(), program.file("out/") + "kept-" + entry.path().filename().string());
    }
  }
  void run(const std::vector<std::string>& arguments) {
    const auto ended = program.run(arguments);
    ASSERT_EQ(ended.code, 0) << ended.err;
  }
  /// Whether all rows that match are so; as `conn ls` has them.
  [[nodiscard]] bool all_rows(const std::string& pattern,
                              const std::function<bool(const boost::json::object&)>& are) {
    boost::system::error_code error;
    const auto rows = boost::json::parse(program.run({"conn", "ls", pattern, "--json"}).out, error);
    return !error && !rows.as_array().empty() &&
           std::ranges::all_of(rows.as_array(), [&](const auto& row) { return are(row.as_object()); });
  }
  [[nodiscard]] bool all_checkpointed() {
    return all_rows("t*", [](const auto& row) { return row.at("last_seq").as_int64() == messages; });
  }
  void expect_drained(runtime::Child& worker, const std::string& id) {
    worker.kill(SIGTERM);
    EXPECT_EQ(worker.wait(generous), (runtime::Exit{0, 0})) << id;
    EXPECT_EQ(report(id).at("end").as_string(), "drained") << id;
  }
  void expect_every_message() const {
    std::set<std::pair<std::string, std::int64_t>> seen;
    for (const Line& line : lines()) seen.emplace(line.connection, line.seq);
    EXPECT_EQ(seen.size(), std::size_t{streams * messages});
  }

 private:
  std::array<std::string, 2> urls_;
  runtime::Child cutting_;
};

TEST_F(WorkerThreads, connections_are_cut_closed_edited_stopped_and_handed_over_and_every_message_arrives) {
  start_feeds();
  put(streams);
  runtime::Child first = spread_worker("first", 4);
  ASSERT_TRUE(wait_until([&] { return flowing("first") == streams; }));
  runtime::Child second = spread_worker("second", 3);
  run({"conn", "stop", "t?5"});
  put(10, {{"silent_after", "1s"}});
  ASSERT_TRUE(wait_until([&] { return all_rows("t?5", [](const auto& row) { return row.at("lease") == "free"; }); }));
  run({"conn", "start", "t?5"});
  expect_drained(first, "first");
  EXPECT_TRUE(wait_until([&] { return all_checkpointed(); }));
  expect_drained(second, "second");
  expect_every_message();
  expect_one_owner_at_a_time();
  EXPECT_GT(report("second").at("streams").at("reconnects").as_int64(), 0);
}

TEST_F(WorkerThreads, all_that_wait_for_a_sink_on_whatever_thread_go_on_when_it_works_again) {
  start_feeds();
  put(streams);
  runtime::Child holder = spread_worker("w", 4);
  ASSERT_TRUE(wait_until([&] { return flowing("w") == streams; }));
  take_sink_away();
  ASSERT_TRUE(wait_until([&] { return program.run({"conn", "ls"}).out.find(" paused ") != std::string::npos; }));
  give_sink_back();
  EXPECT_TRUE(wait_until([&] { return all_checkpointed(); }));
  expect_drained(holder, "w");
  expect_every_message();
}

TEST_F(WorkerThreads, connections_with_tls_come_and_go_on_each_thread) {
  const Peer peer("websockets_server.py", {.tls = true});
  for (int i = 0; i < 8; ++i) {
    add("t" + std::to_string(i), peer.url("/many?count=20&size=100", "localhost"), {"--ca-file", peer.ca_file()});
  }
  runtime::Child holder = spread_worker("w", 4);
  // Each opening brings 20, so 41 are the third.
  const auto all_came_back_twice = [&] {
    std::map<std::string, std::int64_t> newest;
    for (const Line& line : lines()) newest[line.connection] = std::max(newest[line.connection], line.seq);
    return newest.size() == 8 &&
           std::ranges::all_of(newest, [](const auto& connection) { return connection.second > 40; });
  };
  ASSERT_TRUE(wait_until(all_came_back_twice));
  expect_drained(holder, "w");
  expect_no_hole();
}

TEST_F(WorkerThreads, a_second_signal_ends_it_at_once_while_all_threads_are_busy) {
  start_feeds();
  put(streams);
  runtime::Child holder = spread_worker("w", 4);
  ASSERT_TRUE(wait_until([&] { return flowing("w") == streams; }));
  take_sink_away();  // so that the drain waits for it
  holder.kill(SIGTERM);
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));  // within a second it would count as the same
  holder.kill(SIGTERM);
  EXPECT_EQ(holder.wait(generous), (runtime::Exit{0, 0}));
}

// Inside a program: its handler is called by several threads at once, and whoever likes asks for the end.
class FleetThreads : public WorkerThreads {
 protected:
  FleetOptions options(const std::string& id) {
    FleetOptions result;
    result.store = store();
    result.id = id;
    result.threads = 4;
    result.lease.lease = std::chrono::seconds(6);
    result.handle_signals = false;
    result.log_level = "off";
    return result;
  }
  void expect_two_share_the_work();
};

void FleetThreads::expect_two_share_the_work() {
  start_feeds();
  put(streams);
  // Nothing that orders the handler's threads: that would hide what is to be found.
  std::vector<std::atomic<bool>> seen(streams * messages);
  Fleet* first = nullptr;
  const auto handler = [&](const Record& record) {
    if (record.kind == Record::Kind::gap) return;
    const auto stream = std::stoul(std::string(record.connection.substr(1)));
    seen[stream * messages + static_cast<std::size_t>(record.seq - 1)].store(true, std::memory_order_relaxed);
    if (record.seq == messages / 2) first->drain();  // many times, and from many threads
  };
  FleetOptions half = options("first");
  half.max_connections = streams / 2;
  Fleet one(half);
  Fleet other(options("other"));
  first = &one;
  one.on_message(handler);
  other.on_message(handler);
  const auto run = [](Fleet& fleet) {
    const auto report = fleet.run();
    ASSERT_TRUE(report) << report.error().detail;
    EXPECT_EQ(report->end, Report::End::drained);
  };
  runtime::Thread one_runs("one", [&] { run(one); });
  runtime::Thread other_runs("other", [&] { run(other); });
  const auto all_seen = [&] {
    return std::ranges::all_of(seen, [](const auto& flag) { return flag.load(std::memory_order_relaxed); });
  };
  EXPECT_TRUE(wait_until(all_seen));
  runtime::Thread("drain", [&] { other.drain(); }).join();
  one.drain();
}

TEST_F(FleetThreads, two_in_one_process_share_the_work_and_each_is_drained_from_another_thread) {
  expect_two_share_the_work();
}

TEST_F(FleetThreads, they_do_so_on_dynamodb_each_with_a_client_of_its_own) {
  for (const auto& [name, value] : DynamoDbServer::environment()) ::setenv(name.c_str(), value.c_str(), 1);
  be_on_dynamodb(random_table_name("fleets"));
  expect_two_share_the_work();
}

}  // namespace
}  // namespace holdfast::test
