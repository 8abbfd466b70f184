// Fleet, with its real loops and threads, on a SQLite file.
#include "holdfast/fleet.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "holdfast/store.hpp"
#include "runtime/thread.hpp"
#include "support/run_until.hpp"
#include "support/temporary_folder.hpp"

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class FleetTest : public testing::Test {
 protected:
  TemporaryFolder folder;
  std::string store_url = "sqlite:" + folder.file("fleet.db");

  FleetOptions options() {
    FleetOptions result;
    result.store = store_url;
    result.id = "w";
    result.lease.lease = 3s;
    result.handle_signals = false;
    result.report_file = folder.file("report.json");
    result.log_level = "off";
    return result;
  }
  void make_table(int connections) {
    runtime::AsioLoop loop(1);
    auto store = open_store(store_url, loop).value();
    bool ready = false;
    store->initialize(loop.instant() + 30s, [&](const Reply<std::string>& reply) { ready = reply.ok(); });
    ASSERT_TRUE(run_until(loop, [&] { return ready; }));
    int written = 0;
    for (int i = 0; i < connections; ++i) {
      store->update({"CONN#c" + std::to_string(i),
                     {Change::set(attribute::desired_state, state::started), Change::set(attribute::expires_at, 0),
                      Change::set(attribute::url, "job:")},
                     Condition::always()},
                    loop.instant() + 30s, [&](const RowReply& reply) { written += reply.ok() ? 1 : 0; });
    }
    ASSERT_TRUE(run_until(loop, [&] { return written == connections; }));
    bool closed = false;
    store->close([&] { closed = true; });
    ASSERT_TRUE(run_until(loop, [&] { return closed; }));
  }
  std::string report() const {
    std::ifstream input(folder.file("report.json"));
    return {std::istreambuf_iterator<char>(input), {}};
  }
};

/// Calls a function when it starts, and ends at once when it is asked to.
class Calling final : public Resource {
 public:
  explicit Calling(std::function<void()> on_start) : on_start_(std::move(on_start)) {}
  void start(Grant) override { on_start_(); }
  void stop(LossReason, Instant, std::function<void()> stopped) override { stopped(); }
  [[nodiscard]] Progress progress() const override { return {}; }

 private:
  std::function<void()> on_start_;
};

TEST_F(FleetTest, what_makes_no_sense_is_refused_before_anything_is_touched) {
  const auto refusal = [](FleetOptions wrong) {
    Fleet fleet(std::move(wrong));
    fleet.on_message([](const Record&) {});
    const auto report = fleet.run();
    return report ? Error() : report.error();
  };
  FleetOptions wrong = options();
  wrong.id = "a#b";
  EXPECT_EQ(refusal(wrong).code, Code::usage);
  wrong = options();
  wrong.max_connections = 0;
  EXPECT_EQ(refusal(wrong).code, Code::usage);
  wrong = options();
  wrong.lease.renew_every = 10s;
  EXPECT_EQ(refusal(wrong).code, Code::usage);
  wrong = options();
  wrong.log_level = "loud";
  EXPECT_THAT(refusal(wrong).detail, HasSubstr("loud"));
  for (const Duration patience : {Duration::zero(), Duration(std::chrono::hours(25)), Duration::max()}) {
    wrong = options();
    wrong.drain_timeout = patience;
    EXPECT_THAT(refusal(wrong).detail, HasSubstr("drain timeout"));
  }
  Fleet aimless(options());
  EXPECT_THAT(aimless.run().error().detail, HasSubstr("what the worker is for"));
}

TEST_F(FleetTest, makes_the_table_that_is_missing) {
  Fleet fleet(options());
  fleet.on_message([](const Record&) {});
  fleet.drain();
  const auto report = fleet.run();
  ASSERT_TRUE(report) << report.error().detail;
  EXPECT_TRUE(std::filesystem::exists(folder.file("fleet.db")));
}

TEST_F(FleetTest, a_table_that_is_not_there_and_not_to_be_made_is_told_at_once_by_its_name) {
  FleetOptions careful = options();
  careful.make_table = false;
  Fleet fleet(careful);
  fleet.on_message([](const Record&) {});
  const auto report = fleet.run();
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().detail, HasSubstr("holdfast init --store " + store_url));
  EXPECT_FALSE(std::filesystem::exists(folder.file("fleet.db")));
}

TEST_F(FleetTest, a_report_that_cannot_be_written_is_told_before_anything_is_held) {
  make_table(1);
  FleetOptions nowhere = options();
  nowhere.report_file = folder.file("nowhere/report.json");
  Fleet fleet(nowhere);
  fleet.holds([](const Row&, Loop&) { return std::make_unique<Calling>([] { FAIL() << "nothing is held"; }); });
  const auto report = fleet.run();
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().detail, HasSubstr("nowhere/report.json"));
}

