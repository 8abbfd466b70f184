// A whole fleet, as processes: how long connections are without an owner, and what holding them costs.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "cli/demo_verify.hpp"
#include "cli/sink_files.hpp"
#include "harness.hpp"
#include "runtime/clock.hpp"
#include "runtime/spawn.hpp"
#include "servers.hpp"

namespace holdfast::bench {
namespace {

using namespace std::chrono_literals;

constexpr Duration settling = 5s;  // after everything is open: hand-shakes, first renewals, warm caches

std::int64_t now_ms() {
  return runtime::wall_now().time_since_epoch().count();
}

class Folder : public TemporaryFolder {
 public:
  [[nodiscard]] runtime::Child start(const std::vector<std::string>& arguments, bool listen = false) const {
    runtime::SpawnOptions options;
    options.arguments = {HOLDFAST_PROGRAM};
    options.arguments.insert(options.arguments.end(), arguments.begin(), arguments.end());
    options.directory = path();
    options.output = listen ? runtime::SpawnOptions::Output::pipe : runtime::SpawnOptions::Output::discard;
    options.dies_with_parent = true;
    auto child = runtime::spawn(options);
    if (!child) throw std::runtime_error(child.error().detail);
    return *std::move(child);
  }
};

/// One process with as many streams as are wanted.
class Feed {
 public:
  Feed(const Folder& folder, int streams, int messages_per_second)
      : process_(folder.start({"feed", "--port", "0", "--streams", std::to_string(streams), "--rate",
                               std::to_string(messages_per_second), "--history", "1000"},
                              true)) {
    const auto line = process_.read_line(30s);
    if (!line) throw std::runtime_error("the feed did not start: " + line.error().detail);
    const std::size_t begin = line->find("ws://");
    const std::size_t end = line->rfind('/');
    if (begin == std::string::npos || end == std::string::npos) throw std::runtime_error("the feed says: " + *line);
    base_ = line->substr(begin, end + 1 - begin);
  }
  [[nodiscard]] std::string url(int stream) const { return base_ + "s" + std::to_string(stream); }
  [[nodiscard]] std::uint16_t port() const {
    return static_cast<std::uint16_t>(std::stoi(base_.substr(base_.rfind(':') + 1)));
  }

 private:
  runtime::Child process_;
  std::string base_;
};

/// A feed, a store and workers in a folder of their own.
class Fleet {
 public:
  Fleet(int connections, int messages_per_second, std::string lease)
      : connections_(static_cast<std::size_t>(connections)),
        lease_(std::move(lease)),
        feed_(folder_, connections, messages_per_second) {
    {
      std::ofstream rows(folder_.path() + "/rows.ndjson");
      for (int i = 0; i < connections; ++i) {
        rows << R"({"id":"s)" << i << R"(","url":")" << feed_.url(i)
             << R"(","options":{"resume.query":"since","seq.pointer":"/seq"}})" << '\n';
      }
    }
    if (const auto exit = folder_.start({"conn", "import", "rows.ndjson"}).wait(120s); !exit || exit->code != 0) {
      throw std::runtime_error("the connections could not be imported");
    }
  }

  runtime::Child& worker(const std::string& id) {
    return workers_[id] = folder_.start({"worker", "--id", id, "--lease", lease_, "--max-connections", "5000",
                                         "--sink", "ndjson:" + id, "--log-level", "error"});
  }

  /// When each connection had its first record in this worker's files.
  const std::map<std::string, std::int64_t>& first_records(const std::string& id) {
    auto [known, fresh] = records_.try_emplace(id, folder_.path() + "/" + id);
    Records& records = known->second;
    const auto read = records.files.read([&records](std::string_view, std::string_view line) {
      const auto record = cli::parse_sink_record(line);
      if (!record) throw std::runtime_error("a damaged record: " + std::string(line));
      records.first.emplace(record->connection, record->at_ms);
      if (!record->gap_to) ++records.messages;
    });
    if (!read) throw std::runtime_error(read.error().detail);
    return records.first;
  }
  std::uint64_t messages(const std::string& id) {
    (void)first_records(id);
    return records_.at(id).messages;
  }
  void wait_for_all(const std::string& id) {
    const double end = wall_s() + 60;
    while (first_records(id).size() < connections_) {
      if (wall_s() > end) throw std::runtime_error("not all connections came to worker " + id);
      std::this_thread::sleep_for(100ms);
    }
  }

 private:
  struct Records {
    explicit Records(std::string folder) : files(std::move(folder)) {}
    cli::SinkFiles files;
    std::map<std::string, std::int64_t> first;
    std::uint64_t messages = 0;
  };

  Folder folder_;  // outlives the processes that write into it
  const std::size_t connections_;
  const std::string lease_;
  Feed feed_;
  std::map<std::string, runtime::Child> workers_;
  std::map<std::string, Records> records_;
};

