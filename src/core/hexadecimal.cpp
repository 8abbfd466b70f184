#include "core/hexadecimal.hpp"

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

}  // namespace holdfast
