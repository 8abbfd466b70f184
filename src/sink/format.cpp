#include "sink/format.hpp"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <array>
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>

#include "core/hexadecimal.hpp"

namespace holdfast::sink {
namespace {

// What a byte becomes inside a JSON string: up to 6 bytes, and how many. 0: itself.
struct Escape {
  std::array<char, 7> text{};
  std::uint8_t length = 0;
};

constexpr std::array<Escape, 256> make_escapes() {
  std::array<Escape, 256> table{};
  for (unsigned char byte = 0; byte < 0x20; ++byte) {
    const auto digits = hexadecimal(byte);
    table[byte] = {{'\\', 'u', '0', '0', digits[0], digits[1]}, 6};
  }
  const auto shorthand = [&table](unsigned char byte, char letter) { table[byte] = {{'\\', letter}, 2}; };
  shorthand('"', '"');
  shorthand('\\', '\\');
  shorthand('\b', 'b');
  shorthand('\f', 'f');
  shorthand('\n', 'n');
  shorthand('\r', 'r');
  shorthand('\t', 't');
  return table;
}
constexpr std::array<Escape, 256> escapes = make_escapes();

constexpr std::size_t longest_escape = 6;
constexpr std::size_t slack = 32;  // stores of a whole register go this far past what counts

char* put_escaped(char byte, char* out) {
  const Escape& escape = escapes[static_cast<unsigned char>(byte)];
  if (escape.length == 0) {
    *out = byte;
    return out + 1;
  }
  std::memcpy(out, escape.text.data(), escape.text.size());
  return out + escape.length;
}

#if defined(__SSE2__)
// Sixteen bytes at a time while at least 32 are left: the second half is what makes over-reading safe.
// Runs between escapes are copied with one store each.
char* put_blocks(const char*& in, const char* end, char* out) {
  const __m128i quote = _mm_set1_epi8('"');
  const __m128i backslash = _mm_set1_epi8('\\');
  const __m128i last_control = _mm_set1_epi8(0x1F);
  while (end - in >= 32) {
    const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in));
    const __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(block, last_control), block);  // unsigned byte <= 0x1F
    const __m128i special =
        _mm_or_si128(control, _mm_or_si128(_mm_cmpeq_epi8(block, quote), _mm_cmpeq_epi8(block, backslash)));
    auto mask = static_cast<unsigned>(_mm_movemask_epi8(special));
    std::ptrdiff_t from = 0;
    while (mask != 0) {
      const auto at = static_cast<std::ptrdiff_t>(std::countr_zero(mask));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + from)));
      out = put_escaped(in[at], out + (at - from));
      from = at + 1;
      mask &= mask - 1;
    }
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + from)));
    out += 16 - from;
    in += 16;
  }
  return out;
}
#else
char* put_blocks(const char*&, const char*, char* out) {
  return out;
}
#endif

template <std::size_t N>
char* put(const char (&text)[N], char* out) {
  std::memcpy(out, text, N - 1);
  return out + N - 1;
}

constexpr std::size_t longest_number = 20;
char* put_number(std::int64_t number, char* out) {
  return std::to_chars(out, out + longest_number, number).ptr;
}

constexpr std::size_t fixed_bytes = 128;  // names, numbers and punctuation around the data, generously

}  // namespace

void append_escaped(std::string_view text, Bytes& out) {
  constexpr std::size_t slice = 4096;  // so that a large text does not reserve six times its size
  while (!text.empty()) {
    const std::string_view part = text.substr(0, slice);
    char* place = out.reserve(part.size() * longest_escape + slack);
    const char* in = part.data();
    const char* const end = in + part.size();
    place = put_blocks(in, end, place);
    while (in != end) place = put_escaped(*in++, place);
    out.commit(place);
    text.remove_prefix(part.size());
  }
}

void append_base64(std::string_view data, Bytes& out) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  char* place = out.reserve((data.size() + 2) / 3 * 4);
  const auto byte = [&data](std::size_t at) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(data[at]));
  };
  const auto put_digit = [&place, &digits](std::uint32_t bits) { *place++ = digits[bits & 63U]; };
  std::size_t at = 0;
  for (; at + 3 <= data.size(); at += 3) {
    const std::uint32_t bits = byte(at) << 16U | byte(at + 1) << 8U | byte(at + 2);
    put_digit(bits >> 18U);
    put_digit(bits >> 12U);
    put_digit(bits >> 6U);
    put_digit(bits);
  }
  if (const std::size_t left = data.size() - at; left > 0) {
    const std::uint32_t bits = byte(at) << 16U | (left == 2 ? byte(at + 1) << 8U : 0U);
    put_digit(bits >> 18U);
    put_digit(bits >> 12U);
    if (left == 2) put_digit(bits >> 6U);
    *place++ = '=';
    if (left == 1) *place++ = '=';
  }
  out.commit(place);
}

void Formatter::begin_connection(const Record& record) {
  connection_ = record.connection;
  epoch_ = record.epoch;
  Bytes escaped;
  append_escaped(record.connection, escaped);
  head_ = R"({"conn":")";
  head_ += escaped.view();
  head_ += R"(","epoch":)" + std::to_string(record.epoch.value) + ',';
}

void Formatter::append(const Record& record, Bytes& out) {
  if (record.epoch != epoch_ || record.connection != connection_) begin_connection(record);
  char* place = out.reserve(head_.size() + fixed_bytes);
  std::memcpy(place, head_.data(), head_.size());
  place += head_.size();
  const std::int64_t at_ms = record.at.time_since_epoch().count();

  if (record.kind == Record::Kind::gap) {
    place = put("\"gap\":[", place);
    place = put_number(record.seq, place);
    *place++ = ',';
    place = put_number(record.gap_to, place);
    place = put("],\"at_ms\":", place);
    place = put_number(at_ms, place);
    place = put("}\n", place);
    out.commit(place);
    return;
  }

  place = put("\"seq\":", place);
  place = record.seq == Record::no_seq ? put("null", place) : put_number(record.seq, place);
  place = put(",\"at_ms\":", place);
  place = put_number(at_ms, place);
  const bool binary = record.kind == Record::Kind::binary;
  place = binary ? put(",\"data_b64\":\"", place) : put(",\"data\":\"", place);
  out.commit(place);
  if (binary) {
    append_base64(record.data, out);
  } else {
    append_escaped(record.data, out);
  }
  place = out.reserve(4);
  place = put("\"}\n", place);
  out.commit(place);
}

}  // namespace holdfast::sink
