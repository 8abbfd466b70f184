#include "servers.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

#include "harness.hpp"

namespace holdfast::bench {
namespace {

using namespace std::chrono_literals;

constexpr double start_limit_s = 60;

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

std::string problem(const char* call) {
  return std::string(call) + ": " + std::strerror(errno);
}

/// One that was free just now: for servers that cannot say which one they were given.
std::uint16_t free_port() {
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  auto* const generic = reinterpret_cast<sockaddr*>(&address);
  const int probe = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool found = probe >= 0 && ::bind(probe, generic, size) == 0 && ::getsockname(probe, generic, &size) == 0;
  if (probe >= 0) ::close(probe);
  if (!found) throw NotHere(problem("bind"));
  return ntohs(address.sin_port);
}

int connect_to(std::uint16_t port) {
  const sockaddr_in address = loopback(port);
  const int made = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (made >= 0 && ::connect(made, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return made;
  if (made >= 0) ::close(made);
  return -1;
}

runtime::Child start(std::vector<std::string> command, runtime::SpawnOptions::Output output) {
  runtime::SpawnOptions options;
  options.arguments = std::move(command);
  options.output = output;
  options.discard_errors = output == runtime::SpawnOptions::Output::discard;
  options.dies_with_parent = true;
  auto child = runtime::spawn(options);
  if (!child) throw NotHere(child.error().detail + " (./dev setup bench)");
  return *std::move(child);
}

void wait_until(const std::string& who, runtime::Child& process, const std::function<bool()>& answers) {
  const double until = wall_s() + start_limit_s;
  while (!answers()) {
    if (!process.running() || wall_s() > until) throw NotHere(who + " does not start");
    std::this_thread::sleep_for(10ms);
  }
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "holdfast-bench-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw NotHere("no temporary folder");
  path_ = std::move(name);
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

DynamoDbLocal::DynamoDbLocal()
    : process_(start({"/usr/bin/python3", source_path("tests/peers/dynamodb_server.py"), "local"},
                     runtime::SpawnOptions::Output::pipe)) {
  const auto line = process_.read_line(120s);
  if (!line || !line->starts_with("http")) throw NotHere("DynamoDB Local does not start");
  endpoint_ = *line;
  for (const char* const name : {"AWS_PROFILE", "AWS_SESSION_TOKEN"}) ::unsetenv(name);
  for (const auto& [name, value] : {std::pair("AWS_ACCESS_KEY_ID", "test"),
                                    {"AWS_SECRET_ACCESS_KEY", "test-secret"},
                                    {"AWS_CONFIG_FILE", "/dev/null"},
                                    {"AWS_SHARED_CREDENTIALS_FILE", "/dev/null"}}) {
    ::setenv(name, value, 1);
  }
}

Etcd::Etcd() : endpoint_("http://127.0.0.1:" + std::to_string(free_port())) {
  const std::string peers = "http://127.0.0.1:" + std::to_string(free_port());
  process_ = start(
      {"etcd", "--data-dir", folder_.path(), "--listen-client-urls", endpoint_, "--advertise-client-urls", endpoint_,
       "--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster", "default=" + peers},
      runtime::SpawnOptions::Output::discard);
  wait_until("etcd", process_, [&] {
    return !first_line({"etcdctl", "--endpoints", endpoint_, "member", "list"}).empty();
  });
}

Redis::Redis(const std::string& appendfsync) : port_(free_port()) {
  process_ = start({"redis-server", "--port", std::to_string(port_), "--bind", "127.0.0.1", "--dir", folder_.path(),
                    "--appendonly", "yes", "--appendfsync", appendfsync, "--save", "", "--daemonize", "no"},
                   runtime::SpawnOptions::Output::discard);
  wait_until("redis-server", process_, [&] {
    const int connection = connect_to(port_);
    if (connection >= 0) ::close(connection);
    return connection >= 0;
  });
}

double Redis::cpu_s() const {
  clockid_t clock{};
  timespec used{};
  if (::clock_getcpuclockid(process_.pid(), &clock) != 0 || ::clock_gettime(clock, &used) != 0) {
    throw std::runtime_error("redis-server has ended");
  }
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

RedisClient::RedisClient(std::uint16_t port) : socket_(connect_to(port)) {
  if (socket_ < 0) throw std::runtime_error(problem("connect"));
  const int on = 1;
  ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

RedisClient::~RedisClient() {
  ::close(socket_);
}

std::vector<std::string> RedisClient::ask(const std::vector<Command>& commands) {
  std::string text;
  for (const Command& command : commands) {
    text.append("*").append(std::to_string(command.size())).append("\r\n");
    for (const std::string& word : command) {
      text.append("$").append(std::to_string(word.size())).append("\r\n").append(word).append("\r\n");
    }
  }
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t more = ::send(socket_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (more <= 0) throw std::runtime_error(problem("send"));
    sent += static_cast<std::size_t>(more);
  }
  received_.clear();
  read_ = 0;
  std::vector<std::string> answers;
  for (std::size_t i = 0; i < commands.size(); ++i) {
    std::string answer = line();
    answers.push_back(answer.starts_with('$') && answer != "$-1" ? line() : std::move(answer));
  }
  return answers;
}

std::string RedisClient::line() {
  while (true) {
    const std::size_t end = received_.find("\r\n", read_);
    if (end != std::string::npos) {
      std::string found = received_.substr(read_, end - read_);
      read_ = end + 2;
      return found;
    }
    char buffer[16384];
    const ssize_t got = ::recv(socket_, buffer, sizeof buffer, 0);
    if (got <= 0) throw std::runtime_error(problem("recv"));
    received_.append(buffer, static_cast<std::size_t>(got));
  }
}

}  // namespace holdfast::bench
