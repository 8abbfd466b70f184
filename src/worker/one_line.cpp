#include "worker/one_line.hpp"

#include <algorithm>

namespace holdfast::worker {
namespace {

struct Character {
  char32_t code = 0;
  std::size_t bytes = 0;  // 0: no character of UTF-8 begins here
};

/// RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF.
Character first_of(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  if (first < 0x80) return {first, 1};
  const std::size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < bytes) return {};
  char32_t code = first & (0x7FU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xC0U) != 0x80) return {};
    code = code << 6U | (next & 0x3FU);
  }
  const bool overlong = (bytes == 3 && code < 0x800) || (bytes == 4 && code < 0x10000);
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (overlong || surrogate || code > 0x10FFFF) return {};
  return {code, bytes};
}

bool is_control(char32_t code) {
  return code < 0x20 || (code >= 0x7F && code <= 0x9F) || code == 0x2028 || code == 0x2029;
}

/// Text behind one of these can be made to look like other text.
bool changes_direction(char32_t code) {
  return code == 0x061C || code == 0x200E || code == 0x200F || (code >= 0x202A && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069);
}

bool is_plain(char character) {
  return character >= 0x20 && character < 0x7F;
}

}  // namespace

std::string one_line(std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max && std::ranges::all_of(text, is_plain)) return std::string(text);
  constexpr std::string_view replacement = "\xEF\xBF\xBD";
  std::string line;
  while (!text.empty()) {
    const Character character = first_of(text);
    std::string_view shown = text.substr(0, character.bytes);
    if (character.bytes == 0) {
      shown = replacement;
    } else if (is_control(character.code)) {
      shown = " ";
    } else if (changes_direction(character.code)) {
      shown = {};
    }
    if (line.size() + shown.size() > bytes_max) break;
    line += shown;
    text.remove_prefix(character.bytes == 0 ? 1 : character.bytes);
  }
  return line;
}

}  // namespace holdfast::worker
