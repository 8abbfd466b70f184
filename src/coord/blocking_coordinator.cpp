// holdfast::Coordinator: the coordinators for callers that wait. All that is decided is decided below it; here calls
// go over to the loop's thread and answers come back.
#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "coord/blocking.hpp"
#include "coord/coordinator.hpp"
#include "coord/engine.hpp"
#include "coord/fingerprint.hpp"
#include "coord/within.hpp"
#include "core/coord/counter.hpp"
#include "core/coord/decision.hpp"
#include "core/coord/names.hpp"
#include "core/coord/queue.hpp"
#include "core/coord/queue_look.hpp"
#include "core/coord/stock.hpp"
#include "core/coord/task.hpp"
#include "holdfast/coordinator.hpp"
#include "runtime/clock.hpp"
#include "runtime/environment.hpp"
#include "store/open.hpp"

namespace holdfast {

namespace {

using coord::check_name;
using coord::check_within;
using coord::Engine;
using coord::Held;
using coord::HoldEnd;
using coord::refuse;

/// A lease, as its caller and the loop share it.
struct Holding {
  // Set before the caller has it.
  std::string key;
  Condition fence;
  std::shared_ptr<const LeaseGuard> guard;

  std::stop_source stop;
  std::atomic<bool> given_back = false;
  std::atomic<int> loss = -1;  // LossReason

  // On the loop.
  std::shared_ptr<Held> held;
  std::optional<coord::Coordinator::Turn> turn;  // under `once`
  std::optional<Ended<void>> end;
  std::function<void(Ended<void>)> on_end;
  std::function<void(Ended<std::optional<OnceResult>>)> on_finished;

