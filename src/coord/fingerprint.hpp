#pragma once
#include <string>
#include <string_view>

namespace holdfast::coord {

/// Of an input to `once`: SHA-256 in hexadecimal digits, in a name space of its own. JSON is brought into one form
/// first (members by name, no blanks, whole numbers without a fraction), so that the same document written otherwise
/// is the same input; what is no JSON counts byte by byte.
[[nodiscard]] std::string fingerprint_of(std::string_view input);

}  // namespace holdfast::coord
