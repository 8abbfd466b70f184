#include "sink/files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace holdfast::sink {
namespace {

template <class Call>
auto retried(Call call) -> decltype(call()) {
  for (;;) {
    const auto result = call();
    if (result >= 0) return result;
    if (errno != EINTR) return -errno;
  }
}

}  // namespace

int RealFiles::make_folder(const std::string& path) {
  const int result = ::mkdir(path.c_str(), 0777);
  if (result == 0 || errno == EEXIST) return 0;
  return -errno;
}

int RealFiles::open_new(const std::string& path) {
  return retried([&] { return ::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_APPEND | O_CLOEXEC, 0666); });
}

ssize_t RealFiles::write(int descriptor, std::string_view bytes) {
  return retried([&] { return ::write(descriptor, bytes.data(), bytes.size()); });
}

int RealFiles::sync(int descriptor) {
  return retried([&] { return ::fdatasync(descriptor); });
}

int RealFiles::sync_folder(const std::string& path) {
  const int folder = retried([&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (folder < 0) return folder;
  const int result = retried([&] { return ::fsync(folder); });
  ::close(folder);
  // Some file systems cannot sync a folder, and say so: there it is not needed or not possible.
  return result == -EINVAL ? 0 : result;
}

int RealFiles::truncate(int descriptor, std::int64_t size) {
  return retried([&] { return ::ftruncate(descriptor, size); });
}

// Not repeated: on Linux the descriptor is free whatever close() says.
int RealFiles::close(int descriptor) {
  return ::close(descriptor) == 0 ? 0 : -errno;
}

Files::Whereabouts RealFiles::whereabouts(int descriptor, const std::string& path) {
  struct stat opened {};
  if (::fstat(descriptor, &opened) != 0 || opened.st_nlink == 0) return Whereabouts::gone;
  struct stat named {};
  if (::stat(path.c_str(), &named) != 0 || named.st_ino != opened.st_ino || named.st_dev != opened.st_dev)
    return Whereabouts::moved;
  return Whereabouts::here;
}

}  // namespace holdfast::sink
