#include "ws/utf8.hpp"

#include <simdjson.h>

#include <algorithm>
#include <cstring>

namespace holdfast::ws {
namespace {

/// How many bytes at the end of the text belong to a character that may go on behind it.
std::size_t open_end(std::string_view text) {
  const std::size_t reach = std::min<std::size_t>(text.size(), 3);
  for (std::size_t back = 1; back <= reach; ++back) {
    const auto byte = static_cast<std::uint8_t>(text[text.size() - back]);
    if (byte < 0x80) return back - 1;
    if (byte >= 0xC0) return back;
  }
  return 0;  // the end of a character of four bytes, or wrong: either way there is nothing to wait for
}

}  // namespace

bool valid_utf8(std::string_view text) {
  // Short ASCII, the most frequent message of all, is done before a call through simdjson's dispatch is.
  const char* at = text.data();
  std::size_t left = text.size();
  if (left <= 256) {
    std::uint64_t seen = 0;
    for (; left >= 8; left -= 8, at += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, at, 8);
      seen |= word;
    }
    for (; left > 0; --left, ++at) seen |= static_cast<std::uint64_t>(static_cast<std::uint8_t>(*at));
    if ((seen & 0x8080808080808080U) == 0) return true;
  }
  return simdjson::validate_utf8(text.data(), text.size());
}

bool Utf8Checker::step(std::uint8_t byte) {
  if (more_ > 0) {
    if (byte < low_ || byte > high_) return false;
    --more_;
    low_ = 0x80;
    high_ = 0xBF;
    return true;
  }
  if (byte < 0x80) return true;
  if (byte < 0xC2 || byte > 0xF4) return false;
  more_ = byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3;
  if (byte == 0xE0) low_ = 0xA0;   // overlong
  if (byte == 0xED) high_ = 0x9F;  // surrogates
  if (byte == 0xF0) low_ = 0x90;   // overlong
  if (byte == 0xF4) high_ = 0x8F;  // above U+10FFFF
  return true;
}

bool Utf8Checker::feed(std::string_view piece) {
  if (failed_) return false;
  while (more_ > 0 && !piece.empty()) {
    if (!step(static_cast<std::uint8_t>(piece.front()))) return !(failed_ = true);
    piece.remove_prefix(1);
  }
  const std::string_view tail = piece.substr(piece.size() - open_end(piece));
  piece.remove_suffix(tail.size());
  if (!valid_utf8(piece)) return !(failed_ = true);
  for (const char c : tail) {
    if (!step(static_cast<std::uint8_t>(c))) return !(failed_ = true);
  }
  return true;
}

}  // namespace holdfast::ws
