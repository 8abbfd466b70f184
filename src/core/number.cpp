#include "core/number.hpp"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <system_error>
#include <variant>

namespace holdfast {

namespace {

/// Above, a float is no longer the number that was meant: it has no room for the last digits.
constexpr double exact_up_to = 9007199254740992.0;  // 2^53
constexpr std::size_t shown_bytes_max = 40;

std::optional<std::int64_t> digits(const std::string& text) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, number);
  if (text.empty() || problem != std::errc() || rest != end) return std::nullopt;
  return number;
}

/// For one line: no control characters, not endless.
std::string shown(const std::string& text) {
  std::string result = text.substr(0, shown_bytes_max);
  for (char& c : result) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  }
  return text.size() > shown_bytes_max ? result + "..." : result;
}

std::string plain(double number) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.17g", number);
  return buffer;
}

struct Describer {
  std::string operator()(std::nullptr_t) const { return "null"; }
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(std::int64_t value) const { return "the number " + std::to_string(value); }
  std::string operator()(double value) const { return "the float " + plain(value); }
  std::string operator()(const std::string& value) const { return "a text: " + shown(value); }
  std::string operator()(const Value::List&) const { return "a list"; }
  std::string operator()(const Value::Map&) const { return "a map"; }
  std::string operator()(const Value::Unreadable& value) const { return value.what; }
};

}  // namespace

std::optional<std::int64_t> whole_number(const Value& value, Fraction fraction) {
  if (const std::int64_t* number = value.as_int()) return *number;
  if (const std::string* text = value.as_string()) return digits(*text);
  const double* number = std::get_if<double>(&value.data());
  if (number == nullptr || !std::isfinite(*number) || std::abs(*number) > exact_up_to) return std::nullopt;
  const double whole = std::ceil(*number);
  if (fraction == Fraction::refused && whole != *number) return std::nullopt;
  return static_cast<std::int64_t>(whole);
}

bool is_absent(const Value* value) {
  return value == nullptr || std::holds_alternative<std::nullptr_t>(value->data());
}

std::string describe(const Value& value) {
  return std::visit(Describer(), value.data());
}

std::optional<std::int64_t> last_seq_of(const Row& row) {
  const Value* value = row.find(attribute::last_seq);
  return is_absent(value) ? 0 : whole_number(*value);
}

}  // namespace holdfast
