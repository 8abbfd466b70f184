#pragma once
#include <cstddef>

#include "sink/output.hpp"

namespace holdfast::sink {

/// A descriptor that somebody else owns and reads, standard output for one. It is left as it was found (no
/// O_NONBLOCK: that would change it for whoever shares it): before each write it waits until there is room, asking
/// again and again whether it still may, and writes no more than a pipe takes at once. A pipe is opened a second time
/// for that, without blocking, so that not even others who write into it can make this one wait under a lease that is
/// over.
///
/// A record of which a part was written when its lease ended is not completed, since that would be an effect without
/// a lease: its line is ended before anything else is written. A reader sees one line that is no JSON, and the whole
/// record from the connection's next holder.
class DescriptorOutput final : public Output {
 public:
  explicit DescriptorOutput(int descriptor);
  ~DescriptorOutput() override;
  DescriptorOutput(const DescriptorOutput&) = delete;
  DescriptorOutput& operator=(const DescriptorOutput&) = delete;

  [[nodiscard]] Outcome write(std::string_view records, Permission& permission) override;
  [[nodiscard]] Outcome sync() override { return {}; }
  [[nodiscard]] Outcome probe() override;
  void close() override;

  static constexpr std::size_t pipe_bytes = 4096;  ///< POLLOUT on a pipe promises room for this much

 private:
  const int given_;
  int own_ = -1;       // the same pipe, not blocking
  bool torn_ = false;  // a record was begun and not ended
};

}  // namespace holdfast::sink
