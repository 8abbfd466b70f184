#pragma once
#include <cstdint>
#include <string_view>

namespace holdfast {

/// FNV-1a, then mixed: the same on every machine and in every run, which std::hash does not promise. Two texts that
/// are made for it can have the same.
[[nodiscard]] constexpr std::uint64_t stable_hash(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char character : text) {
    hash ^= static_cast<unsigned char>(character);
    hash *= 0x100000001b3U;
  }
  hash ^= hash >> 32U;
  hash *= 0xd6e8feb86659fd93U;
  return hash ^ (hash >> 32U);
}

}  // namespace holdfast
