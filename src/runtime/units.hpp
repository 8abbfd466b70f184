#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "holdfast/error.hpp"
#include "holdfast/types.hpp"

namespace holdfast::runtime {

/// `20s`, `500ms`, `1.5s`, `250us`, `1m`, `2h`, `90d`: one number with one unit, and `0` alone. Code::usage says
/// what is wrong in a sentence that quotes the text.
[[nodiscard]] Result<Duration> parse_duration(std::string_view text);
/// The shortest text that parse_duration() reads back as the same: `20s`, `1500ms`.
[[nodiscard]] std::string write_duration(Duration duration);
/// For people: `12 s`, `340 ms`, `2 min`, `3 h`. Rounded; what is negative is shown without its sign.
[[nodiscard]] std::string describe_duration(Duration duration);

/// `64MiB`, `512KiB`, `1GiB`, `2MB` (decimal), `100B`, `100`. Code::usage as above.
[[nodiscard]] Result<std::uint64_t> parse_size(std::string_view text);
/// The shortest text that parse_size() reads back as the same: `64MiB`, `100B`.
[[nodiscard]] std::string write_size(std::uint64_t bytes);

}  // namespace holdfast::runtime
