#pragma once
#include <string>

#include "core/coord/limits.hpp"
#include "holdfast/error.hpp"

namespace holdfast::coord {

/// That a time may be asked for; otherwise a sentence that begins with `what`, which says what may.
[[nodiscard]] Result<void> check_within(const std::string& what, Duration value, const Span& span);

}  // namespace holdfast::coord
