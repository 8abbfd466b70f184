#include "runtime/http.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace holdfast::runtime {
namespace {

constexpr std::array<std::string_view, 12> months = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
constexpr std::array<std::string_view, 7> weekdays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};

char lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

/// The number that exactly these digits say.
std::optional<unsigned> digits(std::string_view text) {
  unsigned number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

const std::string* find_header(const std::vector<HttpHeader>& headers, std::string_view name) {
  const auto same = [](char left, char right) { return lower(left) == lower(right); };
  for (const HttpHeader& header : headers) {
    if (std::equal(header.name.begin(), header.name.end(), name.begin(), name.end(), same)) return &header.value;
  }
  return nullptr;
}

std::optional<WallTime> parse_http_date(std::string_view text) {
  // Sun, 06 Nov 1994 08:49:37 GMT
  if (text.size() != 29 || text.substr(3, 2) != ", " || text[7] != ' ' || text[11] != ' ' || text[16] != ' ' ||
      text[19] != ':' || text[22] != ':' || text.substr(25) != " GMT") {
    return std::nullopt;
  }
  const auto month = std::find(months.begin(), months.end(), text.substr(8, 3));
  const auto day = digits(text.substr(5, 2)), year = digits(text.substr(12, 4)), hours = digits(text.substr(17, 2)),
             minutes = digits(text.substr(20, 2)), seconds = digits(text.substr(23, 2));
  if (month == months.end() || !day || !year || !hours || !minutes || !seconds) return std::nullopt;
  if (*hours > 23 || *minutes > 59 || *seconds > 60) return std::nullopt;  // 60: a leap second
  const std::chrono::year_month_day date(std::chrono::year(static_cast<int>(*year)),
                                         std::chrono::month(static_cast<unsigned>(month - months.begin()) + 1),
                                         std::chrono::day(*day));
  if (!date.ok()) return std::nullopt;
  return std::chrono::sys_days(date) + std::chrono::hours(*hours) + std::chrono::minutes(*minutes) +
         std::chrono::seconds(*seconds);
}

std::string write_http_date(WallTime time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(std::chrono::floor<std::chrono::seconds>(time - day));
  const auto two = [](auto number) { return (number < 10 ? "0" : "") + std::to_string(number); };
  return std::string(weekdays[std::chrono::weekday(day).c_encoding()]) + ", " +
         two(static_cast<unsigned>(date.day())) + ' ' + std::string(months[static_cast<unsigned>(date.month()) - 1]) +
         ' ' + std::to_string(static_cast<int>(date.year())) + ' ' + two(clock.hours().count()) + ':' +
         two(clock.minutes().count()) + ':' + two(clock.seconds().count()) + " GMT";
}

}  // namespace holdfast::runtime
