#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "holdfast/error.hpp"
#include "holdfast/types.hpp"
#include "ws/url.hpp"

namespace holdfast::ws {

/// The opening handshake (RFC 6455 section 4) as text in and text out. Pure: randomness and time are handed in.

/// Sec-WebSocket-Key: 16 unpredictable bytes in base64.
[[nodiscard]] std::string make_key(const std::array<std::uint8_t, 16>& random);
/// The Sec-WebSocket-Accept that answers a key.
[[nodiscard]] std::string accept_for(std::string_view key);

using Headers = std::vector<std::pair<std::string, std::string>>;

/// The request, ready to be sent. Code::usage where a header name, value or subprotocol has characters that it
/// may not have, or a header is one that the handshake itself sets. Values are not repeated in errors: they may
/// be secrets.
[[nodiscard]] Result<std::string> make_request(const Url& url, const Headers& headers,
                                               const std::vector<std::string>& subprotocols, std::string_view key);

/// Seconds, or a date in any of HTTP's three forms (RFC 9110 section 5.6.7) seen from `now`; never below zero,
/// at most a year.
[[nodiscard]] std::optional<Duration> parse_retry_after(std::string_view value, WallTime now);

/// Reads the answer to the upgrade, cut anywhere.
class ResponseReader {
 public:
  enum class State : std::uint8_t {
    more,     ///< not whole yet
    open,     ///< 101 and all in order: subprotocol(), rest()
    refused,  ///< another status: status(), retry_after(), body()
    broken,   ///< not an answer that a WebSocket server gives: why()
  };

  /// `now` turns the date of a Retry-After header into a duration.
  ResponseReader(std::string_view key, std::vector<std::string> subprotocols, std::size_t header_bytes_max,
                 WallTime now);

  State feed(std::string_view bytes);
  /// Nothing more will come: the stream ended, or its time is up. Never `more`.
  State finish();
  [[nodiscard]] State state() const { return state_; }

  [[nodiscard]] const std::string& subprotocol() const { return subprotocol_; }
  /// What came after the header of a 101: the first bytes of the first frames.
  [[nodiscard]] std::string_view rest() const { return std::string_view(buffer_).substr(head_bytes_); }
  [[nodiscard]] int status() const { return status_; }
  [[nodiscard]] std::optional<Duration> retry_after() const { return retry_after_; }
  /// Up to 512 bytes of the body, valid UTF-8 without control characters.
  [[nodiscard]] const std::string& body() const { return body_; }
  [[nodiscard]] const std::string& why() const { return why_; }

 private:
  State broken(std::string why);
  State read_head(std::string_view head);
  bool read_status_line(std::string_view line);
  bool read_header(std::string_view line);
  bool read_upgrade_header(const std::string& name, std::string_view value);
  State judge();
  State read_body(bool ended);

  std::string accept_;
  std::vector<std::string> subprotocols_;
  std::size_t header_bytes_max_;
  WallTime now_;

  State state_ = State::more;
  std::string buffer_;
  std::size_t head_bytes_ = 0;  // 0: the head is not whole yet

  int status_ = 0;
  bool has_upgrade_ = false;
  bool has_connection_ = false;
  int accepts_ = 0;
  bool accept_matches_ = false;
  int subprotocol_headers_ = 0;
  std::string subprotocol_;
  std::string extensions_;
  bool chunked_ = false;
  std::optional<std::size_t> content_length_;
  std::optional<Duration> retry_after_;
  std::string body_;
  std::string why_;
};

}  // namespace holdfast::ws
