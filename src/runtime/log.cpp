#include "runtime/log.hpp"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_color_sinks.h>

#include <memory>
#include <string>
#include <utility>

namespace holdfast::runtime {
namespace {

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warning:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
    case LogLevel::off:
      break;
  }
  return spdlog::level::off;
}

}  // namespace

Result<LogLevel> parse_log_level(std::string_view text) {
  if (text == "debug") return LogLevel::debug;
  if (text == "info") return LogLevel::info;
  if (text == "warning") return LogLevel::warning;
  if (text == "error") return LogLevel::error;
  if (text == "off") return LogLevel::off;
  return fail(Code::usage,
              "no log level is called '" + std::string(text) + "'; say debug, info, warning, error or off");
}

Log::Log(LogLevel level, Write write) : level_(level), write_(std::move(write)) {}

Log Log::to_stderr(LogLevel level) {
  auto logger = std::make_shared<spdlog::logger>("holdfast", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  logger->set_level(spdlog_level(level));
  logger->set_pattern("%Y-%m-%d %H:%M:%S.%e %^%-7l%$ %v");
  logger->flush_on(spdlog::level::debug);
  return {level, [logger](LogLevel line_level, std::string_view line) {
            // As an argument, never as the format: a line may hold braces.
            logger->log(spdlog_level(line_level), "{}", line);
          }};
}

void Log::write(LogLevel level, std::string_view line) {
  if (enabled(level) && write_) write_(level, line);
}

}  // namespace holdfast::runtime
