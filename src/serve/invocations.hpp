#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/coord/queue.hpp"
#include "holdfast/loop.hpp"

namespace holdfast::serve {

/// The invocations of one function, which come one after the other, and whose each request is: for a server beside
/// such a function (an extension of AWS Lambda). The function may hear of an invocation before this server does, and
/// what an ended one left running may go on when the next begins. So what is known of a caller is what it says of
/// itself in a header; no time is guessed. On the loop's thread.
class Invocations {
 public:
  /// Names the invocation that asks, as AWS's own APIs do. Callers without it are of any invocation.
  static constexpr std::string_view header = "lambda-runtime-aws-request-id";

  explicit Invocations(Loop& loop);
  ~Invocations();
  Invocations(const Invocations&) = delete;
  Invocations& operator=(const Invocations&) = delete;

  /// The one before is over. Who waited for this one is called.
  void begun(const std::string& id);
  /// The one under way is.
  void over();
  [[nodiscard]] bool is_current(const std::string& id) const { return !id.empty() && id == current_; }
  /// Among the last thousand that were.
  [[nodiscard]] bool is_over(const std::string& id) const;
  /// Calls back when this one was told of, at once where it was: false where it is not within `limit`. Not called
  /// when this is destroyed.
  void when_known(const std::string& id, Duration limit, std::function<void(bool is_known)> called);

  /// A batch of a queue was handed to a caller of this invocation; it was acknowledged to the last, or given back.
  void gave(const Receipt& receipt, const std::string& invocation);
  void settled(const std::string& receipt) { batches_.erase(receipt); }
  [[nodiscard]] bool has_batches() const { return !batches_.empty(); }
  /// Those of invocations that are over, to be given back. Forgets them, and those of `in_doubt`.
  [[nodiscard]] std::vector<Receipt> take_left_behind(const std::string& in_doubt);

  /// How often this machine was stopped with its monotonic clock, as far as the wall clock shows: beliefs from before
  /// are worth nothing (S7). A clock that counts the time of a stop tells that by itself.
  [[nodiscard]] std::uint64_t stops();

 private:
  struct Expecting {
    std::string id;
    TimerId timer = 0;
    std::function<void(bool)> called;
  };
  struct Batch {
    Receipt receipt;
    std::string invocation;
  };
  [[nodiscard]] Duration clock_difference() const;

  Loop& loop_;
  std::string current_;  // empty: none is under way
  std::deque<std::string> over_;
  std::list<Expecting> expecting_;
  std::map<std::string, Batch, std::less<>> batches_;
  Duration clock_difference_;
  std::uint64_t stops_ = 0;
};

}  // namespace holdfast::serve
