#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "holdfast/error.hpp"

namespace holdfast::runtime {

/// All of a regular file's content. Anything else (a pipe that nobody writes to, a device) is refused and not waited
/// for: a path from a row must not stop a loop. It may still wait on a slow disk. Any thread.
///
/// Errors read "cannot read WHAT PATH: why" and hold nothing of the content.
[[nodiscard]] Result<std::string> read_regular_file(const std::string& path, std::string_view what,
                                                    std::size_t bytes_max);

/// Which file a path leads to, and how it was when it was looked at: equal stamps, the same content. All zero where
/// there is nothing.
struct FileStamp {
  std::uint64_t device = 0, inode = 0;
  std::int64_t size = 0, modified_ns = 0, changed_ns = 0;
  bool operator==(const FileStamp&) const = default;
};
[[nodiscard]] FileStamp stamp_of(const std::string& path);

}  // namespace holdfast::runtime
