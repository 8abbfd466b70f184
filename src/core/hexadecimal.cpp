#include "core/hexadecimal.hpp"

#include <charconv>

namespace holdfast {

std::string percent_encoded(std::string_view text, std::string_view plain) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  const auto is_unreserved = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-._~").find(c) != std::string_view::npos;
  };
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (is_unreserved(c) || plain.find(c) != std::string_view::npos) {
      result += c;
    } else {
      result += {'%', digits[byte >> 4U], digits[byte & 0xFU]};
    }
  }
  return result;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded.push_back(text[i]);
      continue;
    }
    unsigned byte = 0;
    const char* const digits = text.data() + i + 1;
    if (i + 2 >= text.size() || std::from_chars(digits, digits + 2, byte, 16).ptr != digits + 2) return std::nullopt;
    decoded.push_back(static_cast<char>(byte));
    i += 2;
  }
  return decoded;
}

}  // namespace holdfast
