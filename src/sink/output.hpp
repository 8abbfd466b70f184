#pragma once
#include <atomic>
#include <optional>
#include <string_view>

#include "holdfast/error.hpp"

namespace holdfast::sink {

/// Where a BufferedSink's bytes end up. Called on the sink's writer thread only.
class Output {
 public:
  struct Fault {
    Error error;
    /// What was written since the last sync() may be gone: it must be written again.
    bool unsynced_lost = false;
  };
  using Outcome = std::optional<Fault>;  ///< nothing: it worked

  virtual ~Output() = default;
  /// Whole records, all or nothing: where it fails the reader sees none of them, or sees them again later.
  /// May wait; gives up with a fault soon after `give_up` is set.
  [[nodiscard]] virtual Outcome write(std::string_view records, const std::atomic<bool>& give_up) = 0;
  /// Makes what was written as safe as this output promises.
  [[nodiscard]] virtual Outcome sync() = 0;
  /// After a failure, while there is nothing to write: would a write work? Leaves nothing that a reader sees.
  [[nodiscard]] virtual Outcome probe() = 0;
  virtual void close() = 0;
};

}  // namespace holdfast::sink
