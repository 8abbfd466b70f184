#pragma once
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
    bool lease_over = false;  ///< no fault of the output: Permission::holds() was false
    bool for_good = false;    ///< trying again can never help
  };
  using Outcome = std::optional<Fault>;  ///< nothing: it worked

  /// What a write that has to wait asks in between.
  class Permission {
   public:
    virtual ~Permission() = default;
    [[nodiscard]] virtual bool given_up() const = 0;  ///< the sink is being closed, and its time is over
    [[nodiscard]] virtual bool holds() = 0;           ///< whether these records may still be written (S7)
  };

  virtual ~Output() = default;
  /// Whole records, all or nothing: where it fails the reader sees none of them, or sees them again later.
  /// May wait; ends with a fault soon after the permission is given up or no longer holds.
  [[nodiscard]] virtual Outcome write(std::string_view records, Permission& permission) = 0;
  /// Makes what was written as safe as this output promises.
  [[nodiscard]] virtual Outcome sync() = 0;
  /// After a failure, while there is nothing to write: would a write work? Leaves nothing that a reader sees.
  [[nodiscard]] virtual Outcome probe() = 0;
  virtual void close() = 0;
};

}  // namespace holdfast::sink
