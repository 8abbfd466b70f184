// The whole path of a message: socket → number by JSON pointer → record in an NDJSON file, beside the same in Node.
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "harness.hpp"
#include "holdfast/resource.hpp"
#include "runtime/asio_loop.hpp"
#include "sink/make_sink.hpp"
#include "worker/stream.hpp"
#include "worker/stream_options.hpp"
#include "ws/engine.hpp"
#include "ws_blaster.hpp"

namespace holdfast::bench {
namespace {

using namespace std::chrono_literals;

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "holdfast-bench-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot make a folder " + pattern);
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  [[nodiscard]] std::string path() const { return path_.string(); }
  [[nodiscard]] std::uintmax_t bytes() const {
    std::uintmax_t sum = 0;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) sum += entry.file_size();
    return sum;
  }

 private:
  std::filesystem::path path_;
};

/// What a connection's row says of a feed of the blaster, from its first message on.
Row row_of(const std::string& url) {
  worker::StreamOptions options;
  options.url = ws::parse_url(url).value();
  options.seq_pointer = "/seq";
  Row row{"CONN#bench", options.to_row()};
  row.attributes[std::string(attribute::last_seq)] = Blaster::first_seq - 1;
  return row;
}

/// Until every message of the feed was acknowledged by the sink.
Figures deliver_with_holdfast(const std::string& url, std::uint64_t count) {
  const TemporaryFolder folder;
  runtime::AsioLoop loop(1);
  ws::Engine engine(loop);
  Result<std::unique_ptr<Sink>> made = sink::make_sink("ndjson:" + folder.path(), "bench", 1);
  if (!made) throw std::runtime_error(made.error().detail);
  Sink& file = **made;
  worker::StreamGroup group(loop, engine, file);
  file.on_progress([&group] { group.sink_progressed(); });
  const auto stream = group.make_stream();
  const auto guard = std::make_shared<LeaseGuard>(Epoch{1}, loop.instant() + 1h);

  const double cpu = process_cpu_s();
  const double wall = wall_s();
  stream->start({ConnectionId("bench"), row_of(url), guard});
  const std::int64_t last = Blaster::first_seq + static_cast<std::int64_t>(count) - 1;
  std::function<void()> look = [&] {
    if (stream->progress().last_seq == last || wall_s() - wall > 60) return loop.stop();
    loop.call_after(10ms, look);
  };
  look();
  loop.run();
  Figures result = figures(static_cast<double>(count), process_cpu_s() - cpu, wall_s() - wall);
  result["bytes"] = static_cast<double>(folder.bytes());
  file.close(5s);
  if (stream->progress().last_seq != last) throw std::runtime_error("the feed did not arrive within 60 s");
  return result;
}

void deliver(Run& run) {
  run.version("node", first_line({"node", "--version"}));
  const Blaster blaster;
  const std::uint64_t part = run.quick() ? 20 : 1;
  const std::uint64_t ours = 1'000'000 / part;
  const std::uint64_t nodes = 300'000 / part;
  const auto feed = [&](std::uint64_t count) { return blaster.url("/feed?count=" + std::to_string(count)); };
  const auto with_node = [&, nodes](const char* how) {
    return [&feed, how, nodes] {
      const TemporaryFolder folder;
      return child({"node", source_path("bench/peers/ws_path.mjs"), feed(nodes), folder.path(),
                    std::to_string(nodes / 10), how});
    };
  };
  run.compare({.name = "120 B JSON to NDJSON",
               .subjects = {{"holdfast", [&] { return deliver_with_holdfast(feed(ours), ours); }},
                            {"Node", with_node("each")},
                            {"Node, batched", with_node("batched")}},
               .ratios = {{.subject = "holdfast", .to = "Node", .figure = "per_core_second", .goal = at_least(4)},
                          {.subject = "holdfast", .to = "Node, batched", .figure = "per_core_second"}}});
}

const Register registered_bench{
    "ws_path", "socket to NDJSON file: one stream of ours, and a Node program with ws, JSON.parse and a file stream",
    "A server in another process writes JSON messages with rising numbers as fast as the socket takes them. Each "
    "client takes the number out, looks for holes and writes a record with connection, epoch, number, time and the "
    "message to a file; figures are processor time of the whole process for each message. Ours checks the lease "
    "before "
    "each batch and syncs the file every second; Node does neither, and its first tenth does not count. \"Node\" "
    "writes each record to the file stream, \"Node, batched\" those of one turn of its event loop together.",
    deliver};

}  // namespace
}  // namespace holdfast::bench
