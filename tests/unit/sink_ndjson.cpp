#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <set>
#include <thread>

#include "sink/buffered_sink.hpp"
#include "sink/make_sink.hpp"
#include "sink/ndjson_output.hpp"
#include "support/eventually.hpp"
#include "support/memory_files.hpp"
#include "support/sink_records.hpp"

namespace holdfast::sink {
namespace {

using namespace std::chrono_literals;
using test::eventually;
using test::Line;
using test::MemoryDisk;
using test::MemoryFiles;
using test::parse_lines;
using test::text_record;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

constexpr Duration long_enough = 30s;

BufferedSinkOptions quick(Sync sync) {
  BufferedSinkOptions options;
  options.sync = sync;
  options.interval = 1h;  // a test that waits for the interval sets it
  options.linger = 0s;
  options.retry = {1ms, 5ms, 1ms};
  return options;
}

std::unique_ptr<BufferedSink> on_disk(MemoryDisk& disk, BufferedSinkOptions options,
                                      std::uint64_t rotate = 1U << 30U) {
  NdjsonOptions ndjson{"folder", "w-1", rotate, options.sync != Sync::never};
  return std::make_unique<BufferedSink>(std::make_unique<NdjsonOutput>(std::make_unique<MemoryFiles>(disk), ndjson),
                                        options);
}

Position write_one(Sink& sink, std::int64_t seq, std::string_view data = "data") {
  const Record record = text_record("c", seq, data);
  return sink.write({&record, 1});
}

bool acknowledges(const Sink& sink, Position position) {
  return eventually([&] { return sink.acknowledged() >= position; });
}

std::set<std::int64_t> seqs(std::string_view text) {
  std::set<std::int64_t> found;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = text.find('\n', begin);
    const std::string_view line = text.substr(begin, end - begin);
    if (line.ends_with('}')) found.insert(test::parse_line(line).seq);
    if (end == std::string_view::npos) break;
    begin = end + 1;
  }
  return found;
}

/// A folder of its own for one test, removed afterwards.
class Folder {
 public:
  Folder() {
    std::string name = ::testing::TempDir() + "holdfast_sink_XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  [[nodiscard]] fs::path path() const { return path_; }
  [[nodiscard]] std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(path_)) found.push_back(entry.path());
    std::sort(found.begin(), found.end());
    return found;
  }
  [[nodiscard]] std::string text() const {
    std::string all;
    for (const fs::path& file : files()) all += test::read_file(file);
    return all;
  }

 private:
  fs::path path_;
};

TEST(NdjsonSink, always_acknowledges_what_would_survive_a_power_cut) {
  MemoryDisk disk;
  auto sink = on_disk(disk, quick(Sync::always));
  ASSERT_TRUE(acknowledges(*sink, write_one(*sink, 1)));
  sink->close(0s);
  EXPECT_EQ(seqs(disk.survives()), (std::set<std::int64_t>{1}));
}

TEST(NdjsonSink, interval_acknowledges_nothing_before_the_sync) {
  MemoryDisk disk;
  auto sink = on_disk(disk, quick(Sync::interval));
  const Position position = write_one(*sink, 1);
  std::this_thread::sleep_for(20ms);  // and then nothing happens
  EXPECT_LT(sink->acknowledged(), position);
  sink->flush();
  ASSERT_TRUE(acknowledges(*sink, position));
  sink->close(0s);
  EXPECT_EQ(disk.calls[MemoryDisk::Call::sync], 1);
  EXPECT_EQ(seqs(disk.survives()), (std::set<std::int64_t>{1}));
}

TEST(NdjsonSink, interval_syncs_by_itself_when_its_time_comes) {
  MemoryDisk disk;
  BufferedSinkOptions options = quick(Sync::interval);
  options.interval = 5ms;
  auto sink = on_disk(disk, options);
  ASSERT_TRUE(acknowledges(*sink, write_one(*sink, 1)));
}

