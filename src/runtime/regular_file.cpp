#include "runtime/regular_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace holdfast::runtime {
namespace {

std::int64_t nanoseconds(const timespec& time) {
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

/// Up to `content.size()` bytes; gives how many, or -errno.
ssize_t read_into(int descriptor, std::string& content) {
  std::size_t length = 0;
  while (length < content.size()) {
    const ssize_t got = ::read(descriptor, content.data() + length, content.size() - length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -errno;
    if (got == 0) break;
    length += static_cast<std::size_t>(got);
  }
  return static_cast<ssize_t>(length);
}

}  // namespace

Result<std::string> read_regular_file(const std::string& path, std::string_view what, std::size_t bytes_max) {
  const std::string name = std::string(what) + " " + path;
  const auto failed = [&name](int error) {
    const Code code = error == ENOENT                      ? Code::not_found
                      : error == EACCES                    ? Code::denied
                      : error == EMFILE || error == ENFILE ? Code::exhausted
                                                           : Code::unavailable;
    return fail(code, "cannot read " + name + ": " + std::strerror(error));
  };
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) return failed(errno);
  struct stat status {};
  const int error = ::fstat(descriptor, &status) == 0 ? 0 : errno;
  if (error != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    if (error != 0) return failed(error);
    return fail(Code::usage, "cannot read " + name + ": it is no regular file");
  }
  // A byte more than there should be: it may be growing.
  const std::size_t expected = status.st_size > 0 ? static_cast<std::size_t>(status.st_size) : 0;
  std::string content(std::min(expected, bytes_max) + 1, '\0');
  ssize_t length = read_into(descriptor, content);
  if (length == static_cast<ssize_t>(content.size()) && content.size() <= bytes_max) {
    content.resize(bytes_max + 1);
    length = ::lseek(descriptor, 0, SEEK_SET) < 0 ? -errno : read_into(descriptor, content);
  }
  ::close(descriptor);
  if (length < 0) return failed(static_cast<int>(-length));
  if (static_cast<std::size_t>(length) > bytes_max)
    return fail(Code::usage, name + " is longer than " + std::to_string(bytes_max / 1024) + " KiB");
  content.resize(static_cast<std::size_t>(length));
  return content;
}

FileStamp stamp_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return {};
  return {status.st_dev, status.st_ino, status.st_size, nanoseconds(status.st_mtim), nanoseconds(status.st_ctim)};
}

}  // namespace holdfast::runtime
