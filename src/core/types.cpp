#include "holdfast/types.hpp"

#include <array>

#include "core/hexadecimal.hpp"

namespace holdfast {

std::string Attempt::to_string() const {
  std::array<unsigned char, 16> bytes{};
  for (unsigned i = 0; i < 8; ++i) {
    bytes[7 - i] = static_cast<unsigned char>(high >> (8 * i));
    bytes[15 - i] = static_cast<unsigned char>(low >> (8 * i));
  }
  std::string text;
  text.reserve(32);
  append_hexadecimal(bytes, text);
  return text;
}

}  // namespace holdfast
