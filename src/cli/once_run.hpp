#pragma once
#include <optional>
#include <string>

#include "cli/coordination.hpp"
#include "core/coord/once.hpp"
#include "runtime/spawn.hpp"

namespace holdfast::cli {

/// A command that is to run once for a key.
struct OnceJob {
  OnceOptions what;
  coord::TaskOptions options;
  coord::OnLost on_lost = coord::OnLost::terminate;
  runtime::SpawnOptions command;  ///< its output is kept; what tells it of its right is added to its environment
  std::string
      reconcile;  ///< what says what became of a run that was abandoned, by its exit code; empty: nothing does
  Duration retention = std::chrono::hours(24);
  bool records_failures = false;  ///< an exit code other than 0 is a result too

  /// For who has so long and no longer: the command ends within the limit, and the store is not waited for past
  /// `give_up_at`.
  std::optional<TimeLimit> limit = {};
  std::optional<Instant> give_up_at = {};
};

/// What is asked of one, whether a key names it or an event of Lambda's.
struct OnceSettings {
  RightSettings right;
  std::string abandoned = "rerun", reconcile;
  std::vector<std::string> command;
  Duration retention = OnceJob().retention;
  bool record_failures = false;
};
/// The command, and the options that say how it runs. `whoever` is waited for; `again`: what happens after an exit
/// code that is no result.
void add_once_options(CLI::App& app, OnceSettings& settings, const std::string& whoever, const std::string& again);
/// What is missing is what names it, and its input. Or what is wrong.
[[nodiscard]] Result<OnceJob> once_job(const OnceSettings& settings);

/// What came of it.
struct OnceEnd {
  enum class How {
    told,         ///< `output` and `exit_code`: of the command that ran now, or of the one that has run
    interrupted,  ///< by the signal `exit_code` - 128, before there was anything to tell
    busy,         ///< somebody else is running it
    held,         ///< somebody began and left no result: that is for a person to decide
    unrecorded,   ///< the command ran to its end (`exit_code`, `output`), and that may not be on record, or is not
    mismatch,     ///< the key was used with another input
    not_started,  ///< there is no such command, or no room for it
    lost,         ///< the right was lost while the command ran, or before its result was recorded (`output`)
    late,         ///< the command was ended because its time was over
    too_large,    ///< it ran to its end, and what it printed does not fit, so that it is not on record
    unavailable,  ///< the store could not be asked in time
    failed,       ///< what trying again does not help with: no table, a damaged row
  };
  How how = How::told;
  std::string why;  ///< for people; empty where there is something to tell, and after a signal
  int exit_code = 0;
  int signal = 0;      ///< that ended the command; 0: it ended by itself
  std::string output;  ///< of the command, where it ran to its end and that is there
  bool is_replay = false;
};

/// Runs the command, or finds what became of it. What it printed is told once it is recorded, or as what may not be:
/// nobody takes for its result what others would not be shown. Waits; who gave up on the store may call it again for
/// another key.
[[nodiscard]] OnceEnd run_once(Coordination& here, const OnceJob& job);

}  // namespace holdfast::cli
