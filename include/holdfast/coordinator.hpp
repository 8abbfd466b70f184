#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "holdfast/coordination.hpp"
#include "holdfast/error.hpp"
#include "holdfast/lease.hpp"
#include "holdfast/row.hpp"
#include "holdfast/types.hpp"
#include "holdfast/update.hpp"

namespace holdfast {

struct CoordinatorOptions {
  std::string store = "sqlite:holdfast.db";  ///< sqlite:PATH, dynamodb://TABLE?region=REGION, memory: (this object's)
  bool make_table =
      true;          ///< a SQLite file that is not there yet; false: open() refuses (AvailableCoordinator: see there)
  std::string id{};  ///< names this process, for people; empty: host name and process id
  Duration patience = std::chrono::seconds(5);  ///< how long each call waits for a store that does not answer
  Duration skew = std::chrono::seconds(1);      ///< what two wall clocks may differ by; of rights: LeaseOptions::skew
};

struct RightOptions {
  LeaseOptions lease{.lease = std::chrono::seconds(10)};
  bool renews = true;  ///< false: it ends when its lease does
  Duration wait{};     ///< how long somebody who holds it is waited for; 0: not at all; Duration::max(): for ever
  /// A request to stop ends the wait: Failure::Kind::busy. What was won by then is given to the caller all the same.
  std::stop_token cancel{};
};

/// An exclusive right that is held: to do something until it ends. Renewed in the background unless told otherwise.
/// Ask holds() before every effect, or do everything that takes long under lost(). Given back when it is destroyed.
/// One thread at a time, but for holds(), until() and lost(), which any may call while it lives. Assigned over, the
/// old one is given back; one that outlives its coordinator is over.
class Right {
 public:
  Right(Right&&) noexcept;
  Right& operator=(Right&&) noexcept;
  ~Right();

  [[nodiscard]] Epoch epoch() const;
  /// The belief's end, as things are: effects stop before it (S4, S7).
  [[nodiscard]] Instant until() const;
  /// Whether effects are allowed now. Reads a clock and an atomic; never waits.
  [[nodiscard]] bool holds() const;
  [[nodiscard]] Duration left() const;  ///< of the belief; zero where it is over
  /// Is requested to stop as soon as the right is lost, or was given back. Its callbacks run on the coordinator's own
  /// thread: they are short, and call nothing of the coordinator.
  [[nodiscard]] std::stop_token lost() const;
  [[nodiscard]] std::optional<LossReason> why_lost() const;
  /// To be added to the condition of one's own writes to the row (S2). Writes elsewhere carry epoch().
  [[nodiscard]] Condition fence() const;
  [[nodiscard]] const std::string& key() const;  ///< of the row

  /// Effects are over: gives it back, and waits until that is known, as long as CoordinatorOptions::patience.
  /// Failure::Kind::refused: it was lost before; unknown: the store did not say in time. It is tried further then,
  /// while there is a coordinator, and otherwise the lease runs out by itself. A second time: what the first came to.
  Ended<void> release();

