#include "serve/guards.hpp"

#include <algorithm>
#include <utility>

#include "holdfast/assert.hpp"

namespace holdfast::serve {

namespace {

/// Some hundred bytes each.
constexpr std::size_t remembered_most = 10'000;

}  // namespace

std::string_view to_string(GuardEnd end) {
  switch (end) {
    case GuardEnd::released:
      return "released";
    case GuardEnd::finished:
      return "finished";
    case GuardEnd::let_go:
      return "let_go";
    case GuardEnd::lost:
      return "lost";
    case GuardEnd::undelivered:
      return "undelivered";
    case GuardEnd::drained:
      return "drained";
  }
  HOLDFAST_ASSERT(false, "every end has a name");
  return {};
}

Guards::~Guards() {
  for (const auto& [id, guard] : guards_) {
    if (guard->timer != 0) loop_.cancel(guard->timer);
    guard->waiting.clear();
  }
  for (const auto& [id, guard] : ended_) guard->waiting.clear();
}

GuardPtr Guards::expect(std::string kind, std::string name, std::string id) {
  if (guards_.size() >= most_) return nullptr;
  auto guard = std::make_shared<Guard>();
  guard->id = id.empty() ? loop_.random().attempt().to_string() : std::move(id);
  guard->kind = std::move(kind);
  guard->name = std::move(name);
  guards_.emplace(guard->id, guard);
  return guard;
}

void Guards::forget(const GuardPtr& guard) {
  guards_.erase(guard->id);
  guard->id = loop_.random().attempt().to_string();  // a claim of it may be under way
}

void Guards::rename(const GuardPtr& guard) {
  auto there = guards_.extract(guard->id);
  guard->id = loop_.random().attempt().to_string();
  if (!there) return;
  there.key() = guard->id;
  guards_.insert(std::move(there));
}

bool Guards::is_returning(std::string_view kind, std::string_view name) const {
  return std::ranges::any_of(guards_, [&](const auto& entry) {
    const Guard& guard = *entry.second;
    return guard.end && guard.held != nullptr && guard.kind == kind && guard.name == name;
  });
}

void Guards::hold(const GuardPtr& guard, std::shared_ptr<coord::Held> held, Duration hold_for) {
  guard->epoch = held->epoch().value;
  guard->attempt = held->row().text(attribute::attempt);
  guard->held = std::move(held);
  guards_.emplace(guard->id, guard);
  set_deadline(guard, hold_for);
}

void Guards::set_deadline(const GuardPtr& guard, Duration hold_for) {
  if (guard->timer != 0) loop_.cancel(guard->timer);
  guard->deadline = loop_.wall() + std::chrono::floor<std::chrono::milliseconds>(hold_for);
  guard->own_end = loop_.instant() + hold_for;
  guard->timer = loop_.call_after(hold_for, [this, guard] {
    guard->timer = 0;
    let_go(guard, GuardEnd::let_go);
  });
}

GuardPtr Guards::known(const std::string& id) const {
  for (const auto* among : {&guards_, &ended_}) {
    if (const auto found = among->find(id); found != among->end()) return found->second;
  }
  return nullptr;
}

GuardPtr Guards::find(const std::string& id) const {
  GuardPtr guard = known(id);
  // One that is not held yet is nobody's to ask for.
  return guard != nullptr && guard->epoch > 0 ? guard : nullptr;
}

bool Guards::extend(const GuardPtr& guard, Duration hold_for) {
  if (!guard->is_held() || !guard->held->guard()->holds(loop_.instant())) return false;
  set_deadline(guard, hold_for);
  return true;
}

void Guards::leave(const GuardPtr& guard, GuardEnd why) {
  if (guard->timer != 0) loop_.cancel(std::exchange(guard->timer, 0));
  guard->end = why;
  changed(guard);
}

void Guards::let_go(const GuardPtr& guard, GuardEnd why) {
  if (guard->runs_out()) {
    loop_.cancel(std::exchange(guard->timer, 0));
    return give_back(guard);
  }
  if (!guard->is_held()) return;
  // Who asks again is not told of one that he was never told of.
  if (why == GuardEnd::undelivered) rename(guard);
  leave(guard, why);
  give_back(guard);
}

void Guards::let_run_out(const GuardPtr& guard, GuardEnd why, std::string reason) {
  if (!guard->is_held()) return;
  const Instant until = std::min(guard->held->guard()->until(), guard->own_end);
  guard->reason = std::move(reason);
  leave(guard, why);
  guard->timer = loop_.call_at(until, [this, guard] {
    guard->timer = 0;
    give_back(guard);
  });
}

/// What is to be done with such a one is the next caller's to say (F22): its owner stays in the row, and the lease
/// ends now.
bool Guards::is_abandoned(const Guard& guard) {
  if (guard.kind != "once") return false;
  switch (*guard.end) {
    case GuardEnd::released:
    case GuardEnd::finished:
      return false;
    case GuardEnd::let_go:
    case GuardEnd::lost:
    case GuardEnd::drained:
      return true;  // its caller may have been in the middle of it
    case GuardEnd::undelivered:
      break;
  }
  return guard.turn.was_abandoned;  // he has not begun, and what came of who had is as open as it was
}

void Guards::give_back(const GuardPtr& guard) {
  const auto held = guard->held;
  if (held == nullptr) return;
  is_abandoned(*guard) ? held->leave() : held->release({});
}

void Guards::lost(const GuardPtr& guard, LossReason reason) {
  if (guard->end) return;
  guard->reason = to_string(reason);
  leave(guard, GuardEnd::lost);
}

void Guards::ended(const GuardPtr& guard, coord::HoldEnd how) {
  guard->is_asked_again = false;
  guard->came_to = how;
  remember(guard);
}

void Guards::finished(const GuardPtr& guard, const Ended<std::optional<OnceResult>>& how) {
  guard->is_asked_again = false;
  guard->failure.reset();
  if (how) {
    guard->came_to = coord::HoldEnd::released;
  } else {
    const bool is_known = how.error().kind != Failure::Kind::unknown;
    guard->came_to = is_known ? coord::HoldEnd::lost : coord::HoldEnd::doubtful;
    guard->failure = how.error();
  }
  remember(guard);
}

bool Guards::ask_again(const GuardPtr& guard) {
  if (std::exchange(guard->is_asked_again, true)) return false;
  guard->came_to.reset();
  guard->failure.reset();
  return true;
}

void Guards::remember(const GuardPtr& guard) {
  if (!guard->end) leave(guard, GuardEnd::lost);  // nobody asked for it
  if (guard->timer != 0) loop_.cancel(std::exchange(guard->timer, 0));
  guard->held.reset();
  guard->turn = {};
  if (guards_.erase(guard->id) > 0) {
    ended_.emplace(guard->id, guard);
    ended_order_.push_back(guard->id);
    if (ended_order_.size() > remembered_most) {
      ended_.erase(ended_order_.front());
      ended_order_.pop_front();
    }
  }
  changed(guard);
  tell_when_empty();
}

void Guards::changed(const GuardPtr& guard) {
  const auto waiting = std::exchange(guard->waiting, {});
  for (const auto& [id, called] : waiting) called();
}

Guards::WaitId Guards::wait(const GuardPtr& guard, Duration limit, std::function<void()> called) {
  const WaitId id = ++last_wait_;
  const TimerId timer = loop_.call_after(limit, [guard, id] { end_wait(guard, id); });
  guard->waiting.emplace(id, [this, timer, called = std::move(called)] {
    loop_.cancel(timer);
    called();
  });
  return id;
}

void Guards::end_wait(const GuardPtr& guard, WaitId id) {
  const auto own = guard->waiting.extract(id);
  if (own) own.mapped()();
}

std::size_t Guards::held() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(guards_, [](const auto& entry) { return entry.second->is_held(); }));
}

void Guards::let_all_go(GuardEnd why) {
  for (const GuardPtr& guard : all()) let_go(guard, why);
}

std::vector<GuardPtr> Guards::all() const {
  std::vector<GuardPtr> all;
  for (const auto& [id, guard] : guards_) {
    if (guard->is_held() || guard->runs_out()) all.push_back(guard);
  }
  return all;
}

void Guards::when_empty(std::function<void()> called) {
  empty_ = std::move(called);
  tell_when_empty();
}

void Guards::tell_when_empty() {
  const bool is_empty =
      std::ranges::none_of(guards_, [](const auto& entry) { return entry.second->held != nullptr; });
  if (!empty_ || !is_empty) return;
  loop_.post([called = std::exchange(empty_, {})] { called(); });
}

}  // namespace holdfast::serve
