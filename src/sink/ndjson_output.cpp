#include "sink/ndjson_output.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace holdfast::sink {
namespace {

constexpr std::uint32_t names_tried_max = 10'000;
constexpr std::size_t probe_bytes = 4096;  // more than the rest of a block that is begun

Code code_of(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EMFILE:
    case ENFILE:
      return Code::exhausted;
    case EACCES:
    case EPERM:
    case EROFS:
      return Code::denied;
    case ENOENT:
    case ENOTDIR:
      return Code::not_found;
    default:
      return Code::unavailable;
  }
}

std::string number_text(std::uint32_t number) {
  std::string digits = std::to_string(number);
  return std::string(6 - std::min<std::size_t>(digits.size(), 6), '0') + digits;
}

}  // namespace

NdjsonOutput::NdjsonOutput(std::unique_ptr<Files> files, NdjsonOptions options)
    : files_(std::move(files)), options_(std::move(options)) {}

NdjsonOutput::~NdjsonOutput() {
  drop_file();
}

void NdjsonOutput::close() {
  drop_file();
}

Output::Fault NdjsonOutput::fault(const char* what, int error, bool unsynced_lost) const {
  const std::string& where = path_.empty() ? options_.folder : path_;
  return {Error(code_of(error), std::string("cannot ") + what + " " + where + ": " + std::strerror(error)),
          unsynced_lost};
}

void NdjsonOutput::drop_file() {
  // What close() says is of no use here: what had to be safe was synced before.
  if (descriptor_ >= 0) (void)files_->close(descriptor_);
  descriptor_ = -1;
  unsynced_ = false;
  path_.clear();
}

Output::Outcome NdjsonOutput::open_next() {
  bool made_folder = false;
  for (std::uint32_t tried = 0; tried < names_tried_max;) {
    path_ = options_.folder + "/" + options_.stem + "-" + number_text(number_ + 1) + ".ndjson";
    const int result = files_->open_new(path_);
    if (result >= 0) {
      ++number_;
      descriptor_ = result;
      size_ = 0;
      unsynced_ = false;
      name_unsynced_ = true;
      return {};
    }
    if (result == -EEXIST) {
      ++number_;
      ++tried;
      continue;
    }
    if (result == -ENOENT && !made_folder) {
      made_folder = true;
      if (const int made = files_->make_folder(options_.folder); made < 0) {
        path_.clear();
        return fault("make the sink's folder", -made, false);
      }
      continue;
    }
    return fault("create", -result, false);
  }
  return fault("find a free name for", EEXIST, false);
}

Output::Outcome NdjsonOutput::have_file() {
  if (descriptor_ >= 0) {
    if (const Outcome left = leave_moved_file()) return left;
  }
  return descriptor_ < 0 ? open_next() : Outcome{};
}

/// Some disks are full for a record and not for a name: only a write tells. It is taken back at once.
Output::Outcome NdjsonOutput::probe() {
  if (const Outcome missing = have_file()) return missing;
  const std::int64_t size = size_;
  const std::string spaces(probe_bytes, ' ');
  if (const Outcome failed = append(spaces)) return failed;
  size_ = size;
  const int cut = files_->truncate(descriptor_, size_);
  return cut >= 0 ? Outcome{} : cut_back(-cut);
}

Output::Outcome NdjsonOutput::write(std::string_view records, Permission&) {
  if (const Outcome missing = have_file()) return missing;
  if (descriptor_ >= 0 && size_ > 0 && static_cast<std::uint64_t>(size_) + records.size() > options_.rotate_bytes) {
    if (const Outcome synced = sync()) return synced;
    drop_file();
    if (const Outcome opened = open_next()) return opened;
  }
  return append(records);
}

/// Ends a file that is no longer found under its name; a fault where what was written to it is lost.
Output::Outcome NdjsonOutput::leave_moved_file() {
  if (files_->whereabouts(descriptor_, path_) == Files::Whereabouts::here) return {};
  if (const Outcome synced = sync()) return synced;
  drop_file();
  return {};
}

Output::Outcome NdjsonOutput::append(std::string_view records) {
  std::string_view left = records;
  while (!left.empty()) {
    const ssize_t written = files_->write(descriptor_, left);
    if (written < 0) return cut_back(static_cast<int>(-written));
    if (written == 0) return cut_back(EIO);
    left.remove_prefix(static_cast<std::size_t>(written));
  }
  size_ += static_cast<std::int64_t>(records.size());
  unsynced_ = true;
  return {};
}

/// After a write that failed, maybe in the middle of a record.
Output::Outcome NdjsonOutput::cut_back(int error) {
  const Fault failed = fault("write", error, false);
  const bool cut = files_->truncate(descriptor_, size_) >= 0;
  // A file that cannot be cut, or may not grow any more, is left; what it holds counts if it can be synced.
  if (!cut || (error == EFBIG && size_ > 0)) {
    if (const Outcome synced = sync()) return synced;
    drop_file();
  }
  return failed;
}

Output::Outcome NdjsonOutput::sync() {
  if (!unsynced_) return {};
  if (options_.fsync) {
    // After a failed fsync the kernel may have dropped the pages and call the next one a success: this file is
    // not asked again.
    if (const int result = files_->sync(descriptor_); result < 0) {
      const Fault failed = fault("sync", -result, true);
      drop_file();
      return failed;
    }
  }
  if (files_->whereabouts(descriptor_, path_) == Files::Whereabouts::gone) {
    const Fault failed = fault("go on writing", ENOENT, true);
    drop_file();
    return failed;
  }
  if (options_.fsync && name_unsynced_) {
    // A folder that was renamed since has its name elsewhere: then there is nothing to be done here.
    const int result = files_->sync_folder(options_.folder);
    // Where it could not even be opened nothing has happened to the file: it is kept, and its name synced later.
    if (result == -EMFILE || result == -ENFILE || result == -ENOMEM)
      return fault("open the folder of", -result, false);
    if (result < 0 && result != -ENOENT) {
      const Fault failed = fault("sync the folder of", -result, true);
      drop_file();
      return failed;
    }
    name_unsynced_ = false;
  }
  unsynced_ = false;
  return {};
}

}  // namespace holdfast::sink