/// One worker holds all, another waits; the first is sent the signal. From then to each connection's first message.
Figures take_over(int connections, int signal) {
  Fleet fleet(connections, 5, "3s");
  runtime::Child& first = fleet.worker("first");
  fleet.wait_for_all("first");
  fleet.worker("second");
  std::this_thread::sleep_for(4s);
  if (!fleet.first_records("second").empty()) throw std::runtime_error("the second worker did not wait");
  const std::int64_t sent = now_ms();
  first.kill(signal);
  fleet.wait_for_all("second");
  std::vector<double> times;
  for (const auto& [connection, at] : fleet.first_records("second")) times.push_back(static_cast<double>(at - sent));
  std::sort(times.begin(), times.end());
  return {{"ms_median", times[times.size() / 2]}, {"ms_max", times.back()}};
}

/// Processor time of another process so far, by the names of its threads.
std::map<std::string, double> cpu_s_of(pid_t pid) {
  std::map<std::string, double> used;
  for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
    std::ifstream name_file(task.path() / "comm");
    std::string name;
    std::getline(name_file, name);
    std::ifstream schedule(task.path() / "schedstat");  // in nanoseconds, where `stat` counts ticks
    double ns = 0;
    if (!(schedule >> ns)) throw NotHere("this kernel has no /proc/PID/task/TID/schedstat");
    used[name] += ns / 1e9;
  }
  return used;
}

Figures hold(int connections, Duration time, const std::string& lease) {
  Fleet fleet(connections, 1, lease);
  const runtime::Child& worker = fleet.worker("only");
  fleet.wait_for_all("only");
  std::this_thread::sleep_for(settling);
  const std::uint64_t messages = fleet.messages("only");
  const std::map<std::string, double> before = cpu_s_of(worker.pid());
  const double begun = wall_s();
  std::this_thread::sleep_for(time);
  const std::map<std::string, double> after = cpu_s_of(worker.pid());
  const double wall = wall_s() - begun;
  Figures figures;
  double used = 0;
  for (const auto& [thread, cpu_s] : after) {
    const auto known = before.find(thread);
    const double cpu = cpu_s - (known == before.end() ? 0 : known->second);
    used += cpu;
    figures["cores_of_" + thread] = cpu / wall;
  }
  figures["cores"] = used / wall;
  figures["messages_per_second"] = static_cast<double>(fleet.messages("only") - messages) / wall;
  figures["resident_bytes"] = resident_bytes(worker.pid());
  return figures;
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {
    if (number < 0) throw std::system_error(errno, std::generic_category(), "no descriptor");
  }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  [[nodiscard]] int get() const { return number_; }

 private:
  int number_;
};

/// A socket that has asked for a stream of the feed and been let in.
Descriptor subscribe(std::uint16_t port, int stream) {
  Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw std::system_error(errno, std::generic_category(), "connect");
  }
  const std::string request = "GET /stream/s" + std::to_string(stream) +
                              " HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                              "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
  if (::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(request.size())) {
    throw std::system_error(errno, std::generic_category(), "send");
  }
  std::string answer;
  while (!answer.ends_with("\r\n\r\n")) {
    char byte = 0;
    if (::recv(socket.get(), &byte, 1, 0) != 1) throw std::runtime_error("the feed ended a connection");
    answer += byte;
  }
  if (!answer.starts_with("HTTP/1.1 101")) throw std::runtime_error("the feed refused a connection: " + answer);
  if (::fcntl(socket.get(), F_SETFL, O_NONBLOCK) != 0) throw std::runtime_error("cannot unblock a socket");
  return socket;
}

