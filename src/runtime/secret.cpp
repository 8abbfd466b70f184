#include "runtime/secret.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>

#include "runtime/environment.hpp"

namespace holdfast::runtime {
namespace {

constexpr std::string_view env_prefix = "env:";
constexpr std::string_view file_prefix = "file:";
constexpr std::size_t longest = std::size_t{64} << 10U;

Result<std::string> read_secret_file(const std::string& path) {
  const auto failed = [&path](int error) {
    const Code code = error == ENOENT ? Code::not_found : error == EACCES ? Code::denied : Code::unavailable;
    return fail(code, "cannot read the secret in " + path + ": " + std::strerror(error));
  };
  // Not blocking: a pipe that nobody writes to must not stop the loop.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return failed(errno);
  std::string content(longest + 1, '\0');
  std::size_t length = 0;
  int error = 0;
  while (length < content.size()) {
    const ssize_t got = ::read(descriptor, content.data() + length, content.size() - length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) error = errno;
    if (got <= 0) break;
    length += static_cast<std::size_t>(got);
  }
  ::close(descriptor);
  if (error != 0) return failed(error);
  if (length > longest) return fail(Code::usage, "the secret in " + path + " is longer than 64 KiB");
  content.resize(length);
  if (content.ends_with('\n')) content.pop_back();
  if (content.ends_with('\r')) content.pop_back();
  if (content.empty()) return fail(Code::not_found, "the secret in " + path + " is empty");
  return content;
}

}  // namespace

bool is_secret_reference(std::string_view setting) {
  return setting.starts_with(env_prefix) || setting.starts_with(file_prefix);
}

Result<std::string> resolve_secret(std::string_view setting) {
  if (setting.starts_with(env_prefix)) {
    const std::string name(setting.substr(env_prefix.size()));
    std::optional<std::string> value = environment(name);
    if (!value) return fail(Code::not_found, "the environment variable " + name + " is not set in this worker");
    return *std::move(value);
  }
  if (setting.starts_with(file_prefix)) return read_secret_file(std::string(setting.substr(file_prefix.size())));
  return std::string(setting);
}

}  // namespace holdfast::runtime
