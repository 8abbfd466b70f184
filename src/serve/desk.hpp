#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "coord/coordinator.hpp"
#include "coord/runner.hpp"
#include "holdfast/loop.hpp"
#include "holdfast/store.hpp"
#include "serve/guards.hpp"
#include "serve/invocations.hpp"
#include "serve/route.hpp"

namespace holdfast::serve {

/// Of a call that waits: free again when the last copy goes.
using Place = std::shared_ptr<void>;

/// What calls that wait may take of all that there may be at once, so that those who hold something can always say
/// so.
class Places {
 public:
  explicit Places(std::size_t most) : most_(most) {}
  /// For a call that waits for so long: null, where there are too many. One that does not wait needs none.
  [[nodiscard]] std::optional<Place> take(Duration wait) {
    if (wait <= Duration::zero()) return Place();
    if (*taken_ >= most_) return std::nullopt;
    ++*taken_;
    return Place(taken_.get(), [taken = taken_](void*) { --*taken; });
  }

 private:
  const std::size_t most_;
  std::shared_ptr<std::size_t> taken_ = std::make_shared<std::size_t>(0);
};

/// Calls that wait for something, for as long as their callers said and are there: answered when the server stops.
/// One that is answered here has no place among those that wait any more, nor anywhere else (`left`).
class Waiting {
 public:
  using Id = std::uint64_t;
  /// `left`: called once where its caller hangs up or it is stopped, when it has been answered. Until then remove()
  /// takes it away, and its place is taken.
  [[nodiscard]] Id add(const CallPtr& call, Place place, std::function<void()> left) {
    const Id id = ++last_;
    calls_.emplace(id, Entry{call, std::move(place), std::move(left)});
    // Who has closed only his half is there to hear of it.
    call->on_hang_up([this, alive = std::weak_ptr(alive_), id] {
      if (!alive.expired()) leave(id, {410, "lost", "The caller had hung up: it was given nothing.", {}});
    });
    return id;
  }
  [[nodiscard]] bool has(Id id) const { return calls_.contains(id); }
  /// False: it is answered.
  bool remove(Id id) { return calls_.erase(id) > 0; }
  /// Answers with that those of which this is true.
  void stop(const Problem& problem, const std::function<bool(const Call&)>& whether) {
    std::vector<Id> stopped;
    for (const auto& [id, entry] : calls_) {
      if (whether(*entry.call)) stopped.push_back(id);
    }
    for (const Id id : stopped) leave(id, problem);
  }

 private:
  struct Entry {
    CallPtr call;
    Place place;
    std::function<void()> left;
  };
  void leave(Id id, const Problem& problem) {
    const auto gone = calls_.extract(id);
    if (!gone) return;
    gone.mapped().call->fail(problem);
    gone.mapped().left();
  }

  std::map<Id, Entry> calls_;
  Id last_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

class Tickets;

/// What all handlers work with.
struct Desk {
  Store& store;
  Loop& loop;
  coord::Coordinator& coordinator;
  coord::Runner& runner;
  Guards& guards;
  Duration patience;                   ///< how long the store is waited for
  Places places;                       ///< for those who wait
  Tickets* tickets = nullptr;          ///< none: nothing is accepted provisionally
  Invocations* invocations = nullptr;  ///< null: callers are of no invocations
  Waiting waiting = {};
  bool is_draining = false;

  /// See Invocations::stops().
  [[nodiscard]] std::uint64_t stops() const { return invocations == nullptr ? 0 : invocations->stops(); }
  [[nodiscard]] Instant deadline() const { return loop.instant() + patience; }
  [[nodiscard]] Instant deadline_after(Duration wait) const { return loop.instant() + wait + patience; }
};

/// Carries a procedure out and hands over what it came to.
template <class Procedure, class Done>
void run(Desk& desk, std::unique_ptr<Procedure> procedure, Done done) {
  const Procedure* ended = procedure.get();
  desk.runner.run(std::move(procedure), [ended, done = std::move(done)] { done(*ended->result()); });
}

/// The same where all there is to do with a failure is to tell it.
template <class Procedure, class Answer>
void run_for(Desk& desk, const CallPtr& call, std::unique_ptr<Procedure> procedure, Answer answer) {
  run(desk, std::move(procedure), [call, answer = std::move(answer)](const auto& result) {
    if (!result) return call->fail(result.error());
    answer(*result);
  });
}

/// The same where it is refused because there is no such thing (Code::not_found): that is a 404 then.
template <class Procedure, class Answer>
void find_for(Desk& desk, const CallPtr& call, std::unique_ptr<Procedure> procedure, Answer answer) {
  run(desk, std::move(procedure), [call, answer = std::move(answer)](const auto& result) {
    if (result) return answer(*result);
    const Failure& failure = result.error();
    const bool is_none = failure.kind == Failure::Kind::refused && failure.error.code == Code::not_found;
    if (is_none) return call->fail(Problem{404, "not_found", failure.error.detail, {}});
    call->fail(failure);
  });
}

[[nodiscard]] inline Problem no_place() {
  return {503, "overloaded", "As many requests wait here as may: ask without a wait, later, or another server.", {}};
}
[[nodiscard]] inline Problem draining() {
  return {503, "draining", "This server is stopping: ask another one.", {}};
}

[[nodiscard]] inline Problem invocation_over() {
  return {410, "lost", "The invocation that asks is over.", {}};
}
/// Whether it says that it is of an invocation that is over: it is given nothing any more.
[[nodiscard]] inline bool is_of_ended_invocation(const Desk& desk, const Call& call) {
  return desk.invocations != nullptr && desk.invocations->is_over(call.invocation());
}

[[nodiscard]] inline std::int64_t ms(WallTime time) {
  return time.time_since_epoch().count();
}

}  // namespace holdfast::serve
