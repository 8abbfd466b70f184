#include "support/dynamodb_call.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <thread>

namespace holdfast::test {
namespace {

using namespace std::chrono_literals;

class Connection {
 public:
  explicit Connection(std::uint16_t port) : descriptor_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
      const int error = errno;
      ::close(descriptor_);
      throw std::runtime_error("cannot connect to port " + std::to_string(port) + ": " + std::strerror(error));
    }
  }
  ~Connection() { ::close(descriptor_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t sent = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;  // what came back says the rest
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
  }

  /// Appends what came; false at the end of the connection and after the limit.
  bool receive(std::string& to, std::chrono::milliseconds limit, bool& timed_out) const {
    pollfd ready{descriptor_, POLLIN, 0};
    timed_out = ::poll(&ready, 1, static_cast<int>(limit.count())) == 0;
    if (timed_out) return false;
    std::array<char, 16384> bytes{};
    const ssize_t got = ::recv(descriptor_, bytes.data(), bytes.size(), 0);
    if (got <= 0) return false;
    to.append(bytes.data(), static_cast<std::size_t>(got));
    return true;
  }

 private:
  int descriptor_;
};

void read_head(std::string_view head, RawAnswer& answer) {
  if (head.starts_with("HTTP/1.1 ") && head.size() >= 12) answer.status = std::stoi(std::string(head.substr(9, 3)));
  std::size_t at = head.find("\r\n");
  while (at != std::string_view::npos && at + 2 < head.size()) {
    const std::size_t end = std::min(head.find("\r\n", at + 2), head.size());
    const std::string_view line = head.substr(at + 2, end - at - 2);
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos) {
      std::string name(line.substr(0, colon));
      std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      std::string_view value = line.substr(colon + 1);
      while (value.starts_with(' ')) value.remove_prefix(1);
      answer.headers[name] = value;
    }
    at = end == head.size() ? std::string_view::npos : end;
  }
}

}  // namespace

RawAnswer raw_http(std::uint16_t port, std::string_view request, std::chrono::milliseconds limit) {
  const Connection connection(port);
  connection.send(request);
  RawAnswer answer;
  std::string bytes;
  while (true) {
    const std::size_t head = bytes.find("\r\n\r\n");
    if (head != std::string::npos) {
      if (answer.headers.empty()) read_head(std::string_view(bytes).substr(0, head), answer);
      answer.body = bytes.substr(head + 4);
      const auto length = answer.headers.find("content-length");
      answer.complete = length != answer.headers.end() && answer.body.size() >= std::stoul(length->second);
      if (answer.complete) return answer;
    }
    if (!connection.receive(bytes, limit, answer.timed_out)) return answer;
  }
}

std::string dynamodb_request(std::string_view operation, std::string_view body) {
  std::string text = "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-amz-json-1.0\r\n";
  text += "X-Amz-Target: DynamoDB_20120810.";
  text += operation;
  text +=
      "\r\nX-Amz-Date: 20260101T000000Z\r\nAuthorization: AWS4-HMAC-SHA256 "
      "Credential=test/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0\r\n";
  text += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
  text += body;
  return text;
}

boost::json::object dynamodb_call(std::uint16_t port, std::string_view operation, const boost::json::object& body) {
  const RawAnswer answer = raw_http(port, dynamodb_request(operation, boost::json::serialize(body)));
  if (answer.status != 200 || !answer.complete) {
    throw std::runtime_error(std::string(operation) + " failed with " + std::to_string(answer.status) + ": " +
                             answer.body);
  }
  return boost::json::parse(answer.body).as_object();
}

void create_fleet_table(std::uint16_t port, const std::string& table, const std::string& key,
                        const std::string& state, const std::string& expires) {
  using boost::json::array;
  using boost::json::object;
  const auto attribute = [](const std::string& name, const char* type) {
    return object{{"AttributeName", name}, {"AttributeType", type}};
  };
  const auto part = [](const std::string& name, const char* kind) {
    return object{{"AttributeName", name}, {"KeyType", kind}};
  };
  object body{{"TableName", table},
              {"BillingMode", "PAY_PER_REQUEST"},
              {"AttributeDefinitions", array{attribute(key, "S")}},
              {"KeySchema", array{part(key, "HASH")}}};
  if (!state.empty()) {
    body["AttributeDefinitions"].as_array().push_back(attribute(state, "S"));
    body["AttributeDefinitions"].as_array().push_back(attribute(expires, "N"));
    body["GlobalSecondaryIndexes"] = array{object{{"IndexName", state + '-' + expires + "-index"},
                                                  {"KeySchema", array{part(state, "HASH"), part(expires, "RANGE")}},
                                                  {"Projection", object{{"ProjectionType", "ALL"}}}}};
  }
  dynamodb_call(port, "CreateTable", body);
  const auto active = [&] {
    const object answer = dynamodb_call(port, "DescribeTable", {{"TableName", table}});
    const object& described = answer.at("Table").as_object();
    if (described.at("TableStatus").as_string() != "ACTIVE") return false;
    const auto* indexes = described.if_contains("GlobalSecondaryIndexes");
    return indexes == nullptr || std::ranges::all_of(indexes->as_array(), [](const boost::json::value& index) {
             return index.at("IndexStatus").as_string() == "ACTIVE";
           });
  };
  const auto end = std::chrono::steady_clock::now() + 60s;
  while (!active()) {
    if (std::chrono::steady_clock::now() > end)
      throw std::runtime_error("table " + table + " does not become active");
    std::this_thread::sleep_for(10ms);
  }
}

}  // namespace holdfast::test
