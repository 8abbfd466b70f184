#include "store/desk.hpp"

#include <map>
#include <utility>

namespace holdfast::store {

Desk::~Desk() {
  // nondeterminism-ok: cancelling is the same in any order
  for (const auto& [operation, owed] : owed_) loop_.cancel(owed.timer);
}

void Desk::add(const std::shared_ptr<Operation>& operation, Instant when, std::function<void()> expired) {
  const TimerId timer = loop_.call_at(when, std::move(expired));
  owed_.emplace(operation.get(), Owed{operation, ++last_, timer});
}

void Desk::settle(const std::shared_ptr<Operation>& operation, Answer answer) {
  const auto found = owed_.find(operation.get());
  if (found == owed_.end()) return;
  loop_.cancel(found->second.timer);
  owed_.erase(found);
  operation->respond(std::move(answer));
}

std::vector<std::shared_ptr<Operation>> Desk::all() const {
  std::map<std::uint64_t, std::shared_ptr<Operation>> in_order;
  // nondeterminism-ok: this is what puts them in order
  for (const auto& [key, owed] : owed_) in_order.emplace(owed.number, owed.operation);
  std::vector<std::shared_ptr<Operation>> result;
  result.reserve(in_order.size());
  for (auto& [number, operation] : in_order) result.push_back(std::move(operation));
  return result;
}

}  // namespace holdfast::store
