#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/keeper.hpp"
#include "holdfast/lease.hpp"
#include "holdfast/loop.hpp"
#include "holdfast/store.hpp"
#include "runtime/log.hpp"

namespace holdfast::worker {

/// The right to read the table's changes for all workers: a lease like any other (S1–S8, by a Keeper of its own), on
/// the row `FEED#changes` with the desired state `FEED`. Where the row is missing, it is made: by a write that gives
/// the lease to nobody, so a claim still creates nothing (S8).
///
/// Who does not hold it looks at the row at random intervals around half a lease, and soon after its end is due. On
/// the loop's thread.
class FeedLease {
 public:
  static constexpr std::string_view row = "FEED#changes";

  struct Events {
    std::function<void()> won;
    std::function<void()> lost;  ///< after each `won`, once
  };
  FeedLease(WorkerId owner, LeaseTerms terms, Loop& loop, Store& store, runtime::Log& log, Events events);
  ~FeedLease();
  FeedLease(const FeedLease&) = delete;
  FeedLease& operator=(const FeedLease&) = delete;

  void start();
  /// Claims it no more; what is held is kept.
  void seek_no_more();
  /// Somebody has said that nobody holds it: looks at the row within a moment, unless it did so just before.
  void seek_soon();
  /// Gives it back. `done` is called once, not inside the call, when it is given back, or at the deadline.
  void finish(Instant deadline, std::function<void()> done);
  /// Nothing more is written; whoever acts by it stops (`lost`).
  void abandon();

  /// Asked before each effect (S7).
  [[nodiscard]] bool holds() const { return held_ && loop_.instant() < until_; }

 private:
  void seek();
  void seek_at(Instant when);
  void seen(const RowReply& reply);
  void make_row();
  void pump();
  void arm();
  void write(const Action& action);
  void carry_out(const Action& action);
  void end_holding();
  void finish_if_done();
  [[nodiscard]] Duration between_looks();
  [[nodiscard]] bool in_order(const RowReply& reply);

  const LeaseTerms terms_;
  Loop& loop_;
  Store& store_;
  runtime::Log& log_;
  const Events events_;
  Keeper keeper_;
  bool held_ = false;
  Instant until_{};
  bool seeking_ = false;  // a look is under way
  bool seeks_ = true;
  bool over_ = false;
  bool complaining_ = false;
  Instant sought_{};
  TimerId seek_timer_ = 0, timer_ = 0, finish_timer_ = 0;
  Instant seek_due_{};
  std::function<void()> finish_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace holdfast::worker
