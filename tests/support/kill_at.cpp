// Preloaded into one process: before its KILL_AT-th write to a database (what SQLite does it with) it is killed, as
// the system would: nothing of its own runs any more. Nothing is synchronised either, since that is for machines that
// stop, not for processes.
#include <dlfcn.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>

namespace {

void point() {
  static const char* const text = std::getenv("KILL_AT");
  static const int killed_at = text == nullptr ? 0 : std::atoi(text);
  static std::atomic<int> points{0};
  if (++points == killed_at) ::kill(::getpid(), SIGKILL);
}

template <class Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

ssize_t pwrite64(int file, const void* bytes, size_t size, off64_t at) {
  static const auto original = next<ssize_t (*)(int, const void*, size_t, off64_t)>("pwrite64");
  point();
  return original(file, bytes, size, at);
}
ssize_t pwrite(int file, const void* bytes, size_t size, off_t at) {
  static const auto original = next<ssize_t (*)(int, const void*, size_t, off_t)>("pwrite");
  point();
  return original(file, bytes, size, at);
}
int fdatasync(int) {
  point();
  return 0;
}
int fsync(int) {
  point();
  return 0;
}
int ftruncate64(int file, off64_t size) noexcept {
  static const auto original = next<int (*)(int, off64_t)>("ftruncate64");
  point();
  return original(file, size);
}
int unlink(const char* path) noexcept {
  static const auto original = next<int (*)(const char*)>("unlink");
  point();
  return original(path);
}

}  // extern "C"
