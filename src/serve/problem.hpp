#pragma once
#include <string>
#include <string_view>

#include "core/coord/procedure.hpp"
#include "runtime/http.hpp"

namespace holdfast::serve {

/// What went wrong, as callers are told (RFC 9457). `code` is the word that programs decide by; docs/http.md lists
/// them.
struct Problem {
  int status = 500;
  std::string code;
  std::string detail;  ///< for people: what happened and what to do
  std::string member;  ///< of the request, as a JSON pointer; empty: none
};

/// What a coordinator's failure is over HTTP.
[[nodiscard]] Problem problem_of(const Failure& failure);
/// The one with this status that the server itself refuses with.
[[nodiscard]] Problem problem_of(int status, std::string_view why);
[[nodiscard]] Problem bad_request(std::string detail, std::string member = {});

/// application/problem+json. Where trying again can help, with Retry-After.
[[nodiscard]] runtime::HttpAnswer answer_of(const Problem& problem);

}  // namespace holdfast::serve
