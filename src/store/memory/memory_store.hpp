#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "holdfast/store.hpp"
#include "store/change_feed.hpp"
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
  using Due = std::tuple<std::string, std::int64_t, std::string>;  // state, expiry, key

  [[nodiscard]] Answer run(const Initialize& request, WallTime now);
  [[nodiscard]] Answer run(const Get& request, WallTime now);
  [[nodiscard]] Answer run(const BatchGet& request, WallTime now);
  [[nodiscard]] Answer run(const Update& request, WallTime now);
  [[nodiscard]] Answer run(const Transact& request, WallTime now);
  [[nodiscard]] Answer run(const QueryDue& request, WallTime now);
  [[nodiscard]] Answer run(const QueryOwned& request, WallTime now);
  [[nodiscard]] std::optional<Row> find(const std::string& key) const;
  void put(Row row);
  void erase(const std::string& key);
  void tell();

  std::mutex mutex_;
  std::map<std::string, Row> rows_;
  std::set<Due> due_;
  std::vector<ChangeFeed*> feeds_;
};

[[nodiscard]] std::unique_ptr<Store> make_memory_store(std::shared_ptr<MemoryTable> table, Loop& loop);

}  // namespace holdfast::store
