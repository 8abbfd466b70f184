#pragma once
#include <cstdint>
#include <string_view>

namespace holdfast::ws {

/// Whether the whole text is UTF-8 (RFC 3629: no surrogates, no overlong forms, nothing above U+10FFFF).
[[nodiscard]] bool valid_utf8(std::string_view text);

/// The same check over a text that arrives in pieces cut anywhere. Fails at the first byte with which no
/// valid text can begin.
class Utf8Checker {
 public:
  /// False from the first wrong byte on.
  bool feed(std::string_view piece);
  /// Whether what was fed is a whole valid text: it does not end inside a character.
  [[nodiscard]] bool complete() const { return more_ == 0 && !failed_; }
  void reset() { *this = {}; }

 private:
  bool step(std::uint8_t byte);

  std::uint8_t more_ = 0;    // continuation bytes still to come
  std::uint8_t low_ = 0x80;  // range of the next one
  std::uint8_t high_ = 0xBF;
  bool failed_ = false;
};

}  // namespace holdfast::ws
