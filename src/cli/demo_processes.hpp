#pragma once
#include <string>
#include <vector>

#include "holdfast/error.hpp"
#include "runtime/spawn.hpp"

namespace holdfast::cli {

/// A folder for the demo's files: a temporary one, removed at the end, or one that the user wants to keep.
class DemoFolder {
 public:
  [[nodiscard]] static Result<DemoFolder> make(const std::string& keep);
  ~DemoFolder();
  DemoFolder(DemoFolder&& other) noexcept : path_(std::move(other.path_)), kept_(other.kept_) { other.path_.clear(); }
  DemoFolder& operator=(DemoFolder&&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] bool kept() const { return kept_; }
  [[nodiscard]] std::string log_of(const std::string& process) const { return path_ + "/logs/" + process + ".log"; }

 private:
  DemoFolder(std::string path, bool kept) : path_(std::move(path)), kept_(kept) {}
  std::string path_;
  bool kept_;
};

/// Starts this program again with these arguments. What it says goes to its log. It ends when we do, does not hear
/// the Ctrl-C meant for us, and none of our HOLDFAST_ variables reach it.
[[nodiscard]] Result<runtime::Child> start_self(const DemoFolder& folder, const std::string& name,
                                                std::vector<std::string> arguments);

/// The last lines of a log, oldest first.
[[nodiscard]] std::vector<std::string> last_lines(const std::string& path, std::size_t count);
/// "exit code 1", "signal 9".
[[nodiscard]] std::string in_words(const runtime::Exit& exit);

}  // namespace holdfast::cli
