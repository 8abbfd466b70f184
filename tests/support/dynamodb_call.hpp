#pragma once
#include <boost/json.hpp>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace holdfast::test {

/// What came back for one HTTP request, however little of it.
struct RawAnswer {
  int status = 0;                              ///< 0: not even a status line
  std::map<std::string, std::string> headers;  ///< names in lower case
  std::string body;                            ///< as far as it came
  bool complete = false;                       ///< all that Content-Length promises
  bool timed_out = false;                      ///< nothing more came within the limit; otherwise it was cut
};

/// One HTTP/1.1 request on a connection of its own, byte by byte and without any of the code that is being tested.
/// Blocks. `limit`: between two pieces of the answer. Throws std::runtime_error where it cannot connect.
[[nodiscard]] RawAnswer raw_http(std::uint16_t port, std::string_view request,
                                 std::chrono::milliseconds limit = std::chrono::seconds(60));

/// The text of a request for one operation of DynamoDB, signed by nobody: the servers of tests take any signature.
[[nodiscard]] std::string dynamodb_request(std::string_view operation, std::string_view body);

/// Calls one operation ("CreateTable") and gives its answer. Throws std::runtime_error with the server's words where
/// it is an error.
boost::json::object dynamodb_call(std::uint16_t port, std::string_view operation, const boost::json::object& body);

/// Creates the fleet's table as docs/architecture.md describes it, on demand, and waits for it and its index.
/// `key` is the name of the partition key; the index is over `state` and `expires` (no index where they are empty).
void create_fleet_table(std::uint16_t port, const std::string& table, const std::string& key = "Pk",
                        const std::string& state = "desired_state",
                        const std::string& expires = "lease_expires_at_ms");

}  // namespace holdfast::test
