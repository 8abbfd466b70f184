// The WebSocket engine as a client: speed against Beast and Node's `ws`, and what an idle connection keeps.
#include <malloc.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "harness.hpp"
#include "runtime/asio_loop.hpp"
#include "runtime/environment.hpp"
#include "runtime/spawn.hpp"
#include "ws/engine.hpp"
#include "ws_beast.hpp"
#include "ws_blaster.hpp"

namespace holdfast::bench {
namespace {

ws::ConnectOptions options_for(const std::string& url, const std::string& ca_file = "") {
  ws::ConnectOptions options;
  options.url = ws::parse_url(url).value();
  options.ca_file = ca_file;
  return options;
}

/// Ends the bench with what went wrong: a client that lost its server measures nothing.
[[noreturn]] void lost(const ws::Closed& closed) {
  throw std::runtime_error("the connection ended: " + std::to_string(closed.code) + ' ' + closed.error.detail);
}

class Receiver final : public ws::Events {
 public:
  Receiver(runtime::AsioLoop& loop, std::uint64_t skip) : loop_(loop), skip_(skip) {}

  void on_open(const ws::Opened&) override {}
  void on_message(const ws::Message& message) override {
    if (count_++ == skip_) {
      cpu_s_ = process_cpu_s();
      wall_s_ = wall_s();
    }
    bytes_ += message.data.size();
  }
  void on_closed(const ws::Closed& closed) override {
    result_ = figures(static_cast<double>(count_ - skip_), process_cpu_s() - cpu_s_, wall_s() - wall_s_);
    if (closed.code != 1000) lost(closed);
    loop_.stop();
  }
  [[nodiscard]] const Figures& result() const { return result_; }