TEST(NdjsonSink, interval_syncs_early_when_half_of_the_buffer_waits_for_it) {
  MemoryDisk disk;
  BufferedSinkOptions options = quick(Sync::interval);
  options.high_water_bytes = 10'000;
  options.low_water_bytes = 1'000;
  auto sink = on_disk(disk, options);
  Position position = 0;
  for (int i = 1; i <= 20; ++i) position = write_one(*sink, i, std::string(1000, 'x'));
  ASSERT_TRUE(eventually([&] { return !sink->behind() && sink->acknowledged() > 0; }));
  EXPECT_GE(sink->acknowledged(), position - 10);
}

TEST(NdjsonSink, never_does_not_wait_for_the_disk_at_all) {
  MemoryDisk disk;
  auto sink = on_disk(disk, quick(Sync::never));
  ASSERT_TRUE(acknowledges(*sink, write_one(*sink, 1)));
  sink->close(0s);
  EXPECT_EQ(disk.calls[MemoryDisk::Call::sync], 0);
  EXPECT_EQ(disk.calls[MemoryDisk::Call::sync_folder], 0);
  EXPECT_EQ(seqs(disk.everything()), (std::set<std::int64_t>{1}));
}

TEST(NdjsonSink, many_writes_share_one_sync) {
  MemoryDisk disk;
  BufferedSinkOptions options = quick(Sync::always);
  options.linger = 50ms;
  auto sink = on_disk(disk, options);
  Position position = 0;
  for (int i = 1; i <= 1000; ++i) position = write_one(*sink, i);
  ASSERT_TRUE(acknowledges(*sink, position));
  sink->close(0s);
  EXPECT_LT(disk.calls[MemoryDisk::Call::sync], 100);
}

TEST(NdjsonSink, files_are_rotated_between_records_and_never_grow_past_the_limit) {
  MemoryDisk disk;
  BufferedSinkOptions options = quick(Sync::always);
  options.piece_bytes = 200;
  auto sink = on_disk(disk, options, 1000);
  Position position = 0;
  for (int i = 1; i <= 200; ++i) position = write_one(*sink, i);
  ASSERT_TRUE(acknowledges(*sink, position));
  sink->close(0s);
  EXPECT_GT(disk.files.size(), 10U);
  for (const auto& file : disk.files) {
    EXPECT_LE(file->content.size(), 1000U);
    EXPECT_TRUE(file->content.ends_with('\n'));
    EXPECT_FALSE(file->open);
  }
  EXPECT_EQ(seqs(disk.survives()).size(), 200U);
}

