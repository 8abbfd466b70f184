#pragma once
#include <string>

#include "holdfast/error.hpp"

namespace holdfast::cli {

/// What `once` keeps of a command.
struct OnceRecord {
  int exit_code = 0;
  std::string output;  ///< standard output, any bytes
};
/// As the result that is recorded, and back. A JSON object: {"exit_code": 0, "stdout": "…"}, or "stdout_base64" where
/// the output is no UTF-8.
[[nodiscard]] std::string to_content(const OnceRecord& record);
[[nodiscard]] Result<OnceRecord> record_from(const std::string& content);

/// A file that a command's output goes to; removed at the end.
class CapturedOutput {
 public:
  [[nodiscard]] static Result<CapturedOutput> open();
  ~CapturedOutput();
  CapturedOutput(CapturedOutput&& other) noexcept;
  CapturedOutput& operator=(CapturedOutput&&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  /// What was written so far; Code::exhausted where it is more than can be recorded.
  [[nodiscard]] Result<std::string> content() const;

 private:
  explicit CapturedOutput(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

}  // namespace holdfast::cli
