#include "runtime/units.hpp"

#include <array>
#include <cstdlib>

namespace holdfast::runtime {

namespace {

struct Unit {
  std::string_view name;
  std::uint64_t scale;
};

constexpr std::array<Unit, 7> time_units{{{"d", 86'400'000'000'000},
                                          {"h", 3'600'000'000'000},
                                          {"m", 60'000'000'000},
                                          {"s", 1'000'000'000},
                                          {"ms", 1'000'000},
                                          {"us", 1'000},
                                          {"ns", 1}}};
constexpr std::array<Unit, 8> size_units{{{"B", 1},
                                          {"KiB", 1ULL << 10U},
                                          {"MiB", 1ULL << 20U},
                                          {"GiB", 1ULL << 30U},
                                          {"TiB", 1ULL << 40U},
                                          {"kB", 1'000},
                                          {"MB", 1'000'000},
                                          {"GB", 1'000'000'000}}};

// What the user typed, fit for one line of a message.
std::string quoted(std::string_view text) {
  std::string result = "'";
  for (const char c : text.substr(0, 40)) result += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
  return result + (text.size() > 40 ? "…'" : "'");
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

struct Number {
  std::uint64_t whole = 0;
  std::uint64_t fraction = 0;  // over fraction_scale
  std::uint64_t fraction_scale = 1;
  std::string_view rest;
  bool overflow = false;
};

// Digits, and up to nine more after a point. Nothing where there is no digit.
bool read_number(std::string_view text, Number& number) {
  std::size_t at = 0;
  for (; at < text.size() && is_digit(text[at]); ++at) {
    const auto digit = static_cast<std::uint64_t>(text[at] - '0');
    number.overflow = number.overflow || number.whole > (UINT64_MAX - digit) / 10;
    number.whole = number.whole * 10 + digit;
  }
  if (at == 0) return false;
  if (at + 1 < text.size() && text[at] == '.' && is_digit(text[at + 1])) {
    for (++at; at < text.size() && is_digit(text[at]); ++at) {
      if (number.fraction_scale == 1'000'000'000) continue;  // finer than any unit of ours
      number.fraction = number.fraction * 10 + static_cast<std::uint64_t>(text[at] - '0');
      number.fraction_scale *= 10;
    }
  }
  number.rest = text.substr(at);
  return true;
}

// whole.fraction × scale; false where that is more than `limit`.
bool scaled(const Number& number, std::uint64_t scale, std::uint64_t limit, std::uint64_t& result) {
  if (number.overflow || number.whole > limit / scale) return false;
  // Two steps keep the product within 64 bits: scale / fraction_scale may not be whole, but both are below 2^47.
  const auto part =
      static_cast<std::uint64_t>(static_cast<long double>(number.fraction) * static_cast<long double>(scale) /
                                 static_cast<long double>(number.fraction_scale));
  if (number.whole * scale > limit - part) return false;
  result = number.whole * scale + part;
  return true;
}

}  // namespace

Result<Duration> parse_duration(std::string_view text) {
  if (text == "0") return Duration::zero();
  const std::string shown = quoted(text);
  if (!text.empty() && text[0] == '-') return fail(Code::usage, shown + " is negative: a duration is not");
  Number number;
  if (!read_number(text, number)) {
    return fail(Code::usage, shown + " is no duration: write a number and a unit, such as 20s, 500ms or 1m");
  }
  if (number.rest.empty()) {
    return fail(Code::usage, shown + " has no unit: write " + std::string(text.substr(0, 20)) + "s or " +
                                 std::string(text.substr(0, 20)) + "ms");
  }
  for (const Unit& unit : time_units) {
    if (unit.name != number.rest) continue;
    std::uint64_t nanoseconds = 0;
    if (!scaled(number, unit.scale, INT64_MAX, nanoseconds)) {
      return fail(Code::usage, shown + " is too long: at most 106751d");
    }
    return Duration(static_cast<Duration::rep>(nanoseconds));
  }
  return fail(Code::usage, shown + " has an unknown unit: use ns, us, ms, s, m, h or d");
}

std::string write_duration(Duration duration) {
  const auto nanoseconds = duration.count();
  if (nanoseconds == 0) return "0s";
  for (const Unit& unit : time_units) {
    const auto scale = static_cast<Duration::rep>(unit.scale);
    if (nanoseconds % scale == 0) return std::to_string(nanoseconds / scale) + std::string(unit.name);
  }
  return std::to_string(nanoseconds) + "ns";
}

std::string describe_duration(Duration duration) {
  const auto milliseconds = std::abs(std::chrono::round<std::chrono::milliseconds>(duration).count());
  const auto rounded = [](std::int64_t value, std::int64_t unit) {
    return std::to_string((value + unit / 2) / unit);
  };
  if (milliseconds < 1'000) return std::to_string(milliseconds) + " ms";
  if (milliseconds < 119'500) return rounded(milliseconds, 1'000) + " s";
  if (milliseconds < 7'170'000) return rounded(milliseconds, 60'000) + " min";
  if (milliseconds < 172'000'000) return rounded(milliseconds, 3'600'000) + " h";
  return rounded(milliseconds, 86'400'000) + " days";
}

Result<std::uint64_t> parse_size(std::string_view text) {
  const std::string shown = quoted(text);
  if (!text.empty() && text[0] == '-') return fail(Code::usage, shown + " is negative: a size is not");
  Number number;
  if (!read_number(text, number)) {
    return fail(Code::usage, shown + " is no size: write a number and a unit, such as 64MiB or 512KiB");
  }
  const std::string_view name = number.rest.empty() ? "B" : number.rest;
  for (const Unit& unit : size_units) {
    if (unit.name != name) continue;
    std::uint64_t bytes = 0;
    if (!scaled(number, unit.scale, INT64_MAX, bytes)) return fail(Code::usage, shown + " is too large");
    return bytes;
  }
  return fail(Code::usage, shown + " has an unknown unit: use B, KiB, MiB, GiB, TiB, kB, MB or GB");
}

std::string write_size(std::uint64_t bytes) {
  const Unit* best = &size_units[0];
  for (const Unit& unit : size_units) {
    const bool binary = unit.name.ends_with("iB");
    if (binary && bytes > 0 && bytes % unit.scale == 0 && unit.scale > best->scale) best = &unit;
  }
  return std::to_string(bytes / best->scale) + std::string(best->name);
}

}  // namespace holdfast::runtime
