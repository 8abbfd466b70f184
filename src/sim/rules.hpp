#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/lease.hpp"
#include "holdfast/sink.hpp"
#include "holdfast/store.hpp"
#include "sim/clock.hpp"
#include "sim/coverage.hpp"
#include "sim/table.hpp"
#include "sim/world.hpp"

namespace holdfast::sim {

/// A rule that was broken.
struct Violation {
  std::string rule;  ///< "S1"…"S11", or "liveness"
  std::string what;
  std::int32_t connection = -1;
  Instant at{};
};

/// What a write of a lease wants, read from the update itself.
struct Intent {
  enum class Kind : std::uint8_t { claim, renew, release, other };
  Kind kind = Kind::other;
  std::int64_t epoch = 0;    ///< to be held, or held
  std::int64_t renewal = 0;  ///< the number of a renewal
  std::string_view attempt;
};
[[nodiscard]] Intent intent_of(const Update& update);

/// What a process has written of one connection's lease, and what it owes.
struct Writing {
  std::uint8_t under_way = 0;  ///< its writes that nobody has answered
  /// The latest attempt, and when it was first made. Where nobody said what became of it, it has to be made again
  /// before `owed_until` (own time).
  std::string attempt;
  Instant first_asked{};
  std::optional<Instant> owed_until{};
  std::int64_t renewed_epoch = 0;  ///< of its latest renewal or release, and when it asked for that (own time)
  Instant renewed_at{};
  /// The state of the row of which a claim met a conflict, whom it was told of, and when (own time).
  std::optional<std::string> struck{};
  std::string told{};
  Instant struck_at{};
};

/// A process, as the rules know it.
struct Known {
  std::string owner;  ///< as in rows; empty: a plain worker's is its name
  const NodeClock* clock = nullptr;
  bool plain = false;
  bool alive = true;
  std::optional<Instant> draining_since{};  ///< true time
  Instant stood_still_until{};              ///< true time of its last resume
  bool control_stands_still = false;        ///< the thread of its leases, now
  bool streams_stand_still = false;         ///< those of its connections
  bool ended = false;                       ///< it says that it has
  std::function<bool()> reads_changes{};    ///< whether it believes that it reads the changes for all
  std::optional<Instant> looked{};          ///< own time of its latest look for orphans
  std::vector<Writing> writing{};           ///< by connection
};

/// S1–S11, looked at while everything runs. It sees the table at the moment of each write, each belief, each effect;
/// it knows the truth about time. The first violation is kept.
class Rules {
 public:
  explicit Rules(World& world);

  // Processes.
  std::int16_t add_process(Known known);
  [[nodiscard]] Known& process(std::int16_t process) { return processes_[static_cast<std::size_t>(process)]; }
  void died(std::int16_t process);

  // Requests (rules_rows.cpp).
  void asked(std::int16_t process, const Update& update);
  void carried_out(const Update& update, const RowReply& reply, const Origin& origin);
  void answered(std::int16_t process, const Update& update, const RowReply& reply, bool late);

  // The change feed (rules_feed.cpp).
  /// It tells another process that rows may have become free.
  void poked(std::int16_t process);
  void looked(std::int16_t process, const QueryDue& query, Instant own_now);
  void look_at_readers();

  // Beliefs and effects (rules_effects.cpp).
  void granted(std::int16_t process, std::int32_t connection, std::shared_ptr<LeaseGuard> guard,
               std::int64_t last_seq);
  void told_to_stop(std::int16_t process, std::int32_t connection, Epoch epoch, LossReason reason);
  void let_go(std::int16_t process, std::int32_t connection, Epoch epoch);
  /// A sink is given a record.
  void offered(std::int16_t process, std::int32_t connection, const Record& record, Instant own_now);
  /// A sink has made it durable. For a gap `to` is its end, otherwise `from`.
  void durable(std::int16_t process, std::int32_t connection, Epoch epoch, std::int64_t from, std::int64_t to,
               bool gap);
  void reading(std::int16_t process, std::int32_t connection, bool is_open);
  /// The other side says when it wants to be asked again at the earliest (own time), and it is asked.
  void told_to_wait(std::int16_t process, std::int32_t connection, Instant until);
  void connects(std::int16_t process, std::int32_t connection, Instant own_now);
  /// Its row was edited: whatever it was waiting for, it may begin anew.
  void edited(std::int16_t process, std::int32_t connection);
  void plain_believes(std::int16_t process, std::int32_t connection, Instant until_truth);

  // What has to be done, and is not (rules_duties.cpp): every now and then.
  void look_at_duties();
  /// Who believes in it, at a moment at which something may have changed.
  void look_at_believers(std::int32_t connection);

