#include "cli/sink_files.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

namespace holdfast::cli {

std::string_view owner_of_file(std::string_view name) {
  constexpr std::string_view ending = ".ndjson";
  if (!name.ends_with(ending)) return {};
  name.remove_suffix(ending.size());
  const std::size_t dash = name.rfind('-');
  if (dash == std::string_view::npos) return {};
  const std::string_view number = name.substr(dash + 1);
  const bool digits = !number.empty() && number.find_first_not_of("0123456789") == std::string_view::npos;
  return digits ? name.substr(0, dash) : std::string_view();
}

std::string_view worker_of_owner(std::string_view owner) {
  return owner.substr(0, owner.rfind('-'));
}

Result<void> SinkFiles::read(const OnLine& on_line) {
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
    files_.try_emplace(at->path().filename().string());
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    return fail(Code::unavailable, "cannot list " + folder_ + ": " + error.message());
  }
  for (auto& [name, file] : files_) {
    const std::string_view owner = owner_of_file(name);
    if (owner.empty()) continue;
    if (auto done = read_file(folder_ + '/' + name, owner, file, on_line); !done) return done;
  }
  return {};
}

Result<void> SinkFiles::read_file(const std::string& path, std::string_view owner, File& file,
                                  const OnLine& on_line) {
  std::ifstream input(path, std::ios::binary);
  input.seekg(static_cast<std::streamoff>(file.offset));
  std::vector<char> buffer(std::size_t{256} << 10U);
  while (input) {
    input.read(buffer.data(), static_cast<std::streamsize>(buffer.size()));
    const auto count = static_cast<std::size_t>(input.gcount());
    file.offset += count;
    std::string_view fresh(buffer.data(), count);
    for (std::size_t end = fresh.find('\n'); end != std::string_view::npos; end = fresh.find('\n')) {
      if (file.rest.empty()) {
        on_line(owner, fresh.substr(0, end));
      } else {
        file.rest += fresh.substr(0, end);
        on_line(owner, file.rest);
        file.rest.clear();
      }
      fresh.remove_prefix(end + 1);
    }
    file.rest += fresh;
  }
  if (!input.eof()) return fail(Code::unavailable, "cannot read " + path + ": " + std::strerror(errno));
  return {};
}

}  // namespace holdfast::cli
