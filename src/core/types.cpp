#include "holdfast/types.hpp"

namespace holdfast {

std::string Attempt::to_string() const {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text(32, '0');
  for (unsigned i = 0; i < 16; ++i) {
    text[15 - i] = digits[(high >> (4 * i)) & 15U];
    text[31 - i] = digits[(low >> (4 * i)) & 15U];
  }
  return text;
}

}  // namespace holdfast