/// The least that any program pays for this traffic: one thread that waits for sockets, receives, and does nothing.
Figures only_receive(int connections, Duration time) {
  const Folder folder;
  const Feed feed(folder, connections, 1);
  const Descriptor epoll(::epoll_create1(EPOLL_CLOEXEC));
  std::vector<Descriptor> sockets;
  for (int i = 0; i < connections; ++i) {
    sockets.push_back(subscribe(feed.port(), i));
    epoll_event event{.events = EPOLLIN | EPOLLET, .data = {.fd = sockets.back().get()}};
    if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, event.data.fd, &event) != 0) throw std::runtime_error("epoll_ctl");
  }
  std::array<epoll_event, 128> events{};
  std::array<char, 65536> buffer{};
  std::uint64_t messages = 0;
  const auto receive_for = [&](Duration length) {
    const double end = wall_s() + std::chrono::duration<double>(length).count();
    while (wall_s() < end) {
      const int ready = ::epoll_wait(epoll.get(), events.data(), static_cast<int>(events.size()), 100);
      for (int i = 0; i < ready; ++i) {
        const epoll_event& event = events[static_cast<std::size_t>(i)];
        if (::recv(event.data.fd, buffer.data(), buffer.size(), 0) > 0) ++messages;
      }
    }
  };
  receive_for(settling);
  messages = 0;
  const double cpu = thread_cpu_s();
  const double begun = wall_s();
  receive_for(time);
  const double wall = wall_s() - begun;
  return {{"cores", (thread_cpu_s() - cpu) / wall}, {"messages_per_second", static_cast<double>(messages) / wall}};
}

void fleet(Run& run) {
  const int many = run.quick() ? 20 : 300;
  run.compare({.name = std::to_string(many) + " connections, lease 3 s",
               .subjects = {{"crash", [many] { return take_over(many, SIGKILL); }},
                            {"graceful stop", [many] { return take_over(many, SIGTERM); }}},
               .ratios = {{.subject = "crash", .figure = "ms_max", .goal = at_most(4500)},
                          {.subject = "crash", .figure = "ms_median"},
                          {.subject = "graceful stop", .figure = "ms_max", .goal = at_most(1000)},
                          {.subject = "graceful stop", .figure = "ms_median"}},
               .rounds = run.quick() ? 1 : 3,
               .warm_up = false});
  const int held = run.quick() ? 50 : 2000;
  const Duration time = run.quick() ? Duration(1s) : Duration(10s);
  run.compare({.name = std::to_string(held) + " connections, 1 message/s each",
               .subjects = {{"lease 20 s", [=] { return hold(held, time, "20s"); }},
                            {"lease 3 s", [=] { return hold(held, time, "3s"); }},
                            {"only receive", [=] { return only_receive(held, time); }}},
               .ratios = {{.subject = "lease 20 s", .figure = "cores", .goal = at_most(0.1)},
                          {.subject = "lease 20 s", .to = "only receive", .figure = "cores"},
                          {.subject = "lease 3 s", .figure = "cores"},
                          {.subject = "lease 3 s", .to = "only receive", .figure = "cores"},
                          {.subject = "only receive", .figure = "cores"},
                          {.subject = "lease 20 s", .figure = "messages_per_second"},
                          {.subject = "only receive", .figure = "messages_per_second"},
                          {.subject = "lease 20 s", .figure = "resident_bytes"}},
               .rounds = run.quick() ? 1 : 3,
               .warm_up = false});
}

const Register registered{
    "worker", "a fleet of real processes: hand-over times, and the cost of holding",
    "Feed, workers and SQLite file on this machine; default sink (NDJSON, synced every second) and store (every "
    "commit synced). Hand-over: one worker holds every connection, a second waits with room for all; the first gets "
    "SIGKILL or SIGTERM, and for each connection the time from the signal to its first record in the second one's "
    "files is taken (receive time in the record, one wall clock; the feed sends 5 messages/s per connection). The "
    "cost of holding is the worker's processor time, all threads, over 10 s that begin 5 s after all connections "
    "have spoken. 'Only receive' is one thread that waits in epoll, receives the same traffic and drops it.",
    fleet};

}  // namespace
}  // namespace holdfast::bench
