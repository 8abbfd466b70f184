#pragma once
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/store.hpp"
#include "store/change_feed.hpp"
#include "store/memory/indexed_rows.hpp"
#include "store/request.hpp"

namespace holdfast::store {

/// A table in memory. Any number of stores, on any number of loops and threads, may share one: tests of several
/// workers do.
class MemoryTable {
 public:
  [[nodiscard]] Answer execute(const Request& request, WallTime now);
  /// The feed is told of every write between the two.
  void subscribe(ChangeFeed& feed);
  void unsubscribe(ChangeFeed& feed);

 private:
  [[nodiscard]] Answer run(const Initialize& request, WallTime now);
  [[nodiscard]] Answer run(const Get& request, WallTime now);
  [[nodiscard]] Answer run(const BatchGet& request, WallTime now);
  [[nodiscard]] Answer run(const Update& request, WallTime now);
  [[nodiscard]] Answer run(const Transact& request, WallTime now);
  [[nodiscard]] Answer run(const QueryDue& request, WallTime now);
  [[nodiscard]] Answer run(const QueryOwned& request, WallTime now);
  [[nodiscard]] std::optional<Row> copy_of(const std::string& key) const;
  void tell();

  std::mutex mutex_;
  IndexedRows rows_;
  std::vector<ChangeFeed*> feeds_;
};

[[nodiscard]] std::unique_ptr<Store> make_memory_store(std::shared_ptr<MemoryTable> table, Loop& loop);

}  // namespace holdfast::store
