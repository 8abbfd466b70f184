#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace holdfast {

/// The two hexadecimal digits of a byte, in lower case.
constexpr std::array<char, 2> hexadecimal(unsigned char byte) {
  constexpr std::string_view digits = "0123456789abcdef";
  return {digits[byte >> 4U], digits[byte & 0xFU]};
}
/// Those of each byte in turn.
template <class Bytes>
void append_hexadecimal(const Bytes& bytes, std::string& out) {
  for (const auto byte : bytes) {
    const auto digits = hexadecimal(static_cast<unsigned char>(byte));
    out.append(digits.data(), digits.size());
  }
}

/// All but the unreserved characters of RFC 3986, and those of `plain`, as `%` and two digits in upper case.
[[nodiscard]] std::string percent_encoded(std::string_view text, std::string_view plain = {});
/// And back, whatever was encoded; nothing where a `%` is not followed by two digits.
[[nodiscard]] std::optional<std::string> percent_decoded(std::string_view text);

}  // namespace holdfast
