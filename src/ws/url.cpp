#include "ws/url.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "core/hexadecimal.hpp"

namespace holdfast::ws {
namespace {

constexpr std::size_t url_bytes_max = 8192;

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool is_alphanumeric(char c) {
  return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z');
}

/// The host without the text of the URL behind it. Empty: not a host.
Result<std::string> check_host(std::string_view host, bool bracketed) {
  if (host.empty()) return fail(Code::usage, "the URL has no host");
  const std::string text(host);
  if (bracketed) {
    std::array<unsigned char, sizeof(in6_addr)> address{};
    if (inet_pton(AF_INET6, text.c_str(), address.data()) != 1) {
      return fail(Code::usage, "'" + text + "' is not an IPv6 address");
    }
  } else {
    for (const char c : host) {
      if (static_cast<unsigned char>(c) >= 0x80) {
        return fail(Code::usage, "the host has characters outside ASCII: write it in its xn-- form");
      }
      if (!is_alphanumeric(c) && c != '-' && c != '.' && c != '_') {
        return fail(Code::usage, std::string("a host cannot have the character '") + c + "'");
      }
    }
  }
  if (host.size() > 255) return fail(Code::usage, "the host is longer than 255 characters");
  std::string result(host);
  std::transform(result.begin(), result.end(), result.begin(), lower);
  return result;
}

Result<std::uint16_t> check_port(std::string_view text) {
  unsigned value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value == 0 || value > 65535) {
    return fail(Code::usage, "'" + std::string(text) + "' is not a port (1 to 65535)");
  }
  return static_cast<std::uint16_t>(value);
}

std::optional<Error> check_characters(std::string_view text) {
  if (text.size() > url_bytes_max) return Error(Code::usage, "the URL is longer than 8 KiB");
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) return Error(Code::usage, "the URL has a control character in it");
    if (byte == ' ') return Error(Code::usage, "the URL has a space in it: write %20");
    if (byte >= 0x80) return Error(Code::usage, "the URL has characters outside ASCII: percent-encode them");
  }
  if (text.find('#') != std::string_view::npos) {
    return Error(Code::usage, "a WebSocket URL has no fragment (RFC 6455 section 3): write # as %23");
  }
  return std::nullopt;
}

}  // namespace

std::string Url::authority() const {
  std::string result = host.find(':') == std::string::npos ? host : "[" + host + "]";
  if (port != (secure ? 443 : 80)) result += ":" + std::to_string(port);
  return result;
}

std::string Url::to_string() const {
  return (secure ? "wss://" : "ws://") + authority() + target;
}

Url Url::with_query(std::string_view name, std::string_view value) const {
  Url result = *this;
  if (target.find('?') == std::string::npos) {
    result.target += '?';
  } else if (target.back() != '?' && target.back() != '&') {
    result.target += '&';
  }
  result.target += percent_encoded(name) + "=" + percent_encoded(value);
  return result;
}

Result<Url> parse_url(std::string_view text) {
  if (auto error = check_characters(text)) return tl::unexpected(std::move(*error));

  const std::size_t scheme_end = text.find("://");
  if (scheme_end == std::string_view::npos) {
    return fail(Code::usage, "a WebSocket URL starts with ws:// or wss://");
  }
  std::string scheme(text.substr(0, scheme_end));
  std::transform(scheme.begin(), scheme.end(), scheme.begin(), lower);
  if (scheme != "ws" && scheme != "wss") {
    return fail(Code::usage, "the scheme is '" + scheme + "': a WebSocket URL starts with ws:// or wss://");
  }
  Url url;
  url.secure = scheme == "wss";
  url.port = url.secure ? 443 : 80;

  const std::string_view rest = text.substr(scheme_end + 3);
  const std::size_t authority_end = std::min(rest.find_first_of("/?"), rest.size());
  const std::string_view authority = rest.substr(0, authority_end);
  const std::string_view target = rest.substr(authority_end);
  if (authority.find('@') != std::string_view::npos) {
    return fail(Code::usage, "the URL has a user name in it: give credentials as a header instead");
  }

  const bool bracketed = authority.starts_with('[');
  std::string_view port;
  std::string_view host = authority;
  if (bracketed) {
    const std::size_t close = authority.find(']');
    if (close == std::string_view::npos) return fail(Code::usage, "the URL has a [ without its ]");
    host = authority.substr(1, close - 1);
    port = authority.substr(close + 1);
    if (!port.empty() && port.front() != ':') return fail(Code::usage, "after ] comes a port or the path");
  } else {
    const std::size_t colon = authority.find(':');
    if (colon != std::string_view::npos && authority.find(':', colon + 1) != std::string_view::npos) {
      return fail(Code::usage, "an IPv6 address goes into brackets: ws://[::1]:8080/");
    }
    host = authority.substr(0, colon);
    if (colon != std::string_view::npos) port = authority.substr(colon);
  }
  auto checked = check_host(host, bracketed);
  if (!checked) return tl::unexpected(std::move(checked.error()));
  url.host = std::move(*checked);
  if (port.size() > 1) {  // "host:" means the scheme's own port
    const auto number = check_port(port.substr(1));
    if (!number) return tl::unexpected(number.error());
    url.port = *number;
  }
  url.target = target.starts_with('/') ? std::string(target) : "/" + std::string(target);
  return url;
}

}  // namespace holdfast::ws
