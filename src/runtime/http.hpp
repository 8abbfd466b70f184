#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "holdfast/types.hpp"

namespace holdfast::runtime {

struct HttpHeader {
  std::string name, value;
};
/// The value of the first of that name, whatever its case; nothing where there is none.
[[nodiscard]] const std::string* find_header(const std::vector<HttpHeader>& headers, std::string_view name);

/// What to sign a request with (AWS Signature Version 4). Never printed, and in no error.
struct AwsSigning {
  std::string access_key_id, secret_access_key;
  std::string session_token;  ///< of temporary credentials; empty: none
  std::string region, service;
  Duration clock_offset{};  ///< the server's clock minus ours: the signature is dated by the server's
};

struct HttpRequest {
  std::string method = "GET";
  std::string url;  ///< http:// or https://
  std::string body;
  std::vector<HttpHeader> headers;  ///< without Host and Content-Length
  std::optional<AwsSigning> signing;
  std::size_t answer_bytes_max = 16 << 20;  ///< a larger body is a failure
};

struct HttpAnswer {
  int status = 0;
  std::vector<HttpHeader> headers;
  std::string body;

  /// The value of the first header of that name, whatever its case; nothing where there is none.
  [[nodiscard]] const std::string* header(std::string_view name) const { return find_header(headers, name); }
};

/// How far a request got that has no answer: decides between throttled and unknown (S5).
enum class HttpStage {
  not_sent,  ///< surely no byte of it was given to a connection: it waited, or resolving, connecting or TLS failed
  sent,      ///< the server may have it
};

struct HttpFailure {
  HttpStage stage = HttpStage::sent;
  std::string detail;  ///< one line for people: what happened and with which host; no secret, nothing of the request
};
using HttpReply = tl::expected<HttpAnswer, HttpFailure>;

/// Who carries HTTP requests: HttpClient, or a test's fake. Everything on the loop's thread.
class HttpTransport {
 public:
  using RequestId = std::uint64_t;  ///< 0 is never a request
  using Handler = std::function<void(HttpReply)>;

  virtual ~HttpTransport() = default;

  /// The handler runs once, on the loop, never inside the call, soon after `deadline` at the latest. Redirects are
  /// answers like any other. A request is put on the wire at most once: what is given to a connection that then
  /// ends is a failure (HttpStage::sent), never repeated in silence.
  virtual RequestId send(HttpRequest request, Instant deadline, Handler handler) = 0;
  /// After it returns the handler will not run. No effect where it has. The server may still have the request.
  virtual void cancel(RequestId request) = 0;
};

/// The time that a Date header says (RFC 9110's preferred form, "Sun, 06 Nov 1994 08:49:37 GMT"). Nothing where it is
/// not one: an obsolete form, a day that does not exist.
[[nodiscard]] std::optional<WallTime> parse_http_date(std::string_view text);
[[nodiscard]] std::string write_http_date(WallTime time);

}  // namespace holdfast::runtime
