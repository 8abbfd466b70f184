#pragma once
#include <string>
#include <string_view>

namespace holdfast::coord {

/// Of an input to `once`: SHA-256 in hexadecimal digits, in a name space of its own. JSON is brought into one form
/// first (members by name, no blanks, whole numbers without a fraction), so that the same document written otherwise
/// is the same input; what is no JSON counts byte by byte, and so does JSON that has a member twice or a number with
/// more digits than are kept: another one would have the same form.
[[nodiscard]] std::string fingerprint_of(std::string_view input);
/// Whether this is JSON of which nothing is lost when it is read, and so written anew without harm.
[[nodiscard]] bool is_all_kept(std::string_view document);

}  // namespace holdfast::coord
