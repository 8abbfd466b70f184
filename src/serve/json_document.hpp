#pragma once
#include <boost/json/value.hpp>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace holdfast::serve {

/// How deep a document may nest.
inline constexpr std::size_t depth_most = 16;

struct NoDocument {
  std::string why;
  std::string member;  ///< JSON pointer to where it is; empty: the document itself
};

/// Strictly: UTF-8, no member twice (which one counts would depend on the reader), no number beyond 64 bits, at most
/// depth_most levels.
[[nodiscard]] tl::expected<boost::json::value, NoDocument> parse_document(std::string_view text);

/// A member's name as a part of a JSON pointer (RFC 6901).
[[nodiscard]] std::string pointer_part(std::string_view name);

}  // namespace holdfast::serve
