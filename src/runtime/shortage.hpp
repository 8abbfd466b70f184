#pragma once
#include <exception>
#include <optional>

#include "holdfast/error.hpp"

namespace holdfast::runtime {

/// What was thrown because the machine or a limit set for this process ran out: descriptors, memory, threads. Told in
/// words that say what to raise (Code::exhausted). Nothing where it is something else.
[[nodiscard]] std::optional<Error> shortage(const std::exception& thrown);

}  // namespace holdfast::runtime
