// A worker whose disk, sink or database is taken away.
#include <gmock/gmock.h>
#include <sqlite3.h>

#include "support/fleet_processes.hpp"

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

class WorkerTroubles : public Processes {};

TEST_F(WorkerTroubles, when_its_sinks_folder_comes_back_it_goes_on_without_a_hole) {
  add_streams(2, feed());
  runtime::Child holder = worker("w", {"--sink-patience", "2s"});
  ASSERT_TRUE(wait_until([&] { return flowing("w") == 2; }));
  take_sink_away();
  // Given back; or run out, where the disk was too slow to say so in time.
  EXPECT_TRUE(wait_until([&] { return text("s1", "lease") != "held"; }));
  std::filesystem::remove(program.file("out"));
  std::filesystem::create_directory(program.file("out"));
  ASSERT_TRUE(wait_until([&] { return flowing("w") == 2; }));
  holder.kill(SIGTERM);
  EXPECT_EQ(holder.wait(generous), (runtime::Exit{0, 0}));
  for (const auto& entry : std::filesystem::directory_iterator(program.file("kept"))) {
    std::filesystem::copy(entry.path(), program.file("out/") + "kept-" + entry.path().filename().string());
  }
  expect_no_hole();
}

TEST_F(WorkerTroubles, one_that_may_open_few_files_takes_few_connections_and_leaves_the_rest_to_others) {
  constexpr int connections = 24;
  add_streams(connections, feed({}, connections));
  auto few = program.start_command({"sh", "-c", R"(ulimit -n 48; exec "$@")", "sh", program_file, "worker", "--id",
                                    "few", "--lease", long_lease, "--sink", "ndjson:out?fsync=never"});
  ASSERT_TRUE(few);
  ASSERT_TRUE(wait_until([&] { return flowing("few") >= 4; }));
  EXPECT_LT(flowing("few"), std::size_t{connections});
  runtime::Child other = worker("other", {}, long_lease);
  ASSERT_TRUE(wait_until([&] { return flowing("few") + flowing("other") >= connections; }));
  for (const Line& line : lines()) ASSERT_EQ(line.epoch, 1) << line.connection << " was taken and given back";
}

// A small file system of our own, in a mount namespace that ends with the process that keeps it.
class WorkerOnASmallDisk : public WorkerTroubles {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(program.file("disk"));
    runtime::SpawnOptions options;
    options.arguments = {"unshare", "--map-root-user",
                         "--mount", "sh",
                         "-c",      "mount -t tmpfs -o size=1m small disk && echo mounted && exec sleep 600"};
    options.directory = program.folder().path().string();
    options.output = runtime::SpawnOptions::Output::pipe;
    options.errors_to_output = true;
    options.dies_with_parent = true;
    auto child = runtime::spawn(options);
    ASSERT_TRUE(child) << child.error().detail;
    keeper_ = *std::move(child);
    const auto line = keeper_.read_line(generous);
    if (!line || *line != "mounted") GTEST_SKIP() << "no namespaces for an ordinary user here: " << line.value_or("");
    std::filesystem::create_directory_symlink(on_disk(""), program.file("seen"));
  }
  [[nodiscard]] std::string on_disk(const std::string& name) const {
    return "/proc/" + std::to_string(keeper_.pid()) + "/root" + program.file("disk/") + name;
  }
  /// Writes until nothing more goes on it, then gives `left` bytes back.
  void fill_disk(std::uintmax_t left) {
    std::ofstream filler(on_disk("filler"), std::ios::binary);
    const std::string block(4096, 'x');
    while (filler.write(block.data(), static_cast<std::streamsize>(block.size())).flush()) {
    }
    filler.close();
    std::filesystem::resize_file(on_disk("filler"), std::filesystem::file_size(on_disk("filler")) - left);
  }
  runtime::Child worker_on_disk() {
    const std::string keeper = std::to_string(keeper_.pid());
    auto child = program.start_command(
        {"nsenter", "--target", keeper, "--user", "--preserve-credentials", "--mount",
         "--wd=" + program.folder().path().string(), program_file, "worker", "--id", "w", "--lease", "2s", "--sink",
         "ndjson:" + program.file("disk") + "?fsync=never", "--sink-patience", "2s", "--report", "w.json"});
    return child ? *std::move(child) : runtime::Child{};
  }

  /// The highest seq on the disk, by connection.
  [[nodiscard]] std::map<std::string, std::int64_t> newest_written() const {
    std::map<std::string, std::int64_t> newest;
    for (const Line& line : lines("seen")) newest[line.connection] = std::max(newest[line.connection], line.seq);
    return newest;
  }

  runtime::Child keeper_;
};