TEST(NdjsonSink, a_record_longer_than_a_piece_or_a_file_is_still_written_whole) {
  MemoryDisk disk;
  BufferedSinkOptions options = quick(Sync::always);
  options.piece_bytes = 64;
  auto sink = on_disk(disk, options, 4096);
  write_one(*sink, 1, "short");
  write_one(*sink, 2, std::string(20'000, 'x'));
  ASSERT_TRUE(acknowledges(*sink, write_one(*sink, 3, "short")));
  sink->close(0s);
  EXPECT_EQ(seqs(disk.survives()), (std::set<std::int64_t>{1, 2, 3}));
}

TEST(NdjsonSink, a_file_that_is_there_already_is_never_touched) {
  MemoryDisk disk;
  disk.files.push_back(std::make_unique<MemoryDisk::File>());
  disk.files.back()->name = "folder/w-1-000001.ndjson";
  disk.files.back()->content = "somebody else's\n";
  auto sink = on_disk(disk, quick(Sync::always));
  ASSERT_TRUE(acknowledges(*sink, write_one(*sink, 1)));
  sink->close(0s);
  ASSERT_EQ(disk.files.size(), 2U);
  EXPECT_EQ(disk.files[0]->content, "somebody else's\n");
  EXPECT_EQ(disk.files[1]->name, "folder/w-1-000002.ndjson");
}

/// Fails one call after the other, each in a run of its own, and looks at what is left after a power cut.
void every_failure_is_survived(Sync sync, int fail_with, bool short_writes, int fail_count) {
  for (int fail_call = 1; fail_call <= 60; ++fail_call) {
    MemoryDisk disk;
    disk.fail_call = fail_call;
    disk.fail_count = fail_count;
    disk.fail_with = fail_with;
    disk.short_writes = short_writes;
    BufferedSinkOptions options = quick(sync);
    options.interval = 1ms;
    auto sink = on_disk(disk, options, 500);
    for (std::int64_t seq = 1; seq <= 6; ++seq) {
      ASSERT_TRUE(acknowledges(*sink, write_one(*sink, seq))) << "call " << fail_call << " failed for ever";
    }
    EXPECT_EQ(sink->failure(), std::nullopt);
    sink->close(long_enough);
    const std::string left = sync == Sync::never ? disk.everything() : disk.survives();
    ASSERT_EQ(seqs(left).size(), 6U) << "acknowledged and lost: call " << fail_call;
    if (disk.all_calls < fail_call) return;  // nothing left to fail
  }
  FAIL() << "the run has more calls than this test fails";
}

TEST(NdjsonSink, whichever_call_fails_what_is_acknowledged_is_there) {
  for (const Sync sync : {Sync::always, Sync::interval}) {
    for (const int count : {1, 2, 3}) {
      every_failure_is_survived(sync, EIO, false, count);
      every_failure_is_survived(sync, ENOSPC, true, count);
    }
  }
  every_failure_is_survived(Sync::never, EFBIG, true, 1);
  every_failure_is_survived(Sync::never, ENOSPC, true, 2);
}

TEST(NdjsonSink, a_write_that_fails_half_way_leaves_no_torn_record) {
  for (int fail_call = 1; fail_call < 30; ++fail_call) {
    MemoryDisk disk;
    disk.fail_call = fail_call;
    disk.fail_with = ENOSPC;
    disk.short_writes = true;
    auto sink = on_disk(disk, quick(Sync::always));
    for (std::int64_t seq = 1; seq <= 5; ++seq) ASSERT_TRUE(acknowledges(*sink, write_one(*sink, seq)));
    sink->close(long_enough);
    for (const auto& file : disk.files)
      EXPECT_EQ(parse_lines(file->content).size(),
                static_cast<std::size_t>(std::count(file->content.begin(), file->content.end(), '}')));
  }
}

TEST(NdjsonSink, after_a_failed_sync_everything_unacknowledged_is_written_again_elsewhere) {
  MemoryDisk disk;
  disk.fail_kind = MemoryDisk::Call::sync;
  disk.fail_call = 1;
  auto sink = on_disk(disk, quick(Sync::interval));
  write_one(*sink, 1);
  const Position position = write_one(*sink, 2);
  sink->flush();
  ASSERT_TRUE(acknowledges(*sink, position));
  sink->close(0s);
  EXPECT_EQ(seqs(disk.survives()), (std::set<std::int64_t>{1, 2}));
  EXPECT_EQ(disk.files.size(), 2U);
}

TEST(NdjsonSink, a_folder_that_cannot_be_opened_for_want_of_descriptors_costs_neither_file_nor_record) {
  MemoryDisk disk;
  disk.fail_call = 4;  // open_new, write, sync, sync_folder
  disk.fail_count = 1;
  disk.fail_with = EMFILE;
  auto sink = on_disk(disk, quick(Sync::always));
  ASSERT_TRUE(acknowledges(*sink, write_one(*sink, 1)));
  sink->close(0s);
  EXPECT_EQ(disk.calls[MemoryDisk::Call::sync_folder], 2);
  ASSERT_EQ(disk.files.size(), 1U);
  EXPECT_EQ(seqs(disk.survives()), (std::set<std::int64_t>{1}));
}

TEST(NdjsonSink, says_what_is_wrong_while_it_is_and_tells_of_each_change) {
  MemoryDisk disk;
  disk.fail_call = 1;
  disk.fail_count = 50;
  disk.fail_with = ENOSPC;
  auto sink = on_disk(disk, quick(Sync::always));
  std::atomic<int> told{0};
  std::atomic<bool> saw_failure{false};
  sink->on_progress([&] {
    ++told;
    if (const auto failure = sink->failure()) {
      saw_failure = failure->code == Code::exhausted && failure->detail.find("No space left") != std::string::npos;
    }
  });
  ASSERT_TRUE(acknowledges(*sink, write_one(*sink, 1)));
  ASSERT_TRUE(eventually([&] { return told >= 51; }));
  EXPECT_TRUE(saw_failure);
  EXPECT_EQ(sink->failure(), std::nullopt);
}

TEST(NdjsonSink, is_behind_above_the_high_mark_until_below_the_low_mark) {
  MemoryDisk disk;
  disk.fail_call = 1;
  disk.fail_count = 1 << 30;
  BufferedSinkOptions options = quick(Sync::always);
  options.high_water_bytes = 10'000;
  options.low_water_bytes = 2'000;
  auto sink = on_disk(disk, options);
  std::atomic<bool> told_behind{false};
  sink->on_progress([&] { told_behind = told_behind || sink->behind(); });
  int written = 0;
  while (!sink->behind() && written < 1000) write_one(*sink, ++written, std::string(500, 'x'));
  EXPECT_GE(written * 570, 10'000);
  EXPECT_LE(written, 21);
  EXPECT_TRUE(told_behind);
  sink->close(0s);
}

TEST(NdjsonSink, is_no_longer_behind_once_the_disk_is_well_again) {
  MemoryDisk disk;
  disk.fail_call = 1;
  disk.fail_count = 30;
  BufferedSinkOptions options = quick(Sync::always);
  options.high_water_bytes = 10'000;
  options.low_water_bytes = 2'000;
  auto sink = on_disk(disk, options);
  Position position = 0;
  for (int i = 1; i <= 40; ++i) position = write_one(*sink, i, std::string(500, 'x'));
  ASSERT_TRUE(eventually([&] { return !sink->behind() && sink->acknowledged() == position; }));
}

// S7, F1.
TEST(Faults, f01_records_whose_lease_ended_before_the_flush_are_left_out) {
  MemoryDisk disk;
  auto sink = on_disk(disk, [] {
    BufferedSinkOptions options = quick(Sync::always);
    options.linger = 10s;  // the writer gathers until it is told
    return options;
  }());
  auto ends = std::make_shared<LeaseGuard>(Epoch{3}, Instant::max());
  auto stays = std::make_shared<LeaseGuard>(Epoch{5}, Instant::max());
  const std::vector<Record> records = {text_record("ends", 1, "x", &ends), text_record("ends", 2, "x", &ends),
                                       text_record("stays", 3, "x", &stays), text_record("ends", 4, "x", &ends)};
  const Position position = sink->write(records);
  ends->revoke();
  sink->flush();
  ASSERT_TRUE(acknowledges(*sink, position)) << "positions still progress";
  sink->close(0s);
  EXPECT_EQ(seqs(disk.everything()), (std::set<std::int64_t>{3}));
}

TEST(Faults, f01_a_lease_that_ran_out_before_the_flush_cannot_be_believed_in_again) {
  MemoryDisk disk;
  BufferedSinkOptions options = quick(Sync::always);
  options.clock = [] { return Instant(100s); };
  auto sink = on_disk(disk, options);
  const auto guard = std::make_shared<LeaseGuard>(Epoch{3}, Instant(100s));
  const Record record = text_record("c", 1, "x", &guard);
  ASSERT_TRUE(acknowledges(*sink, sink->write({&record, 1})));
  EXPECT_FALSE(guard->holds(Instant(99s)));
  sink->close(0s);
  EXPECT_TRUE(seqs(disk.everything()).empty());
}

TEST(Faults, f01_a_lease_that_ends_while_the_disk_is_full_writes_nothing_afterwards) {
  MemoryDisk disk;
  disk.fail_call = 1;
  disk.fail_count = 1 << 30;
  auto sink = on_disk(disk, quick(Sync::always));
  std::atomic<int> failures{0};
  const auto guard = std::make_shared<LeaseGuard>(Epoch{3}, Instant::max());
  sink->on_progress([&] {
    // On the writer's own thread, which is the only one that looks at the disk.
    if (sink->failure() && ++failures == 5) {
      guard->revoke();
      disk.fail_count = 0;
    }
  });
  const Record record = text_record("c", 1, "x", &guard);
  ASSERT_TRUE(acknowledges(*sink, sink->write({&record, 1})));
  sink->close(0s);
  EXPECT_TRUE(seqs(disk.everything()).empty());
}

// Found by chaos: with the disk still full, a worker was told that its sink worked again, and took new connections.
TEST(NdjsonSink, a_full_disk_is_still_full_after_all_that_waited_was_left_out) {
  MemoryDisk disk;
  disk.fail_call = 1;
  disk.fail_count = 1 << 30;
  auto sink = on_disk(disk, quick(Sync::always));
  const auto guard = std::make_shared<LeaseGuard>(Epoch{3}, Instant::max());
  std::atomic<int> told{0};
  std::atomic<bool> said_it_works{false};
  sink->on_progress([&] {
    said_it_works = !sink->failure();
    if (++told == 2) guard->revoke();
    if (told == 10) disk.fail_count = 0;  // on the writer's own thread, which is the only one that looks at the disk
  });
  const Record record = text_record("c", 1, "x", &guard);
  ASSERT_TRUE(acknowledges(*sink, sink->write({&record, 1}))) << "what is left out holds nobody up";
  ASSERT_TRUE(eventually([&] { return said_it_works.load(); })) << "with room again, and nothing to write";
  EXPECT_EQ(told, 11) << "once, after all the tries that failed";
  sink->close(long_enough);
  for (const auto& file : disk.files) EXPECT_EQ(file->content, "") << "a try leaves nothing behind";
}

TEST(NdjsonSink, close_writes_what_is_left) {
  MemoryDisk disk;
  BufferedSinkOptions options = quick(Sync::interval);
  options.linger = 10s;
  auto sink = on_disk(disk, options);
  const Position position = write_one(*sink, 1);
  sink->close(long_enough);
  EXPECT_EQ(sink->acknowledged(), position);
  EXPECT_EQ(seqs(disk.survives()), (std::set<std::int64_t>{1}));
}

TEST(NdjsonSink, close_ends_even_where_the_disk_never_works) {
  MemoryDisk disk;
  disk.fail_call = 1;
  disk.fail_count = 1 << 30;
  auto sink = on_disk(disk, quick(Sync::always));
  write_one(*sink, 1);
  sink->close(20ms);
  EXPECT_EQ(sink->acknowledged(), 0U);
}

// On real files.

std::unique_ptr<Sink> in_folder(const Folder& folder, const std::string& options = "") {
  auto sink = make_sink("ndjson:" + folder.path().string() + options, "w-1", 1);
  EXPECT_TRUE(sink) << sink.error().detail;
  return std::move(sink).value();
}

TEST(NdjsonFiles, one_file_per_incarnation_is_written_and_found_again) {
  const Folder folder;
  auto sink = in_folder(folder, "?fsync=always");
  ASSERT_TRUE(acknowledges(*sink, write_one(*sink, 1, "hällo")));
  sink->close(long_enough);
  ASSERT_EQ(folder.files().size(), 1U);
  EXPECT_EQ(folder.files()[0].filename(), "w-1-000001.ndjson");
  EXPECT_EQ(parse_lines(folder.text())[0].data, "hällo");
}

TEST(NdjsonFiles, a_folder_that_is_removed_comes_back_and_nothing_is_called_safe_in_between) {
  for (const char* options : {"?fsync=always", "?fsync=never", "?fsync=interval&interval=5ms"}) {
    const Folder folder;
    auto sink = in_folder(folder, options);
    ASSERT_TRUE(acknowledges(*sink, write_one(*sink, 1)));
    fs::remove_all(folder.path());
    for (std::int64_t seq = 2; seq <= 5; ++seq) ASSERT_TRUE(acknowledges(*sink, write_one(*sink, seq)));
    sink->close(long_enough);
    EXPECT_EQ(seqs(folder.text()), (std::set<std::int64_t>{2, 3, 4, 5})) << options;
  }
}

TEST(NdjsonFiles, a_file_that_is_removed_between_write_and_sync_is_written_again) {
  const Folder folder;
  auto sink = in_folder(folder, "?fsync=interval&interval=1m");
  const Position position = write_one(*sink, 1);
  ASSERT_TRUE(eventually([&] { return folder.files().size() == 1 && fs::file_size(folder.files()[0]) > 0; }));
  fs::remove(folder.files()[0]);
  sink->flush();
  ASSERT_TRUE(acknowledges(*sink, position));
  sink->close(long_enough);
  EXPECT_EQ(seqs(folder.text()), (std::set<std::int64_t>{1}));
}

TEST(NdjsonFiles, a_file_that_is_moved_away_keeps_its_records_and_a_new_one_is_begun) {
  const Folder folder;
  const Folder elsewhere;
  auto sink = in_folder(folder, "?fsync=always");
  ASSERT_TRUE(acknowledges(*sink, write_one(*sink, 1)));
  fs::rename(folder.files()[0], elsewhere.path() / "moved");
  ASSERT_TRUE(acknowledges(*sink, write_one(*sink, 2)));
  sink->close(long_enough);
  EXPECT_EQ(seqs(elsewhere.text()), (std::set<std::int64_t>{1}));
  EXPECT_EQ(seqs(folder.text()), (std::set<std::int64_t>{2}));
}

TEST(NdjsonFiles, a_folder_whose_parent_is_gone_is_a_failure_that_ends_when_it_is_back) {
  const Folder parent;
  const fs::path inner = parent.path() / "a" / "b";
  fs::create_directories(inner);
  auto sink = make_sink("ndjson:" + inner.string() + "?fsync=always", "w-1", 1).value();
  fs::remove_all(parent.path() / "a");
  const Position position = write_one(*sink, 1);
  ASSERT_TRUE(eventually([&] { return sink->failure().has_value(); }));
  EXPECT_EQ(sink->failure()->code, Code::not_found);
  EXPECT_THAT(sink->failure()->detail, HasSubstr(inner.string()));
  EXPECT_LT(sink->acknowledged(), position);
  fs::create_directories(inner);
  ASSERT_TRUE(acknowledges(*sink, position));
  EXPECT_TRUE(eventually([&] { return !sink->failure(); }));
}

TEST(NdjsonFiles, a_limit_on_the_size_of_files_begins_a_new_one) {
  const Folder folder;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 8192;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  {
    auto sink = in_folder(folder, "?fsync=always");
    for (std::int64_t seq = 1; seq <= 30; ++seq)
      EXPECT_TRUE(acknowledges(*sink, write_one(*sink, seq, std::string(1000, 'x'))));
    sink->close(long_enough);
  }
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  std::signal(SIGXFSZ, handler);
  EXPECT_GT(folder.files().size(), 3U);
  EXPECT_EQ(seqs(folder.text()).size(), 30U);
  EXPECT_EQ(parse_lines(folder.text()).size(), 30U);
}

TEST(SinkSpec, nonsense_is_refused_with_one_sentence) {
  const auto says = [](const char* spec) {
    const Result<void> checked = check_sink_spec(spec);
    return checked ? std::string("nothing") : checked.error().detail;
  };
  EXPECT_EQ(says("stdout"), "nothing");
  EXPECT_EQ(says("ndjson:dir?fsync=always&interval=2s&rotate=1GiB&buffer=1MiB"), "nothing");
  EXPECT_THAT(says("kafka:topic"), HasSubstr("unknown sink 'kafka:topic'"));
  EXPECT_THAT(says("ndjson:"), HasSubstr("names no folder"));
  EXPECT_THAT(says("ndjson:d?fsnyc=always"), HasSubstr("unknown sink option 'fsnyc'"));
  EXPECT_THAT(says("ndjson:d?fsync=sometimes"), HasSubstr("always, interval or never"));
  EXPECT_THAT(says("ndjson:d?interval=soon"), HasSubstr("'interval' has a bad value"));
  EXPECT_THAT(says("ndjson:d?rotate=1"), HasSubstr("at least 4KiB"));
  EXPECT_THAT(says("ndjson:d?buffer=1"), HasSubstr("between 64KiB"));
  EXPECT_FALSE(make_sink("ndjson:/no/such/parent/dir", "w", 1));
  EXPECT_FALSE(make_sink("ndjson:/dev/null", "w", 1));
}

}  // namespace
}  // namespace holdfast::sink
