// Streams on threads of their own before one sink that is behind and fails again and again: whoever waits for it is
// woken. A wake-up that was lost leaves a stream paused for ever.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/asio_loop.hpp"
#include "runtime/clock.hpp"
#include "runtime/thread.hpp"
#include "sink/buffered_sink.hpp"
#include "support/fake_connector.hpp"
#include "support/stream_rig.hpp"
#include "support/virtual_loop.hpp"
#include "worker/stream.hpp"

namespace holdfast::worker {
namespace {

using namespace std::chrono_literals;

constexpr int threads = 3;
constexpr int streams_each = 4;
constexpr std::int64_t messages = 3000;  // of each stream

/// An upstream without a network that always has something to say, until it has said everything: some messages in
/// each turn of the loop, as long as it is not paused.
class Flood final : public ws::Connector {
 public:
  explicit Flood(Loop& loop) : loop_(loop) {}

  std::unique_ptr<ws::Connection> connect(ws::ConnectOptions, ws::Events& events) override {
    auto source = std::make_shared<Source>(loop_, events);
    loop_.post([source] {
      if (source->events != nullptr) source->events->on_open({});
      source->turn();
    });
    return std::make_unique<Connection>(std::move(source));
  }

 private:
  static constexpr int in_a_turn = 20;

  struct Source : std::enable_shared_from_this<Source> {
    Source(Loop& loop_, ws::Events& events_) : loop(loop_), events(&events_) {}
    void turn() {
      const auto reads = [this] { return events != nullptr && !paused && said < messages; };
      if (!reads()) return;
      events->before_read();
      if (!reads()) return;
      for (int i = 0; i < in_a_turn && events != nullptr && said < messages; ++i) {
        ++said;
        events->on_message({false, "a message of some length"});
      }
      if (events != nullptr) events->on_batch_end();
      go_on();
    }
    void go_on() {
      loop.post([self = shared_from_this()] { self->turn(); });
    }

    Loop& loop;
    ws::Events* events;  // null: destroyed
    std::int64_t said = 0;
    bool paused = false;
  };

  class Connection final : public ws::Connection {
   public:
    explicit Connection(std::shared_ptr<Source> source) : source_(std::move(source)) {}
    ~Connection() override { source_->events = nullptr; }
    Connection(const Connection&) = delete;
    Connection& operator=(const Connection&) = delete;
    bool send(std::string_view, bool) override { return true; }
    void close(std::uint16_t, std::string_view) override {
      ws::Closed end;
      end.kind = ws::Closed::Kind::local;
      source_->loop.post([source = source_, end] {
        if (source->events != nullptr) source->events->on_closed(end);
      });
    }
    void pause() override { source_->paused = true; }
    void resume() override {
      source_->paused = false;
      source_->go_on();
    }

   private:
    std::shared_ptr<Source> source_;
  };

  Loop& loop_;
};

/// Works most of the time.
class Moody final : public sink::Output {
 public:
  Outcome write(std::string_view, Permission&) override { return ++calls_ % 10 == 0 ? fault() : Outcome{}; }
  Outcome sync() override { return ++calls_ % 10 == 0 ? fault() : Outcome{}; }
  Outcome probe() override { return {}; }
  void close() override {}

