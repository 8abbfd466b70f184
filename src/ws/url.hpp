#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "holdfast/error.hpp"

namespace holdfast::ws {

/// A ws:// or wss:// URL (RFC 6455 section 3).
struct Url {
  bool secure = false;
  std::string host;  ///< without the brackets of an IPv6 address
  std::uint16_t port = 80;
  std::string target = "/";  ///< path and query, as it goes on the request line
  bool operator==(const Url&) const = default;

  /// As in the Host header: brackets around IPv6, the port where it is not the scheme's own.
  [[nodiscard]] std::string authority() const;
  [[nodiscard]] std::string to_string() const;
  /// With `name=value` added to the query, percent-encoded.
  [[nodiscard]] Url with_query(std::string_view name, std::string_view value) const;
};

/// Code::usage with what is wrong: scheme, user info, fragment, port, control characters, length (over 8 KiB).
[[nodiscard]] Result<Url> parse_url(std::string_view text);

}  // namespace holdfast::ws
