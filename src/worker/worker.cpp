#include "worker/worker.hpp"

#include <algorithm>
#include <utility>

#include "core/number.hpp"
#include "holdfast/assert.hpp"
#include "worker/one_line.hpp"
#include "worker/report.hpp"

namespace holdfast::worker {
namespace {

/// What a resource that has nothing left to finish may take until it is cut off.
constexpr Duration stop_at_once_limit = std::chrono::seconds(1);
constexpr std::size_t status_bytes_max = 40;
constexpr std::size_t reason_bytes_max = 300;

std::int64_t milliseconds(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

ConnectionId connection_of(std::string_view key) {
  if (key.starts_with(key_prefix::connection)) key.remove_prefix(key_prefix::connection.size());
  return ConnectionId(std::string(key));
}

bool same(const Row& left, const Row& right, std::string_view name) {
  const Value* a = left.find(name);
  const Value* b = right.find(name);
  return a == nullptr || b == nullptr ? a == b : *a == *b;
}

Purpose purpose_of(LeaseWrite::Kind kind, bool for_its_checkpoint) {
  switch (kind) {
    case LeaseWrite::Kind::claim:
      return Purpose::claim;
    case LeaseWrite::Kind::release:
      return Purpose::release;
    case LeaseWrite::Kind::renew:
      break;
  }
  return for_its_checkpoint ? Purpose::checkpoint : Purpose::renew;
}

std::string address_of(const WorkerOptions& options) {
  return options.pokes == nullptr ? "" : PokeAddress{options.pokes->place(), options.poke_token}.text();
}

bool is_for_people(const Change& change) {
  return change.attribute == attribute::status || change.attribute == attribute::status_reason;
}

}  // namespace

Worker::Worker(WorkerOptions options, Loop& control, std::vector<Loop*> streams, Store& store,
               ResourceFactory factory, runtime::Log& log, std::function<void()> ended)
    : options_(std::move(options)),
      control_(control),
      streams_(std::move(streams)),
      store_(store),
      factory_(std::move(factory)),
      log_(log),
      ended_(std::move(ended)),
      keeper_(WorkerId(options_.name + "#" + options_.incarnation), options_.terms,
              KeeperLimits{.max_leases = options_.max_connections}, control.random()),
      planner_(options_.terms, PlannerLimits{.max_leases = options_.max_connections}, control.random()),
      membership_(MembershipOptions{options_.name, options_.incarnation, address_of(options_),
                                    static_cast<std::int64_t>(options_.max_connections), options_.terms},
                  control, store_, log,
                  [this] {
                    return Membership::Facts{static_cast<std::int64_t>(keeper_.held()), draining_};
                  }),
      watch_({keeper_.owner(), options_.terms, options_.pokes, options_.poke_token}, control, store_, log,
             [this] {
               planner_.poke(control_.now());
               pump();
             }),
      tidings_(control, log, options_.max_connections),
      pulse_(
          control, streams_, options_.terms.lease,
          [this](std::size_t loop, LoopPulse::State state, Duration silent) { loop_changed(loop, state, silent); }),
      strays_(log),
      residents_(streams_.size()) {
  HOLDFAST_ASSERT(!streams_.empty(), "resources need a loop to live on");
  report_.worker = options_.name;
  report_.incarnation = options_.incarnation;
}

Worker::~Worker() {
  for (const TimerId timer : {timer_, sink_timer_, drain_timer_, checkpoint_timer_}) {
    if (timer != 0) control_.cancel(timer);
  }
  for (Place& place : places_) {
    if (place.cut_timer != 0) control_.cancel(place.cut_timer);
    if (place.lodging) place.lodging->guard().revoke();
  }
}

void Worker::start() {
  report_.started = control_.wall();
  log_.info("worker " + keeper_.owner().value + " on " + store_.capabilities().name);
  membership_.start();
  watch_.start();
  if (options_.sink_failure) watch_sink();
  if (options_.checkpoint_every > Duration::zero()) ask_for_checkpoints();
  pulse_.start();
  pump();
}

std::function<void()> Worker::when_alive(std::function<void()> task) {
  return [alive = std::weak_ptr<bool>(alive_), task = std::move(task)] {
    if (!alive.expired()) task();
  };
}

Worker::Place& Worker::place(Slot slot) {
  if (slot >= places_.size()) places_.resize(slot + std::size_t{1});
  return places_[slot];
}

// The turn: everything that is due now, then one timer for the rest.

void Worker::pump() {
  while (!over_) {
    // The clocks are read anew for each action: belief counts from before its request leaves (S4).
    while (const std::optional<Action> action = keeper_.poll(control_.now())) carry_out(*action);
    bool claimed = false;
    while (const std::optional<Candidate> candidate = planner_.take(control_.now(), room())) {
      if (!keeper_.claim(*candidate, control_.now())) continue;
      claimed = true;
      place(keeper_.find(candidate->key).value()).seen = *candidate;
    }
    if (!claimed) break;
  }
  if (over_) return;
  if (const std::optional<Look> due = planner_.look(control_.now()))
    look(*due, due->goes_on ? look_page_ : std::string());
  finish_if_done();
  if (!over_) arm();
}

void Worker::arm() {
  Instant when = Instant::max();
  if (const auto next = keeper_.next()) when = std::min(when, *next);
  if (const auto next = planner_.next()) when = std::min(when, *next);
  if (timer_ != 0 && when == armed_) return;
  if (timer_ != 0) control_.cancel(std::exchange(timer_, 0));
  armed_ = when;
  if (when == Instant::max()) return;
  timer_ = control_.call_at(when, [this] {
    timer_ = 0;
    const Instant now = control_.instant();
    if (keeper_.next() == armed_ && armed_ < now) {
      report_.renewal_late_ms_max = std::max(report_.renewal_late_ms_max, milliseconds(now - armed_));
    }
    pump();
  });
}

void Worker::carry_out(const Action& action) {
  switch (action.kind) {
    case Action::Kind::write:
      return write(action);
    case Action::Kind::start:
      return start_resource(action);
    case Action::Kind::extend:
      return extend(action);
    case Action::Kind::stop:
      return stop_resource(action);
    case Action::Kind::lost:
      return lose_resource(action);
    case Action::Kind::gone:
      return forget(action);
  }
}

// Writes.

void Worker::write(const Action& action) {
  Place& at = place(action.slot);
  LeaseWrite lease = action.write;
  const bool renewal = lease.kind == LeaseWrite::Kind::renew;
  if (renewal && at.lodging && pulse_.state(at.home) == LoopPulse::State::abandoned) {
    // Where it lives nothing moves any more: its lease is left to run out. Given back it cannot be, as something may
    // still be under way there (S7). Asked again at the next renewal's time, in case it moves by then.
    return keeper_.on_write(action.slot, action.write_id, Outcome::rejected, nullptr, control_.now());
  }
  Progress progress;
  if (at.lodging) progress = at.lodging->progress();
  // Where the row's cannot be read, nothing is written over it.
  const std::int64_t known_seq = last_seq_of(at.row).value_or(INT64_MAX);
  if (renewal && at.lodging && progress.last_seq > std::max(lease.last_seq.value_or(0), known_seq)) {
    // The newest checkpoint rides on this renewal; the Keeper hears of it for the ones after (S9).
    lease.last_seq = progress.last_seq;
    keeper_.progress(action.slot, progress.last_seq);
  }
  Update update = render(lease, keeper_.owner());
  if (renewal) {
    add_status(at, std::move(progress), update);
  } else {
    // Nobody holds it, or not yet: what its last owner said of it is no longer true (F42).
    update.changes.push_back(Change::remove(attribute::status));
    update.changes.push_back(Change::remove(attribute::status_reason));
  }
  if (lease.kind == LeaseWrite::Kind::release && at.reason == LossReason::stopped) {
    // Not a hand-over: nobody is meant to go on with it.
    std::erase_if(update.changes, [](const Change& change) { return change.attribute == attribute::released_at; });
    update.changes.push_back(Change::remove(attribute::released_at));
  }
  update.purpose = purpose_of(lease.kind, std::exchange(at.checkpoint_asked, false));
  at.write_id = action.write_id;
  send(action.slot, action.write_id, lease.kind, action.deadline, std::move(update));
}

/// F42: what is known here of the loop goes before what the resource last said of itself.
void Worker::add_status(Place& at, Progress progress, Update& update) {
  if (at.lodging && pulse_.state(at.home) != LoopPulse::State::runs) {
    progress.status = "blocked";
    progress.reason = "the thread that it lives on does not come back from something that waits (a handler, a file)";
  }
  at.status_sent = one_line(progress.status, status_bytes_max);
  at.status_reason_sent = one_line(progress.reason, reason_bytes_max);
  if (at.status_sent != at.status) update.changes.push_back(Change::set(attribute::status, at.status_sent));
  if (at.status_reason_sent != at.status_reason)
    update.changes.push_back(Change::set(attribute::status_reason, at.status_reason_sent));
}

/// A renewal that the store refuses goes once more without what is in it for people: that must never cost a lease.
void Worker::send(Slot slot, WriteId id, LeaseWrite::Kind kind, Instant deadline, Update update, Error refused) {
  std::shared_ptr<Update> bare;
  if (kind == LeaseWrite::Kind::renew && std::ranges::any_of(update.changes, is_for_people)) {
    bare = std::make_shared<Update>(update);
    std::erase_if(bare->changes, is_for_people);
  }
  store_.update(std::move(update), deadline,
                [this, alive = std::weak_ptr<bool>(alive_), slot, id, kind, deadline, bare = std::move(bare),
                 refused = std::move(refused)](RowReply&& reply) {
                  if (alive.expired() || over_) return;
                  if (bare && reply.outcome == Outcome::rejected && place(slot).write_id == id)
                    return send(slot, id, kind, deadline, std::move(*bare), std::move(reply.error));
                  if (reply.ok() && !refused.detail.empty())
                    log_.warning(place(slot).row.key + ": its status cannot be written: " + refused.detail);
                  written(slot, id, kind, std::move(reply));
                });
}

void Worker::written(Slot slot, WriteId id, LeaseWrite::Kind kind, RowReply&& reply) {
  Place& at = place(slot);
  const bool latest = at.write_id == id;  // else the Keeper no longer waits for it
  // A claim that is invalid as it is tells of its row, not of the store.
  const bool about_row =
      reply.outcome == Outcome::rejected && kind == LeaseWrite::Kind::claim && reply.error.code == Code::usage;
  if (!about_row) tidings_.answered(Tidings::Asked::write, reply.outcome, reply.error);
  if (latest && kind == LeaseWrite::Kind::claim) at.refusal = about_row ? reply.error.detail : "";
  Row before;
  if (latest && reply.value) {
    before = std::exchange(at.row, *std::move(reply.value));
    if (reply.ok() && kind == LeaseWrite::Kind::renew) {
      at.status = at.status_sent;
      at.status_reason = at.status_reason_sent;
    }
  }
  const Row* row = latest && reply.value ? &at.row : nullptr;
  keeper_.on_write(slot, id, reply.outcome, row, control_.now());
  // Also from a conflict that turned out to be ours (S5, S6): it has brought the row as it is now.
  const bool ours = row != nullptr && row->text(attribute::owner) == keeper_.owner().value;
  if (ours && kind == LeaseWrite::Kind::renew) learn(at, before);
  pump();
}

/// Edits of a row come with the answer to a renewal, at no extra read.
void Worker::learn(Place& at, const Row& before) {
  if (!at.lodging || at.lodging->stopping()) return;
  const bool mended = !last_seq_of(before) && last_seq_of(at.row);
  if (same(at.row, before, attribute::url) && same(at.row, before, attribute::options) && !mended) return;
  log_.debug(at.row.key + ": edited while held");
  at.lodging->row_changed(at.row);
}

// Resources.

void Worker::start_resource(const Action& action) {
  Place& at = place(action.slot);
  at.generation = ++last_generation_;
  at.home = roomiest_loop();
  ++residents_[at.home];
  at.status.clear();
  at.status_reason.clear();
  at.reason = {};
  if (last_seq_of(at.row)) at.row.attributes[std::string(attribute::last_seq)] = action.last_seq;
  Grant grant{connection_of(keeper_.key(action.slot)), at.row,
              std::make_shared<LeaseGuard>(action.epoch, action.until),
              [this, &control = control_, alive = std::weak_ptr<bool>(alive_), slot = action.slot,
               generation = at.generation] {
                control.post([this, alive, slot, generation] {
                  if (!alive.expired()) first_checkpoint(slot, generation);
                });
              }};
  at.lodging = std::make_unique<Lodging>(control_, *streams_[at.home], std::move(grant));
  at.lodging->start(factory_);
  note_failover(at, action);
  log_.debug(keeper_.key(action.slot) + ": taken, epoch " + std::to_string(action.epoch.value) + ", after seq " +
             std::to_string(action.last_seq));
  tidings_.took(keeper_.held());
}

/// The one with the fewest residents, of those that move.
std::size_t Worker::roomiest_loop() const {
  std::size_t best = 0;
  const auto load = [this](std::size_t loop) {
    return std::pair(pulse_.state(loop) != LoopPulse::State::runs, residents_[loop]);
  };
  for (std::size_t loop = 1; loop < residents_.size(); ++loop)
    if (load(loop) < load(best)) best = loop;
  return best;
}

void Worker::loop_changed(std::size_t loop, LoopPulse::State state, Duration silent) {
  const std::string name =
      "thread " + std::to_string(loop) + " of the connections (" + std::to_string(residents_[loop]) + " live there)";
  const std::string time = std::to_string(std::chrono::duration_cast<std::chrono::seconds>(silent).count()) + " s";
  if (state == LoopPulse::State::blocked) {
    log_.error(name + " has done nothing for " + time +
               ": something in it waits and does not come back, such as a handler or a file");
  } else if (state == LoopPulse::State::abandoned) {
    log_.error(name + " has done nothing for " + time + ": its leases are not renewed any more");
  } else {
    log_.info(name + " goes on after " + time);
    planner_.poke(control_.now());
    pump();
  }
}

void Worker::stop_resource(const Action& action) {
  Place& at = place(action.slot);
  if (!at.lodging) return;  // it has just ended
  at.reason = action.reason;
  const Instant now = control_.instant();
  Instant deadline = now + options_.drain_timeout * 3 / 4;
  if (draining_) deadline = resources_deadline_;
  // A sink that takes nothing cannot be waited for.
  if (action.reason == LossReason::sink_failed) deadline = std::min(deadline, now + stop_at_once_limit);
  log_.debug(keeper_.key(action.slot) + ": stopping (" + std::string(to_string(action.reason)) + ")");
  at.lodging->stop(action.reason, deadline,
                   [this, slot = action.slot, generation = at.generation] { resource_stopped(slot, generation); });
  cut_after(action.slot, deadline);
}

void Worker::lose_resource(const Action& action) {
  Place& at = place(action.slot);
  at.reason = action.reason;
  if (!at.lodging) return;         // it has just ended
  at.lodging->guard().revoke();    // S7: whatever its loop is doing, its next effect finds no lease
  if (at.lodging->over()) return;  // cut already: its loop has only to let go of it
  log_.debug(keeper_.key(action.slot) + ": lost (" + std::string(to_string(action.reason)) + ")");
  const auto stopped = [this, slot = action.slot, generation = at.generation] { resource_stopped(slot, generation); };
  if (at.lodging->stopping()) {
    cut_after(action.slot, control_.instant());
  } else {
    at.lodging->stop(action.reason, control_.instant(), stopped);  // the loser hears of its loss, once (F6)
    cut_after(action.slot, control_.instant() + stop_at_once_limit);
  }
}

void Worker::extend(const Action& action) {
  const Place& at = place(action.slot);
  if (!at.lodging || at.lodging->guard().extend(action.until)) return;
  // Who acts by it saw the old belief end before the renewal was confirmed, and has stopped for good (S7).
  keeper_.stop(action.slot, LossReason::belief_expired, control_.now());
}

void Worker::cut_after(Slot slot, Instant when) {
  Place& at = place(slot);
  if (at.cut_timer != 0) control_.cancel(at.cut_timer);
  at.cut_timer = control_.call_at(when, [this, slot, generation = at.generation] {
    Place& late = place(slot);
    if (late.generation != generation || !late.lodging) return;
    late.cut_timer = 0;
    if (late.lodging->over()) return;
    // Given back only once its loop has let go of it: something may still be under way there (S7).
    log_.warning(keeper_.key(slot) + ": did not stop in time, cut off");
    late.lodging->guard().revoke();
    late.lodging->cut([this, slot, generation] { resource_stopped(slot, generation); });
  });
}

void Worker::resource_stopped(Slot slot, std::uint64_t generation) {
  Place& at = place(slot);
  if (over_ || at.generation != generation || !at.lodging) return;
  if (at.cut_timer != 0) control_.cancel(std::exchange(at.cut_timer, 0));
  const Progress progress = at.lodging->progress();
  at.lodging->guard().revoke();
  retire(at, progress);
  keeper_.stopped(slot, progress.last_seq, control_.now());
  pump();
}

/// The resource is over; its numbers go into the report.
void Worker::retire(Place& at, const Progress& progress) {
  add(report_.tally, progress.tally);
  close_failover(at, progress);
  at.lodging.reset();
  --residents_[at.home];
}

void Worker::forget(const Action& action) {
  Place& at = place(action.slot);
  HOLDFAST_ASSERT(!at.lodging, "a slot ends after its resource");
  switch (action.ending) {
    case Ending::claim_conflict:
      planner_.claim_failed(at.seen, {.setback = Setback::conflict, .row = at.row.key.empty() ? nullptr : &at.row},
                            control_.now());
      break;
    case Ending::claim_failed:
      planner_.claim_failed(at.seen, {.setback = Setback::store}, control_.now());
      break;
    case Ending::claim_refused:
      planner_.claim_failed(at.seen,
                            {.setback = at.refusal.empty() ? Setback::store : Setback::refused, .why = at.refusal},
                            control_.now());
      break;
    case Ending::released:
    case Ending::lost:
      if (at.generation != 0) tidings_.ended(at.reason, keeper_.held());
      break;
  }
  at = Place{};
}

// Failovers, as far as the row that was claimed tells.

void Worker::note_failover(Place& at, const Action& action) {
  const Candidate& seen = at.seen;
  Failover failover;
  if (!seen.owner.empty() && seen.expires_at != WallTime{}) {
    failover.kind = Failover::Kind::crash;
    at.down_since = seen.expires_at - std::chrono::duration_cast<std::chrono::milliseconds>(options_.terms.lease);
  } else if (seen.released_at != WallTime{}) {
    failover.kind = Failover::Kind::graceful;
    at.down_since = seen.released_at;
  } else {
    return;  // nobody had it before, or it had been stopped
  }
  failover.connection = connection_of(at.row.key).value;
  failover.epoch = action.epoch;
  failover.claimed_ms = milliseconds(control_.wall() - at.down_since);
  at.failover = std::move(failover);
}

void Worker::close_failover(Place& at, const Progress& progress) {
  if (!at.failover) return;
  if (progress.first_message_at)
    at.failover->first_message_ms = milliseconds(*progress.first_message_at - at.down_since);
  if (report_.failovers.size() < Report::failovers_max) {
    report_.failovers.push_back(*std::move(at.failover));
  } else {
    ++report_.failovers_left_out;
  }
  at.failover.reset();
}

// The sink.

void Worker::watch_sink() {
  const Duration every =
      std::clamp<Duration>(options_.sink_patience / 4, std::chrono::milliseconds(50), std::chrono::seconds(1));
  sink_timer_ = control_.call_after(every, [this] { watch_sink(); });
  const std::optional<Error> failure = options_.sink_failure();
  const Instant now = control_.instant();
  if (!failure) {
    if (sink_failing_since_) log_.info("sink: works again");
    sink_failing_since_.reset();
    if (std::exchange(sink_refused_, false)) {
      planner_.poke(control_.now());
      pump();
    }
    return;
  }
  if (options_.sink_failed_for_good && options_.sink_failed_for_good()) return sink_is_gone(*failure);
  if (!sink_failing_since_) {
    sink_failing_since_ = now;
    log_.warning("sink: " + failure->detail);
  }
  if (!sink_refused_ && now - *sink_failing_since_ >= options_.sink_patience) {
    sink_refused_ = true;
    ++report_.sink_failures;
    log_.error("sink: still failing, so everything is given back and nothing is taken until it works: " +
               failure->detail);
    release_all(LossReason::sink_failed);
    pump();
  }
}

/// Nothing can be delivered ever again: what is held goes to others at once, and this worker ends.
void Worker::sink_is_gone(const Error& failure) {
  if (!report_.failure.empty()) return;
  report_.failure = "the sink has failed for good: " + failure.detail;
  log_.error(report_.failure);
  ++report_.sink_failures;
  release_all(LossReason::sink_failed);
  drain();
  pump();
}

void Worker::release_all(LossReason reason) {
  for (Slot slot = 0; slot < places_.size(); ++slot) {
    if (places_[slot].lodging) keeper_.stop(slot, reason, control_.now());
  }
}

// The end.

void Worker::drain() {
  if (draining_ || over_) return;
  draining_ = true;
  const Instant now = control_.instant();
  drain_deadline_ = now + options_.drain_timeout;
  resources_deadline_ = now + options_.drain_timeout * 3 / 4;  // the rest is for giving back
  tidings_.flush();
  log_.info("draining: " + std::to_string(keeper_.held()) + " held");
  planner_.drain();
  not_released_before_drain_ = keeper_.counters().not_released;
  keeper_.drain(control_.now());
  membership_.tell();
  watch_.drain();
  drain_timer_ = control_.call_at(drain_deadline_, [this] {
    drain_timer_ = 0;
    end(Report::End::drained);
  });
  pump();
}

void Worker::finish_if_done() {
  if (!draining_ || finishing_ || keeper_.used() != 0) return;
  finishing_ = true;
  const Instant now = control_.instant();
  watch_.finish(now + (drain_deadline_ - now) / 2,
                [this] { membership_.finish(drain_deadline_, [this] { end(Report::End::drained); }); });
}

void Worker::stop() {
  end(Report::End::stopped);
}

void Worker::end(Report::End how) {
  if (over_) return;
  tidings_.flush();
  pulse_.stop();
  for (Place& at : places_) {
    if (at.cut_timer != 0) control_.cancel(std::exchange(at.cut_timer, 0));
    if (!at.lodging) continue;
    at.lodging->guard().revoke();
    const Progress progress = at.lodging->progress();
    at.lodging->cut([] {});
    retire(at, progress);
  }
  // Also what had ended but could not be given back: its lease runs out by itself, or has done so.
  std::uint64_t cut = keeper_.used();
  if (draining_) cut += keeper_.counters().not_released - not_released_before_drain_;
  report_.cut = static_cast<std::int64_t>(cut);
  if (how == Report::End::drained && cut > 0) how = Report::End::cut;
  report_.end = report_.failure.empty() ? how : Report::End::failed;
  report_.ended = control_.wall();
  over_ = true;
  for (TimerId* timer : {&timer_, &sink_timer_, &drain_timer_, &checkpoint_timer_}) {
    if (*timer != 0) control_.cancel(std::exchange(*timer, 0));
  }
  membership_.abandon();
  watch_.abandon();
  log_.info("ended: " + std::to_string(keeper_.counters().releases) + " given back, " + std::to_string(report_.cut) +
            " cut");
  control_.post(when_alive(ended_));
}

Report Worker::report() const {
  Report report = report_;
  const Keeper::Counters& counters = keeper_.counters();
  report.claims = static_cast<std::int64_t>(counters.claims);
  report.conflicts = static_cast<std::int64_t>(counters.claim_conflicts);
  report.renewals = static_cast<std::int64_t>(counters.renewals);
  report.releases = static_cast<std::int64_t>(counters.releases);
  for (std::size_t reason = 0; reason < counters.ended.size(); ++reason) {
    if (counters.ended[reason] == 0) continue;
    report.losses[std::string(to_string(static_cast<LossReason>(reason)))] =
        static_cast<std::int64_t>(counters.ended[reason]);
  }
  report.store = store_.counts();
  report.capacity = store_.consumed();
  report.pokes_sent = watch_.counts().pokes_sent;
  report.pokes_heard = watch_.counts().pokes_heard;
  report.pokes_refused = watch_.counts().pokes_refused;
  report.changes_read = watch_.counts().changes;
  if (!over_) report.ended = control_.wall();
  return report;
}

}  // namespace holdfast::worker
