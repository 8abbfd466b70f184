#include "dynamodb_stub.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <array>
#include <boost/json.hpp>
#include <cerrno>
#include <ctime>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string_view>
#include <system_error>

namespace holdfast::bench {
namespace {

namespace json = boost::json;

constexpr std::string_view consumed =
    R"(,"ConsumedCapacity":{"TableName":"bench","CapacityUnits":3.0,"Table":{"CapacityUnits":1.0},)"
    R"("GlobalSecondaryIndexes":{"desired_state-lease_expires_at_ms-index":{"CapacityUnits":2.0}}}})";

/// With all that the service sends, the checksum over the body among it: clients verify that.
std::string answer_of(const std::string& body, std::string_view status = "200 OK") {
  char date[64];
  const std::time_t now = std::time(nullptr);  // the peers sign by this machine's clock
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT", &parts);
  const auto checksum =
      ::crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<unsigned int>(body.size()));
  return "HTTP/1.1 " + std::string(status) + "\r\nServer: Server\r\nDate: " + std::string(date) +
         "\r\nContent-Type: application/x-amz-json-1.0\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\nConnection: keep-alive\r\nx-amzn-RequestId: "
         "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789ABCDEFGHIJKLMN"
         "\r\nx-amz-crc32: " +
         std::to_string(checksum) + "\r\n\r\n" + body;
}

json::object text(std::string value) {
  return {{"S", std::move(value)}};
}
json::object number(std::int64_t value) {
  return {{"N", std::to_string(value)}};
}

json::object row_of(int row) {
  return {
      {"Pk", text(stub_key(row))},
      {"desired_state", text("STARTED")},
      {"lease_expires_at_ms", number(0)},
      {"lease_epoch", number(7)},
      {"last_seq", number(123'456'789)},
      {"ws_url", text("wss://feed.example.com/stream/btc-usdt")},
      {"options", json::object{{"M", json::object{{"seq.pointer", text("/seq")}, {"resume.query", text("since")}}}}}};
}

std::int64_t number_in(const json::object& typed) {
  return std::stoll(std::string(typed.at("N").as_string()));
}

/// Rows that change as they are told to, whatever the condition: the bench has one worker.
class Rows {
 public:
  explicit Rows(int count) {
    for (int i = 0; i < count; ++i) rows_.emplace(stub_key(i), row_of(i));
  }

  std::string answer(std::string_view operation, std::string_view body) {
    const json::object request = json::parse(body).as_object();
    if (operation == "UpdateItem") return answer_of(update(request));
    if (operation == "Query") return answer_of(query(request));
    return answer_of(R"({"__type":"com.amazon.coral.service#UnknownOperationException"})", "400 Bad Request");
  }

 private:
  std::string update(const json::object& request) {
    const std::string key(request.at("Key").at("Pk").at("S").as_string());
    json::object& row = rows_.try_emplace(key, json::object{{"Pk", text(key)}}).first->second;
    const json::object& names = request.at("ExpressionAttributeNames").as_object();
    const json::object& values = request.at("ExpressionAttributeValues").as_object();
    // "SET #0 = :0, #1 = :1 REMOVE #2, #3": as the store writes it.
    std::istringstream words{std::string(request.at("UpdateExpression").as_string())};
    bool removes = false;
    for (std::string word; words >> word;) {
      if (word == "SET" || word == "REMOVE") {
        removes = word == "REMOVE";
        continue;
      }
      if (word.back() == ',') word.pop_back();
      const std::string name(names.at(word).as_string());
      if (removes) {
        row.erase(name);
        continue;
      }
      std::string value;
      words >> value >> value;  // "=" and then the value
      if (value.back() == ',') value.pop_back();
      row[name] = values.at(value);
    }
    return R"({"Attributes":)" + json::serialize(row) + std::string(consumed);
  }

  /// A page of the index: in the order of the keys, which a page's token may be any place in.
  [[nodiscard]] std::string query(const json::object& request) const {
    const json::object& values = request.at("ExpressionAttributeValues").as_object();
    const std::string condition(request.at("KeyConditionExpression").as_string());
    const auto limit = static_cast<std::size_t>(request.at("Limit").to_number<std::int64_t>());
    const bool only_due = condition.find("#1 <= :1") != std::string::npos;
    const json::value* after = request.if_contains("ExclusiveStartKey");
    auto next = after == nullptr ? rows_.begin() : rows_.upper_bound(key_in(after->as_object()));
    json::array found;
    for (; next != rows_.end() && found.size() < limit; ++next) {
      const json::object& row = next->second;
      if (!only_due || row.at("desired_state") != values.at(":0")) continue;
      if (number_in(row.at("lease_expires_at_ms").as_object()) <= number_in(values.at(":1").as_object()))
        found.push_back(row);
    }
    json::object answer{{"Count", found.size()}, {"ScannedCount", found.size()}};
    if (found.size() == limit) answer["LastEvaluatedKey"] = place_of(found.back().as_object());
    answer["Items"] = std::move(found);
    return json::serialize(answer);
  }

  static std::string key_in(const json::object& item) { return std::string(item.at("Pk").at("S").as_string()); }
  static json::object place_of(const json::object& row) {
    return {{"Pk", row.at("Pk")},
            {"desired_state", row.at("desired_state")},
            {"lease_expires_at_ms", row.at("lease_expires_at_ms")}};
  }

  std::map<std::string, json::object> rows_;
};

class Server {
 public:
  Server(int listener, DynamoDbStub::Kind kind, int rows)
      : listener_(listener), epoll_(::epoll_create1(EPOLL_CLOEXEC)), kind_(kind), rows_(rows) {
    json::object row = row_of(0);
    row["lease_owner"] = text("worker-7f3a#0a1b2c3d");
    row["lease_attempt"] = text("0123456789abcdef0123456789abcdef");
    row["lease_renewal"] = number(41);
    row["lease_expires_at_ms"] = number(1'700'000'000'000);
    canned_ = answer_of(R"({"Attributes":)" + json::serialize(row) + std::string(consumed));
    watch(listener_);
  }

