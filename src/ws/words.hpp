#pragma once
#include <string>

#include "holdfast/types.hpp"

namespace holdfast::ws {

/// "5 s", "250 ms": a duration as an error message says it.
[[nodiscard]] inline std::string words(Duration duration) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  return ms % 1000 == 0 ? std::to_string(ms / 1000) + " s" : std::to_string(ms) + " ms";
}

}  // namespace holdfast::ws
