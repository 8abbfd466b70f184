#pragma once
#include <sys/types.h>

#include <fstream>
#include <iterator>
#include <string>

namespace holdfast::test {

/// Whether a process that need not be a child of ours has come to its end. Dead is dead, also as a zombie.
[[nodiscard]] inline bool has_ended(pid_t pid) {
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(stat), {}};
  return text.empty() || text.substr(text.rfind(')') + 2, 1) == "Z";
}

}  // namespace holdfast::test
