#pragma once
#include <cstdint>
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

/// A file without a name that a command's output goes to: it goes with this process, however that ends.
class CapturedOutput {
 public:
  [[nodiscard]] static Result<CapturedOutput> open();
  ~CapturedOutput();
  CapturedOutput(CapturedOutput&& other) noexcept;
  CapturedOutput& operator=(CapturedOutput&&) = delete;

  /// Opens it in this process, as long as this object is there.
  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }
  /// Drops what is far too much to be recorded, so that it does not fill the disk; to be called now and then.
  void bound();
  /// What was written so far; Code::exhausted where it is more than can be recorded.
  [[nodiscard]] Result<std::string> content() const;

 private:
  explicit CapturedOutput(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
  std::uintmax_t dropped_ = 0;  // at least: more may be written while it is dropped
};

}  // namespace holdfast::cli
