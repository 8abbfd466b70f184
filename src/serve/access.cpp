#include "serve/access.hpp"

#include <charconv>

namespace holdfast::serve {

namespace {

bool equal_ignoring_case(std::string_view left, std::string_view right) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  if (left.size() != right.size()) return false;
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (lower(left[i]) != lower(right[i])) return false;
  }
  return true;
}

/// localhost, 127.0.0.0/8 or [::1], with a port or without.
bool is_this_machine(std::string_view host) {
  const std::size_t colon = host.rfind(':');
  if (colon != std::string_view::npos && host.find(']', colon) == std::string_view::npos) {
    unsigned port = 0;
    const std::string_view digits = host.substr(colon + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    if (error != std::errc() || end != digits.data() + digits.size()) return false;
    host = host.substr(0, colon);
  }
  if (equal_ignoring_case(host, "localhost") || host == "[::1]") return true;
  return runtime::parse_listen_address(std::string(host) + ":1").has_value() && host.starts_with("127.");
}

}  // namespace

bool same_secret(std::string_view left, std::string_view right) {
  // The length of the secret may be told by the time; nothing else is.
  unsigned difference = left.size() == right.size() ? 0U : 1U;
  for (std::size_t i = 0; i < left.size(); ++i) {
    const char other = right.empty() ? '\0' : right[i % right.size()];
    difference |= static_cast<unsigned char>(left[i]) ^ static_cast<unsigned char>(other);
  }
  return difference == 0;
}

std::optional<Problem> Access::check(const runtime::HttpIncoming& request, bool is_public) const {
  if (token_.empty()) {
    const std::string* host = request.header("host");
    if (is_unix_ || host == nullptr || is_this_machine(*host)) return std::nullopt;
    return Problem{
        421, "wrong_host", "Without a token this server answers to localhost, 127.0.0.1 and [::1] only.", {}};
  }
  if (is_public) return std::nullopt;
  constexpr std::string_view scheme = "bearer ";
  const std::string* said = request.header("authorization");
  const std::string_view given = said == nullptr ? std::string_view() : *said;
  if (given.size() > scheme.size() && equal_ignoring_case(given.substr(0, scheme.size()), scheme) &&
      same_secret(given.substr(scheme.size()), token_)) {
    return std::nullopt;
  }
  return Problem{
      401, "unauthorized", "This needs the header 'Authorization: Bearer TOKEN', with this server's token.", {}};
}

}  // namespace holdfast::serve