  /// A drain with nothing in its way has left nothing behind that is durable and has no checkpoint (S9, S11).
  void gave_back(std::int16_t process, std::int32_t connection);

  void broken(std::string rule, std::string what, std::int32_t connection);
  [[nodiscard]] const std::optional<Violation>& violation() const { return violation_; }

  // For liveness and for marks.
  struct Row {
    std::string owner;
    std::string state;
    std::int64_t epoch = 0;
    std::int64_t expires_at = 0;
    std::int64_t last_seq = 0;
    bool exists = false;
    bool was_removed = false;
  };
  [[nodiscard]] const Row& row(std::int32_t connection) const;
  /// When records of it were last made durable, and by whom it is believed to be held. -1: nobody.
  [[nodiscard]] Instant flowed_at(std::int32_t connection) const;
  [[nodiscard]] std::int16_t believer(std::int32_t connection) const;
  [[nodiscard]] std::size_t believed_by(std::int16_t process) const;

 private:
  /// One ownership that was acted on.
  struct Holding {
    std::int16_t process = -1;
    Epoch epoch;
    std::shared_ptr<LeaseGuard> guard;
    std::optional<std::int64_t> next;  // the number that has to come next; nothing: wherever it begins
    Instant granted_at{};
    bool gone = false;                        // the resource was destroyed
    bool stopped = false;                     // it was told to stop
    bool open = false;                        // its upstream connection is
    bool ended = false;                       // its belief was seen to have ended
    std::int64_t renewal = 0;                 // the highest number of a renewal that it asked for
    Instant confirmed{};                      // when it heard of the latest write that was applied (own time)
    Instant wait_until{};                     // its upstream asked for that (own time)
    std::optional<Instant> open_since_end{};  // true time: seen open although its belief has ended
  };
  /// What the table was asked for in the name of one ownership: belief may count from no later than that.
  struct Ownership {
    std::int16_t process = -1;
    std::int64_t epoch = 0;
    Instant sent_own{};
  };
  struct Conn {
    Row row;
    std::vector<Holding> holdings;      // the latest few
    std::vector<Ownership> ownerships;  // the latest few
    Coverage covered;                   // numbers that are durable somewhere, or recorded as missing
    std::vector<std::pair<std::int64_t, std::string>> epoch_owner;  // the latest few
    std::string claim_attempt;                                      // of the latest claim that was applied
    std::int64_t edited_epoch = -1;                                 // people wrote to the row under it
    Instant not_started_at{};  // when it last was anything but STARTED (true time)
    Instant flowed_at{};
    std::int64_t highest_durable_epoch = 0;
    std::int16_t plain_process = -1;
    Instant plain_until{};
  };

  Conn& conn(std::int32_t connection);
  [[nodiscard]] Holding* holding(std::int32_t connection, std::int16_t process, Epoch epoch);
  [[nodiscard]] bool believes(const Holding& holding) const;
  [[nodiscard]] Writing& writing(std::int16_t process, std::int32_t connection);
  [[nodiscard]] Instant own_time(std::int16_t process) const;
  [[nodiscard]] bool stood_still(const Known& known, Instant since) const;
  void asked_duties(std::int16_t process, std::int32_t connection, const Update& update, const Intent& intent);
  void asked_again(Writing& written, std::int16_t process, std::int32_t connection, const Intent& intent);
  void answered_duties(std::int16_t process, std::int32_t connection, const Update& update, const Intent& intent,
                       const RowReply& reply);
  void owe(Writing& written, std::int16_t process, std::int32_t connection, const Intent& intent);
  void look_at_what_is_owed(std::int16_t process, std::int32_t connection);
  void look_at_socket(std::int32_t connection, Holding& one);
  void look_at_renewals(std::int32_t connection, const Holding& one);
  void look_at_promise(const Conn& at, const Holding& one, std::int32_t connection);
  void applied(std::int32_t connection, const Update& update, const holdfast::Row& after, const Origin& origin);
  void worker_wrote(Conn& at, std::int32_t connection, const Update& update, const Row& after, const Origin& origin);
  void claimed(Conn& at, std::int32_t connection, const Intent& intent, const Row& after, const Origin& origin);
  void checkpointed(const Conn& at, std::int32_t connection, const Row& after);
  void feed_carried_out(const Update& update, const RowReply& reply, const Origin& origin);
  void own_claim_refused(std::int16_t process, std::int32_t connection, const Intent& intent,
                         const holdfast::Row& row);
  void refused(std::int32_t connection, const Update& update, const RowReply& reply, const Origin& origin);
  [[nodiscard]] std::string who(std::int16_t process) const;

  World& world_;
  std::vector<Known> processes_;
  std::vector<Conn> conns_;
  Row feed_;  // the row of who reads the changes for all
  std::optional<Violation> violation_;
};

}  // namespace holdfast::sim
