#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/coord/journal.hpp"
#include "core/coord/procedure.hpp"
#include "holdfast/error.hpp"

namespace holdfast::coord {

struct JournalOptions {
  std::string path = "holdfast.journal";
  /// What the intents are for. A journal that was begun for another store is refused: replayed there, they would
  /// happen in the wrong place. Empty: any (for looking only).
  std::string store;
  /// What that name comes to (store::place_of()): it is this that has to be the same, each as far as it is known.
  /// Empty: the name is.
  std::map<std::string, std::string> place;
  bool create = true;
  std::int64_t pages_max = 0;  ///< the file's size limit in pages of 4 KiB; 0: SQLite's own

  /// For tests of what happens in between.
  enum class Moment { before_commit, after_commit };
  std::function<void(Moment)> at_moment;
};

/// Intents that were accepted without the store, in a SQLite file: what is told to be in it is on the disk (WAL,
/// synchronous=FULL), whatever is killed and whenever. Any number of processes append at once; one reconciles.
///
/// Every call is a transaction, and waits for the disk: milliseconds, and where others write at the same time up to
/// two seconds. One thread at a time. Failures of the file: full (free some space; nothing is lost) or busy, which is
/// unavailable; damaged, or removed while in use, which is rejected, since to try again does not help. Where the
/// commit itself failed it is unknown whether it happened: repeat it, under the same ticket.
class Journal {
 public:
  [[nodiscard]] static Result<std::unique_ptr<Journal>> open(JournalOptions options);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  struct Limits {
    std::size_t open_most = 1000;  ///< intents that are not settled; more are refused
    Duration max_age = std::chrono::hours(24);
  };
  /// Writes a new intent down; its `seq`, and the quota of a DrawWish, are chosen here. The same ticket again with
  /// the same wish gives the one that is there; with another wish it is a mismatch. Of a decision about which a
  /// proposal is open already, that one is given, whatever the new one may have come to in the store: locally, too,
  /// the first one wins. Refused where too much is open, or where no quota has as much left.
  struct Appended {
    Intent intent;
    bool was_there = false;
  };
  [[nodiscard]] Ended<Appended> append(Intent draft, const Limits& limits, WallTime now);

  [[nodiscard]] Ended<std::optional<Intent>> find(const std::string& ticket);
  enum class Which { all, open };  ///< open: something is left to do
  /// In order, from after this number on.
  [[nodiscard]] Ended<std::vector<Intent>> list(Which which, std::int64_t after, std::size_t limit);
  [[nodiscard]] Ended<std::size_t> count_open();
  /// Whether something about this is not settled yet: then what follows has to wait its turn.
  [[nodiscard]] Ended<bool> has_unsettled(const std::string& subject);
  /// An intent that has changed, by the rules of core. What a rejected one drew goes back to its quota with it.
  [[nodiscard]] Ended<void> put(const Intent& intent);

  /// Which journal this is: random, made when it is first asked for. Reservations in the store carry it.
  [[nodiscard]] Ended<std::string> identity();
  /// Writes down that goods are to be set aside; what is there under this id already is left as it is, and given.
  /// A mismatch where a sale has this name: in the store both are reservations.
  [[nodiscard]] Ended<Quota> ask_quota(const Quota& quota);
  /// `asked` → forgotten, for what the store has refused: it may be asked for again.
  [[nodiscard]] Ended<bool> drop_quota(const std::string& id);
  /// `asked` → `open`, `open` → `closing`, `closing` → `returned`. False, here and above, and nothing changes: it is
  /// not in such a state, or there already.
  [[nodiscard]] Ended<bool> open_quota(const std::string& id, WallTime expires_at);
  [[nodiscard]] Ended<bool> close_quota(const std::string& id);
  [[nodiscard]] Ended<bool> end_quota(const std::string& id);
  [[nodiscard]] Ended<std::vector<Quota>> quotas();

  /// Deletes what is over since before then. How many intents.
  [[nodiscard]] Ended<std::size_t> forget(WallTime before);

  /// The right to reconcile: one process has it, by whatever path it has opened the journal, until it lets go of it
  /// or dies. False: another has it.
  [[nodiscard]] Ended<bool> lock();
  void unlock();

  [[nodiscard]] const std::string& path() const;

 private:
  struct Impl;
  explicit Journal(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace holdfast::coord
