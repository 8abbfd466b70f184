#include "cli/demo_processes.hpp"

#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>

#include "runtime/environment.hpp"

namespace holdfast::cli {

namespace {

namespace fs = std::filesystem;

Result<std::string> temporary_folder() {
  std::error_code error;
  const fs::path base = fs::temp_directory_path(error);
  if (error) return fail(Code::unavailable, "there is no folder for temporary files: set TMPDIR, or use --keep DIR");
  std::string path = (base / "holdfast-demo-XXXXXX").string();
  if (::mkdtemp(path.data()) != nullptr) return path;
  return fail(Code::unavailable, "cannot make a folder in " + base.string() + ": " + std::strerror(errno) +
                                     ": set TMPDIR, or use --keep DIR");
}

Result<std::string> kept_folder(const std::string& keep) {
  std::error_code error;
  fs::create_directories(keep, error);
  if (error) return fail(Code::denied, "cannot make the folder " + keep + ": " + error.message());
  if (!fs::is_empty(keep, error) || error) {
    return fail(Code::usage, "the folder " + keep + " is not empty: name a new one for --keep");
  }
  return fs::absolute(keep, error).string();
}

}  // namespace

Result<DemoFolder> DemoFolder::make(const std::string& keep) {
  auto path = keep.empty() ? temporary_folder() : kept_folder(keep);
  if (!path) return tl::unexpected<Error>(path.error());
  DemoFolder folder(std::move(*path), !keep.empty());
  for (const char* name : {"/logs", "/reports"}) {
    std::error_code error;
    fs::create_directory(folder.path_ + name, error);
    if (error) return fail(Code::denied, "cannot make the folder " + folder.path_ + name + ": " + error.message());
  }
  return folder;
}

DemoFolder::~DemoFolder() {
  if (path_.empty() || kept_) return;
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

Result<runtime::Child> start_self(const DemoFolder& folder, const std::string& name,
                                  std::vector<std::string> arguments) {
  runtime::SpawnOptions options;
  arguments.insert(arguments.begin(), runtime::program_path());
  options.arguments = std::move(arguments);
  for (const std::string& variable : runtime::environment_names("HOLDFAST_")) {
    options.environment.emplace_back(variable, "");  // empty counts as not set
  }
  options.output = runtime::SpawnOptions::Output::file;
  options.output_file = folder.log_of(name);
  options.errors_to_output = true;
  options.own_group = true;
  options.dies_with_parent = true;
  return runtime::spawn(options);
}

std::vector<std::string> last_lines(const std::string& path, std::size_t count) {
  std::deque<std::string> lines;
  std::ifstream input(path);
  for (std::string line; std::getline(input, line);) {
    lines.push_back(line);
    if (lines.size() > count) lines.pop_front();
  }
  return {lines.begin(), lines.end()};
}

std::string in_words(const runtime::Exit& exit) {
  return exit.signal != 0 ? "signal " + std::to_string(exit.signal) : "exit code " + std::to_string(exit.code);
}

}  // namespace holdfast::cli
