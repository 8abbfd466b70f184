#include "coord/reconcile.hpp"

#include <algorithm>
#include <utility>

#include "core/coord/stock.hpp"
#include "holdfast/assert.hpp"

namespace holdfast::coord {

Reconciler::Reconciler(Journal& journal, Store& store, Loop& loop)
    : journal_(journal), loop_(loop), runner_(store, loop) {}

Reconciler::~Reconciler() {
  loop_.cancel(limit_);
  if (handler_) journal_.unlock();
}

void Reconciler::run(ReconcileOptions options, Handler handler) {
  HOLDFAST_ASSERT(!handler_, "one pass at a time");
  handler_ = std::move(handler);
  options_ = std::move(options);
  report_ = {};
  last_ = 0;
  blocked_.clear();
  quotas_.clear();
  due_.clear();
  queued_.clear();
  soon([this] {
    const auto locked = journal_.lock();
    if (!locked) return fail(locked.error());
    if (!*locked) {
      return end(tl::unexpected(
          Failure{Failure::Kind::busy,
                  Error(Code::unavailable, "another process is reconciling the journal " + journal_.path())}));
    }
    next();
  });
}

// ---- Intents ----

void Reconciler::next() {
  const auto open = journal_.list(Journal::Which::open, last_, 1);
  if (!open) return fail(open.error());
  if (open->empty()) {
    if (report_.store_is_away) return next_compensation();
    auto quotas = journal_.quotas();
    if (!quotas) return fail(quotas.error());
    quotas_ = *std::move(quotas);
    return next_quota();
  }
  last_ = open->front().seq;
  take(open->front());
}

void Reconciler::take(Intent taken) {
  const auto intent = std::make_shared<Intent>(std::move(taken));
  const IntentStep step = next_step(*intent, loop_.wall());
  if (step == IntentStep::compensate) return is_due(*intent);
  if (report_.store_is_away) return soon([this] { next(); });
  if (blocked_.contains(subject_of(intent->wish))) return leave(*intent, {});  // its turn has not come
  switch (step) {
    case IntentStep::begin:
      begin(*intent, loop_.wall());
      // Before the store is asked: what was only accepted has surely not happened.
      if (written(journal_.put(*intent))) replay(intent);
      return;
    case IntentStep::carry_out:
      return replay(intent);
    case IntentStep::preclude:
      if (const auto key = memory_key(intent->wish, intent->ticket)) {
        return preclude(intent, *key, "it was not carried out in time");
      }
      return replay(intent);  // a decision that was proposed is seen to, however late
    case IntentStep::expire:
      return reject(intent, "it was not carried out in time");
    case IntentStep::give_up:
      return leave(*intent, "it was begun too long ago for the store to remember whether it happened: look there");
    case IntentStep::compensate:
    case IntentStep::nothing:
      return soon([this] { next(); });
  }
}

void Reconciler::replay(const std::shared_ptr<Intent>& intent, Replay::Way way) {
  auto replay =
      std::make_unique<Replay>(*intent, loop_.now(), loop_.instant() + options_.patience, loop_.random(), way);
  const Replay* done = replay.get();
  runner_.run(std::move(replay), [this, intent, done] { judge(intent, done->verdict(options_.merge)); });
}

void Reconciler::judge(const std::shared_ptr<Intent>& intent, const Verdict& verdict) {
  switch (verdict.kind) {
    case Verdict::Kind::confirmed:
      return confirm(intent, verdict.note);
    case Verdict::Kind::rejected: {
      const auto* draw = std::get_if<DrawWish>(&intent->wish);
      // What it was set aside for is over: nothing more is drawn.
      if (draw != nullptr && verdict.may_arrive) {
        if (const auto closed = journal_.close_quota(draw->quota); !closed) {
          return fail(closed.error());
        }
      }
      const auto key = memory_key(intent->wish, intent->ticket);
      if (verdict.may_arrive && key) return preclude(intent, *key, verdict.note);
      return reject(intent, verdict.note);
    }
    case Verdict::Kind::wait:
      return away(verdict.error);
    case Verdict::Kind::stuck:
      return leave(*intent, verdict.error.detail);
  }
}

void Reconciler::preclude(const std::shared_ptr<Intent>& intent, const std::string& key, std::string why) {
  auto procedure = std::make_unique<Preclude>(key, loop_.instant() + options_.patience, loop_.random());
  const Preclude* asked = procedure.get();
  runner_.run(std::move(procedure), [this, intent, asked, why = std::move(why)] {
    const Ended<Precluded>& result = *asked->result();
    if (!result) {
      if (is_of_the_store(result.error())) return away(result.error().error);
      return leave(*intent, result.error().error.detail);
    }
    if (result->is_taken) return replay(intent, Replay::Way::look);
    reject(intent, why);
  });
}

void Reconciler::confirm(const std::shared_ptr<Intent>& intent, std::string note) {
  holdfast::confirm(*intent, std::move(note), loop_.wall());
  if (!written(journal_.put(*intent))) return;
  ++report_.confirmed;
  soon([this] { next(); });
}

void Reconciler::reject(const std::shared_ptr<Intent>& intent, std::string why) {
  holdfast::reject(*intent, std::move(why), loop_.wall());
  if (!written(journal_.put(*intent))) return;
  ++report_.rejected;
  is_due(*intent);
}

// ---- Quotas ----

void Reconciler::next_quota() {
  while (!quotas_.empty()) {
    Quota quota = std::move(quotas_.back());
    quotas_.pop_back();
    if (quota.state == Quota::State::open && loop_.wall() >= quota.expires_at) {
      if (const auto closed = journal_.close_quota(quota.id); !closed) {
        return fail(closed.error());
      }
      quota.state = Quota::State::closing;
    }
    if (quota.state != Quota::State::closing || blocked_.contains(Reserve::row_key(quota.id))) continue;
    const auto unsettled = journal_.has_unsettled(Reserve::row_key(quota.id));
    if (!unsettled) return fail(unsettled.error());
    if (!*unsettled) return give_back(quota);
  }
  next_compensation();
}

void Reconciler::give_back(const Quota& quota) {
  const auto journal = journal_.identity();
  if (!journal) return fail(journal.error());
  Reservation reservation;
  reservation.id = quota.id;
  reservation.basket = quota.basket;
  auto procedure = std::make_unique<EndReservation>(reservation, Reservation::State::cancelled, Duration::zero(),
                                                    loop_.instant() + options_.patience, loop_.random(), *journal);
  const EndReservation* ending = procedure.get();
  runner_.run(std::move(procedure), [this, id = quota.id, ending] {
    const Ended<Reservation>& result = *ending->result();
    // Refused: it has expired, or somebody else has ended it.
    if (!result && result.error().kind != Failure::Kind::refused) {
      if (is_of_the_store(result.error())) return away(result.error().error);
      ++report_.left;
      block(Reserve::row_key(id), "quota " + id + ": " + result.error().error.detail);
      return soon([this] { next_quota(); });
    }
    const auto ended = journal_.end_quota(id);
    if (!ended) return fail(ended.error());
    ++report_.quotas_returned;
    soon([this] { next_quota(); });
  });
}

// ---- Compensations ----

void Reconciler::is_due(const Intent& rejected) {
  if (options_.compensate && queued_.insert(rejected.seq).second) due_.push_back(rejected.ticket);
  soon([this] { next(); });
}

void Reconciler::next_compensation() {
  if (due_.empty()) return finish();
  const std::string ticket = std::move(due_.front());
  due_.pop_front();
  auto found = journal_.find(ticket);
  if (!found) return fail(found.error());
  if (!*found || next_step(**found, loop_.wall()) != IntentStep::compensate) {
    return soon([this] { next_compensation(); });  // somebody else has seen to it
  }
  compensate(std::make_shared<Intent>(**std::move(found)));
}

void Reconciler::compensate(const std::shared_ptr<Intent>& intent) {
  const bool is_repeat = intent->compensation == Intent::Compensation::begun;
  begin_compensation(*intent);
  if (!written(journal_.put(*intent))) return;
  // Heard once, and only while we wait for it.
  const auto done = [this, intent, waited_for = std::weak_ptr(alive_),
                     is_over = std::make_shared<bool>(false)](const Result<void>& how) {
    if (!waited_for.expired() && !std::exchange(*is_over, true)) compensated(intent, how);
  };
  limit_ = loop_.call_after(options_.compensation_limit,
                            [done] { done(holdfast::fail(Code::unavailable, "it does not end")); });
  const Compensate compensate = options_.compensate;  // its end may be that of the pass, and of our options
  compensate(*intent, is_repeat, done);
}

void Reconciler::compensated(const std::shared_ptr<Intent>& intent, const Result<void>& how) {
  loop_.cancel(std::exchange(limit_, 0));
  if (how) {
    end_compensation(*intent);
    if (!written(journal_.put(*intent))) return;
    ++report_.compensated;
  } else {
    note(intent->ticket + ": its compensation failed: " + how.error().detail);
  }
  if (std::exchange(report_.store_is_away, false)) last_ = 0;  // it may be back
  soon([this] { next(); });                                    // what was accepted meanwhile
}

// ---- The pass ----

void Reconciler::leave(const Intent& intent, const std::string& why) {
  block(subject_of(intent.wish), why.empty() ? why : intent.ticket + ": " + why);
  soon([this] { next(); });
}

void Reconciler::block(std::string subject, std::string why) {
  blocked_.insert(std::move(subject));
  if (!why.empty()) note(std::move(why));
}

void Reconciler::note(std::string why) {
  std::vector<std::string>& all = report_.notes;
  if (all.size() < ReconcileReport::notes_most && !std::ranges::count(all, why)) all.push_back(std::move(why));
}

void Reconciler::away(const Error& error) {
  report_.store_is_away = true;
  note(error.detail);
  if (!options_.compensate) return finish();
  soon([this] { next(); });  // what is due without the store
}

void Reconciler::soon(std::function<void()> task) {
  loop_.post([task = std::move(task), alive = std::weak_ptr(alive_)] {
    if (!alive.expired()) task();
  });
}

bool Reconciler::written(const Ended<void>& result) {
  if (!result) fail(result.error());
  return result.has_value();
}

void Reconciler::fail(Failure failure) {
  journal_.unlock();
  end(tl::unexpected(std::move(failure)));
}

void Reconciler::end(Ended<ReconcileReport> result) {
  const Handler handler = std::exchange(handler_, {});  // it may begin the next pass, or end us
  handler(std::move(result));
}

void Reconciler::finish() {
  if (!report_.store_is_away) {
    const auto keep = std::chrono::ceil<std::chrono::milliseconds>(options_.keep);
    const auto forgotten = journal_.forget(loop_.wall() - keep);
    if (!forgotten) return fail(forgotten.error());
  }
  const auto open = journal_.count_open();
  if (!open) return fail(open.error());
  report_.left += *open;
  journal_.unlock();
  end(std::move(report_));
}

}  // namespace holdfast::coord
