#pragma once
#include <cerrno>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sink/files.hpp"

namespace holdfast::test {

/// A disk in memory that remembers what was synced, and fails when it is told to. The disk outlives the sink,
/// so that a test can look at what a crash of the machine would have left. Not thread-safe: touch it before the
/// sink is made and after it was closed, or on the sink's own thread.
struct MemoryDisk {
  struct File {
    std::string name;
    std::string content;
    std::size_t synced = 0;  // this much of it is on the platter
    bool name_synced = false;
    bool open = true;
  };
  enum class Call { make_folder, open_new, write, sync, sync_folder, truncate, close };

  std::vector<std::unique_ptr<File>> files;  // by descriptor
  std::map<Call, int> calls;
  int all_calls = 0;

  // What goes wrong.
  int fail_call = 0;              ///< this one, counted over all kinds from 1; 0: none
  int fail_count = 1;             ///< and this many in all
  std::optional<Call> fail_kind;  ///< only calls of this kind, and counted among them
  int fail_with = EIO;
  bool short_writes = false;  ///< a write that is to fail takes half first

  /// What is left after the power was cut.
  [[nodiscard]] std::string survives() const {
    std::string all;
    for (const auto& file : files)
      if (file->name_synced) all += file->content.substr(0, file->synced) + "\n";
    return all;
  }
  [[nodiscard]] std::string everything() const {
    std::string all;
    for (const auto& file : files) all += file->content + "\n";
    return all;
  }
  [[nodiscard]] bool fails(Call call) {
    const int of_kind = ++calls[call];
    ++all_calls;
    if (fail_call == 0 || (fail_kind && *fail_kind != call)) return false;
    const int at = fail_kind ? of_kind : all_calls;
    return at >= fail_call && at < fail_call + fail_count;
  }
};

class MemoryFiles final : public sink::Files {
 public:
  explicit MemoryFiles(MemoryDisk& disk) : disk_(disk) {}

  int make_folder(const std::string&) override { return disk_.fails(Call::make_folder) ? -disk_.fail_with : 0; }
  int open_new(const std::string& path) override {
    if (disk_.fails(Call::open_new)) return -disk_.fail_with;
    for (const auto& file : disk_.files)
      if (file->name == path) return -EEXIST;
    disk_.files.push_back(std::make_unique<MemoryDisk::File>());
    disk_.files.back()->name = path;
    return static_cast<int>(disk_.files.size()) - 1;
  }
  ssize_t write(int descriptor, std::string_view bytes) override {
    auto& file = at(descriptor);
    if (half_) {
      half_ = false;
      ++disk_.all_calls;
      return -disk_.fail_with;
    }
    if (disk_.fails(Call::write)) {
      if (!disk_.short_writes || bytes.size() < 2) return -disk_.fail_with;
      half_ = true;
      bytes = bytes.substr(0, bytes.size() / 2);
    }
    file.content += bytes;
    return static_cast<ssize_t>(bytes.size());
  }
  int sync(int descriptor) override {
    auto& file = at(descriptor);
    if (disk_.fails(Call::sync)) {
      file.content.resize(file.synced);  // as Linux does: the pages are dropped, the next sync succeeds
      return -disk_.fail_with;
    }
    file.synced = file.content.size();
    return 0;
  }
  int sync_folder(const std::string&) override {
    if (disk_.fails(Call::sync_folder)) return -disk_.fail_with;
    for (const auto& file : disk_.files) file->name_synced = true;
    return 0;
  }
  int truncate(int descriptor, std::int64_t size) override {
    if (disk_.fails(Call::truncate)) return -disk_.fail_with;
    auto& file = at(descriptor);
    file.content.resize(static_cast<std::size_t>(size));
    file.synced = std::min(file.synced, file.content.size());
    return 0;
  }
  int close(int descriptor) override {
    at(descriptor).open = false;
    return disk_.fails(Call::close) ? -disk_.fail_with : 0;
  }
  Whereabouts whereabouts(int, const std::string&) override { return Whereabouts::here; }

 private:
  using Call = MemoryDisk::Call;
  MemoryDisk::File& at(int descriptor) { return *disk_.files.at(static_cast<std::size_t>(descriptor)); }

  MemoryDisk& disk_;
  bool half_ = false;
};

}  // namespace holdfast::test
