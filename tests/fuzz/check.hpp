#pragma once
#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace holdfast::fuzz {

/// A property that must hold; libFuzzer keeps the input where it does not.
inline void check(bool holds) {
  if (!holds) std::abort();
}

inline std::string_view as_text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

}  // namespace holdfast::fuzz