 private:
  runtime::AsioLoop& loop_;
  std::uint64_t skip_;
  std::uint64_t count_ = 0;
  std::uint64_t bytes_ = 0;
  double cpu_s_ = 0;
  double wall_s_ = 0;
  Figures result_;
};

Figures receive_with_engine(const std::string& url, std::uint64_t skip) {
  runtime::AsioLoop loop(1);
  ws::Engine engine(loop);
  Receiver receiver(loop, skip);
  const auto connection = engine.connect(options_for(url), receiver);
  loop.run();
  return receiver.result();
}

std::vector<std::string> node(const std::string& program, const std::vector<std::string>& arguments) {
  std::vector<std::string> command = {"node", "--expose-gc", source_path("bench/peers/" + program)};
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

std::string node_ws_version() {
  return first_line({"node", "--input-type=module", "-e",
                     "import { version } from '" + source_path("tests/peers/ws.mjs") + "'; console.log(version)"});
}

void receive(Run& run) {
  run.version("node", first_line({"node", "--version"}));
  run.version("ws", node_ws_version());
  const Blaster blaster;
  struct Case {
    const char* name;
    std::uint64_t bytes;
    std::uint64_t ours, beast, node;  // messages: about as long for each
    bool judged;
  };
  const std::uint64_t part = run.quick() ? 20 : 1;
  for (const Case& it : {Case{"100 B text", 100, 20'000'000, 800'000, 2'000'000, true},
                         Case{"1 KiB text", 1024, 3'000'000, 500'000, 1'000'000, false},
                         Case{"64 KiB text", 65536, 60'000, 30'000, 40'000, false}}) {
    // A tenth goes by before the clock starts: connecting, and Node's compiler.
    const auto url = [&](std::uint64_t count) {
      return blaster.url("/blast?size=" + std::to_string(it.bytes) + "&count=" + std::to_string(count / part));
    };
    const auto ours = [&] { return receive_with_engine(url(it.ours), it.ours / part / 10); };
    const auto beast = [&] { return receive_with_beast(url(it.beast), it.beast / part / 10); };
    const auto with_node = [&] {
      return child(node("ws_receive.mjs", {url(it.node), std::to_string(it.node / part / 10)}));
    };
    Ratio to_beast{.subject = "holdfast", .to = "Beast", .figure = "per_core_second"};
    Ratio to_node{.subject = "holdfast", .to = "ws (Node)", .figure = "per_core_second"};
    if (it.judged) {
      to_beast.goal = at_least(15);
      to_node.goal = at_least(7);
    }
    run.compare({.name = it.name,
                 .subjects = {{"holdfast", ours}, {"Beast", beast}, {"ws (Node)", with_node}},
                 .ratios = {to_beast, to_node}});
  }
}

const Register receive_bench{
    "ws", "receiving WebSocket messages: our engine, Boost.Beast and Node's ws as clients of one server",
    "A server in another process upgrades one connection and writes frames that were built before, as fast as the "
    "socket takes them. Each client counts messages and their bytes and checks UTF-8; what is reported is the "
    "processor time (user and system) of the client's process for each message, after the first tenth. Beast: one "
    "async_read per message into a flat_buffer that is consumed, io_context of one thread, executor not type-erased.",
    receive};

// ---- Memory ----

class Idler final : public ws::Events {
 public:
  Idler(runtime::AsioLoop& loop, std::size_t& opening) : loop_(loop), opening_(opening) {}
  void on_open(const ws::Opened&) override {
    if (--opening_ == 0) loop_.stop();
  }
  void on_message(const ws::Message&) override {}
  void on_closed(const ws::Closed& closed) override { lost(closed); }

 private:
  runtime::AsioLoop& loop_;
  std::size_t& opening_;
};

class Crowd {
 public:
  Crowd(const Blaster& blaster, std::string ca_file) : blaster_(blaster), ca_file_(std::move(ca_file)) {}

  /// In batches: a server's queue of connections that wait to be accepted has an end.
  void grow(std::size_t to) {
    while (connections_.size() < to) {
      const std::size_t wanted = std::min<std::size_t>(batch, to - connections_.size());
      opening_ = wanted;
      for (std::size_t i = 0; i < wanted; ++i) {
        const std::string url = blaster_.url("/idle", connections_.size());
        connections_.push_back(engine_.connect(options_for(url, ca_file_), idler_));
      }
      loop_.run();
    }
  }
  /// After a pause in which session tickets and the like arrive.
  double resident() {
    loop_.call_after(std::chrono::milliseconds(500), [this] { loop_.stop(); });
    loop_.run();
    ::malloc_trim(0);
    return resident_bytes();
  }
  static constexpr std::size_t batch = 200;

 private:
  const Blaster& blaster_;
  std::string ca_file_;
  runtime::AsioLoop loop_{1};
  ws::Engine engine_{loop_};
  std::size_t opening_ = 0;
  Idler idler_{loop_, opening_};
  std::vector<std::unique_ptr<ws::Connection>> connections_;
};

Figures hold_with_engine(const Blaster& blaster, const std::string& ca_file, std::size_t count) {
  return in_fork([&]() -> Figures {
    ::malloc_trim(0);  // room that earlier work left must not hide what this takes
    Crowd crowd(blaster, ca_file);
    crowd.grow(Crowd::batch);  // what is there once: code, certificates, the engine's buffer
    const double before = crowd.resident();
    crowd.grow(Crowd::batch + count);
    const double after = crowd.resident();
    return {{"count", static_cast<double>(count)},
            {"resident_bytes", after},
            {"bytes_per_connection", (after - before) / static_cast<double>(count)}};
  });
}

struct TemporaryCertificate {
  std::filesystem::path folder;
  TemporaryCertificate() {
    std::string pattern = (std::filesystem::temp_directory_path() / "holdfast-bench-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot make a folder " + pattern);
    folder = pattern;
    runtime::SpawnOptions options;
    options.arguments = {"openssl",
                         "req",
                         "-x509",
                         "-newkey",
                         "ec",
                         "-pkeyopt",
                         "ec_paramgen_curve:P-256",
                         "-nodes",
                         "-days",
                         "2",
                         "-subj",
                         "/CN=localhost",
                         "-addext",
                         "subjectAltName=DNS:localhost,IP:127.0.0.1",
                         "-keyout",
                         key(),
                         "-out",
                         certificate()};
    options.output = runtime::SpawnOptions::Output::pipe;
    options.errors_to_output = true;
    Result<runtime::Child> openssl = runtime::spawn(options);
    if (!openssl) throw NotHere(openssl.error().detail);
    const std::string output = openssl->read_all(std::chrono::seconds(30));
    if (openssl->wait(std::chrono::seconds(30)) != runtime::Exit{}) throw std::runtime_error(output);
  }
  ~TemporaryCertificate() {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }
  TemporaryCertificate(const TemporaryCertificate&) = delete;
  TemporaryCertificate& operator=(const TemporaryCertificate&) = delete;
  [[nodiscard]] std::string certificate() const { return folder / "certificate.pem"; }
  [[nodiscard]] std::string key() const { return folder / "key.pem"; }
};

/// A program's arguments: how many connections, and the URLs to use in turn.
std::vector<std::string> crowd_arguments(const Blaster& blaster, std::size_t count) {
  std::vector<std::string> arguments = {std::to_string(count)};
  for (std::size_t i = 0; i < Blaster::listeners; ++i) arguments.push_back(blaster.url("/idle", i));
  return arguments;
}

void hold(Run& run) {
  run.version("node", first_line({"node", "--version"}));
  run.version("ws", node_ws_version());
  run.version("websockets (Python)",
              first_line({"/usr/bin/python3", "-c", "import websockets; print(websockets.__version__)"}));
  constexpr std::size_t needed = 10'500;  // the larger crowd, and what else is open
  const std::size_t limit = runtime::raise_descriptor_limit();
  if (limit < needed) throw NotHere("it needs 10,500 descriptors, ulimit -n allows " + std::to_string(limit));
  const TemporaryCertificate certificate;
  const Blaster plain;
  const Blaster tls(certificate.certificate(), certificate.key());
  struct Case {
    const char* name;
    const Blaster& blaster;
    std::string ca_file;
    std::size_t count, python;
    double bound;
  };
  const std::size_t part = run.quick() ? 10 : 1;
  for (const Case& it : {Case{"10,000 plain", plain, "", 10'000, 2'000, 2048},
                         Case{"3,000 TLS", tls, certificate.certificate(), 3'000, 500, 26 * 1024}}) {
    const auto ours = [&] { return hold_with_engine(it.blaster, it.ca_file, it.count / part); };
    const auto with_node = [&] { return child(node("ws_idle.mjs", crowd_arguments(it.blaster, it.count / part))); };
    const auto with_python = [&] {
      std::vector<std::string> command = {"/usr/bin/python3", source_path("bench/peers/ws_idle.py")};
      const std::vector<std::string> arguments = crowd_arguments(it.blaster, it.python / part);
      command.insert(command.end(), arguments.begin(), arguments.end());
      return child(command);
    };
    run.compare({.name = it.name,
                 .subjects = {{"holdfast", ours}, {"ws (Node)", with_node}, {"websockets (Python)", with_python}},
                 .ratios = {{.subject = "holdfast", .figure = "bytes_per_connection", .goal = at_most(it.bound)},
                            {.subject = "ws (Node)", .to = "holdfast", .figure = "bytes_per_connection"},
                            {.subject = "websockets (Python)", .to = "holdfast", .figure = "bytes_per_connection"}},
                 .rounds = 3,
                 .warm_up = false});
  }
}

const Register hold_bench{
    "ws_memory", "resident memory of an idle connection: our engine, Node's ws and Python's websockets",
    "Each client opens connections to a server in another process (OpenSSL where it is TLS) and holds them. Resident "
    "memory of the client's process by the kernel's count, after 200 connections and after the rest, divided by the "
    "rest: what is there once does not count. Python holds fewer connections, as it takes long to open them.",
    hold};

}  // namespace
}  // namespace holdfast::bench
