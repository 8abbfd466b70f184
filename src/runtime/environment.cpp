#include "runtime/environment.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>
#include <filesystem>
#include <fstream>

#include <algorithm>
#include <climits>
#include <cstdlib>

namespace holdfast::runtime {

std::optional<std::string> environment(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

std::vector<std::string> environment_names(std::string_view prefix) {
  std::vector<std::string> names;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    if (name.starts_with(prefix)) names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

Terminal terminal(int descriptor) {
  Terminal result;
  result.present = isatty(descriptor) == 1 && environment("TERM").value_or("dumb") != "dumb";
  result.colours = result.present && !environment("NO_COLOR");
  winsize size{};
  if (result.present && ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) result.columns = size.ws_col;
  return result;
}

std::string program_path() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
  if (length <= 0 || length == static_cast<ssize_t>(sizeof path)) return "/proc/self/exe";
  return {path, static_cast<std::size_t>(length)};
}

std::string program_called() {
  std::ifstream input("/proc/self/cmdline");
  std::string called;
  std::getline(input, called, '\0');
  std::error_code error;
  if (called.empty() || called.front() != '/') return called.empty() ? program_path() : called;
  const std::string near =
      std::filesystem::path(called).lexically_relative(std::filesystem::current_path(error)).string();
  return error || near.empty() || near.starts_with("..") ? called : near;
}

std::string host_and_process() {
  char host[HOST_NAME_MAX + 1] = {};
  if (gethostname(host, sizeof host - 1) != 0 || host[0] == '\0') return "host-" + std::to_string(getpid());
  return std::string(host) + "-" + std::to_string(getpid());
}

std::size_t open_descriptors() {
  DIR* folder = ::opendir("/proc/self/fd");
  if (folder == nullptr) return 16;
  std::size_t count = 0;
  while (::readdir(folder) != nullptr) ++count;
  ::closedir(folder);
  return count - std::min<std::size_t>(count, 3);  // `.`, `..`, and the folder itself
}

std::size_t raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  if (limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) getrlimit(RLIMIT_NOFILE, &limit);
  }
  return limit.rlim_cur;
}

void open_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // The lowest free number is taken: this one, since those below it are open by now.
    if (::fcntl(stream, F_GETFD) < 0) (void)::open("/dev/null", O_RDWR);
  }
}

}  // namespace holdfast::runtime
