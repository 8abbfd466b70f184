#pragma once
#include <functional>
#include <string_view>

#include "holdfast/error.hpp"

namespace holdfast::runtime {

enum class LogLevel { debug, info, warning, error, off };

/// Code::usage for anything but debug, info, warning, error, off.
[[nodiscard]] Result<LogLevel> parse_log_level(std::string_view text);

/// Lines for the operator: few, one per change of state, never a secret. Any thread. Handed in to those that
/// speak; where the lines go is the maker's choice.
class Log {
 public:
  using Write = std::function<void(LogLevel level, std::string_view line)>;

  Log(LogLevel level, Write write);
  /// Time, level, line, on standard error.
  [[nodiscard]] static Log to_stderr(LogLevel level);
  [[nodiscard]] static Log nowhere() { return {LogLevel::off, nullptr}; }

  [[nodiscard]] bool enabled(LogLevel level) const { return level >= level_; }
  void debug(std::string_view line) { write(LogLevel::debug, line); }
  void info(std::string_view line) { write(LogLevel::info, line); }
  void warning(std::string_view line) { write(LogLevel::warning, line); }
  void error(std::string_view line) { write(LogLevel::error, line); }

 private:
  void write(LogLevel level, std::string_view line);

  LogLevel level_;
  Write write_;
};

}  // namespace holdfast::runtime