 private:
  friend class Coordinator;
  class Impl;
  explicit Right(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

struct OnceRunOptions {
  /// What it is about: the same key with another one is Failure::Kind::mismatch. JSON counts as equal however it is
  /// written. Nothing: not looked at.
  std::optional<std::string> input{};
  LeaseOptions lease{.lease = std::chrono::seconds(10)};
  Duration wait{};  ///< how long somebody else's run is waited for; 0: not at all
  Abandoned abandoned = Abandoned::rerun;
  /// For Abandoned::reconcile: finds out what became of the run that left no result. Its result is recorded; nothing:
  /// run it again.
  std::function<std::optional<OnceResult>(const Right&)> reconcile{};
  Duration retention = std::chrono::hours(24);  ///< how long the result is kept, at least: 1 s to 366 days
  std::stop_token cancel{};                     ///< of the wait, as RightOptions::cancel; not of what runs
};
struct OnceRun {
  std::optional<OnceResult> result{};  ///< nothing: it was tried here and is not done; whoever is next tries again
  bool was_replayed = false;           ///< it had been run before: nothing was called
};

struct QueueOptions {
  std::size_t max = 10;                            ///< 1 to 100 messages
  Duration visibility = std::chrono::seconds(30);  ///< the group is ours for so long (100 ms to a day); or extend()
  Duration wait{};                                 ///< for something to come; 0: not at all
  enum class Poison {
    block,  ///< given out again and again
    park,   ///< its group is set aside, until redrive()
    move,   ///< it goes to the queue `dead_letter`, and the group goes on
  };
  Poison poison = Poison::block;   ///< what becomes of a message that was given out `receives_most` times in vain
  std::int64_t receives_most = 5;  ///< 1 to 1,000,000
  std::string dead_letter{};
  /// A request to stop ends the wait, with nothing. What was leased by then is given to the caller all the same.
  std::stop_token cancel{};
};

/// The primitives of ephemeral coordinators (docs/coordinators.md), for programs that wait for each answer. Any
/// number of threads may call at once. Each call waits for the store as long as CoordinatorOptions::patience, and as
/// long as it was told to for others; then it says `unavailable`, or `unknown` where something may have happened.
/// run_once() waits for the store so long again when it records what came of the run; where that was in vain it goes
/// on trying, for as long as the lease lasts, or `patience` once more where that is longer.
///
///     auto opened = holdfast::Coordinator::open({.store = "sqlite:/var/lib/shop/jobs.db"});
///     if (!opened) return complain(opened.error());
///     auto right = (*opened)->acquire("nightly-report");
///     if (!right) return complain(right.error().error);
///     while (work_is_left() && right->holds()) do_a_piece(right->epoch());
///
/// It has a thread of its own, on which leases are renewed. Destroyed: what is still held is given back first, for as
/// long as `patience`, and requests that are under way have 5 s to end; no call may be under way. Not to be used
/// after fork().
class Coordinator {
 public:
  /// Code::usage: the options make no sense, or the store's address; other codes: its file cannot be opened. A server
  /// is not asked anything yet.
  [[nodiscard]] static Result<std::unique_ptr<Coordinator>> open(CoordinatorOptions options);
  ~Coordinator();
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;

  // ---- Rights ----

  /// Failure::Kind::busy: somebody else has it, and had it for as long as `wait`.
  [[nodiscard]] Ended<Right> acquire(std::string_view task, RightOptions options = {});

  // ---- Once ----

  /// Runs it, on this thread, unless it has been run: then gives the result that is recorded. Where it returns
  /// nothing it is surely not done, and whoever is next runs it. A throw leaves open how far it came: whoever is next
  /// finds it abandoned. What came of it is recorded under its fence, where its lease is over too, until somebody
  /// else has had the key.
  ///
  /// Failure, and `run` was not called: busy, somebody else runs it; mismatch, the key was used with another input;
  /// refused, it is abandoned, and Abandoned::hold says that a person decides (the text names both ways on);
  /// unavailable, the store was away; unknown too, where a claim may have arrived: its lease runs out by itself. And
  /// it was called and has ended, as the text says: unknown, its result may not be on record, since the store did not
  /// say so in time or another took the key, and whoever is next may find it abandoned; rejected, its result is too
  /// large.
  [[nodiscard]] Ended<OnceRun> run_once(std::string_view key,
                                        const std::function<std::optional<OnceResult>(const Right&)>& run,
                                        OnceRunOptions options = {});

  // ---- Decisions ----

  /// The first proposal wins, for ever; everybody is told the same. One write at most.
  /// `ticket` names the proposal: said again under it, Decided::was_ours is as it was. Empty: without a name.
  [[nodiscard]] Ended<Decided> decide(std::string_view key, Value proposal, std::string_view ticket = {});
  /// Proposes nothing: what was decided, if anything was.
  [[nodiscard]] Ended<std::optional<Decided>> decided(std::string_view key);

  // ---- Counters and stock ----

  /// Once for each `op_id`. Below its floor: refused.
  [[nodiscard]] Ended<Added> add(AddOptions options);
  [[nodiscard]] Ended<std::int64_t> number(AddOptions::To of, std::string_view key);  ///< 0 where there is none
  /// All or none. Where there is too little, what has expired is returned first; then refused. Refused
  /// as well where the reservation of this id was cancelled or has expired; where it was confirmed, a repeat says so.
  [[nodiscard]] Ended<Reservation> reserve(ReserveOptions options);
  [[nodiscard]] Ended<Reservation> confirm(std::string_view reservation);
  [[nodiscard]] Ended<Reservation> cancel(std::string_view reservation);
  [[nodiscard]] Ended<Reservation> reservation(std::string_view id);
  /// Returns what nobody confirmed in time: at most so many. How many it were.
  [[nodiscard]] Ended<std::size_t> return_expired(std::size_t most = 25);

  // ---- Ordered queues ----

  [[nodiscard]] Ended<Sent> send(SendOptions options);
  /// Leases a group that is due, and gives the first of its messages. Nothing: nothing is due. A group whose first
  /// message is damaged is parked with the reason, and one whose own row is damaged is passed over: where nothing
  /// else comes while it waits, and after 10 s at the latest, that is told (rejected, Code::corrupt).
  [[nodiscard]] Ended<std::optional<Batch>> receive(std::string_view queue, QueueOptions options = {});
  /// Done with all of the batch, or with its first `count` (at least 1). Refused, as the others are: somebody else
  /// has had the group since, or it was given back.
  [[nodiscard]] Ended<Settled> ack(const Receipt& receipt);
  [[nodiscard]] Ended<Settled> ack(const Receipt& receipt, std::int64_t count);
  [[nodiscard]] Ended<Settled> nack(const Receipt& receipt, Duration delay = {});  ///< to be received again
  [[nodiscard]] Ended<Settled> extend(const Receipt& receipt, Duration visibility);
  [[nodiscard]] Ended<Settled> park(const Receipt& receipt, std::string reason);
  /// Lets a parked group go on. `skip`: without its first message.
  [[nodiscard]] Ended<Settled> redrive(std::string_view queue, std::string_view group, bool skip = false);
  /// The way back from a dead-letter queue: the first `most` messages (1 to 100) of the group go to the end of the
  /// same group of the queue `to`, each once, whatever happens. Where not all could be moved, it is told how many
  /// were; asked again, it says why. Busy: somebody else has the group; refused: it is parked.
  [[nodiscard]] Ended<Redriven> redrive_to(std::string_view queue, std::string_view group, std::string_view to,
                                           std::size_t most = 100);
  /// Nothing: there is no such group. Does not receive anything.
  [[nodiscard]] Ended<std::optional<GroupView>> peek(std::string_view queue, std::string_view group,
                                                     std::size_t most = 10);
  /// The groups that have messages, are leased or parked. As the index tells them: it may be late.
  [[nodiscard]] Ended<GroupList> stats(std::string_view queue, std::size_t most = 10'000);

  /// The clock of Right::until() and Batch::until.
  [[nodiscard]] static Instant now();
  /// Stands in for the random part of an id, where a caller has none: 32 hexadecimal digits.
  [[nodiscard]] std::string new_id();

 private:
  class Impl;
  explicit Coordinator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace holdfast
