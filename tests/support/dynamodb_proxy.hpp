#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/spawn.hpp"

namespace holdfast::test {

/// What the proxy does to a request. Whether the server hears of it decides what may be said of a write (S5).
enum class DynamoDbFault {
  pass,                ///< nothing: takes a request out of the reach of later rules
  drop_request,        ///< never forwarded, never answered; the connection stays
  drop_reply,          ///< done by the server, never answered; the connection stays
  delay_request,       ///< forwarded `seconds` later, even if the client has left meanwhile
  delay_reply,         ///< done at once, answered `seconds` later
  hold_request,        ///< forwarded at release(), even if the client has left meanwhile
  hold_reply,          ///< done at once, answered at release()
  cut_before_request,  ///< read, never forwarded, the connection reset
  cut_after_request,   ///< forwarded, the connection reset before there is an answer
  cut_after_reply,     ///< done by the server, the connection reset instead of the answer
  status_500,          ///< InternalServerError, never forwarded
  status_503,          ///< never forwarded; a body that is no JSON
  status_500_after,    ///< InternalServerError, but the server has done it
  throttle,            ///< ProvisionedThroughputExceededException, never forwarded
  error,               ///< an error of your own (`status`, `type`, `message`), never forwarded
  garbage,             ///< done; status 200 and a body that is no JSON (its checksum is right)
  no_http,             ///< done; bytes that are no HTTP, then the end
  half_body,           ///< done; the head, half the body, then the end
  wrong_crc,           ///< done; the answer with a checksum that is not its own
  unprocessed,         ///< of BatchGetItem: about half of the keys come back as UnprocessedKeys
};
[[nodiscard]] std::string_view to_string(DynamoDbFault fault);
/// All of them, in the order above.
[[nodiscard]] std::vector<DynamoDbFault> all_dynamodb_faults();
/// Whether the server does what a request asks that was harmed so (for the delayed ones: sooner or later).
[[nodiscard]] bool reaches_server(DynamoDbFault fault);

/// Stands between a client and a DynamoDB server, in a process of its own (tests/peers/dynamodb_proxy.py), and harms
/// the requests that it is told to. Blocks while it obeys. Not thread-safe.
class DynamoDbProxy {
 public:
  /// A request is harmed by the first rule that wants it.
  struct Rule {
    DynamoDbFault fault = DynamoDbFault::pass;
    std::string operation = "*";  ///< "UpdateItem"; any
    std::string contains{};       ///< text of the body, as a key; any
    int skip = 0;                 ///< so many go by first
    int times = 1;                ///< so many are harmed; 0: without end
    double seconds = 0;           ///< of a delay
    int status = 400;             ///< of an error of your own
    std::string type{};           ///< of it: "AccessDeniedException"
    std::string message = "made by a test";
  };
  struct Counts {
    std::map<std::string, int> seen;       ///< requests by operation
    std::map<std::string, int> forwarded;  ///< those of them that the server was given
    std::map<std::string, int> answered;   ///< and those that it has answered, or ended
    std::map<std::string, int> faults;     ///< by to_string(fault)
    int held = 0;                          ///< that wait for release() now
  };

  /// Before the server on this port. Throws std::runtime_error with what is missing where it cannot be started.
  explicit DynamoDbProxy(std::uint16_t upstream_port);
  ~DynamoDbProxy();
  DynamoDbProxy(const DynamoDbProxy&) = delete;
  DynamoDbProxy& operator=(const DynamoDbProxy&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] std::string endpoint() const { return "http://127.0.0.1:" + std::to_string(port_); }

  void plan(const Rule& rule);       ///< behind those that are there
  void clear();                      ///< forgets the rules; what is held or delayed stays so
  void release();                    ///< lets go what is held
  void refuse_connections(bool on);  ///< nobody listens, and those that are there are reset
  void cut_connections();
  [[nodiscard]] Counts counts();

 private:
  std::string order(const std::string& line);

  runtime::Child child_;
  std::uint16_t port_ = 0;
  int control_ = -1;
};

}  // namespace holdfast::test
