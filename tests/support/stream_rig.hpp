#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/fake_connector.hpp"
#include "support/fake_sink.hpp"
#include "support/virtual_loop.hpp"
#include "worker/stream.hpp"

namespace holdfast::test {

/// One stream on virtual time, with the test as its upstream, its sink and the keeper of its lease.
struct StreamRig {
  VirtualLoop loop;
  FakeConnector net;
  FakeSink sink;
  std::vector<worker::Trouble> troubles;
  worker::StreamGroup group{loop, net, sink,
                            [this](worker::Trouble trouble) { troubles.push_back(std::move(trouble)); }};
  std::shared_ptr<LeaseGuard> guard;
  std::unique_ptr<Resource> stream = group.make_stream();
  bool stopped = false;

  StreamRig() {
    sink.on_progress([this] { group.sink_progressed(); });
    hold_for(std::chrono::hours(100));
  }
  void hold_for(Duration time) { guard = std::make_shared<LeaseGuard>(Epoch{7}, loop.instant() + time); }

  static Row row(Value::Map options = {}, std::int64_t last_seq = 0) {
    Row row{"CONN#a", {}};
    row.attributes.emplace("ws_url", "ws://upstream:9/stream");
    row.attributes.emplace("last_seq", last_seq);
    row.attributes.emplace("options", std::move(options));
    return row;
  }
  static Value::Map with_seq(Value::Map options = {}) {
    options.emplace("seq.pointer", "/seq");
    return options;
  }

  void start(Value::Map options = {}, std::int64_t last_seq = 0) {
    stream->start({ConnectionId("a"), row(std::move(options), last_seq), guard});
    loop.settle();
  }
  void start_open(Value::Map options = {}, std::int64_t last_seq = 0) {
    start(std::move(options), last_seq);
    net.open();
  }
  void stop(LossReason reason, Duration within) {
    stream->stop(reason, loop.instant() + within, [this] { stopped = true; });
    loop.settle();
  }
  [[nodiscard]] std::string status() const { return stream->progress().status; }
  [[nodiscard]] std::string reason() const { return stream->progress().reason; }
  [[nodiscard]] std::int64_t last_seq() const { return stream->progress().last_seq; }
  [[nodiscard]] Tally tally() const { return stream->progress().tally; }
  [[nodiscard]] std::string target() const { return net.peer().options.url.target; }
  /// How long until it connects again.
  [[nodiscard]] Duration reconnects_in() {
    const Instant from = loop.instant();
    const std::size_t before = net.count();
    if (!loop.advance_until([&] { return net.count() > before; })) return Duration::max();
    return loop.instant() - from;
  }
};

}  // namespace holdfast::test
