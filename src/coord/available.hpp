#pragma once
#include <functional>
#include <memory>
#include <string>
#include <variant>

#include "coord/journal.hpp"
#include "coord/reconcile.hpp"
#include "coord/runner.hpp"
#include "core/coord/replay.hpp"
#include "holdfast/loop.hpp"
#include "holdfast/provisional.hpp"
#include "holdfast/store.hpp"

// The two modes of a coordinator (docs/modes.md). Consistent, the default: an operation is in the store when its
// caller is told so, and where the store cannot be reached he is told that, within his deadline
// (Failure::Kind::unavailable). That is all of Coordinator and of the procedures in core/coord. Available, here:
// where the store cannot be reached the intent goes into a durable journal, the caller is told that it is
// provisional, and a later pass settles it.
namespace holdfast::coord {

struct AvailableOptions {
  std::size_t max_provisional = 1000;           ///< tickets that are not settled; more are refused
  Duration max_age = std::chrono::hours(24);    ///< a ticket that was not begun for so long is rejected
  Duration patience = std::chrono::seconds(2);  ///< how long the store is waited for before the journal is used
  std::string proposer;                         ///< who decides, for people
};

/// Accepts something without asking the store: for who knows why it is not to be had. Where it is, ask Available.
/// An empty ticket: a new one. Waits for the disk.
[[nodiscard]] Ended<Provisional> accept(Journal& journal, Wish wish, std::string ticket, std::string why,
                                        const AvailableOptions& options, Now now, Random& random);

/// Sells goods out of a quota in this journal, without the store: always provisional, at once, and never more than
/// was set aside. As accept().
[[nodiscard]] Ended<Provisional> sell(Journal& journal, Basket basket, std::string ticket,
                                      const AvailableOptions& options, Now now, Random& random);

/// Whether anything could be sold of what is set aside for `ttl`, where tickets may become `max_age` old.
[[nodiscard]] Result<void> check_set_aside(Duration ttl, Duration max_age);

/// Operations that are accepted whether the store is there or not. On the loop's thread; calls of the journal wait
/// for the disk.
///
/// Each takes a ticket, its id in journal and store alike: the same call with the same ticket, from anywhere and
/// after any crash, is the same operation. Empty: a new one. While something about the same subject (decision,
/// counter, group) waits in the journal, what comes after it waits there too, so that order is kept.
///
/// Only what core/coord/journal.hpp lists can be provisional. Rights (tasks, runs under `once`, batches of a queue)
/// cannot: two holders of one right on two sides of a cut are what it is to prevent.
class Available {
 public:
  Available(Journal& journal, Store& store, Loop& loop, AvailableOptions options);
  Available(const Available&) = delete;
  Available& operator=(const Available&) = delete;

  template <class T>
  using Handler = std::function<void(Ended<Accepted<T>>)>;
  void decide(const std::string& key, Value proposal, std::string ticket, Handler<Decided> handler);
  void add(AddWish wish, std::string ticket, Handler<Added> handler);
  void send(SendWish wish, std::string ticket, Handler<Sent> handler);
  /// As the free function.
  [[nodiscard]] Ended<Provisional> sell(Basket basket, std::string ticket) {
    return coord::sell(journal_, std::move(basket), std::move(ticket), options_, loop_.now(), loop_.random());
  }

  /// Sets goods aside in the store for `ttl`, to be sold from the journal until `max_age` before its end. The same id
  /// again goes on where a crash has left it. Who dies before it is open: the goods return by themselves after `ttl`.
  void set_aside(const std::string& id, Basket basket, Duration ttl, std::function<void(Ended<Quota>)> handler);
  [[nodiscard]] Result<void> check_set_aside(Duration ttl) const {
    return coord::check_set_aside(ttl, options_.max_age);
  }
  /// Nothing more is sold from it; reconcile() gives back what is left. False: there is no such quota, or it has
  /// ended.
  [[nodiscard]] Ended<bool> give_back(const std::string& id) { return journal_.close_quota(id); }

  /// Settles what is in the journal (Reconciler::run). One pass at a time.
  void reconcile(ReconcileOptions options, Reconciler::Handler handler) {
    reconciler_.run(std::move(options), std::move(handler));
  }

 private:
  template <class T>
  void submit(Wish wish, std::string ticket, Handler<T> handler);
  template <class T>
  void answered(const Replay& replay, const Handler<T>& handler);

  Journal& journal_;
  Loop& loop_;
  const AvailableOptions options_;
  Runner runner_;
  Reconciler reconciler_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace holdfast::coord
