#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/error.hpp"
#include "holdfast/types.hpp"
#include "runtime/http.hpp"
#include "runtime/listener.hpp"

namespace holdfast::runtime {

class AsioLoop;

/// A request as it arrived.
struct HttpIncoming {
  std::string method;  ///< as sent; HEAD too, whose answer's body the server leaves out
  std::string target;  ///< path and query, still encoded; "*" for OPTIONS only
  std::vector<HttpHeader> headers;
  std::string body;

  /// The value of the first header of that name, whatever its case; nothing where there is none.
  [[nodiscard]] const std::string* header(std::string_view name) const { return find_header(headers, name); }
};

/// A request that waits for its answer. Dropped without one, it is answered with 500. On the loop's thread.
class HttpExchange {
 public:
  virtual ~HttpExchange() = default;
  [[nodiscard]] virtual const HttpIncoming& request() const = 0;
  /// Once. `written` is told whether all of it was handed to the system: not that anybody read it. Content-Length,
  /// Date and Connection are the server's to set.
  virtual void answer(HttpAnswer answer, std::function<void(bool was_sent)> written = {}) = 0;
  /// Called at most once, before the answer: the other side will send nothing more, or was cut. Most often it is
  /// gone; one that has only closed its half can still be answered. Where it has sent something ahead, as the start
  /// of its next request, that takes a moment longer.
  virtual void on_hang_up(std::function<void()> called) = 0;
};

/// What one client may take, and all of them together. The product of `requests_max` and `body_bytes_max` is the
/// most that bodies can occupy.
struct HttpServerLimits {
  std::size_t header_bytes_max = 16 << 10;  ///< request line and headers
  std::size_t body_bytes_max = 1 << 20;
  std::size_t connections_max = 1024;         ///< above it the one that was idle for longest makes room
  std::size_t requests_max = 256;             ///< admitted, and their answer not taken yet; above it: 503
  Duration idle = std::chrono::seconds(60);   ///< between two requests
  Duration head = std::chrono::seconds(10);   ///< from the first byte of a request to the end of its headers
  Duration body = std::chrono::seconds(10);   ///< from there to its end
  Duration write = std::chrono::seconds(20);  ///< for the client to take the answer
};

struct HttpServerOptions {
  HttpServerLimits limits;
  /// Every request. Never before its body is there.
  std::function<void(std::shared_ptr<HttpExchange>)> serve;
  /// Asked when the headers are there, before any of the body is taken; an answer ends it there. Empty: all may.
  std::function<std::optional<HttpAnswer>(const HttpIncoming&)> admit;
  /// What the server itself refuses with: 400, 408, 413, 417, 431, 500, 501, 503, 505.
  std::function<HttpAnswer(int status, std::string_view why)> refuse;
};

/// HTTP/1.1 on a loop: keeps connections, answers in the order of the requests (one of each connection is under way
/// at a time), and holds every client to the limits. What two readers could read as different requests is refused
/// (RFC 9112, 6.3 and 11.2), and ends the connection. On the loop's thread.
class HttpServer {
 public:
  [[nodiscard]] static Result<std::unique_ptr<HttpServer>> open(AsioLoop& loop, const ListenAddress& address,
                                                                HttpServerOptions options);
  /// Cuts what is left.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  [[nodiscard]] const ListenAddress& address() const;  ///< with the port in use
  /// Takes no new connection and no new request. `done`: those under way are answered, or `limit` has passed and
  /// they were cut.
  void drain(Duration limit, std::function<void()> done);

  struct Counts {
    std::size_t connections = 0;  ///< now
    std::size_t requests = 0;     ///< now: admitted, and their answer not taken
    std::uint64_t served = 0;     ///< so far
    std::uint64_t refused = 0;    ///< so far, by the server itself
  };
  [[nodiscard]] Counts counts() const;

 private:
  class Impl;
  explicit HttpServer(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace holdfast::runtime
