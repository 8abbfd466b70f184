#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace holdfast::worker {

/// A text from outside, fit for a row, a log and a terminal: valid UTF-8 (what is not becomes U+FFFD), cut between
/// two characters at `bytes_max`, control characters and line breaks (C0, C1, U+2028, U+2029) as spaces, without
/// marks that change the direction of writing.
///
/// Whatever goes into a row for people goes by here: a store refuses a whole write for one bad byte in it.
[[nodiscard]] std::string one_line(std::string_view text, std::size_t bytes_max);

}  // namespace holdfast::worker
