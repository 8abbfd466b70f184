#include "runtime/secret.hpp"

#include <cstddef>
#include <optional>

#include "runtime/environment.hpp"
#include "runtime/regular_file.hpp"

namespace holdfast::runtime {
namespace {

constexpr std::string_view env_prefix = "env:";
constexpr std::string_view file_prefix = "file:";
constexpr std::size_t longest = std::size_t{64} << 10U;

Result<std::string> read_secret_file(const std::string& path) {
  Result<std::string> read = read_regular_file(path, "the secret in", longest);
  if (!read) return read;
  std::string content = *std::move(read);
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
    if (!value) return fail(Code::not_found, "the environment variable " + name + " is not set");
    return *std::move(value);
  }
  if (setting.starts_with(file_prefix)) return read_secret_file(std::string(setting.substr(file_prefix.size())));
  return std::string(setting);
}

}  // namespace holdfast::runtime
