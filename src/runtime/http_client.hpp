#pragma once
#include <memory>

#include "runtime/http.hpp"

namespace holdfast::runtime {

class AsioLoop;

struct HttpLimits {
  std::size_t connections_per_host = 64;  ///< in use at once; who comes later waits its turn
  std::size_t waiting_max = 20'000;       ///< waiting for a turn, all hosts together; more fail at once (not_sent)
  Duration connect_max = std::chrono::seconds(3);  ///< resolving, connecting and TLS together
  Duration idle_max = std::chrono::seconds(60);    ///< a connection that was idle for longer is not used again
  Duration connection_age_max = std::chrono::minutes(15);  ///< nor an older one: addresses change
  std::size_t answer_header_bytes_max = 64 << 10;
  std::string ca_file;  ///< PEM certificates to trust instead of the system's; empty: the system's
  std::string user_agent = "holdfast";
};

/// The usual ones, for requests to AWS: certificates from where AWS's own programs look for them (AWS_CA_BUNDLE).
[[nodiscard]] HttpLimits http_limits_for_aws();

struct HttpCounts {
  std::uint64_t requests = 0;     ///< that were given to a connection
  std::uint64_t connections = 0;  ///< that were opened
};

/// HTTP/1.1 over libcurl, driven by the loop: no thread of its own, but for the resolver's. Connections are kept and
/// used again. Certificates and host names are always verified. A proxy that the environment names (https_proxy,
/// no_proxy) is used, but never for addresses of this machine or its network (127.0.0.0/8, 169.254.0.0/16, ::1,
/// localhost): those are metadata services and tests.
///
/// On the loop's thread; the loop must outlive it. The process must ignore SIGPIPE (ignore_broken_pipes()). When it
/// is destroyed, connections are closed and the handlers of requests in flight do not run; a handler may destroy it.
class HttpClient final : public HttpTransport {
 public:
  /// Throws std::runtime_error where libcurl cannot be used.
  explicit HttpClient(AsioLoop& loop, HttpLimits limits = {});
  ~HttpClient() override;
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  RequestId send(HttpRequest request, Instant deadline, Handler handler) override;
  void cancel(RequestId request) override;

  [[nodiscard]] HttpCounts counts() const;

 private:
  class Engine;
  std::shared_ptr<Engine> engine_;
};

}  // namespace holdfast::runtime
