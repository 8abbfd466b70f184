#pragma once
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace holdfast {

/// What kind of thing went wrong: decides the exit code and whether trying again can help.
enum class Code {
  usage,        ///< the caller asked for something that makes no sense (exit code 2)
  not_found,    ///< a table, row, file or name that should be there is not
  denied,       ///< permission, read-only file, refused credentials
  unavailable,  ///< the other side is away or too slow; trying again later can help
  exhausted,    ///< disk, descriptors, memory or a limit of ours
  corrupt,      ///< data that is not what it should be
  internal,     ///< anything else
};

/// One failure, told to a person: what happened, where, and what to do about it. One line, no secrets.
struct Error {
  Code code = Code::internal;
  std::string detail;

  Error() = default;
  Error(Code code_, std::string detail_) : code(code_), detail(std::move(detail_)) {}
  bool operator==(const Error&) const = default;
};

template <class T>
using Result = tl::expected<T, Error>;

/// Shorthand for `return fail(Code::usage, "...")` from a function that returns Result<T>.
inline tl::unexpected<Error> fail(Code code, std::string detail) {
  return tl::unexpected<Error>(Error(code, std::move(detail)));
}

}  // namespace holdfast
