#include "cli/demo_view.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "cli/output.hpp"

namespace holdfast::cli {

namespace {

std::string seconds(Duration duration) {
  char text[32];
  std::snprintf(text, sizeof text, "%5.1f s", static_cast<double>(duration.count()) / 1e9);
  return text;
}

std::string repeated(std::string_view text, std::size_t count) {
  std::string result;
  for (std::size_t i = 0; i < count; ++i) result += text;
  return result;
}

}  // namespace

std::string with_commas(std::int64_t number) {
  std::string digits = std::to_string(number);
  const std::size_t first = digits[0] == '-' ? 1 : 0;
  for (std::size_t at = digits.size(); at > first + 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

std::vector<std::string> render_picture(const DemoPicture& picture, Duration since_start, std::size_t columns,
                                        bool colours) {
  std::size_t name_width = 0;
  for (const auto& worker : picture.workers) name_width = std::max(name_width, worker.name.size());
  const std::size_t room = columns > name_width + 24 ? columns - name_width - 24 : 10;
  const std::size_t per_block = (picture.connections + room - 1) / std::max<std::size_t>(room, 1);
  const std::size_t scale = std::max<std::size_t>(per_block, 1);

  std::vector<std::string> lines;
  std::string head = seconds(since_start) + "  " + with_commas(picture.delivered) + " messages delivered";
  if (picture.unowned > 0) {
    head += std::string(", ") + (colours ? "\x1b[31m" : "") + std::to_string(picture.unowned) +
            " connections without an owner" + (colours ? "\x1b[0m" : "");
  }
  lines.push_back(head);
  for (const auto& worker : picture.workers) {
    std::string line = "  " + worker.name + std::string(name_width - worker.name.size(), ' ') + "  ";
    const std::string bar = repeated("█", (worker.held + scale - 1) / scale);
    line += colours && !bar.empty() ? (worker.note.empty() ? "\x1b[32m" : "\x1b[33m") + bar + "\x1b[0m" : bar;
    if (!bar.empty()) line += ' ';
    if (worker.held > 0 || worker.note.empty()) line += std::to_string(worker.held);
    if (!worker.note.empty()) line += (worker.held > 0 ? " " : "") + worker.note;
    lines.push_back(line);
  }
  return lines;
}

void DemoView::write(const std::string& text) {
  if (where_ == Where::nowhere || text.empty()) return;
  std::FILE* file = where_ == Where::standard_output ? stdout : stderr;
  std::fwrite(text.data(), 1, text.size(), file);
  std::fflush(file);
}

std::string DemoView::erasure() {
  const std::size_t lines = std::exchange(drawn_, 0);
  return lines == 0 ? "" : "\x1b[" + std::to_string(lines) + "A\x1b[J";
}

void DemoView::clear() {
  write(erasure());
}

void DemoView::line(const std::string& words) {
  write(erasure() + words + '\n');
}

void DemoView::event(Duration since_start, const std::string& words) {
  line(seconds(since_start) + "  " + words);
}

void DemoView::picture(const DemoPicture& picture, Duration since_start) {
  if (!redraws_) return;
  const auto lines = render_picture(picture, since_start, columns_, colours_);
  std::string text = erasure();  // in one write with what follows, so that nothing flickers
  for (const std::string& each : lines) text += each + '\n';
  write(text);
  drawn_ = lines.size();
}

}  // namespace holdfast::cli
