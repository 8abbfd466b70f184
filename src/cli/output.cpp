#include "cli/output.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "holdfast/assert.hpp"
#include "runtime/broken_pipes.hpp"
#include "runtime/signals.hpp"

namespace holdfast::cli {

namespace {

constexpr std::size_t cell_most = 200;  // characters, as of a name of ours: what others wrote may be of any length

std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

// At most so many characters, the last of them an ellipsis where something was left out.
std::string cut_to(std::string_view text, std::size_t characters) {
  if (width(text) <= characters) return std::string(text);
  std::size_t at = 0;
  for (std::size_t seen = 0; at < text.size(); ++at) {
    const bool begins = (static_cast<unsigned char>(text[at]) & 0xC0U) != 0x80U;
    if (begins && seen++ == characters - 1) break;
  }
  return std::string(text.substr(0, at)) + "…";
}

// Whether the set that begins after `[` holds the character; `end` becomes the place after `]`. npos: no set.
bool in_set(std::string_view pattern, std::size_t begin, char c, std::size_t& end) {
  std::size_t at = begin;
  const bool negated = at < pattern.size() && pattern[at] == '!';
  if (negated) ++at;
  bool found = false;
  for (bool first = true; at < pattern.size() && (first || pattern[at] != ']'); first = false) {
    const char low = pattern[at];
    char high = low;
    if (at + 2 < pattern.size() && pattern[at + 1] == '-' && pattern[at + 2] != ']') {
      high = pattern[at + 2];
      at += 2;
    }
    ++at;
    found = found || (low <= c && c <= high);
  }
  end = at < pattern.size() ? at + 1 : std::string_view::npos;
  return found != negated;
}

// Matches one character of the text; `next` is where the pattern goes on.
bool matches_one(std::string_view pattern, std::size_t at, char c, std::size_t& next) {
  next = at + 1;
  if (pattern[at] == '?') return true;
  if (pattern[at] == '[') {
    std::size_t end = 0;
    const bool found = in_set(pattern, at + 1, c, end);
    if (end != std::string_view::npos) {
      next = end;
      return found;
    }
  }
  return pattern[at] == c;
}

}  // namespace

Result<void> print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return {};
  if (errno == EPIPE) runtime::end_by_broken_pipe();  // `conn ls | head`: whoever reads has seen enough
  return fail(Code::exhausted, std::string("cannot write to standard output: ") + std::strerror(errno));
}

void tell(std::string_view line) {
  const std::string text = std::string(line) + '\n';
  const runtime::BrokenPipesHeld held;  // the exit code says it all the same
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void complain(std::string_view line) {
  tell("holdfast: " + one_line(line));
}

void complain_of_damaged(const std::vector<std::string>& rows) {
  for (const std::string& row : rows)
    complain("left out, since it is damaged: " + row + " ('holdfast doctor' tells more)");
}

std::string one_line(std::string_view text) {
  std::string result;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    result += byte < 0x20 || byte == 0x7F ? ' ' : c;
  }
  while (!result.empty() && result.back() == ' ') result.pop_back();
  return result;
}

void Table::add(std::vector<std::string> cells) {
  HOLDFAST_ASSERT(cells.size() == columns_.size(), "a table's row has a cell for each column");
  for (std::string& cell : cells) cell = one_line(cell);
  for (std::size_t i = 0; i + 1 < cells.size(); ++i) cells[i] = cut_to(cells[i], cell_most);
  rows_.push_back(std::move(cells));
}

std::string Table::render(std::size_t columns_max) const {
  constexpr std::size_t last_least = 20;
  std::vector<std::size_t> widths;
  for (const Column& column : columns_) widths.push_back(width(column.title));
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width(row[i]));
  }
  auto rows = rows_;
  if (columns_max != 0) {
    std::size_t others = 2 * (widths.size() - 1);
    for (std::size_t i = 0; i + 1 < widths.size(); ++i) others += widths[i];
    const std::size_t room = std::max(last_least, columns_max - std::min(others, columns_max));
    for (auto& row : rows) row.back() = cut_to(row.back(), room);
    widths.back() = std::min(widths.back(), room);
  }
  std::string text;
  const auto line = [&](const auto& cell) {
    std::string made;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::string& content = cell(i);
      const std::string fill(widths[i] - width(content), ' ');
      if (i > 0) made += "  ";
      made += columns_[i].align == Align::right ? fill + content : content + fill;
    }
    while (!made.empty() && made.back() == ' ') made.pop_back();
    text += made + '\n';
  };
  line([&](std::size_t i) -> const std::string& { return columns_[i].title; });
  for (const auto& row : rows) line([&](std::size_t i) -> const std::string& { return row[i]; });
  return text;
}

std::chrono::milliseconds time_until(WallTime time, WallTime now) {
  constexpr std::chrono::milliseconds most = std::chrono::hours(24 * 365 * 200);
  return std::clamp(time, now - most, now + most) - now;
}

bool is_glob(std::string_view pattern) {
  return pattern.find_first_of("*?[") != std::string_view::npos;
}

bool glob_matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;  // the last star, and where in the text its run ends for now
  std::size_t run_end = 0;
  while (t < text.size()) {
    std::size_t next = 0;
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      run_end = t;
    } else if (p < pattern.size() && matches_one(pattern, p, text[t], next)) {
      p = next;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++run_end;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

}  // namespace holdfast::cli
