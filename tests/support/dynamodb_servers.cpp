#include "support/dynamodb_servers.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "runtime/secure_random.hpp"
#include "runtime/spawn.hpp"
#include "support/places.hpp"

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

constexpr auto start_limit = 120s;  // more than dynamodb_server.py waits, so that its words are heard

const char* word(DynamoDbServer::Kind kind) {
  return kind == DynamoDbServer::Kind::local ? "local" : "dynalite";
}

/// To the keeper of this name; -1 where there is none.
int connect_to_keeper(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.size() + 1 > sizeof address.sun_path) throw std::runtime_error("a name of a keeper is too long: " + name);
  std::ranges::copy(name, address.sun_path + 1);  // after a zero: no file, gone with its owner
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const int descriptor = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0) throw std::runtime_error(std::string("cannot make a socket: ") + std::strerror(errno));
  if (::connect(descriptor, reinterpret_cast<const sockaddr*>(&address), size) == 0) return descriptor;
  ::close(descriptor);
  return -1;
}

void start_keeper(DynamoDbServer::Kind kind, const std::string& name) {
  const char* python = std::getenv("HOLDFAST_PYTHON");
  runtime::SpawnOptions options;
  options.arguments = {python != nullptr && *python != '\0' ? python : "/usr/bin/python3",
                       std::string(source_folder) + "/tests/peers/dynamodb_server.py", word(kind), "--shared", name};
  options.environment = {{"PYTHONDONTWRITEBYTECODE", "1"}};
  options.output = runtime::SpawnOptions::Output::pipe;
  options.errors_to_output = true;
  Result<runtime::Child> child = runtime::spawn(options);
  if (!child) throw std::runtime_error(child.error().detail);
  const std::string said = child->read_all(start_limit);
  if (child->wait(start_limit) != runtime::Exit{}) {
    throw std::runtime_error("no keeper of a DynamoDB server could be started: " + said);
  }
}

/// Its one line; empty where it ended without a word.
std::string line_of(int descriptor) {
  std::string line;
  const auto end = std::chrono::steady_clock::now() + start_limit;
  while (line.empty() || line.back() != '\n') {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    pollfd ready{descriptor, POLLIN, 0};
    if (left <= 0ms || ::poll(&ready, 1, static_cast<int>(left.count())) <= 0) {
      throw std::runtime_error("the keeper of a DynamoDB server said nothing for two minutes");
    }
    std::array<char, 4096> bytes{};
    const ssize_t got = ::recv(descriptor, bytes.data(), bytes.size(), 0);
    if (got <= 0) return {};
    line.append(bytes.data(), static_cast<std::size_t>(got));
  }
  line.pop_back();
  return line;
}

/// One for each copy of the sources: what is fetched into tests/peers belongs to it. As dynamodb_server.py names it.
std::string shared_name(DynamoDbServer::Kind kind) {
  struct stat folder {};
  if (::stat((std::string(source_folder) + "/tests/peers").c_str(), &folder) != 0) {
    throw std::runtime_error("the folder tests/peers is not there any more");
  }
  return "holdfast-test-" + std::to_string(::getuid()) + '-' + word(kind) + '-' + std::to_string(folder.st_dev) +
         '-' + std::to_string(folder.st_ino);
}

}  // namespace

const DynamoDbServer& DynamoDbServer::of(Kind kind) {
  // Each is made when it is first asked for: the branches are reached one at a time.
  if (kind == Kind::local) {
    static const DynamoDbServer server(Kind::local, shared_name(Kind::local));
    return server;
  }
  static const DynamoDbServer server(Kind::dynalite, shared_name(Kind::dynalite));
  return server;
}

DynamoDbServer::DynamoDbServer(Kind kind, const std::string& name) {
  const auto end = std::chrono::steady_clock::now() + start_limit;
  while (true) {
    user_ = connect_to_keeper(name);
    const std::string line = user_ >= 0 ? line_of(user_) : std::string();
    if (line.starts_with("endpoint ")) {
      endpoint_ = line.substr(9);
      port_ = static_cast<std::uint16_t>(std::stoul(endpoint_.substr(endpoint_.rfind(':') + 1)));
      return;
    }
    if (user_ >= 0) ::close(user_);
    user_ = -1;
    if (line.starts_with("failed ")) throw std::runtime_error(line.substr(7));
    // None there, or it was just going.
    if (std::chrono::steady_clock::now() >= end)
      throw std::runtime_error("no DynamoDB server stays: see dynamodb_server.py");
    start_keeper(kind, name);
  }
}

DynamoDbServer::~DynamoDbServer() {
  if (user_ >= 0) ::close(user_);
}

std::vector<std::pair<std::string, std::string>> DynamoDbServer::environment() {
  return {
      {"AWS_ACCESS_KEY_ID", "test"},
      {"AWS_SECRET_ACCESS_KEY", "test"},
      {"AWS_SESSION_TOKEN", ""},
      {"AWS_PROFILE", ""},
      {"AWS_REGION", "us-east-1"},
      {"AWS_DEFAULT_REGION", "us-east-1"},
      {"AWS_CONFIG_FILE", "/dev/null"},
      {"AWS_SHARED_CREDENTIALS_FILE", "/dev/null"},
      {"AWS_EC2_METADATA_DISABLED", "true"},
      {"AWS_ENDPOINT_URL", ""},
      {"AWS_ENDPOINT_URL_DYNAMODB", ""},
      {"NO_PROXY", "127.0.0.1"},
      {"no_proxy", "127.0.0.1"},
  };
}

std::string random_table_name(std::string_view prefix) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string name(prefix);
  name += '-';
  runtime::SecureRandom random;
  for (const std::uint8_t byte : random.take<12>()) {
    name += digits[byte >> 4U];
    name += digits[byte & 15U];
  }
  return name;
}

}  // namespace holdfast::test
