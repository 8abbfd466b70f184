#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "holdfast/store.hpp"
#include "store/memory/indexed_rows.hpp"
#include "store/memory/memory_store.hpp"
#include "store/request.hpp"

namespace holdfast::sim {

/// An index that follows its table late, each row by itself, as a global index of DynamoDB does.
class LaggingIndex {
 public:
  /// `row` is written now, and shows at `visible_at`, unless an older version of it shows later still.
  void write(const Row& row, Instant visible_at);
  [[nodiscard]] PageReply query(const QueryDue& query, Instant now);

 private:
  void catch_up(Instant now);

  std::multimap<Instant, Row> coming_;     // what was written first shows first at one instant
  std::map<std::string, Instant> latest_;  // by key: when its newest version shows
  store::IndexedRows rows_;
};

/// Who sent a request, and when.
struct Origin {
  std::int16_t process = -1;  ///< -1: people
  Instant sent{};             ///< by its own clock
  Instant sent_truth{};
  bool again = false;  ///< a duplicate of one that was carried out already
};

/// The table that all simulated stores share: the memory table, watched, with an index that may lag.
class SimTable {
 public:
  /// Sees every update at the moment at which it is carried out, whatever it comes to.
  using Watcher = std::function<void(const Update&, const RowReply&, const Origin&)>;
  /// How long until a write shows in the index.
  using Lag = std::function<Duration()>;

  [[nodiscard]] store::Answer execute(const store::Request& request, const Origin& origin, Now now);

  void watch(Watcher watcher) { watcher_ = std::move(watcher); }
  /// Sees the rows that a write has left: one of an update, all of a transaction.
  using WriteWatcher = std::function<void(const std::vector<Row>&, const Origin&)>;
  void watch_writes(WriteWatcher watcher) { write_watcher_ = std::move(watcher); }
  /// Before the first write. Without it the index is the table's own.
  void let_index_lag(Lag lag) { lag_ = std::move(lag); }
  [[nodiscard]] store::MemoryTable& memory() { return memory_; }
  [[nodiscard]] bool index_lags() const { return lag_ != nullptr; }

 private:
  store::MemoryTable memory_;
  Watcher watcher_;
  WriteWatcher write_watcher_;
  Lag lag_;
  LaggingIndex index_;
};

}  // namespace holdfast::sim
