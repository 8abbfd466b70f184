#pragma once
#include <cstddef>

#include "sink/output.hpp"

namespace holdfast::sink {

/// A descriptor that somebody else owns and reads, standard output for one. It is left as it was found (no
/// O_NONBLOCK: that would change it for whoever shares it): before each write it waits until there is room, and
/// writes no more than a pipe takes at once.
class DescriptorOutput final : public Output {
 public:
  explicit DescriptorOutput(int descriptor) : descriptor_(descriptor) {}

  [[nodiscard]] Outcome write(std::string_view records, const std::atomic<bool>& give_up) override;
  [[nodiscard]] Outcome sync() override { return {}; }
  [[nodiscard]] Outcome probe() override;
  void close() override {}

  static constexpr std::size_t pipe_bytes = 4096;  ///< POLLOUT on a pipe promises room for this much

 private:
  const int descriptor_;
  bool torn_ = false;  // a record was begun and not ended
};

}  // namespace holdfast::sink
