#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "holdfast/loop.hpp"
#include "store/request.hpp"

namespace holdfast::store {

/// The loop's side of a store: who is owed an answer, and until when. Each operation leaves it once, with its answer.
class Desk {
 public:
  explicit Desk(Loop& loop) : loop_(loop) {}
  ~Desk();
  Desk(const Desk&) = delete;
  Desk& operator=(const Desk&) = delete;

  /// `expired` runs at `when` if it was not answered by then.
  void add(const std::shared_ptr<Operation>& operation, Instant when, std::function<void()> expired);
  /// Calls the handler, which may destroy this. Does nothing where it was answered before.
  void settle(const std::shared_ptr<Operation>& operation, Answer answer);
  /// All that are owed an answer, oldest first.
  [[nodiscard]] std::vector<std::shared_ptr<Operation>> all() const;

 private:
  struct Owed {
    std::shared_ptr<Operation> operation;
    std::uint64_t number;
    TimerId timer;
  };
  Loop& loop_;
  std::unordered_map<const Operation*, Owed> owed_;
  std::uint64_t last_ = 0;
};

}  // namespace holdfast::store
