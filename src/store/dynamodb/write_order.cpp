#include "store/dynamodb/write_order.hpp"

#include <utility>
#include <variant>

#include "holdfast/assert.hpp"

namespace holdfast::store::dynamodb {

namespace {

struct KeysOf {
  std::vector<std::string> operator()(const Get& get) const { return {get.key}; }
  std::vector<std::string> operator()(const BatchGet& batch) const { return batch.keys; }
  std::vector<std::string> operator()(const Update& update) const { return {update.key}; }
  std::vector<std::string> operator()(const Transact& transact) const {
    std::vector<std::string> keys;
    for (const Update& update : transact.updates) keys.push_back(update.key);
    return keys;
  }
  std::vector<std::string> operator()(const auto&) const { return {}; }
};

}  // namespace

bool WriteOrder::enter(const OperationPtr& operation) {
  const auto entry = std::make_shared<Entry>();
  entry->operation = operation;
  std::vector<std::string> keys = std::visit(KeysOf(), operation->request);
  const bool writes = is_write(operation->request);
  for (const std::string& key : keys) {
    const auto found = last_write_.find(key);
    if (found != last_write_.end()) {
      found->second->followers.push_back(entry);
      ++entry->waits_for;
    }
    if (writes) last_write_.insert_or_assign(key, entry);
  }
  if (writes) entry->keys = std::move(keys);
  // A read that waits for nobody holds up nobody either.
  if (writes || entry->waits_for > 0) entries_.emplace(operation.get(), entry);
  return entry->waits_for == 0;
}

std::vector<WriteOrder::OperationPtr> WriteOrder::leave(const OperationPtr& operation) {
  const auto found = entries_.find(operation.get());
  if (found == entries_.end()) return {};
  const std::shared_ptr<Entry> entry = std::move(found->second);
  entries_.erase(found);
  HOLDFAST_ASSERT(entry->waits_for == 0, "what waits for others does not leave before them");
  for (const std::string& key : entry->keys) {
    const auto last = last_write_.find(key);
    if (last != last_write_.end() && last->second == entry) last_write_.erase(last);
  }
  std::vector<OperationPtr> ready;
  for (const auto& follower : entry->followers) {
    if (--follower->waits_for == 0) ready.push_back(follower->operation);
  }
  return ready;
}

}  // namespace holdfast::store::dynamodb
