#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "coord/journal.hpp"
#include "coord/runner.hpp"
#include "core/coord/replay.hpp"
#include "holdfast/loop.hpp"
#include "holdfast/provisional.hpp"
#include "holdfast/store.hpp"

namespace holdfast::coord {

/// Makes good for a ticket that was rejected after its caller had been told that it was accepted. `done` is called
/// once, on the loop, with how it went; a failure is tried again by the next pass.
///
/// Once: it is noted before it begins and after it has ended, on the disk. Who is killed in between leaves it begun,
/// and nobody can know how far it came: then it is called again, with `is_repeat`, under the same ticket. So it is
/// called exactly once where nobody dies within it, and where that can happen the ticket is what it has to be made
/// idempotent by (as the key of a run under `once`, say).
///
/// Whoever gives it ends it in time: what has not called `done` within the limit of its pass has failed, and a later
/// call is not heard (S10).
using Compensate =
    std::function<void(const Intent& rejected, bool is_repeat, std::function<void(Result<void>)> done)>;

struct ReconcileOptions {
  Judge merge = merge_equal;
  Compensate compensate;  ///< none: what is rejected stays due, for a pass that has one
  Duration compensation_limit = std::chrono::minutes(1);  ///< how long one compensation is waited for
  Duration patience = std::chrono::seconds(5);  ///< how long the store is waited for, for each request of the pass
  Duration keep = std::chrono::hours(24 * 7);   ///< how long tickets that are over stay in the journal
};

/// Carries out what a journal holds, in order, gives back what is left of its quotas, and then has what was rejected
/// made good for, one after the other. What is accepted meanwhile is carried out before the next compensation:
/// nothing waits for more than one of them. Those need no store: they are run while it is away, too, and whether it
/// is back is tried between two of them.
///
/// It may die at any point: each operation has its ticket for an id in the store, and the next pass goes on where
/// this one was. On the loop's thread; one pass at a time, in one process at a time.
class Reconciler {
 public:
  Reconciler(Journal& journal, Store& store, Loop& loop);
  ~Reconciler();
  Reconciler(const Reconciler&) = delete;
  Reconciler& operator=(const Reconciler&) = delete;

  /// Failure::Kind::busy where another process reconciles; where the journal itself fails, as it does.
  /// That the store is away is no failure: the report says so, and how far it came.
  using Handler = std::function<void(Ended<ReconcileReport>)>;
  void run(ReconcileOptions options, Handler handler);

 private:
  void next();
  void take(Intent intent);
  void replay(const std::shared_ptr<Intent>& intent, Replay::Way way = Replay::Way::carry_out);
  void judge(const std::shared_ptr<Intent>& intent, const Verdict& verdict);
  void preclude(const std::shared_ptr<Intent>& intent, const std::string& key, std::string why);
  void confirm(const std::shared_ptr<Intent>& intent, std::string note);
  void reject(const std::shared_ptr<Intent>& intent, std::string why);
  void next_quota();
  void give_back(const Quota& quota);
  void is_due(const Intent& rejected);
  void next_compensation();
  void compensate(const std::shared_ptr<Intent>& intent);
  void compensated(const std::shared_ptr<Intent>& intent, const Result<void>& how);

  void leave(const Intent& intent, const std::string& why);
  void block(std::string subject, std::string why);
  void note(std::string why);
  void away(const Error& error);
  void soon(std::function<void()> task);
  /// False: the journal failed, and the pass has ended.
  [[nodiscard]] bool written(const Ended<void>& result);
  void fail(Failure failure);
  void finish();
  void end(Ended<ReconcileReport> result);

  Journal& journal_;
  Loop& loop_;
  Runner runner_;
  ReconcileOptions options_;
  Handler handler_;
  ReconcileReport report_;
  std::int64_t last_ = 0;          // the intent that was taken last
  std::set<std::string> blocked_;  // subjects of which one is stuck
  std::vector<Quota> quotas_;      // still to be looked at
  std::deque<std::string> due_;    // tickets whose compensation is, in order
  std::set<std::int64_t> queued_;  // the same by number, and those that have had it
  TimerId limit_ = 0;              // of the compensation that runs
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace holdfast::coord
