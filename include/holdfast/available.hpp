#pragma once
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "holdfast/coordination.hpp"
#include "holdfast/coordinator.hpp"
#include "holdfast/error.hpp"
#include "holdfast/provisional.hpp"
#include "holdfast/row.hpp"
#include "holdfast/types.hpp"

namespace holdfast {

struct AvailableMode {
  std::string journal = "holdfast.journal";   ///< a file on this machine's disk
  std::size_t max_provisional = 1000;         ///< tickets that are not settled; more are refused
  Duration max_age = std::chrono::hours(24);  ///< a ticket that was not begun for so long is rejected; to 365 days
  /// Called on the coordinator's own thread: it waits for nothing, and calls nothing of the coordinator. Where it
  /// throws, the proposal waits for another pass.
  Merge merge = merge_equal;
  /// Makes good for a ticket that was rejected after its caller had been told that it was accepted; where it fails,
  /// the next pass tries again. None: what is rejected stays due. `is_repeat`: who was killed may have done part of
  /// it; make it idempotent by the ticket.
  ///
  /// Called within reconcile(), on its caller's thread, once all that was open is carried out. It may use the
  /// coordinator, but for reconcile() (busy). Nobody can end it, and while it runs no other process reconciles the
  /// journal: it has to bound whatever it waits for (S10).
  std::function<Result<void>(const Intent& rejected, bool is_repeat)> compensate{};
};

/// The other mode (docs/modes.md): what cannot reach the store within `patience` is accepted provisionally, in a
/// journal, and settled by reconcile(). Rights cannot be: Coordinator has those. Any number of threads may call at
/// once; calls wait for the disk. Tickets are ids: the same call with the same one is the same operation, from
/// anywhere and after any crash; empty: a new one.
class AvailableCoordinator {
 public:
  /// As Coordinator::open(), and the journal is opened. A table is made (CoordinatorOptions::make_table) only where
  /// there is no journal yet: what stands in one is for the table that was there, and another in its place would be
  /// empty. A store that is away is none to refuse for, nor, with make_table = false, is a SQLite file that is not
  /// there: it is on a disk that is away, and what is asked for is accepted provisionally. Its folder has to be
  /// there.
  [[nodiscard]] static Result<std::unique_ptr<AvailableCoordinator>> open(CoordinatorOptions options,
                                                                          AvailableMode mode);
  ~AvailableCoordinator();
  AvailableCoordinator(const AvailableCoordinator&) = delete;
  AvailableCoordinator& operator=(const AvailableCoordinator&) = delete;

  [[nodiscard]] Ended<Accepted<Decided>> decide(std::string_view key, Value proposal, std::string_view ticket = {});
  [[nodiscard]] Ended<Accepted<Added>> add(AddWish wish, std::string_view ticket = {});
  [[nodiscard]] Ended<Accepted<Sent>> send(SendWish wish, std::string_view ticket = {});
  /// Goods out of a quota, without the store: never more than was set aside.
  [[nodiscard]] Ended<Provisional> sell(Basket basket, std::string_view ticket = {});

  /// Sets goods aside in the store for `ttl`, to be sold from the journal until `max_age` before its end.
  [[nodiscard]] Ended<Quota> set_aside(std::string_view id, Basket basket, Duration ttl);
  /// Nothing more is sold from it; reconcile() gives back what is left. False: there is no such quota, or it has
  /// ended.
  [[nodiscard]] Ended<bool> give_back(std::string_view id);

  /// Carries out what the journal holds, in order, and compensates what is rejected. Failure::Kind::busy: another
  /// process is at it. That the store is away is no failure: the report says so.
  [[nodiscard]] Ended<ReconcileReport> reconcile();
  /// What stands in the journal about this ticket; nothing: it is not there (any more).
  [[nodiscard]] Ended<std::optional<Intent>> find(std::string_view ticket);

 private:
  class Impl;
  explicit AvailableCoordinator(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace holdfast
