#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "sink/files.hpp"
#include "sink/output.hpp"

namespace holdfast::sink {

struct NdjsonOptions {
  std::string folder;
  std::string stem;  ///< files are FOLDER/STEM-000001.ndjson and so on
  std::uint64_t rotate_bytes = std::uint64_t{64} << 20U;
  bool fsync = true;
};

/// Files of this process alone: each is created, never opened again, so that nobody's records are mixed with
/// somebody else's. A file that was removed while it was written to is noticed before anything in it is called
/// safe; one that was moved away counts, and a new one is begun.
///
/// A write that fails leaves no torn record: the file is cut back to where it was before.
class NdjsonOutput final : public Output {
 public:
  NdjsonOutput(std::unique_ptr<Files> files, NdjsonOptions options);
  ~NdjsonOutput() override;
  NdjsonOutput(const NdjsonOutput&) = delete;
  NdjsonOutput& operator=(const NdjsonOutput&) = delete;

  [[nodiscard]] Outcome write(std::string_view records, Permission& permission) override;
  [[nodiscard]] Outcome sync() override;
  [[nodiscard]] Outcome probe() override;
  void close() override;

 private:
  [[nodiscard]] Outcome open_next();
  [[nodiscard]] Outcome leave_moved_file();
  [[nodiscard]] Outcome have_file();
  [[nodiscard]] Outcome append(std::string_view records);
  [[nodiscard]] Outcome cut_back(int error);
  void drop_file();
  [[nodiscard]] Fault fault(const char* what, int error, bool unsynced_lost) const;

  const std::unique_ptr<Files> files_;
  const NdjsonOptions options_;
  int descriptor_ = -1;
  std::string path_;
  std::int64_t size_ = 0;  // whole pieces only
  bool unsynced_ = false;  // something was written since the last sync
  bool name_unsynced_ = false;
  std::uint32_t number_ = 0;  // of the last file tried
};

}  // namespace holdfast::sink
