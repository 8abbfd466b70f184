#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "holdfast/error.hpp"

namespace holdfast::cli {

/// Reads the files of an ndjson sink's folder as they grow: each whole line once, in the order of its file. A last
/// line without an end is not a line (yet).
class SinkFiles {
 public:
  explicit SinkFiles(std::string folder) : folder_(std::move(folder)) {}

  using OnLine = std::function<void(std::string_view owner, std::string_view line)>;
  /// What is new since the last call. A folder that is not there yet is an empty one.
  Result<void> read(const OnLine& on_line);

 private:
  struct File {
    std::uint64_t offset = 0;
    std::string rest;  // of a line whose end is not there yet
  };
  Result<void> read_file(const std::string& path, std::string_view owner, File& file, const OnLine& on_line);

  std::string folder_;
  std::map<std::string, File> files_;  // by name: the files of one owner are in their order
};

/// `w1-5f0c2a11-000002.ndjson` → `w1-5f0c2a11`: the incarnation that wrote the file. Empty: not such a file.
[[nodiscard]] std::string_view owner_of_file(std::string_view name);
/// `w1-5f0c2a11` → `w1`.
[[nodiscard]] std::string_view worker_of_owner(std::string_view owner);

}  // namespace holdfast::cli