TEST_F(FleetTest, holds_what_the_factory_makes_until_another_thread_says_drain) {
  make_table(8);
  FleetOptions with_threads = options();
  with_threads.threads = 3;
  Fleet fleet(with_threads);
  std::atomic<int> started = 0;
  fleet.holds([&](const Row&, Loop&) {
    return std::make_unique<Calling>([&] {
      if (++started == 8) fleet.drain();
    });
  });
  const auto result = fleet.run();
  ASSERT_TRUE(result) << result.error().detail;
  EXPECT_EQ(result->end, Report::End::drained);
  EXPECT_EQ(result->claims, 8);
  EXPECT_EQ(result->releases, 8);
  EXPECT_THAT(report(), HasSubstr("\"end\":\"drained\""));
}

TEST_F(FleetTest, stopping_at_once_gives_nothing_back) {
  make_table(1);
  Fleet fleet(options());
  fleet.holds([&](const Row&, Loop&) { return std::make_unique<Calling>([&] { fleet.stop(); }); });
  const auto result = fleet.run();
  ASSERT_TRUE(result) << result.error().detail;
  EXPECT_EQ(result->end, Report::End::stopped);
  EXPECT_EQ(result->cut, 1);
}

TEST_F(FleetTest, a_drain_that_was_asked_for_before_the_start_ends_at_once) {
  make_table(1);
  Fleet fleet(options());
  fleet.holds([](const Row&, Loop&) { return std::make_unique<Calling>([] {}); });
  fleet.drain();
  const auto result = fleet.run();
  ASSERT_TRUE(result) << result.error().detail;
  EXPECT_EQ(result->end, Report::End::drained);
}

TEST_F(FleetTest, f14_whatever_is_thrown_out_of_a_resource_ends_the_worker_with_an_error) {
  make_table(2);
  Fleet fleet(options());
  fleet.holds(
      [](const Row&, Loop&) { return std::make_unique<Calling>([] { throw std::runtime_error("oh dear"); }); });
  const auto result = fleet.run();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::internal);
  EXPECT_THAT(result.error().detail, HasSubstr("oh dear"));
  EXPECT_THAT(report(), HasSubstr("\"end\":\"failed\""));
}

TEST_F(FleetTest, what_is_asked_for_in_the_moment_of_its_end_or_later_does_nothing) {
  make_table(1);
  Fleet fleet(options());
  fleet.holds([&](const Row&, Loop&) {
    return std::make_unique<Calling>([&] {
      // Some of these are still on their way when the first has ended it.
      for (int i = 0; i < 1000; ++i) fleet.stop();
    });
  });
  const auto result = fleet.run();
  ASSERT_TRUE(result) << result.error().detail;
  EXPECT_EQ(result->end, Report::End::stopped);
  fleet.stop();
  fleet.drain();
}

/// Has news until the end.
class Telling final : public Sink {
 public:
  explicit Telling(bool& closed) : closed_(closed) {}
  Position write(std::span<const Record>) override { return 0; }
  [[nodiscard]] Position acknowledged() const override { return 0; }
  [[nodiscard]] bool behind() const override { return false; }
  void on_progress(std::function<void()> listener) override { listener_ = std::move(listener); }
  void flush() override {}
  void close(Duration) override {
    runtime::Thread("sink", [this] { listener_(); }).join();
    closed_ = true;
  }

 private:
  bool& closed_;
  std::function<void()> listener_;
};

// Where those that it tells were gone, a sanitizer says so.
TEST_F(FleetTest, a_sink_may_tell_of_its_progress_until_it_is_closed) {
  make_table(1);
  bool closed = false;
  Fleet fleet(options());
  fleet.sink(std::make_unique<Telling>(closed));
  fleet.drain();
  const auto result = fleet.run();
  EXPECT_TRUE(result) << result.error().detail;
  EXPECT_TRUE(closed);
}

TEST_F(FleetTest, a_name_that_no_row_can_carry_is_refused) {
  FleetOptions wrong = options();
  wrong.id = "w\xFF";
  Fleet fleet(std::move(wrong));
  fleet.on_message([](const Record&) {});
  EXPECT_EQ(fleet.run().error().code, Code::usage);
}

TEST_F(FleetTest, runs_once) {
  make_table(0);
  Fleet fleet(options());
  fleet.on_message([](const Record&) {});
  fleet.drain();
  EXPECT_TRUE(fleet.run());
  EXPECT_FALSE(fleet.run());
}

}  // namespace
}  // namespace holdfast::test
