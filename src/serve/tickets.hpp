#pragma once
#include <boost/json/object.hpp>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "coord/available.hpp"
#include "serve/desk.hpp"

namespace holdfast::serve {

/// What was accepted provisionally for callers, and its settlement: now and then this goes through the journal, where
/// something is in it. What is rejected waits until somebody says that it was made good for: a caller, or a
/// `holdfast journal reconcile` with a command. On the loop's thread; calls of the journal wait for the disk.
class Tickets {
 public:
  Tickets(coord::Journal& journal, Store& store, Loop& loop, coord::AvailableOptions options);
  ~Tickets();
  Tickets(const Tickets&) = delete;
  Tickets& operator=(const Tickets&) = delete;

  [[nodiscard]] coord::Available& available() { return available_; }
  [[nodiscard]] coord::Journal& journal() { return journal_; }
  /// Nothing is left to do about what was rejected. False: nothing was. Failure::Kind::busy: another process
  /// reconciles.
  [[nodiscard]] Ended<bool> note_compensated(Intent intent);

 private:
  void plan();
  void look();

  coord::Journal& journal_;
  Loop& loop_;
  coord::Available available_;
  TimerId timer_ = 0;
  bool is_reconciling_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

/// "consistent" or "available".
[[nodiscard]] Field mode_field();
/// Whether the caller takes a provisional answer.
[[nodiscard]] inline bool takes_provisional(const CallPtr& call) {
  return call->body().text("mode") == "available";
}
/// False: this server has no journal, and the caller is told so.
[[nodiscard]] bool has_journal(const Desk& desk, const CallPtr& call);

/// The answer 202, and what is in it.
[[nodiscard]] Route::Answer provisional_answer();
void tell(const CallPtr& call, const Provisional& provisional);
/// Tells what it came to: `committed` is for what is in the store.
template <class T, class Committing>
[[nodiscard]] coord::Available::Handler<T> tell_either(CallPtr call, Committing committed) {
  return [call = std::move(call), committed = std::move(committed)](const Ended<Accepted<T>>& result) {
    if (!result) return call->fail(result.error());
    if (const auto* provisional = std::get_if<Provisional>(&*result)) return tell(call, *provisional);
    committed(std::get<Committed<T>>(*result).value);
  };
}

}  // namespace holdfast::serve