 private:
  static Outcome fault() {
    Fault fault{Error(Code::unavailable, "in a bad mood")};
    fault.unsynced_lost = true;
    return fault;
  }
  int calls_ = 0;
};

/// A loop on a thread of its own, with some streams.
struct Place {
  explicit Place(Sink& sink) : group(loop, flood, sink) {}
  ~Place() {
    loop.stop();
    thread.join();
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  void begin() {
    Row row{"CONN#a", {}};
    row.attributes.emplace("ws_url", "ws://upstream:9/stream");
    row.attributes.emplace("last_seq", 0);
    for (int i = 0; i < streams_each; ++i) {
      guards.push_back(std::make_shared<LeaseGuard>(Epoch{7}, runtime::boot_now() + 1h));
      streams.push_back(group.make_stream());
      streams.back()->start({ConnectionId("a"), row, guards.back(), [this] { ++first_checkpoints; }});
    }
    thread = runtime::Thread("streams", [this] { loop.run(); });
  }
  void stop(std::atomic<int>& stopped) {
    loop.post([this, &stopped] {
      for (const auto& stream : streams) stream->stop(LossReason::drained, loop.instant() + 1min, [&] { ++stopped; });
    });
  }

  runtime::AsioLoop loop{1};
  Flood flood{loop};
  StreamGroup group;
  std::atomic<int> first_checkpoints = 0;
  std::vector<std::shared_ptr<LeaseGuard>> guards;
  std::vector<std::unique_ptr<Resource>> streams;
  runtime::Thread thread;
};

template <class Predicate>
bool eventually(Predicate predicate) {
  const Instant end = runtime::boot_now() + 60s;
  while (!predicate()) {
    if (runtime::boot_now() > end) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

TEST(StreamThreads, whoever_waits_for_a_sink_that_is_behind_or_fails_is_woken_on_its_thread) {
  sink::BufferedSinkOptions options;
  options.sync = sink::Sync::always;
  options.linger = 0ms;
  options.high_water_bytes = 8192;  // about two turns of one stream
  options.low_water_bytes = 2048;
  options.retry = {1ms, 3ms, 1ms};
  sink::BufferedSink sink(std::make_unique<Moody>(), options);
  std::vector<std::unique_ptr<Place>> places;
  for (int i = 0; i < threads; ++i) places.push_back(std::make_unique<Place>(sink));
  sink.on_progress([&places] {
    for (const auto& place : places) place->group.sink_progressed();
  });
  for (const auto& place : places) place->begin();

  // As the control loop does it: looks at progress, and extends leases.
  const auto all_acknowledged = [&] {
    bool all = true;
    for (const auto& place : places) {
      for (int i = 0; i < streams_each; ++i) {
        const auto at = static_cast<std::size_t>(i);
        place->guards[at]->extend(runtime::boot_now() + 1h);
        all = place->streams[at]->progress().last_seq == messages && all;
      }
    }
    return all;
  };
  EXPECT_TRUE(eventually(all_acknowledged)) << "a stream waits that nobody wakes";
  std::atomic<int> stopped = 0;
  for (const auto& place : places) place->stop(stopped);
  EXPECT_TRUE(eventually([&] { return stopped == threads * streams_each; }));
  for (const auto& place : places) EXPECT_EQ(place->first_checkpoints, streams_each);
  sink.close(1min);
  EXPECT_EQ(sink.acknowledged(), Position{threads * streams_each * messages});
}

/// Catches up in the very moment in which somebody looks whether it is behind, when it was told to.
class Sliding final : public Sink {
 public:
  bool is_behind = false;
  mutable bool catches_up = false;
  std::function<void()> tell;

  Position write(std::span<const Record> records) override { return accepted_ += records.size(); }
  [[nodiscard]] Position acknowledged() const override { return accepted_; }
  [[nodiscard]] bool behind() const override {
    if (!std::exchange(catches_up, false)) return is_behind;
    const_cast<Sliding*>(this)->is_behind = false;
    tell();
    return true;
  }
  void on_progress(std::function<void()> listener) override { tell = std::move(listener); }
  void flush() override {}
  void close(Duration) override {}

 private:
  Position accepted_ = 0;
};

TEST(StreamThreads, what_a_sink_does_while_it_is_looked_at_is_not_missed) {
  test::VirtualLoop loop;
  test::FakeConnector net;
  Sliding sink;
  StreamGroup group(loop, net, sink);
  sink.on_progress([&group] { group.sink_progressed(); });
  const auto stream = group.make_stream();
  const auto guard = std::make_shared<LeaseGuard>(Epoch{7}, loop.instant() + 1h);
  stream->start({ConnectionId("a"), test::StreamRig::row(), guard});
  net.open();
  sink.is_behind = true;
  net.receive("message");
  loop.settle();
  ASSERT_TRUE(net.peer().paused);
  sink.catches_up = true;
  sink.tell();  // of something else; the look that follows meets the moment
  loop.settle();
  EXPECT_FALSE(net.peer().paused);
}

}  // namespace
}  // namespace holdfast::worker
