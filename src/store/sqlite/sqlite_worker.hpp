#pragma once
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "holdfast/loop.hpp"
#include "holdfast/random.hpp"
#include "runtime/thread.hpp"
#include "store/change_feed.hpp"
#include "store/request.hpp"
#include "store/sqlite/sqlite_table.hpp"

namespace holdfast::store {

using Answered = std::vector<std::pair<std::shared_ptr<Operation>, Answer>>;

/// The thread that carries operations out: takes what has queued up, puts it into one transaction (group commit),
/// commits, and only then answers. While somebody else holds the write lock, reads go on and writes wait, each no
/// longer than its deadline.
///
/// Made and destroyed on the loop's thread; submit() and stop() from there. `answered` and `ended` are called on
/// the worker's own thread.
class SqliteWorker {
 public:
  static constexpr std::size_t queue_max = 65'536;
  static constexpr std::size_t batch_max = 512;  ///< operations in one transaction, and…
  static constexpr Duration batch_time_max = std::chrono::milliseconds(20);  ///< …how long it may take them

  SqliteWorker(SqliteTable table, Loop& loop, ChangeFeed& feed, std::function<void(Answered)> answered,
               std::function<void()> ended);
  ~SqliteWorker();

  /// Gives back those for which there is no room: too many are waiting.
  [[nodiscard]] std::vector<std::shared_ptr<Operation>> submit(std::vector<std::shared_ptr<Operation>> operations);
  /// Finishes the transaction that it is in, drops what was withdrawn, ends. Does not wait for that.
  void stop();
  void listen() { mailbox_.wake(); }  ///< somebody listens to the feed from now on
  /// Why what waits past its deadline was not begun. Any thread: whichever notices first gives it up.
  [[nodiscard]] Error overdue() const;

 private:
  void run();
  [[nodiscard]] Duration pause() const;
  void drop_overdue();
  void initialize_all();
  [[nodiscard]] bool ready();
  void serve();
  [[nodiscard]] bool begin(bool write);
  [[nodiscard]] bool carry_out(bool write);
  [[nodiscard]] std::optional<Failure> execute(std::shared_ptr<Operation> operation);
  void conclude();
  void fail_batch(const Failure& failure);
  void wait_for_lock();
  void make_way(Instant begun);
  void look_for_changes();
  void purge();
  void answer(std::shared_ptr<Operation> operation, Answer answer);
  void deliver();
  template <class Predicate>
  void fail_waiting(const Failure& failure, Predicate predicate);

  Loop& loop_;  // its clocks only
  ChangeFeed& feed_;
  const std::function<void(Answered)> answered_;
  const std::function<void()> ended_;
  SqliteTable table_;
  Random random_;
  /// What kept it from its work when it was tried last: another process's lock, or that the file is not there.
  enum class Obstacle { none, lock, away };
  std::atomic<Obstacle> obstacle_ = Obstacle::none;

  // The worker's thread only.
  std::deque<std::shared_ptr<Operation>> waiting_;
  Answered batch_;    // carried out in the open transaction
  Answered results_;  // decided, to be delivered together
  Instant write_after_{};
  Duration backoff_{};
  Instant look_after_{};
  Instant polite_until_{};
  std::optional<std::int64_t> seen_version_;
  Instant purge_after_{};

  runtime::Mailbox<std::shared_ptr<Operation>> mailbox_{queue_max};
  runtime::Thread thread_;  // last: it uses all of the above
};

}  // namespace holdfast::store