  [[noreturn]] void run() {
    std::array<epoll_event, 256> events{};
    for (;;) {
      const int ready = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), -1);
      for (int i = 0; i < ready; ++i) {
        const int socket = events[static_cast<std::size_t>(i)].data.fd;
        socket == listener_ ? accept() : serve(socket);
      }
    }
  }

 private:
  void watch(int socket) const {
    epoll_event event{.events = EPOLLIN, .data = {.fd = socket}};
    if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, socket, &event) != 0) throw std::runtime_error("epoll_ctl");
  }

  void accept() {
    const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) return;
    const int on = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    watch(socket);
  }

  void serve(int socket) {
    std::string& input = inputs_[socket];
    const ssize_t got = ::recv(socket, buffer_.data(), buffer_.size(), 0);
    if (got <= 0) {
      inputs_.erase(socket);
      ::close(socket);
      return;
    }
    input.append(buffer_.data(), static_cast<std::size_t>(got));
    while (answer_one(socket, input)) {
    }
  }

  /// False where the next request is not all there yet.
  bool answer_one(int socket, std::string& input) {
    const std::size_t head = input.find("\r\n\r\n");
    if (head == std::string::npos) return false;
    const std::size_t length = std::stoul(header(input, "content-length", head));
    if (input.size() < head + 4 + length) return false;
    if (kind_ == DynamoDbStub::Kind::canned) {
      send(socket, canned_);
    } else {
      const std::string target = header(input, "x-amz-target", head);
      const std::string_view body = std::string_view(input).substr(head + 4, length);
      send(socket, rows_.answer(std::string_view(target).substr(target.find('.') + 1), body));
    }
    input.erase(0, head + 4 + length);
    return true;
  }

  /// `name` in lower case. The clients write names each in their own way.
  static std::string header(const std::string& input, std::string_view name, std::size_t end) {
    for (std::size_t at = input.find("\r\n"); at < end; at = input.find("\r\n", at + 2)) {
      const std::size_t begin = at + 2;
      if (input.size() <= begin + name.size() || input[begin + name.size()] != ':') continue;
      bool same = true;
      for (std::size_t i = 0; i < name.size() && same; ++i) {
        const char c = input[begin + i];
        same = (c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c) == name[i];
      }
      if (!same) continue;
      std::size_t value = begin + name.size() + 1;
      while (input[value] == ' ') ++value;
      return input.substr(value, input.find("\r\n", value) - value);
    }
    throw std::runtime_error("a request without " + std::string(name));
  }

  static void send(int socket, const std::string& answer) {
    // Small enough for the socket's buffer: nobody here reads slowly.
    if (::send(socket, answer.data(), answer.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(answer.size())) {
      ::shutdown(socket, SHUT_RDWR);
    }
  }

  const int listener_;
  const int epoll_;
  const DynamoDbStub::Kind kind_;
  Rows rows_;
  std::string canned_;
  std::array<char, 1 << 16> buffer_{};
  std::map<int, std::string> inputs_;
};

}  // namespace

std::string stub_key(int number) {
  return "CONN#stream-" + std::to_string(number);
}

DynamoDbStub::DynamoDbStub(Kind kind, int rows) {
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  if (listener < 0 || ::bind(listener, reinterpret_cast<const sockaddr*>(&address), length) != 0 ||
      ::listen(listener, 1024) != 0 || ::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    throw std::system_error(errno, std::generic_category(), "no port for the stub");
  }
  port_ = ntohs(address.sin_port);
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (pid_ > 0) {
    ::close(listener);
    return;
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  try {
    Server(listener, kind, rows).run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "the DynamoDB stub: %s\n", error.what());
    ::_exit(1);
  }
}

DynamoDbStub::~DynamoDbStub() {
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

double DynamoDbStub::cpu_s() const {
  std::ifstream schedule("/proc/" + std::to_string(pid_) + "/schedstat");
  double ns = 0;
  if (!(schedule >> ns)) throw std::runtime_error("the DynamoDB stub has ended");
  return ns / 1e9;
}

}  // namespace holdfast::bench