TEST_F(WorkerOnASmallDisk, when_it_is_full_nothing_is_held_or_checkpointed_and_with_room_again_it_goes_on) {
  add_streams(2, feed());
  fill_disk(64 * 1024);
  runtime::Child holder = worker_on_disk();
  ASSERT_TRUE(wait_until([&] { return lines("seen").size() > 20; }));
  ASSERT_TRUE(wait_until([&] { return text("s0", "lease") != "held" && text("s1", "lease") != "held"; }));
  EXPECT_TRUE(holder.running());
  auto written = newest_written();
  for (const std::string id : {"s0", "s1"}) {
    EXPECT_LE(shown(id).at("last_seq").as_int64(), written[id]) << "S9: what was not written is not acknowledged";
  }
  std::filesystem::remove(on_disk("filler"));
  for (const std::string id : {"s0", "s1"}) {
    ASSERT_TRUE(wait_until([&] { return newest_written()[id] > written[id]; })) << id;
  }
  holder.kill(SIGTERM);
  EXPECT_EQ(holder.wait(generous), (runtime::Exit{0, 0}));
  expect_no_hole("seen");
}

TEST_F(WorkerTroubles, a_database_that_another_program_locks_for_a_while_costs_no_lease) {
  add_streams(2, feed());
  runtime::Child holder =
      start({"worker", "--id", "w", "--lease", "12s", "--sink", "ndjson:out?fsync=never", "--report", "w.json"});
  ASSERT_TRUE(wait_until([&] { return flowing("w") == 2; }));
  sqlite3* database = nullptr;
  ASSERT_EQ(sqlite3_open(program.file("holdfast.db").c_str(), &database), SQLITE_OK);
  sqlite3_busy_timeout(database, 10'000);
  ASSERT_EQ(sqlite3_exec(database, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  std::this_thread::sleep_for(5s);  // past a renewal, well before the belief's end
  ASSERT_EQ(sqlite3_exec(database, "ROLLBACK", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(database);
  const std::int64_t free_again = now_ms();
  ASSERT_TRUE(wait_until([&] { return flowing("w", free_again + 10'000) == 2; }));
  holder.kill(SIGTERM);
  EXPECT_EQ(holder.wait(generous), (runtime::Exit{0, 0}));
  EXPECT_EQ(report("w").at("leases").at("claims").as_int64(), 2)
      << "the leases of the beginning are those of the end";
  expect_no_hole();
}

TEST_F(WorkerTroubles, a_second_signal_stops_at_once_and_leaves_the_lease_to_run_out) {
  add_streams(1, feed());
  runtime::Child holder =
      start({"worker", "--id", "w", "--lease", "60s", "--sink", "ndjson:out?fsync=never", "--report", "w.json"});
  ASSERT_TRUE(wait_until([&] { return flowing("w") == 1; }));
  sqlite3* database = nullptr;  // locked, so that the drain cannot end
  ASSERT_EQ(sqlite3_open(program.file("holdfast.db").c_str(), &database), SQLITE_OK);
  sqlite3_busy_timeout(database, 10'000);
  ASSERT_EQ(sqlite3_exec(database, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr), SQLITE_OK);
  holder.kill(SIGTERM);
  holder.kill(SIGINT);  // within a second: the same stop
  std::this_thread::sleep_for(3s);
  EXPECT_TRUE(holder.running());
  holder.kill(SIGINT);
  EXPECT_EQ(holder.wait(generous), (runtime::Exit{0, 0}));
  sqlite3_close(database);
  EXPECT_EQ(report("w").at("end").as_string(), "stopped");
  EXPECT_EQ(report("w").at("leases").at("cut").as_int64(), 1);
}

TEST_F(WorkerTroubles, a_database_that_is_deleted_ends_what_is_held_and_the_worker_lives_and_can_be_stopped) {
  add_streams(2, feed());
  runtime::Child holder = worker("w");
  ASSERT_TRUE(wait_until([&] { return flowing("w") == 2; }));
  for (const char* end : {"", "-wal", "-shm"}) std::filesystem::remove(program.file("holdfast.db") + end);
  // Its belief ends with the lease, whatever becomes of the store; from then on nothing is written.
  ASSERT_TRUE(wait_until([&] { return flowing("w", now_ms() - 1500) == 0; }));
  EXPECT_TRUE(holder.running());
  holder.kill(SIGTERM);
  EXPECT_EQ(holder.wait(generous), (runtime::Exit{0, 0}));
}

TEST_F(WorkerTroubles, what_cannot_work_is_told_in_one_line_at_the_start) {
  expect_one_line(program.run({"worker", "--sink", "nonsense:x"}), 2, "nonsense");
  expect_one_line(program.run({"worker", "--sink", "ndjson:no/such/parent"}), 1, "no/such");
  expect_one_line(program.run({"worker", "--sink", "stdout", "--lease", "1s", "--renew", "2s"}), 2, "renew");
  expect_one_line(program.run({"worker", "--sink", "stdout", "--id", "a#b"}), 2, "name");
}

}  // namespace
}  // namespace holdfast::test
