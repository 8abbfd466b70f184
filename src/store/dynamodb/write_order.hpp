#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "store/request.hpp"

namespace holdfast::store::dynamodb {

/// Requests go out on several connections and overtake each other there. So that a store sees its own writes, and
/// makes them in the order in which they were asked for, a request waits for the earlier writes to its rows. Reads
/// hold up nobody, and queries wait for nobody: what an index says is a hint anyway.
class WriteOrder {
 public:
  using OperationPtr = std::shared_ptr<Operation>;

  /// True: it may start now. Otherwise some leave() gives it back.
  [[nodiscard]] bool enter(const OperationPtr& operation);
  /// It has been answered, or will not be started. Gives those that may start now.
  [[nodiscard]] std::vector<OperationPtr> leave(const OperationPtr& operation);

 private:
  struct Entry {
    OperationPtr operation;
    std::vector<std::string> keys;  // of the rows that it writes
    std::size_t waits_for = 0;
    std::vector<std::shared_ptr<Entry>> followers;
  };

  std::unordered_map<const Operation*, std::shared_ptr<Entry>> entries_;
  std::unordered_map<std::string, std::shared_ptr<Entry>> last_write_;  // by row: the latest one that is not done
};

}  // namespace holdfast::store::dynamodb
