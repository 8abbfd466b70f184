#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/keeper.hpp"
#include "core/planner.hpp"
#include "holdfast/lease.hpp"
#include "holdfast/loop.hpp"
#include "holdfast/report.hpp"
#include "holdfast/resource.hpp"
#include "holdfast/store.hpp"
#include "runtime/log.hpp"
#include "store/counting.hpp"
#include "worker/change_watch.hpp"
#include "worker/lodging.hpp"
#include "worker/loop_pulse.hpp"
#include "worker/membership.hpp"
#include "worker/strays.hpp"
#include "worker/tidings.hpp"

namespace holdfast::worker {

struct WorkerOptions {
  std::string name;
  std::string incarnation;   ///< drawn anew at each start: leases are owned by `name#incarnation`
  PokeNet* pokes = nullptr;  ///< null: hears of nothing where the store's changes take a reader
  std::string poke_token;    ///< drawn anew at each start
  LeaseTerms terms;
  std::size_t max_connections = 100;
  Duration drain_timeout = std::chrono::seconds(20);
  Duration sink_patience = std::chrono::seconds(30);
  Duration checkpoint_every{};  ///< zero: checkpoints ride on renewals
  /// What is wrong with the place that the resources deliver to, if there is one.
  std::function<std::optional<Error>()> sink_failure;
  /// Whether that is for good: then everything is given back, and the worker ends as failed.
  std::function<bool()> sink_failed_for_good;
};

/// The shell around Keeper and Planner: carries their actions out on a store and on resources, and hands the
/// outcomes back. It decides nothing about leases itself.
///
/// All on the control loop's thread; the resources live on the stream loops (which may be the control loop).
/// start() once, then drain() or stop(); `ended` is called once, on the control loop, when nothing is held any
/// more that could still be given back. Destroying it earlier is a crash without the process: resources are
/// destroyed at once, nothing is given back; only where the stream loops no longer run, or are this thread's.
class Worker {
 public:
  Worker(WorkerOptions options, Loop& control, std::vector<Loop*> streams, Store& store, ResourceFactory factory,
         runtime::Log& log, std::function<void()> ended);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void start();
  /// S11. Within the drain limit everything is ended in order and given back; what is left then is cut.
  void drain();
  /// At once: every belief is revoked, nothing is given back.
  void stop();

  /// Something held does not flow; for the log only.
  void troubled(const Trouble& trouble) { tidings_.troubled(trouble); }

  [[nodiscard]] Report report() const;
  [[nodiscard]] std::size_t held() const { return keeper_.held(); }
  [[nodiscard]] bool draining() const { return draining_; }
  [[nodiscard]] bool reads_changes() const { return watch_.reads(); }
  [[nodiscard]] bool ended() const { return over_; }

 private:
  /// What the shell knows of one of the Keeper's slots.
  struct Place {
    std::unique_ptr<Lodging> lodging;
    Row row;                       // the newest that was handed to the Keeper
    Candidate seen;                // what the claim rested on
    std::string refusal;           // why the store rejected the claim of this very row
    std::uint64_t generation = 0;  // told apart: those that had this slot before
    WriteId write_id = 0;          // the latest write
    std::size_t home = 0;          // which stream loop
    LossReason reason{};           // why it was asked to stop
    TimerId cut_timer = 0;
    bool checkpoint_asked = false;                // the next renewal goes out of turn, for its checkpoint
    std::string status, status_reason;            // as written into the row
    std::string status_sent, status_reason_sent;  // as in the write under way
    WallTime down_since{};
    std::optional<Failover> failover;
  };

  void pump();
  void arm();
  void carry_out(const Action& action);
  void write(const Action& action);
  void add_status(Place& at, Progress progress, Update& update);
  void send(Slot slot, WriteId id, LeaseWrite::Kind kind, Instant deadline, Update update, Error refused = {});
  void written(Slot slot, WriteId id, LeaseWrite::Kind kind, RowReply&& reply);
  void start_resource(const Action& action);
  void stop_resource(const Action& action);
  void extend(const Action& action);
  void lose_resource(const Action& action);
  void resource_stopped(Slot slot, std::uint64_t generation);
  void cut_after(Slot slot, Instant when);
  void retire(Place& place, const Progress& progress);
  void forget(const Action& action);
  void learn(Place& place, const Row& before);
  [[nodiscard]] std::size_t roomiest_loop() const;
  void loop_changed(std::size_t loop, LoopPulse::State state, Duration silent);
  void first_checkpoint(Slot slot, std::uint64_t generation);
  void checkpoint_soon(Slot slot);
  void ask_for_checkpoints();
  void note_failover(Place& place, const Action& action);
  void close_failover(Place& place, const Progress& progress);
  Place& place(Slot slot);

  void look(const Look& look, std::string page);
  void tell_unowned();
  void look_far_ahead();
  void watch_sink();
  void sink_is_gone(const Error& failure);
  void release_all(LossReason reason);
  void finish_if_done();
  void end(Report::End how);
  [[nodiscard]] std::size_t room() const { return sink_refused_ || pulse_.all_blocked() ? 0 : keeper_.room(); }
  [[nodiscard]] std::function<void()> when_alive(std::function<void()> task);

  const WorkerOptions options_;
  Loop& control_;
  const std::vector<Loop*> streams_;
  CountingStore store_;
  const ResourceFactory factory_;
  runtime::Log& log_;
  const std::function<void()> ended_;

  Keeper keeper_;
  Planner planner_;
  Membership membership_;
  ChangeWatch watch_;
  Tidings tidings_;
  LoopPulse pulse_;
  Strays strays_;
  std::vector<Place> places_;           // by slot
  std::vector<std::size_t> residents_;  // by stream loop
  std::uint64_t last_generation_ = 0;

  std::string look_page_;  // of the latest look: what it asked for last
  Instant look_far_ahead_after_{};
  TimerId timer_ = 0;
  Instant armed_ = Instant::max();
  TimerId sink_timer_ = 0, drain_timer_ = 0, checkpoint_timer_ = 0;
  std::uint64_t checkpoint_turn_ = 0;
  std::optional<Instant> sink_failing_since_;
  bool sink_refused_ = false;
  bool full_and_unowned_ = false;
  bool draining_ = false;
  bool finishing_ = false;
  bool over_ = false;
  Instant resources_deadline_{}, drain_deadline_{};
  std::uint64_t not_released_before_drain_ = 0;
  Report report_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace holdfast::worker
