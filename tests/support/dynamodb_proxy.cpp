#include "support/dynamodb_proxy.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/json.hpp>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "support/places.hpp"

namespace holdfast::test {
namespace {

using Fault = DynamoDbFault;

constexpr std::array<std::pair<Fault, const char*>, 20> names{{
    {Fault::pass, "pass"},
    {Fault::drop_request, "drop_request"},
    {Fault::drop_reply, "drop_reply"},
    {Fault::delay_request, "delay_request"},
    {Fault::delay_reply, "delay_reply"},
    {Fault::hold_request, "hold_request"},
    {Fault::hold_reply, "hold_reply"},
    {Fault::cut_before_request, "cut_before_request"},
    {Fault::cut_after_request, "cut_after_request"},
    {Fault::cut_after_reply, "cut_after_reply"},
    {Fault::status_500, "status_500"},
    {Fault::status_503, "status_503"},
    {Fault::status_500_after, "status_500_after"},
    {Fault::throttle, "throttle"},
    {Fault::error, "error"},
    {Fault::garbage, "garbage"},
    {Fault::no_http, "no_http"},
    {Fault::half_body, "half_body"},
    {Fault::wrong_crc, "wrong_crc"},
    {Fault::unprocessed, "unprocessed"},
}};

std::map<std::string, int> counts_in(const boost::json::value& object) {
  std::map<std::string, int> counts;
  for (const auto& [name, count] : object.as_object()) counts[name] = count.to_number<int>();
  return counts;
}

int connect_to(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int descriptor = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::connect(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    ::close(descriptor);
    throw std::runtime_error("dynamodb_proxy.py takes no orders");
  }
  return descriptor;
}

}  // namespace

std::string_view to_string(DynamoDbFault fault) {
  for (const auto& [value, name] : names) {
    if (value == fault) return name;
  }
  return "?";
}

std::vector<DynamoDbFault> all_dynamodb_faults() {
  std::vector<DynamoDbFault> all;
  all.reserve(std::size(names));
  for (const auto& [value, name] : names) all.push_back(value);
  return all;
}

bool reaches_server(DynamoDbFault fault) {
  switch (fault) {
    case Fault::drop_request:
    case Fault::cut_before_request:
    case Fault::status_500:
    case Fault::status_503:
    case Fault::throttle:
    case Fault::error:
      return false;
    default:
      return true;
  }
}

DynamoDbProxy::DynamoDbProxy(std::uint16_t upstream_port) {
  const char* python = std::getenv("HOLDFAST_PYTHON");
  runtime::SpawnOptions options;
  options.arguments = {python != nullptr && *python != '\0' ? python : "/usr/bin/python3",
                       std::string(source_folder) + "/tests/peers/dynamodb_proxy.py", "--upstream",
                       std::to_string(upstream_port)};
  options.environment = {{"PYTHONDONTWRITEBYTECODE", "1"}};
  options.output = runtime::SpawnOptions::Output::pipe;
  options.dies_with_parent = true;
  Result<runtime::Child> child = runtime::spawn(options);
  if (!child) throw std::runtime_error(child.error().detail);
  child_ = std::move(*child);
  std::istringstream ports(child_.read_line(std::chrono::seconds(60)).value_or(""));
  std::uint16_t control = 0;
  if (!(ports >> port_ >> control)) {
    throw std::runtime_error("dynamodb_proxy.py did not start: see its message on standard error");
  }
  control_ = connect_to(control);
}

DynamoDbProxy::~DynamoDbProxy() {
  if (control_ >= 0) ::close(control_);
}

void DynamoDbProxy::plan(const Rule& rule) {
  const boost::json::object told{{"fault", to_string(rule.fault)},
                                 {"operation", rule.operation},
                                 {"contains", rule.contains},
                                 {"skip", rule.skip},
                                 {"times", rule.times},
                                 {"seconds", rule.seconds},
                                 {"status", rule.status},
                                 {"type", rule.type},
                                 {"message", rule.message}};
  order(boost::json::serialize(boost::json::object{{"do", "plan"}, {"rules", boost::json::array{told}}}));
}

void DynamoDbProxy::clear() {
  order(R"({"do":"clear"})");
}

void DynamoDbProxy::release() {
  order(R"({"do":"release"})");
}

void DynamoDbProxy::refuse_connections(bool on) {
  order(on ? R"({"do":"refuse","on":true})" : R"({"do":"refuse","on":false})");
}

void DynamoDbProxy::cut_connections() {
  order(R"({"do":"cut"})");
}

DynamoDbProxy::Counts DynamoDbProxy::counts() {
  const boost::json::value answer = boost::json::parse(order(R"({"do":"counts"})"));
  return {counts_in(answer.at("seen")), counts_in(answer.at("forwarded")), counts_in(answer.at("answered")),
          counts_in(answer.at("faults")), answer.at("held").to_number<int>()};
}

std::string DynamoDbProxy::order(const std::string& line) {
  const std::string bytes = line + '\n';
  if (::send(control_, bytes.data(), bytes.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(bytes.size())) {
    throw std::runtime_error("dynamodb_proxy.py has gone");
  }
  std::string answer;
  while (!answer.ends_with('\n')) {
    std::array<char, 4096> part{};
    const ssize_t got = ::recv(control_, part.data(), part.size(), 0);
    if (got <= 0) throw std::runtime_error("dynamodb_proxy.py has gone");
    answer.append(part.data(), static_cast<std::size_t>(got));
  }
  if (answer.starts_with(R"({"error")")) throw std::runtime_error("dynamodb_proxy.py refuses: " + answer);
  return answer;
}

}  // namespace holdfast::test
