#include "coord/fingerprint.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/hexadecimal.hpp"
#include "holdfast/assert.hpp"

namespace holdfast::coord {

namespace {

namespace json = boost::json;

constexpr double exact_most = 9007199254740992;  // 2^53: whole numbers up to here are exact in a double

void append_canonical(const json::value& value, std::string& out);

// ---- What a document says that its reading does not ----

std::size_t members_of(const json::value& value) {
  std::size_t count = 0;
  if (const auto* object = value.if_object()) {
    count = object->size();
    for (const auto& member : *object) count += members_of(member.value());
  } else if (const auto* array = value.if_array()) {
    for (const json::value& each : *array) count += members_of(each);
  }
  return count;
}

/// A number as digits without zeros at either end, and the power of ten of the last: however it was written.
struct Decimal {
  std::string digits;
  std::int64_t exponent = 0;
  bool operator==(const Decimal&) const = default;
};

std::optional<Decimal> decimal_of(std::string_view number) {
  Decimal decimal;
  const std::size_t mark = std::min(number.find_first_of("eE"), number.size());
  if (mark < number.size()) {
    std::string_view power = number.substr(mark + 1);
    if (power.starts_with('+')) power.remove_prefix(1);
    const auto [end, error] = std::from_chars(power.data(), power.data() + power.size(), decimal.exponent);
    if (error != std::errc{} || std::abs(decimal.exponent) > 1'000'000) return std::nullopt;
  }
  bool is_fraction = false;
  for (const char c : number.substr(0, mark)) {
    if (c == '.') {
      is_fraction = true;
    } else if (c >= '0' && c <= '9') {
      if (c != '0' || !decimal.digits.empty()) decimal.digits += c;
      decimal.exponent -= is_fraction ? 1 : 0;
    }
  }
  while (decimal.digits.ends_with('0')) {
    decimal.digits.pop_back();
    ++decimal.exponent;
  }
  if (decimal.digits.empty()) decimal.exponent = 0;
  return decimal;
}

/// Whether a double, or a whole number of 64 bits, is this very number, as digits go.
bool is_kept(std::string_view number) {
  std::int64_t whole = 0;
  std::uint64_t natural = 0;
  const char* const end = number.data() + number.size();
  if (const auto read = std::from_chars(number.data(), end, whole); read.ec == std::errc{} && read.ptr == end)
    return true;
  if (const auto read = std::from_chars(number.data(), end, natural); read.ec == std::errc{} && read.ptr == end) {
    return true;
  }
  double value = 0;
  if (std::from_chars(number.data(), end, value).ec != std::errc{}) return false;
  char shortest[64];
  const auto [last, error] =
      std::to_chars(shortest, shortest + sizeof shortest, value, std::chars_format::scientific);
  if (error != std::errc{}) return false;
  const auto written = decimal_of(number);
  return written && written == decimal_of(std::string_view(shortest, static_cast<std::size_t>(last - shortest)));
}

/// Of a document that can be read: all of its numbers are kept, and no member stands twice, of which one would be
/// lost.
bool is_all_kept(std::string_view text, const json::value& document) {
  std::size_t members = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '"') {
      for (++at; at < text.size() && text[at] != '"'; ++at) at += text[at] == '\\' ? 1 : 0;
    } else if (text[at] == ':') {
      ++members;
    } else if (text[at] == '-' || (text[at] >= '0' && text[at] <= '9')) {
      const std::size_t end = std::min(text.find_first_not_of("0123456789+-.eE", at), text.size());
      if (!is_kept(text.substr(at, end - at))) return false;
      at = end - 1;
    }
  }
  return members == members_of(document);
}

// ---- One form ----

void append_object(const json::object& object, std::string& out) {
  std::vector<const json::key_value_pair*> members;
  for (const auto& member : object) members.push_back(&member);
  std::ranges::sort(members, {}, [](const auto* member) { return std::string_view(member->key()); });
  char before = '{';
  for (const auto* member : members) {
    out += std::exchange(before, ',');
    out += json::serialize(json::string_view(member->key()));
    out += ':';
    append_canonical(member->value(), out);
  }
  out += members.empty() ? "{}" : "}";
}

void append_array(const json::array& array, std::string& out) {
  char before = '[';
  for (const json::value& each : array) {
    out += std::exchange(before, ',');
    append_canonical(each, out);
  }
  out += array.empty() ? "[]" : "]";
}

/// Parsing bounds the depth, so this ends.
void append_canonical(const json::value& value, std::string& out) {
  if (const auto* object = value.if_object()) return append_object(*object, out);
  if (const auto* array = value.if_array()) return append_array(*array, out);
  const double* number = value.if_double();
  if (number != nullptr && std::trunc(*number) == *number && std::abs(*number) <= exact_most) {
    out += std::to_string(static_cast<std::int64_t>(*number));
    return;
  }
  out += json::serialize(value);
}

}  // namespace

bool is_all_kept(std::string_view document) {
  boost::system::error_code error;
  json::parse_options options;
  options.max_depth = 256;
  const json::value read = json::parse(json::string_view(document.data(), document.size()), error, {}, options);
  return !error && is_all_kept(document, read);
}

std::string fingerprint_of(std::string_view input) {
  std::string text = "holdfast once 1\n";
  boost::system::error_code error;
  const json::value document = json::parse(json::string_view(input.data(), input.size()), error);
  if (error || !is_all_kept(input, document)) {
    text += "bytes\n";
    text += input;
  } else {
    text += "json\n";
    append_canonical(document, text);
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  const int done = EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr);
  HOLDFAST_ASSERT(done == 1 && size == 32, "OpenSSL has SHA-256");
  std::string digits;
  append_hexadecimal(std::span(digest).first(size), digits);
  return digits;
}

}  // namespace holdfast::coord
