#include "coord/fingerprint.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <cmath>
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

/// Whether no number of it has lost digits in being read: what is past a double's or a 64-bit integer's digits would
/// equal others.
bool is_exact(const json::value& value) {
  if (const auto* object = value.if_object()) {
    return std::ranges::all_of(*object, [](const auto& member) { return is_exact(member.value()); });
  }
  if (const auto* array = value.if_array()) return std::ranges::all_of(*array, is_exact);
  const double* number = value.if_double();
  return number == nullptr || std::abs(*number) < exact_most;
}

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

std::string fingerprint_of(std::string_view input) {
  std::string text = "holdfast once 1\n";
  boost::system::error_code error;
  const json::value document = json::parse(json::string_view(input.data(), input.size()), error);
  if (error || !is_exact(document)) {
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
