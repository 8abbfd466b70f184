#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "runtime/http_server.hpp"
#include "serve/problem.hpp"

namespace holdfast::serve {

/// Who may ask. With a token: who has it. Without one, which is for loopback and Unix sockets only: who means this
/// machine by the name in Host, so that no web page can have a browser ask in its place (DNS rebinding).
class Access {
 public:
  /// `token` empty: none is needed. `is_unix`: any Host will do.
  Access(std::string token, bool is_unix) : token_(std::move(token)), is_unix_(is_unix) {}

  /// The problem with it; nothing: it may pass. `is_public`: no token is asked for.
  [[nodiscard]] std::optional<Problem> check(const runtime::HttpIncoming& request, bool is_public) const;

 private:
  const std::string token_;  // never shown
  const bool is_unix_;
};

/// Whether both are the same, in a time that says nothing about where they differ.
[[nodiscard]] bool same_secret(std::string_view left, std::string_view right);

}  // namespace holdfast::serve
