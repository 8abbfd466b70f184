#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/lease.hpp"
#include "holdfast/loop.hpp"
#include "holdfast/store.hpp"
#include "runtime/log.hpp"
#include "worker/feed_lease.hpp"
#include "worker/poke.hpp"

namespace holdfast::worker {

struct ChangeWatchOptions {
  WorkerId owner;
  LeaseTerms terms;
  PokeNet* net = nullptr;  ///< null: hears of nothing where changes take a reader
  std::string token;       ///< that pokes to this worker have
};

/// What makes a worker look out of turn: that rows may have become free.
///
/// Where every process can follow the store's changes, each does. Where few can (DynamoDB allows two readers for each
/// part of a stream), one worker reads them for all (FeedLease), looks itself, and pokes others by datagram: two more
/// than there are rows to take, chosen at random among those with room, so that few collide over one row and many
/// rows find many workers. Whom a poke does not reach finds the rows by looking at its usual pace; nothing depends on
/// it.
///
/// Bounded: pokes go out at most every `pause`, to at most `pokes_max` workers; whom to poke is asked of the table
/// when there is something to say and the answer is older than half a lease. On the loop's thread.
class ChangeWatch {
 public:
  static constexpr Duration pause = std::chrono::milliseconds(250);
  static constexpr std::size_t pokes_max = 256;
  static constexpr std::size_t spare_pokes = 2;

  struct Counts {
    std::int64_t changes = 0;        ///< times that the store told of some
    std::int64_t pokes_sent = 0;     ///< datagrams
    std::int64_t pokes_heard = 0;    ///< that were meant for this worker
    std::int64_t pokes_refused = 0;  ///< that were not, or were none
    std::int64_t reads = 0;          ///< times that it became the reader
  };

  /// `look`: looks soon, but not more often than is good for the store (Planner::poke).
  ChangeWatch(ChangeWatchOptions options, Loop& loop, Store& store, runtime::Log& log, std::function<void()> look);
  ~ChangeWatch();
  ChangeWatch(const ChangeWatch&) = delete;
  ChangeWatch& operator=(const ChangeWatch&) = delete;

  void start();
  /// Takes nothing new on. Who reads goes on: what is given back in a drain is news to the others (S11).
  void drain();
  /// The end of a drain: tells the others, and gives the right to read back. `done` is called once, by the deadline.
  void finish(Instant deadline, std::function<void()> done);
  /// At once: nothing more is read, said or heard.
  void abandon();

  [[nodiscard]] bool reads() const { return lease_ && lease_->holds(); }
  [[nodiscard]] const Counts& counts() const { return counts_; }

 private:
  struct Peer {
    PokeAddress address;
    bool has_room = false;
  };
  void changed(const Changed& changed);
  void heard(std::string_view text);
  void poke_later(std::size_t rows);
  void poke_now();
  void ask_for_peers(std::string page, std::vector<Peer> so_far);
  void take_peers(PageReply reply, std::vector<Peer> so_far);
  void send_to_some();
  void send(const Peer& peer, Poke poke);

  const ChangeWatchOptions options_;
  Loop& loop_;
  Store& store_;
  runtime::Log& log_;
  const std::function<void()> look_;
  std::unique_ptr<FeedLease> lease_;  // null: there is nothing to elect
  Counts counts_;
  std::vector<Peer> peers_;
  std::optional<Instant> peers_known_since_;
  bool asking_ = false;
  std::size_t rows_ = 0;  // to be told
  Instant said_ = Instant::min();
  TimerId timer_ = 0;
  bool told_no_feed_ = false;
  bool over_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace holdfast::worker