  void begin(std::shared_ptr<Held> won) {
    key = won->key();
    fence = won->fence();
    guard = won->guard();
    held = std::move(won);
  }
  /// Effects are over.
  void cease() {
    given_back = true;
    stop.request_stop();
  }
  void lose(LossReason why) {
    loss = static_cast<int>(why);
    stop.request_stop();
  }
  void ended(Ended<void> how) {
    end = std::move(how);
    held.reset();
    turn.reset();
    stop.request_stop();
    if (on_end) std::exchange(on_end, {})(*end);
  }
  /// Calls back when it is known how it ended.
  void release(std::function<void(Ended<void>)> then) {
    if (end) return then(*end);
    on_end = std::move(then);
    if (const auto mine = std::exchange(held, {})) mine->release({});
  }
};
using HoldingPtr = std::shared_ptr<Holding>;

Result<void> check_visibility(Duration visibility) {
  return check_within("The visibility of a group", visibility, coord::visible);
}

Ended<void> came_to(HoldEnd how, const Error& error, const std::string& key) {
  const std::string name(name_in(key));
  const std::string detail = error.detail.empty() ? "" : " " + error.detail;
  switch (how) {
    case HoldEnd::released:
      return {};
    case HoldEnd::doubtful:
    case HoldEnd::unavailable:
    case HoldEnd::unanswered:
      return tl::unexpected(Failure{
          Failure::Kind::unknown, Error(Code::unavailable, "The store did not say whether " + name +
                                                               " was given back; it runs out by itself." + detail)});
    case HoldEnd::lost:
    case HoldEnd::beaten:
    case HoldEnd::rejected:
      break;
  }
  return tl::unexpected(Failure{Failure::Kind::refused,
                                Error(Code::unavailable, name + " was lost before it was given back." + detail)});
}

/// It has happened, whatever became of the key: that is not to be taken for a refusal.
Failure after_it_ran(Failure failure) {
  if (failure.kind == Failure::Kind::refused) failure.kind = Failure::Kind::unknown;
  failure.error.detail +=
      " The function was called and ended: whoever is next may call it again, unless he says Abandoned::hold or "
      "reconcile.";
  return failure;
}

}  // namespace

// ---- Right ----

class Right::Impl {
 public:
  Impl(std::shared_ptr<Engine> engine, HoldingPtr holding)
      : engine_(std::move(engine)), holding_(std::move(holding)) {}
  ~Impl() {
    holding_->cease();
    // Held is the loop's. Where that has ended, nothing is left to be given back.
    engine_->post([holding = holding_] { holding->release([](const auto&) {}); });
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  const std::shared_ptr<Engine> engine_;
  const HoldingPtr holding_;
};

Right::Right(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Right::Right(Right&&) noexcept = default;
Right& Right::operator=(Right&&) noexcept = default;
Right::~Right() = default;

Epoch Right::epoch() const {
  return impl_->holding_->guard->epoch();
}
Instant Right::until() const {
  return impl_->holding_->guard->until();
}
bool Right::holds() const {
  return !impl_->holding_->given_back && impl_->holding_->guard->holds(runtime::boot_now());
}
Duration Right::left() const {
  if (impl_->holding_->given_back) return Duration::zero();
  return impl_->holding_->guard->left(runtime::boot_now());
}
std::stop_token Right::lost() const {
  return impl_->holding_->stop.get_token();
}
std::optional<LossReason> Right::why_lost() const {
  const int loss = impl_->holding_->loss;
  if (loss < 0) return std::nullopt;
  return static_cast<LossReason>(loss);
}
Condition Right::fence() const {
  return impl_->holding_->fence;
}
const std::string& Right::key() const {
  return impl_->holding_->key;
}
Ended<void> Right::release() {
  impl_->holding_->cease();
  return impl_->engine_->call<void>(
      [holding = impl_->holding_](auto answer) { holding->release(std::move(answer)); });
}

// ---- Coordinator ----

class Coordinator::Impl {
 public:
  using Turn = coord::Coordinator::Turn;

  Impl(CoordinatorOptions options, std::shared_ptr<Engine> engine, coord::Coordinator* coordinator, Loop* loop)
      : options_(std::move(options)), engine_(std::move(engine)), coordinator_(coordinator), loop_(loop) {}
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Ended<Right> acquire(const std::string& task, const coord::TaskOptions& options, const std::stop_token& cancel);
  Ended<OnceRun> run_once(OnceOptions what, const coord::TaskOptions& task,
                          const std::function<std::optional<OnceResult>(const Right&)>& run,
                          const OnceRunOptions& options);

  [[nodiscard]] Result<coord::TaskOptions> task(const LeaseOptions& lease, Duration wait, bool renews) const {
    auto terms = make_terms(lease);
    if (!terms) return tl::unexpected(terms.error());
    return coord::TaskOptions{*terms, renews, wait, options_.patience, terms->lease};
  }

  /// A procedure, made on the loop with its deadline and randomness last.
  template <class T, class P, class... Arguments>
  Ended<T> carry_out(Arguments... arguments) {
    return engine_->call<T>([=, this](std::function<void(Ended<T>)> answer) {
      coordinator_->run(std::make_unique<P>(arguments..., loop_->instant() + options_.patience, loop_->random()),
                        std::move(answer));
    });
  }
  /// A call of the coordinator's own.
  template <class T, class Ask>
  Ended<T> ask(Ask ask) {
    return engine_->call<T>(
        [this, ask](std::function<void(Ended<T>)> answer) { ask(*coordinator_, std::move(answer)); });
  }
  /// The same, for one that waits for others; `ask` hands on what it is asked.
  template <class T, class Ask>
  Ended<T> ask_and_wait(const std::stop_token& cancel, Ask ask) {
    const IsWanted is_wanted = [cancel] { return !cancel.stop_requested(); };
    // Told on whichever thread requests it, at the latest until we return.
    const std::stop_callback passes_on(cancel, [this] { engine_->post([this] { coordinator_->recheck(); }); });
    return engine_->call<T>(
        [&](std::function<void(Ended<T>)> answer) { ask(*coordinator_, is_wanted, std::move(answer)); });
  }
  Ended<Reservation> end_reservation(std::string_view id, Reservation::State into);

  const CoordinatorOptions options_;
  const std::shared_ptr<Engine> engine_;

 private:
  [[nodiscard]] HoldingPtr make_holding();
  Ended<OnceRun> finish(const HoldingPtr& holding, const std::string& key, const coord::TaskOptions& task,
                        OnceResult result, Duration retention);
  void leave(const HoldingPtr& holding);

  coord::Coordinator* const coordinator_;  // lives on the loop, as that does in the engine
  Loop* const loop_;
  std::vector<std::weak_ptr<Holding>> holdings_;  // on the loop
};

/// What is held is given back, and that is waited for.
Coordinator::Impl::~Impl() {
  (void)engine_->call<void>([this](std::function<void(Ended<void>)> answer) {
    const auto open = std::make_shared<std::size_t>(1);
    const auto one_less = [open, answer = std::move(answer)](const Ended<void>&) {
      if (--*open == 0) answer({});
    };
    for (const auto& each : holdings_) {
      const HoldingPtr holding = each.lock();
      if (!holding || holding->end) continue;
      ++*open;
      holding->cease();
      holding->release(one_less);
    }
    one_less({});
  });
  engine_->stop();
}

HoldingPtr Coordinator::Impl::make_holding() {
  auto holding = std::make_shared<Holding>();
  std::erase_if(holdings_, [](const auto& each) { return each.expired(); });
  holdings_.push_back(holding);
  return holding;
}

Ended<Right> Coordinator::Impl::acquire(const std::string& task, const coord::TaskOptions& options,
                                        const std::stop_token& cancel) {
  const auto ask = [&](auto& coordinator, const IsWanted& is_wanted, std::function<void(Ended<HoldingPtr>)> answer) {
    const HoldingPtr holding = make_holding();
    coord::TaskEvents events;
    events.acquired = [holding, answer = std::move(answer)](Ended<std::shared_ptr<Held>> got) {
      if (!got) return answer(tl::unexpected(std::move(got.error())));
      holding->begin(*std::move(got));
      answer(holding);
    };
    events.lost = [holding](LossReason why) { holding->lose(why); };
    events.ended = [holding](HoldEnd how, const Error& error) { holding->ended(came_to(how, error, holding->key)); };
    events.is_wanted = is_wanted;
    coordinator.acquire(task, options, std::move(events));
  };
  return ask_and_wait<HoldingPtr>(cancel, ask).map([this](HoldingPtr holding) {
    return Right(std::make_unique<Right::Impl>(engine_, std::move(holding)));
  });
}

Ended<OnceRun> Coordinator::Impl::run_once(OnceOptions what, const coord::TaskOptions& task,
                                           const std::function<std::optional<OnceResult>(const Right&)>& run,
                                           const OnceRunOptions& options) {
  HoldingPtr holding;
  const auto ask = [&](auto& coordinator, const IsWanted& is_wanted, std::function<void(Ended<Turn>)> answer) {
    holding = make_holding();
    coord::Coordinator::OnceEvents events;
    events.turn = [holding, answer = std::move(answer)](Ended<Turn> got) {
      if (got && got->held) {
        holding->begin(got->held);
        holding->turn = *got;
        got->held.reset();  // the loop's
      }
      answer(std::move(got));
    };
    events.lost = [holding](LossReason why) { holding->lose(why); };
    events.finished = [holding](Ended<std::optional<OnceResult>> how) {
      holding->ended(how ? Ended<void>() : tl::unexpected(how.error()));
      if (holding->on_finished) std::exchange(holding->on_finished, {})(std::move(how));
    };
    events.is_wanted = is_wanted;
    coordinator.once(what, task, std::move(events));
  };
  const auto turn = ask_and_wait<Turn>(options.cancel, ask);
  if (!turn) return tl::unexpected(turn.error());
  if (turn->done) return OnceRun{turn->done->result, true};
  if (turn->hold) {
    return tl::unexpected(
        Failure{Failure::Kind::refused,
                Error(Code::unavailable,
                      what.key + " was begun by " + turn->hold->owner +
                          " and left no result; nothing was called. Find out what became of it. If it was done, "
                          "record that with Abandoned::reconcile; if not, have it run again: holdfast task release "
                          "--once --epoch " +
                          std::to_string(turn->hold->epoch.value) + " -- " + what.key)});
  }
  Right right(std::make_unique<Right::Impl>(engine_, holding));
  std::optional<OnceResult> result;
  try {
    if (turn->was_abandoned && options.abandoned == Abandoned::reconcile) result = options.reconcile(right);
    if (!result) result = run(right);
  } catch (...) {
    leave(holding);
    throw;
  }
  if (!result) {
    const auto given_back = right.release();
    if (!given_back) return tl::unexpected(after_it_ran(given_back.error()));
    return OnceRun{};
  }
  holding->cease();
  result->at = runtime::wall_now();
  return finish(holding, what.key, task, *std::move(result), options.retention);
}

Ended<OnceRun> Coordinator::Impl::finish(const HoldingPtr& holding, const std::string& key,
                                         const coord::TaskOptions& task, OnceResult result, Duration retention) {
  using Finished = std::optional<OnceResult>;
  const auto finished = engine_->call<Finished>([&](std::function<void(Ended<Finished>)> answer) {
    if (holding->turn) {
      const Turn turn = *holding->turn;  // it ends within
      holding->held.reset();
      const auto taken = coordinator_->finish(turn, result, retention);
      if (taken) {
        holding->on_finished = std::move(answer);
        return;
      }
      // It was run, and what came of it stands nowhere yet: that is for the next caller's policy (F22).
      turn.held->leave();
      if (taken.error().code != Code::unavailable) {
        return answer(tl::unexpected(Failure{Failure::Kind::rejected, taken.error()}));
      }
    }
    // Its lease is over; until somebody else has had the key, that is no reason not to record it (F23).
    coordinator_->record(key, holding->guard->epoch(), result, retention, std::max(task.patience, task.recording),
                         std::move(answer));
  });
  if (finished) return OnceRun{*finished, false};
  return tl::unexpected(after_it_ran(finished.error()));
}

void Coordinator::Impl::leave(const HoldingPtr& holding) {
  holding->cease();
  (void)engine_->call<void>([&](std::function<void(Ended<void>)> answer) {
    if (holding->end) return answer({});
    holding->on_end = std::move(answer);
    if (const auto mine = std::exchange(holding->held, {})) mine->leave();
  });
}

Ended<Reservation> Coordinator::Impl::end_reservation(std::string_view id, Reservation::State into) {
  if (auto good = check_name("A reservation's id", id); !good) return refuse(good.error());
  return ask<Reservation>([this, id = std::string(id), into](auto& coordinator, auto answer) {
    coordinator.end_reservation(id, into, options_.skew, options_.patience, std::move(answer));
  });
}

Coordinator::Coordinator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Coordinator::~Coordinator() = default;

Result<std::unique_ptr<Coordinator>> Coordinator::open(CoordinatorOptions options) {
  if (auto good = coord::complete(options); !good) return tl::unexpected(good.error());
  coord::Coordinator* coordinator = nullptr;
  Loop* its_loop = nullptr;
  const bool makes = options.make_table && store::may_create(options.store);
  auto engine = Engine::start(options.store, makes ? Engine::First::make_table : Engine::First::look,
                              options.patience, [&](Store& store, Loop& loop) -> Result<std::shared_ptr<void>> {
                                auto made = std::make_shared<coord::Coordinator>(options.id, store, loop);
                                coordinator = made.get();
                                its_loop = &loop;
                                return made;
                              });
  if (!engine) return tl::unexpected(engine.error());
  return std::unique_ptr<Coordinator>(
      new Coordinator(std::make_unique<Impl>(std::move(options), *std::move(engine), coordinator, its_loop)));
}

// ---- Rights, once, decisions ----

Ended<Right> Coordinator::acquire(std::string_view task, RightOptions options) {
  if (auto good = check_name("A task's name", task); !good) return refuse(good.error());
  auto terms = impl_->task(options.lease, options.wait, options.renews);
  if (!terms) return refuse(terms.error());
  return impl_->acquire(std::string(task), *terms, options.cancel);
}

Ended<OnceRun> Coordinator::run_once(std::string_view key,
                                     const std::function<std::optional<OnceResult>(const Right&)>& run,
                                     OnceRunOptions options) {
  if (auto good = check_name("A key of once", key); !good) return refuse(good.error());
  if ((options.abandoned == Abandoned::reconcile) != static_cast<bool>(options.reconcile)) {
    return refuse(Error(Code::usage, "Abandoned::reconcile needs a function that finds out, and nothing else does."));
  }
  if (auto good = check_within("The retention of a result", options.retention, coord::remembered); !good) {
    return refuse(good.error());
  }
  auto terms = impl_->task(options.lease, options.wait, true);
  if (!terms) return refuse(terms.error());
  OnceOptions what;
  what.key = key;
  if (options.input) what.fingerprint = coord::fingerprint_of(*options.input);
  what.abandoned = options.abandoned;
  return impl_->run_once(std::move(what), *terms, run, options);
}

Ended<Decided> Coordinator::decide(std::string_view key, Value proposal, std::string_view ticket) {
  if (auto good = check_name("A decision's key", key); !good) return refuse(good.error());
  if (!ticket.empty()) {
    if (auto good = check_name("A ticket", ticket); !good) return refuse(good.error());
  }
  return impl_->ask<Decided>(
      [this, key = std::string(key), proposal = std::move(proposal), ticket](auto& coordinator, auto answer) {
        coordinator.decide(key, proposal, impl_->options_.patience, std::move(answer), ticket);
      });
}
Ended<std::optional<Decided>> Coordinator::decided(std::string_view key) {
  if (auto good = check_name("A decision's key", key); !good) return refuse(good.error());
  return impl_->carry_out<std::optional<Decided>, ReadDecision>(std::string(key));
}

// ---- Counters and stock ----

Ended<Added> Coordinator::add(AddOptions options) {
  if (auto good = check_name("A counter's key", options.key); !good) return refuse(good.error());
  if (auto good = check_name("An operation's id", options.op_id); !good) return refuse(good.error());
  if (auto good = check_within("What an operation is remembered for", options.remember, coord::remembered); !good) {
    return refuse(good.error());
  }
  return impl_->carry_out<Added, Add>(std::move(options));
}
Ended<std::int64_t> Coordinator::number(AddOptions::To of, std::string_view key) {
  if (auto good = check_name("A counter's key", key); !good) return refuse(good.error());
  return impl_->carry_out<std::int64_t, ReadNumber>(of, std::string(key));
}

Ended<Reservation> Coordinator::reserve(ReserveOptions options) {
  if (auto good = check_name("A reservation's id", options.id); !good) return refuse(good.error());
  if (auto good = check_basket(options.basket); !good) return refuse(good.error());
  for (const auto& good : {check_within("The ttl of a reservation", options.ttl, coord::reserved),
                           check_within("What it is remembered for", options.remember, coord::remembered)}) {
    if (!good) return refuse(good.error());
  }
  return impl_->ask<Reservation>([this, options = std::move(options)](auto& coordinator, auto answer) {
    coordinator.reserve(options, impl_->options_.skew, impl_->options_.patience, std::move(answer));
  });
}
Ended<Reservation> Coordinator::confirm(std::string_view reservation) {
  return impl_->end_reservation(reservation, Reservation::State::confirmed);
}
Ended<Reservation> Coordinator::cancel(std::string_view reservation) {
  return impl_->end_reservation(reservation, Reservation::State::cancelled);
}
Ended<Reservation> Coordinator::reservation(std::string_view id) {
  if (auto good = check_name("A reservation's id", id); !good) return refuse(good.error());
  return impl_->carry_out<Reservation, ReadReservation>(std::string(id));
}
Ended<std::size_t> Coordinator::return_expired(std::size_t most) {
  if (most < 1) return refuse(Error(Code::usage, "At least one is to be returned."));
  return impl_->carry_out<std::size_t, ReturnExpired>(impl_->options_.skew, most);
}

// ---- Ordered queues ----

Ended<Sent> Coordinator::send(SendOptions options) {
  if (auto good = check_names(options.queue, options.group); !good) return refuse(good.error());
  if (options.body.size() > SendOptions::body_most) {
    return refuse(Error(Code::usage, "A message has " + std::to_string(SendOptions::body_most) +
                                         " bytes at most, not " + std::to_string(options.body.size()) + "."));
  }
  if (options.dedup_id.empty()) options.dedup_id = new_id();
  if (auto good = check_name("A message's dedup_id", options.dedup_id); !good) return refuse(good.error());
  for (const auto& good : {check_within("The delay of a message", options.delay, coord::delayed),
                           check_within("Its dedup_window", options.dedup_window, coord::deduplicated),
                           check_within("Its retention", options.retention, coord::remembered)}) {
    if (!good) return refuse(good.error());
  }
  return impl_->carry_out<Sent, Send>(std::move(options));
}

Ended<std::optional<Batch>> Coordinator::receive(std::string_view queue, QueueOptions options) {
  if (auto good = check_names(queue, "g"); !good) return refuse(good.error());
  const bool moves = options.poison == QueueOptions::Poison::move;
  if (moves) {
    if (options.dead_letter.empty()) {
      return refuse(Error(Code::usage, "Poison::move needs a dead_letter: the queue that poison goes to."));
    }
    if (auto good = check_names(options.dead_letter, "g"); !good) return refuse(good.error());
    if (options.dead_letter == queue)
      return refuse(Error(Code::usage, "The dead-letter queue is this queue itself."));
  }
  if (auto good = check_visibility(options.visibility); !good) return refuse(good.error());
  const bool has_poison = options.poison != QueueOptions::Poison::block;
  if (has_poison && (options.receives_most < 1 || options.receives_most > coord::receives_most)) {
    return refuse(Error(Code::usage, "A message is poison after it was given out 1 to " +
                                         std::to_string(coord::receives_most) + " times."));
  }
  if (options.max < 1 || options.max > 100) return refuse(Error(Code::usage, "A batch has 1 to 100 messages."));
  ReceiveOptions what;
  what.queue = queue;
  what.max = options.max;
  what.visibility = options.visibility;
  what.skew = impl_->options_.skew;
  if (has_poison) what.receives_most = options.receives_most;
  const coord::Coordinator::Poison poison{!moves, options.dead_letter};
  return impl_->ask_and_wait<std::optional<Batch>>(
      options.cancel, [&](auto& coordinator, const IsWanted& is_wanted, auto answer) {
        coordinator.receive(what, poison, options.wait, impl_->options_.patience, std::move(answer), is_wanted);
      });
}

Ended<Settled> Coordinator::ack(const Receipt& receipt) {
  return ack(receipt, receipt.last - receipt.first + 1);
}
Ended<Settled> Coordinator::ack(const Receipt& receipt, std::int64_t count) {
  const std::int64_t all = receipt.last - receipt.first + 1;
  if (count < 1 || count > all) {
    return refuse(Error(Code::usage, "Of a batch of " + std::to_string(all) + " messages " + std::to_string(count) +
                                         " cannot be acknowledged; what was not handled is given back by nack()."));
  }
  return impl_->carry_out<Settled, Settle>(receipt, Settlement{.kind = Settlement::Kind::ack, .count = count});
}
Ended<Settled> Coordinator::nack(const Receipt& receipt, Duration delay) {
  if (auto good = check_within("The delay of a group", delay, coord::delayed); !good) return refuse(good.error());
  return impl_->carry_out<Settled, Settle>(receipt, Settlement{.kind = Settlement::Kind::nack, .delay = delay});
}
Ended<Settled> Coordinator::extend(const Receipt& receipt, Duration visibility) {
  if (auto good = check_visibility(visibility); !good) return refuse(good.error());
  return impl_->carry_out<Settled, Settle>(receipt,
                                           Settlement{.kind = Settlement::Kind::extend, .visibility = visibility});
}
Ended<Settled> Coordinator::park(const Receipt& receipt, std::string reason) {
  return impl_->carry_out<Settled, Settle>(receipt,
                                           Settlement{.kind = Settlement::Kind::park, .reason = std::move(reason)});
}
Ended<Settled> Coordinator::redrive(std::string_view queue, std::string_view group, bool skip) {
  if (auto good = check_names(queue, group); !good) return refuse(good.error());
  return impl_->carry_out<Settled, Redrive>(std::string(queue), std::string(group), skip);
}
Ended<Redriven> Coordinator::redrive_to(std::string_view queue, std::string_view group, std::string_view to,
                                        std::size_t most) {
  if (auto good = check_redrive(queue, group, to); !good) return refuse(good.error());
  return impl_->ask<Redriven>([this, queue = std::string(queue), group = std::string(group), to = std::string(to),
                               most](auto& coordinator, auto answer) {
    coordinator.redrive_to(queue, group, to, std::clamp<std::size_t>(most, 1, 100), impl_->options_.skew,
                           impl_->options_.patience, std::move(answer));
  });
}
Ended<std::optional<GroupView>> Coordinator::peek(std::string_view queue, std::string_view group, std::size_t most) {
  if (auto good = check_names(queue, group); !good) return refuse(good.error());
  return impl_->carry_out<std::optional<GroupView>, PeekGroup>(std::string(queue), std::string(group),
                                                               std::clamp<std::size_t>(most, 1, 100));
}
Ended<GroupList> Coordinator::stats(std::string_view queue, std::size_t most) {
  if (auto good = check_names(queue, "g"); !good) return refuse(good.error());
  return impl_->carry_out<GroupList, ListGroups>(std::string(queue), most);
}

Instant Coordinator::now() {
  return runtime::boot_now();
}
std::string Coordinator::new_id() {
  return Attempt{runtime::random_seed(), runtime::random_seed()}.to_string();
}

}  // namespace holdfast
