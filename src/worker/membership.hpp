#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "holdfast/lease.hpp"
#include "holdfast/loop.hpp"
#include "holdfast/store.hpp"
#include "runtime/log.hpp"

namespace holdfast::worker {

struct MembershipOptions {
  std::string name, incarnation, address;
  std::int64_t capacity = 0;
  LeaseTerms terms;
};

/// A worker's own row: `WORKER#name`, for people and for others' planning. Leases do not depend on it: while it
/// cannot be written, it is tried again at each beat, and nothing else changes.
///
/// Where a live row of another incarnation has the name, one line warns and the row is `WORKER#name#incarnation`:
/// nobody is refused (F12), and since leases are owned by `name#incarnation` the two can never renew each other's.
class Membership {
 public:
  struct Facts {
    std::int64_t held = 0;
    bool draining = false;
  };

  Membership(MembershipOptions options, Loop& loop, Store& store, runtime::Log& log, std::function<Facts()> facts);
  ~Membership();
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  void start();
  /// Writes the row soon, out of turn: the facts have changed in a way that others should see.
  void tell();
  /// The clean end: expiry 0, and a day from now until the table's TTL may take the row (F18). `done` is called once,
  /// by the deadline, whatever came of it.
  void finish(Instant deadline, std::function<void()> done);

  /// Writes nothing more.
  void abandon();

  [[nodiscard]] const std::string& key() const { return key_; }

 private:
  void beat();
  void written(const RowReply& reply);
  void schedule(Duration delay);
  void say_last(Instant deadline, std::function<void()> done);
  void send(Update update, Instant deadline, std::function<void(RowReply)> then);
  [[nodiscard]] Update registration() const;
  [[nodiscard]] Update renewal() const;
  [[nodiscard]] Update last_words() const;
  [[nodiscard]] std::vector<Change> changes() const;

  const MembershipOptions options_;
  Loop& loop_;
  Store& store_;
  runtime::Log& log_;
  const std::function<Facts()> facts_;

  std::string key_;
  bool registered_ = false;
  bool in_flight_ = false;
  bool again_ = false;  // tell() came while a write was in flight
  bool complaining_ = false;
  bool abandoned_ = false;
  std::int64_t beat_ = 0;
  TimerId timer_ = 0;
  std::function<void()> finish_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace holdfast::worker
