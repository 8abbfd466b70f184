#include "core/utf8.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace holdfast {

namespace {

/// How many bytes at the beginning are surely ASCII, looked at eight at a time: mostly all of them.
std::size_t ascii_prefix(std::string_view text) {
  constexpr std::uint64_t high_bits = 0x8080808080808080U;
  std::size_t at = 0;
  for (; text.size() - at >= sizeof(std::uint64_t); at += sizeof(std::uint64_t)) {
    std::uint64_t eight = 0;
    std::memcpy(&eight, text.data() + at, sizeof eight);
    if ((eight & high_bits) != 0) break;
  }
  return at;
}

}  // namespace

bool is_utf8(std::string_view text) {
  std::size_t at = ascii_prefix(text);
  const auto byte = [&](std::size_t index) -> unsigned {
    return index < text.size() ? static_cast<unsigned char>(text[index]) : 0U;
  };
  const auto follows = [&](std::size_t index) { return (byte(index) & 0xc0U) == 0x80U; };
  while (at < text.size()) {
    const unsigned first = byte(at);
    if (first < 0x80) {
      ++at;
    } else if (first >= 0xc2 && first <= 0xdf && follows(at + 1)) {
      at += 2;
    } else if ((first & 0xf0U) == 0xe0U && follows(at + 1) && follows(at + 2)) {
      if (first == 0xe0 && byte(at + 1) < 0xa0) return false;   // overlong
      if (first == 0xed && byte(at + 1) >= 0xa0) return false;  // surrogate
      at += 3;
    } else if (first >= 0xf0 && first <= 0xf4 && follows(at + 1) && follows(at + 2) && follows(at + 3)) {
      if (first == 0xf0 && byte(at + 1) < 0x90) return false;   // overlong
      if (first == 0xf4 && byte(at + 1) >= 0x90) return false;  // above U+10FFFF
      at += 4;
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace holdfast
