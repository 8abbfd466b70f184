#include "store/dynamodb/number.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <system_error>

#include "store/json.hpp"

namespace holdfast::store::dynamodb {

namespace {

constexpr std::int64_t second_ms = 1000;
constexpr int int64_digits = 19;
constexpr int exponent_max = 100'000;  // far beyond DynamoDB's, and no sum of two of them overflows
constexpr std::size_t shown_digits_max = 60;

/// digits * 10^exponent, with neither leading nor trailing zeros: two are equal where their parts are. Zero: no
/// digits.
struct Decimal {
  bool negative = false;
  std::string digits;
  int exponent = 0;
  bool operator==(const Decimal&) const = default;

  [[nodiscard]] bool is_whole() const { return exponent >= 0; }
  /// How many digits stand before the point.
  [[nodiscard]] int magnitude() const { return static_cast<int>(digits.size()) + exponent; }
};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Cuts the exponent off the text.
std::optional<int> take_exponent(std::string_view& text) {
  const std::size_t e = text.find_first_of("eE");
  if (e == std::string_view::npos) return 0;
  std::string_view exponent = text.substr(e + 1);
  text = text.substr(0, e);
  if (exponent.starts_with('+')) exponent.remove_prefix(1);
  int value = 0;
  const char* const end = exponent.data() + exponent.size();
  const auto [rest, problem] = std::from_chars(exponent.data(), end, value);
  if (problem != std::errc() || rest != end || value > exponent_max || value < -exponent_max) return std::nullopt;
  return value;
}

std::optional<Decimal> parse(std::string_view text) {
  Decimal decimal;
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) {
    decimal.negative = text.front() == '-';
    text.remove_prefix(1);
  }
  const auto exponent = take_exponent(text);
  if (!exponent || text.size() > static_cast<std::size_t>(exponent_max)) return std::nullopt;
  decimal.exponent = *exponent;
  bool point = false;
  std::size_t digits = 0;
  for (const char c : text) {
    if (c == '.' && !point) {
      point = true;
      continue;
    }
    if (!is_digit(c)) return std::nullopt;
    ++digits;
    if (point) --decimal.exponent;
    if (c != '0' || !decimal.digits.empty()) decimal.digits.push_back(c);
  }
  if (digits == 0) return std::nullopt;
  while (decimal.digits.ends_with('0')) {
    decimal.digits.pop_back();
    ++decimal.exponent;
  }
  if (decimal.digits.empty()) return Decimal();
  return decimal;
}

/// The whole number, if it fits.
std::optional<std::int64_t> whole(bool negative, std::string_view digits) {
  const std::string text = (negative ? "-" : "") + std::string(digits);
  std::int64_t number = 0;
  const auto [rest, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  return problem == std::errc() ? std::optional(number) : std::nullopt;
}

std::optional<std::int64_t> as_int64(const Decimal& decimal) {
  if (!decimal.is_whole() || decimal.magnitude() > int64_digits) return std::nullopt;
  if (decimal.digits.empty()) return 0;
  return whole(decimal.negative, decimal.digits + std::string(static_cast<std::size_t>(decimal.exponent), '0'));
}

/// Rounded up; the nearer end of 64 bits where it lies beyond.
std::int64_t round_up(const Decimal& decimal) {
  const std::int64_t end = decimal.negative ? INT64_MIN : INT64_MAX;
  if (decimal.magnitude() > int64_digits) return end;
  if (decimal.is_whole()) return as_int64(decimal).value_or(end);
  const int before_point = std::max(decimal.magnitude(), 0);
  const std::string_view digits = std::string_view(decimal.digits).substr(0, static_cast<std::size_t>(before_point));
  const auto cut = digits.empty() ? std::optional<std::int64_t>(0) : whole(decimal.negative, digits);
  if (!cut || *cut == INT64_MAX) return cut.value_or(end);
  return decimal.negative ? *cut : *cut + 1;
}

/// A number of milliseconds in the table's unit, exactly.
std::string in_unit(std::int64_t ms, ExpiryUnit unit) {
  std::string text = std::to_string(ms);
  if (unit == ExpiryUnit::milliseconds || ms == 0) return text;
  const bool negative = ms < 0;
  if (negative) text.erase(0, 1);
  if (text.size() < 4) text.insert(0, 4 - text.size(), '0');
  text.insert(text.size() - 3, 1, '.');
  while (text.ends_with('0')) text.pop_back();
  if (text.ends_with('.')) text.pop_back();
  return negative ? "-" + text : text;
}

}  // namespace

Value value_from_number(std::string_view text) {
  const auto decimal = parse(text);
  const auto unreadable = [&](std::string_view why) {
    return Value(Value::Unreadable{std::string(why).append(std::string(text.substr(0, shown_digits_max)))});
  };
  if (!decimal) return unreadable("a number that is none: ");
  if (const auto number = as_int64(*decimal)) return *number;
  const bool plus = text.starts_with('+');
  const std::string_view digits = plus ? text.substr(1) : text;
  double number = 0;
  const auto problem = std::from_chars(digits.data(), digits.data() + digits.size(), number).ec;
  std::string shortest;
  if (problem == std::errc()) write_json(number, shortest);
  if (problem == std::errc() && parse(shortest) == decimal) return number;
  return unreadable("a number that needs more than 64 bits: ");
}

std::optional<std::int64_t> expiry_from_number(std::string_view text, ExpiryUnit unit) {
  auto decimal = parse(text);
  if (!decimal) return std::nullopt;
  if (unit == ExpiryUnit::milliseconds) return round_up(*decimal);
  if (!decimal->digits.empty()) decimal->exponent += 3;
  const std::int64_t ms = round_up(*decimal);
  if (ms <= 0) return ms;
  return ms > INT64_MAX - second_ms ? INT64_MAX : ms + second_ms;
}

std::string number_from_expiry(std::int64_t ms, ExpiryUnit unit) {
  if (unit == ExpiryUnit::milliseconds) return std::to_string(ms);
  return std::to_string(ms / second_ms + (ms % second_ms > 0 ? 1 : 0));
}

std::string highest_number_within(std::int64_t ms, ExpiryUnit unit) {
  if (unit == ExpiryUnit::seconds && ms > 0) ms = std::max(ms - second_ms, std::int64_t{0});
  return in_unit(ms, unit);
}

}  // namespace holdfast::store::dynamodb
