#include "ws/http_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <optional>

#include "ws/handshake.hpp"
#include "ws/utf8.hpp"

namespace holdfast::ws {
namespace http {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c > 0x20 && c < 0x7F && std::string_view("\"(),/:;<=>?@[\\]{}").find(c) == std::string_view::npos;
  });
}

bool has_token(std::string_view list, std::string_view token) {
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    if (lower(trim(list.substr(0, comma))) == token) return true;
    if (comma == std::string_view::npos) return false;
    list.remove_prefix(comma + 1);
  }
  return false;
}

std::string harmless(std::string_view text, std::size_t bytes_max) {
  text = text.substr(0, bytes_max);
  // A character cut in two at the end is dropped, it does not make the rest unreadable.
  std::size_t size = text.size();
  for (std::size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if (byte < 0xC0) continue;
    const std::size_t needed = byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
    if (needed > back) size -= back;
    break;
  }
  const bool readable = valid_utf8(text.substr(0, size));
  std::string result(readable ? text.substr(0, size) : text);
  for (char& c : result) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) c = ' ';
    if (byte >= 0x80 && !readable) c = '?';
  }
  return result;
}

bool unchunk(std::string_view raw, std::string& body) {
  while (!raw.empty()) {
    const std::size_t line_end = raw.find("\r\n");
    if (line_end == std::string_view::npos) return raw.size() > 1024;
    std::size_t size = 0;
    const auto [end, error] = std::from_chars(raw.data(), raw.data() + line_end, size, 16);
    if (error != std::errc() || end == raw.data() || size == 0) return true;
    raw.remove_prefix(line_end + 2);
    body.append(raw.substr(0, size));
    if (raw.size() < size + 2) return false;
    raw.remove_prefix(size + 2);
  }
  return false;
}

}  // namespace http

namespace {

constexpr Duration retry_after_max = std::chrono::hours(24 * 365);

std::optional<int> number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

std::optional<unsigned> month(std::string_view text) {
  constexpr std::array<std::string_view, 12> names = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const auto* found = std::find(names.begin(), names.end(), text);
  if (found == names.end()) return std::nullopt;
  return static_cast<unsigned>(found - names.begin()) + 1;
}

/// The words of a date: "Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37
/// 1994".
std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty() && words.size() < 9) {
    const std::size_t start = text.find_first_not_of(" ,-:");
    if (start == std::string_view::npos) break;
    text.remove_prefix(start);
    const std::size_t end = std::min(text.find_first_of(" ,-:"), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return words;
}

std::optional<WallTime> parse_date(std::string_view text, WallTime now) {
  const std::vector<std::string_view> words = words_of(text);
  if (words.size() < 7) return std::nullopt;
  // asctime's form has the month before the day and the year at the end.
  const bool asctime = words.size() == 7;
  const auto day = number(words[asctime ? 2 : 1]);
  const auto the_month = month(words[asctime ? 1 : 2]);
  auto year = number(words[asctime ? 6 : 3]);
  const std::size_t clock = asctime ? 3 : 4;
  const auto hour = number(words[clock]);
  const auto minute = number(words[clock + 1]);
  const auto second = number(words[clock + 2]);
  if (!asctime && words[7] != "GMT") return std::nullopt;
  if (!day || !the_month || !year || !hour || !minute || !second) return std::nullopt;
  if (*hour > 23 || *minute > 59 || *second > 60) return std::nullopt;
  if (!asctime && words[3].size() == 2) {
    // RFC 9110: two digits that seem more than 50 years ahead are of the century before.
    const std::chrono::year_month_day today(std::chrono::floor<std::chrono::days>(now));
    const int this_year = static_cast<int>(today.year());
    *year += this_year - this_year % 100;
    if (*year > this_year + 50) *year -= 100;
  }
  const std::chrono::year_month_day date{std::chrono::year(*year), std::chrono::month(*the_month),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (*year > 9999 || !date.ok()) return std::nullopt;
  return std::chrono::sys_days(date) + std::chrono::hours(*hour) + std::chrono::minutes(*minute) +
         std::chrono::seconds(*second);
}

}  // namespace

std::optional<Duration> parse_retry_after(std::string_view value, WallTime now) {
  value = http::trim(value);
  const bool digits =
      !value.empty() && std::all_of(value.begin(), value.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (digits) {
    const auto seconds = value.size() > 9 ? std::optional(999'999'999) : number(value);
    return std::min<Duration>(std::chrono::seconds(*seconds), retry_after_max);
  }
  const auto date = parse_date(value, now);
  if (!date) return std::nullopt;
  const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(retry_after_max);
  return std::clamp<std::chrono::milliseconds>(*date - now, std::chrono::milliseconds(0), limit);
}

}  // namespace holdfast::ws
