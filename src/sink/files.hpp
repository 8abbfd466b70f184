#pragma once
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace holdfast::sink {

/// What the ndjson sink asks of a file system. One small interface, so that a test can fail any call. Each gives
/// a number that is not negative, or -errno. Called on one thread.
class Files {
 public:
  /// What has become of a file that is open.
  enum class Whereabouts {
    here,   ///< found under its name
    moved,  ///< it has a name, but not this one (any more)
    gone,   ///< it has no name left: what was written to it ends with the descriptor
  };

  virtual ~Files() = default;
  virtual int make_folder(const std::string& path) = 0;  ///< 0 as well where it is there already
  virtual int open_new(const std::string& path) = 0;     ///< for appending; -EEXIST where there is one
  virtual ssize_t write(int descriptor, std::string_view bytes) = 0;
  virtual int sync(int descriptor) = 0;
  virtual int sync_folder(const std::string& path) = 0;  ///< makes the names in it safe
  virtual int truncate(int descriptor, std::int64_t size) = 0;
  virtual int close(int descriptor) = 0;
  virtual Whereabouts whereabouts(int descriptor, const std::string& path) = 0;
};

class RealFiles final : public Files {
 public:
  int make_folder(const std::string& path) override;
  int open_new(const std::string& path) override;
  ssize_t write(int descriptor, std::string_view bytes) override;
  int sync(int descriptor) override;
  int sync_folder(const std::string& path) override;
  int truncate(int descriptor, std::int64_t size) override;
  int close(int descriptor) override;
  Whereabouts whereabouts(int descriptor, const std::string& path) override;
};

}  // namespace holdfast::sink
