#include "coord/coordinator.hpp"

#include <algorithm>

#include "core/coord/limits.hpp"
#include "core/coord/queue_look.hpp"
#include "core/coord/task.hpp"

namespace holdfast::coord {

namespace {

bool same_terms(const LeaseTerms& left, const LeaseTerms& right) {
  return left.lease == right.lease && left.renew_every == right.renew_every && left.margin == right.margin &&
         left.skew == right.skew;
}

}  // namespace

struct Coordinator::Acquiring {
  std::string key;
  TaskOptions options;
  TaskEvents events;
  Instant wait_until{};
  Instant deadline{};
  unsigned beaten = 0;
};

struct Coordinator::Once {
  OnceOptions options;
  TaskOptions task;
  OnceEvents events;
  unsigned beaten = 0;
  Epoch epoch;
  std::shared_ptr<std::optional<Turn::Given>> given = std::make_shared<std::optional<Turn::Given>>();
};

Coordinator::Coordinator(std::string id, Store& store, Loop& loop)
    : owner_(std::move(id) + "#" + loop.random().attempt().to_string().substr(0, 16)),
      store_(store),
      loop_(loop),
      runner_(store, loop) {}

Coordinator::~Coordinator() = default;

std::shared_ptr<Holder> Coordinator::holder(const TaskOptions& options) {
  const auto found = std::ranges::find_if(holders_, [&](const auto& each) {
    return each->renews() == options.renews && same_terms(each->terms(), options.terms);
  });
  if (found != holders_.end()) return *found;
  // Nobody holds any more under terms that were used once: their holders go.
  std::erase_if(holders_, [](const auto& each) { return each->used() == 0; });
  holders_.push_back(std::make_shared<Holder>(owner_, options.terms, options.renews, store_, loop_));
  return holders_.back();
}

void Coordinator::claim(const Candidate& candidate, std::shared_ptr<const Claim> claim) {
  const std::shared_ptr<Holder> by = holder(claim->options);
  const std::string key = candidate.key;
  const auto is_held = std::make_shared<bool>(false);
  HoldEvents events;
  events.won = [this, claim, key, is_held, from = std::weak_ptr(by)](const std::shared_ptr<const LeaseGuard>& guard,
                                                                     const Row& row) {
    *is_held = true;
    const Duration patience = claim->options.patience;
    auto end = [key, from, patience](std::optional<std::vector<Change>> extra) {
      const auto holder = from.lock();
      if (!holder) return;
      if (!extra) return holder->leave(key, patience);
      holder->release(key, *std::move(extra), patience);
    };
    claim->won(std::make_shared<Held>(key, guard, owner_, row, std::move(end)));
  };
  events.lost = claim->lost;
  events.ended = [this, claim, is_held](HoldEnd how, const Error& error) {
    if (*is_held) return claim->ended(how, error);
    if (how == HoldEnd::beaten) return claim->beaten();
    if (how == HoldEnd::rejected) return claim->failed({Failure::Kind::rejected, error});
    if (how == HoldEnd::unanswered) {
      return claim->failed(
          {Failure::Kind::unknown, Error(Code::unavailable,
                                         "The store did not say in time whether the lease was won; if it was, it "
                                         "runs out by itself. " +
                                             error.detail)});
    }
    if (loop_.instant() < claim->by) return claim->beaten();  // nothing has happened yet, and there is time left
    const std::string why = error.detail.empty() ? "There was no time left to ask the store." : error.detail;
    claim->failed({Failure::Kind::unavailable, Error(Code::unavailable, "Nothing happened: " + why)});
  };
  // False: held by this very process, or the wall clock was set back since it was looked at.
  if (!by->claim(candidate, claim->by, claim->extra, claim->was_left, std::move(events))) claim->beaten();
}

/// Another look after a claim that came to nothing: soon, and later each time, so that a row which looks free and
/// never is does not keep us busy. It ends at the look's deadline.
void Coordinator::again(unsigned& times, std::function<void()> look_again) {
  constexpr Duration first = std::chrono::milliseconds(10);
  constexpr unsigned doublings_most = 6;
  const Duration bound = times == 0 ? Duration::zero() : first * (1 << std::min(times, doublings_most));
  ++times;
  loop_.call_after(loop_.random().between(Duration::zero(), bound),
                   [look_again = std::move(look_again), alive = std::weak_ptr(alive_)] {
                     if (!alive.expired()) look_again();
                   });
}

// ---- Tasks ----

void Coordinator::acquire(const std::string& task, TaskOptions options, TaskEvents events) {
  const auto what = std::make_shared<Acquiring>();
  what->key = AwaitTask::row_key(task);
  what->options = options;
  what->events = std::move(events);
  what->wait_until = loop_.instant() + clamped(options.wait, waited);
  what->deadline = what->wait_until + clamped(options.patience, waited);
  look(what);
}

void Coordinator::look(const std::shared_ptr<Acquiring>& what) {
  const TaskOptions& options = what->options;
  auto procedure = std::make_unique<AwaitTask>(what->key, options.terms.skew, what->wait_until, what->deadline,
                                               loop_.random(), what->events.is_wanted);
  const AwaitTask* looked = procedure.get();
  const auto seen = [this, what, looked] {
    const Ended<Candidate>& candidate = *looked->result();
    if (!candidate) return what->events.acquired(tl::unexpected(candidate.error()));
    if (what->events.is_wanted && !what->events.is_wanted()) {
      return what->events.acquired(tl::unexpected(not_wanted()));
    }
    Claim asked;
    asked.options = what->options;
    asked.by = what->deadline;
    asked.won = [what](std::shared_ptr<Held> held) { what->events.acquired(std::move(held)); };
    asked.beaten = [this, what] { again(what->beaten, [this, what] { look(what); }); };
    asked.failed = [what](Failure failure) { what->events.acquired(tl::unexpected(std::move(failure))); };
    asked.lost = what->events.lost;
    asked.ended = [what](HoldEnd how, const Error& error) {
      if (what->events.ended) what->events.ended(how, error);
    };
    claim(*candidate, std::make_shared<const Claim>(std::move(asked)));
  };
  runner_.run(std::move(procedure), seen, what->events.is_wanted);
}

// ---- Decisions ----

void Coordinator::decide(const std::string& key, Value proposal, Duration patience, DecideHandler handler,
                         std::string_view ticket) {
  run(std::make_unique<Decide>(key, std::move(proposal), owner_.value, loop_.instant() + patience, loop_.random(),
                               ticket),
      std::move(handler));
}

// ---- Stock ----

/// Of the reservations that have expired, when one finds too little.
constexpr std::size_t returned_at_once = 25;

struct Coordinator::Reserving {
  ReserveOptions options;
  Duration skew;
  Instant deadline;
  ReservationHandler handler;
};

void Coordinator::reserve(ReserveOptions options, Duration skew, Duration patience, ReservationHandler handler) {
  const auto what = std::make_shared<Reserving>(
      Reserving{std::move(options), skew, loop_.instant() + patience, std::move(handler)});
  reserve(what, true);
}

void Coordinator::reserve(const std::shared_ptr<Reserving>& what, bool is_first) {
  run(std::make_unique<Reserve>(what->options, what->deadline, loop_.random()),
      [this, what, is_first](const Ended<Reservation>& got) {
        if (got || got.error().kind != Failure::Kind::refused || !is_first) return what->handler(got);
        auto returning =
            std::make_unique<ReturnExpired>(what->skew, returned_at_once, what->deadline, loop_.random());
        run(std::move(returning), [this, what, got](const Ended<std::size_t>& returned) {
          if (!returned || *returned == 0) return what->handler(got);
          reserve(what, false);
        });
      });
}

void Coordinator::end_reservation(const std::string& id, Reservation::State into, Duration skew, Duration patience,
                                  ReservationHandler handler) {
  const Instant deadline = loop_.instant() + patience;
  run(std::make_unique<ReadReservation>(id, deadline, loop_.random()),
      [this, into, skew, deadline, handler = std::move(handler)](const Ended<Reservation>& there) {
        if (!there) return handler(there);
        run(std::make_unique<EndReservation>(*there, into, skew, deadline, loop_.random()), handler);
      });
}

// ---- Queues ----

struct Coordinator::Receiving {
  ReceiveOptions options;
  Poison poison;
  Instant deadline;
  BatchHandler handler;
  IsWanted is_wanted;
  std::optional<Error> damage;  // of what was parked, to be told where nothing else is found
};

void Coordinator::receive(ReceiveOptions options, Poison poison, Duration wait, Duration patience,
                          BatchHandler handler, IsWanted is_wanted) {
  options.wait_until = loop_.instant() + clamped(wait, waited);
  const Instant deadline = options.wait_until + clamped(patience, waited);
  receive(std::make_shared<Receiving>(
      Receiving{std::move(options), std::move(poison), deadline, std::move(handler), std::move(is_wanted)}));
}

void Coordinator::receive(const std::shared_ptr<Receiving>& what) {
  const auto received = [this, what](const Ended<std::optional<Batch>>& got) {
    if (got && *got && (*got)->is_poison) return put_away(what, (*got)->receipt);
    const bool is_nothing = got && !*got;
    if (is_nothing && what->damage)
      return what->handler(tl::unexpected(Failure{Failure::Kind::rejected, *what->damage}));
    what->handler(got);
  };
  run(std::make_unique<Receive>(what->options, owner_, what->deadline, loop_.random(), what->is_wanted), received,
      what->is_wanted);
}

void Coordinator::put_away(const std::shared_ptr<Receiving>& what, const Receipt& receipt) {
  if (what->poison.parks) {
    return park(what, receipt,
                "its first message was given out " + std::to_string(what->options.receives_most.value_or(0)) +
                    " times in vain");
  }
  run(std::make_unique<MoveAway>(receipt, what->poison.dead_letter, what->deadline, loop_.random()),
      [this, what, receipt](const Ended<Settled>& moved) {
        if (moved || moved.error().error.code != Code::corrupt) return was_put_away(what, moved);
        what->damage = parked_for_damage(receipt.queue, receipt.group, moved.error().error);
        park(what, receipt, moved.error().error.detail);
      });
}

void Coordinator::park(const std::shared_ptr<Receiving>& what, const Receipt& receipt, std::string reason) {
  Settlement parking;
  parking.kind = Settlement::Kind::park;
  parking.reason = std::move(reason);
  run(std::make_unique<Settle>(receipt, std::move(parking), what->deadline, loop_.random()),
      [this, what](const Ended<Settled>& settled) { was_put_away(what, settled); });
}

void Coordinator::was_put_away(const std::shared_ptr<Receiving>& what, const Ended<Settled>& settled) {
  // Refused: its lease ran out meanwhile. Whoever receives it next deals with it.
  if (!settled && settled.error().kind != Failure::Kind::refused) {
    Failure failure = settled.error();
    if (failure.kind == Failure::Kind::unavailable) {
      failure.kind = Failure::Kind::unknown;
      failure.error.detail = "A group with poison stays leased until its time is up. " + failure.error.detail;
    }
    return what->handler(tl::unexpected(std::move(failure)));
  }
  // However much poison there is, the caller is answered; what is left is dealt with by the next one.
  if (loop_.instant() >= what->deadline) return what->handler(std::optional<Batch>());
  receive(what);
}

/// As long as the group is ours while its messages are moved, one after the other.
constexpr Duration redriving_most = std::chrono::minutes(1);

struct Coordinator::Redriving {
  std::string queue, group, to;
  Duration patience;
  RedrivenHandler handler;
  Receipt receipt;  // of what is still to be moved
  Redriven redriven{};
};

void Coordinator::redrive_to(const std::string& queue, const std::string& group, const std::string& to,
                             std::size_t most, Duration skew, Duration patience, RedrivenHandler handler) {
  const auto what = std::make_shared<Redriving>(Redriving{queue, group, to, patience, std::move(handler)});
  ReceiveOptions options;
  options.queue = queue;
  options.group = group;
  options.max = most;
  options.visibility = redriving_most;
  options.skew = skew;
  run(std::make_unique<Receive>(std::move(options), owner_, loop_.instant() + patience, loop_.random()),
      [this, what](const Ended<std::optional<Batch>>& got) {
        if (!got) return what->handler(tl::unexpected(got.error()));
        if (!*got) return none_received(what);
        what->receipt = (*got)->receipt;
        move_next(what);
      });
}

void Coordinator::move_next(const std::shared_ptr<Redriving>& what) {
  run(std::make_unique<MoveAway>(what->receipt, what->to, loop_.instant() + what->patience, loop_.random()),
      [this, what](const Ended<Settled>& moved) {
        if (!moved) return stop_moving(what, moved.error());
        ++what->redriven.moved;
        what->redriven.left = moved->left;
        if (++what->receipt.first > what->receipt.last) return what->handler(what->redriven);
        move_next(what);
      });
}

/// What was moved is told; what is left is given back, so that who asks again need not wait for our lease to end.
void Coordinator::stop_moving(const std::shared_ptr<Redriving>& what, const Failure& why) {
  Settlement back;
  back.kind = Settlement::Kind::nack;
  back.is_undelivered = true;
  run(std::make_unique<Settle>(what->receipt, std::move(back), loop_.instant() + what->patience, loop_.random()),
      [what, why](const Ended<Settled>& given_back) {
        const std::int64_t moved = what->redriven.moved;
        if (moved > 0 && why.kind != Failure::Kind::unknown) return what->handler(what->redriven);
        Failure failure = why;
        if (moved > 0) {
          failure.error.detail = std::to_string(moved) + " were moved. Of the next one: " + failure.error.detail;
        } else if (!given_back && why.kind == Failure::Kind::unavailable) {
          failure.kind = Failure::Kind::unknown;
          failure.error.detail = "The group stays leased until its time is up. " + failure.error.detail;
        }
        what->handler(tl::unexpected(std::move(failure)));
      });
}

/// Why not, for people.
void Coordinator::none_received(const std::shared_ptr<Redriving>& what) {
  run(std::make_unique<PeekGroup>(what->queue, what->group, 1, loop_.instant() + what->patience, loop_.random()),
      [what](const Ended<std::optional<GroupView>>& seen) {
        if (!seen) return what->handler(tl::unexpected(seen.error()));
        if (!*seen || (*seen)->group.state == Group::State::empty) return what->handler(Redriven{});
        const Group& group = (*seen)->group;
        const std::string name = "The group " + group.group + " of " + group.queue;
        if (group.state == Group::State::parked) {
          return what->handler(tl::unexpected(
              Failure{Failure::Kind::refused, Error(Code::unavailable, name + " is parked: let it go on first.")}));
        }
        what->handler(tl::unexpected(
            Failure{Failure::Kind::busy,
                    Error(Code::unavailable,
                          name + (group.owner.empty() ? " is not due yet." : " is leased by a consumer."))}));
      });
}

// ---- Once ----

void Coordinator::once(OnceOptions options, TaskOptions task, OnceEvents events) {
  const auto what = std::make_shared<Once>();
  what->options = std::move(options);
  what->options.skew = task.terms.skew;
  what->options.wait_until = loop_.instant() + clamped(task.wait, waited);
  what->options.deadline = what->options.wait_until + clamped(task.patience, waited);
  what->task = task;
  what->events = std::move(events);
  look(what);
}

void Coordinator::look(const std::shared_ptr<Once>& what) {
  auto procedure = std::make_unique<LookOnce>(what->options, loop_.random(), what->events.is_wanted);
  const LookOnce* looked = procedure.get();
  const auto seen = [this, what, looked] {
    const Ended<OnceLook>& found = *looked->result();
    if (!found) return what->events.turn(tl::unexpected(found.error()));
    Turn turn;
    if (const auto* done = std::get_if<OnceDone>(&*found)) turn.done = *done;
    if (const auto* hold = std::get_if<OnceHeld>(&*found)) turn.hold = *hold;
    const auto* free = std::get_if<OnceFree>(&*found);
    if (free == nullptr) return what->events.turn(std::move(turn));
    if (what->events.is_wanted && !what->events.is_wanted()) return what->events.turn(tl::unexpected(not_wanted()));
    turn.was_abandoned = free->was_abandoned;
    turn.given = what->given;
    Claim asked;
    asked.options = what->task;
    asked.by = what->options.deadline;
    asked.extra = LookOnce::claim_changes(what->options);
    asked.was_left = free->was_abandoned;
    asked.won = [what, turn](std::shared_ptr<Held> held) mutable {
      what->epoch = held->epoch();
      turn.held = std::move(held);
      what->events.turn(std::move(turn));
    };
    asked.beaten = [this, what] { again(what->beaten, [this, what] { look(what); }); };
    asked.failed = [what](Failure failure) { what->events.turn(tl::unexpected(std::move(failure))); };
    asked.lost = what->events.lost;
    asked.ended = [this, what](HoldEnd how, const Error& error) { finished(what, how, error); };
    claim(free->candidate, std::make_shared<const Claim>(std::move(asked)));
  };
  runner_.run(std::move(procedure), seen, what->events.is_wanted);
}

Result<void> Coordinator::finish(const Turn& turn, OnceResult result, Duration retention) {
  if (result.content.size() > OnceResult::most) {
    return fail(Code::usage, "The result has " + std::to_string(result.content.size()) + " bytes, and at most " +
                                 std::to_string(OnceResult::most) +
                                 " fit into a row. Keep it elsewhere and record where it is.");
  }
  if (!turn.held->guard()->holds(loop_.instant())) {
    return fail(Code::unavailable, "The lease on " + std::string(name_in(turn.held->key())) +
                                       " was lost before the result was recorded.");
  }
  turn.held->release(LookOnce::result_changes(result, retention, loop_.wall()));
  *turn.given = Turn::Given{std::move(result), retention};
  return {};
}

void Coordinator::finished(const std::shared_ptr<Once>& what, HoldEnd how, const Error& error) {
  if (!what->events.finished) return;
  const std::optional<Turn::Given>& given = *what->given;
  if (how == HoldEnd::released) {
    return what->events.finished(given ? std::optional(given->result) : std::nullopt);
  }
  if (given) {
    // Whether it arrived is in the row (S5); where nobody has had that since, it can still be recorded.
    return record(what->options.key, what->epoch, given->result, given->retention,
                  std::max(what->task.patience, what->task.recording),
                  [what](Ended<OnceResult> got) { what->events.finished(std::move(got)); });
  }
  const bool is_known = how != HoldEnd::doubtful;
  std::string why = is_known ? "The lease on " + what->options.key + " was lost before it was given back."
                             : "The store did not say in time whether " + what->options.key +
                                   " was given back; if not, it runs out by itself.";
  if (!error.detail.empty()) why += " " + error.detail;
  what->events.finished(tl::unexpected(
      Failure{is_known ? Failure::Kind::refused : Failure::Kind::unknown, Error(Code::unavailable, std::move(why))}));
}

void Coordinator::record(const std::string& key, Epoch epoch, OnceResult result, Duration retention,
                         Duration patience, RecordHandler handler) {
  const Instant deadline = loop_.instant() + clamped(patience, waited);
  auto procedure =
      std::make_unique<RecordOnce>(key, owner_, epoch, std::move(result), retention, deadline, loop_.random());
  const RecordOnce* recording = procedure.get();
  runner_.run(std::move(procedure), [recording, key, handler = std::move(handler)] {
    Ended<OnceResult> got = *recording->result();
    if (got || got.error().kind == Failure::Kind::rejected) return handler(std::move(got));
    Failure failure = got.error();
    if (recording->is_overtaken()) {
      failure.kind = Failure::Kind::refused;  // no try of ours passes the fence any more, whenever it arrives
    } else {
      failure = {Failure::Kind::unknown,
                 Error(Code::unavailable, "It is not known whether the result of " + key +
                                              " was recorded: the store did not answer in time.")};
    }
    handler(tl::unexpected(std::move(failure)));
  });
}

}  // namespace holdfast::coord
