#pragma once
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>

namespace holdfast::sim {

/// A set of whole numbers, as ranges.
class Coverage {
 public:
  void add(std::int64_t from, std::int64_t to) {
    if (from > to) return;
    auto next = ranges_.upper_bound(from);
    auto range = next;  // the one that it becomes a part of; next: none before it
    if (next != ranges_.begin() && std::prev(next)->second >= from - 1) range = std::prev(next);
    if (range == next) {
      range = ranges_.emplace_hint(next, from, to);
    } else if (range->second < to) {
      range->second = to;
    }
    while (next != ranges_.end() && next->first <= range->second + 1) {
      if (next->second > range->second) range->second = next->second;
      next = ranges_.erase(next);
    }
  }
  /// The first number from `from` on that is not in it.
  [[nodiscard]] std::int64_t first_missing(std::int64_t from) const {
    const auto next = ranges_.upper_bound(from);
    if (next == ranges_.begin()) return from;
    const auto before = std::prev(next);
    return before->second >= from ? before->second + 1 : from;
  }
  [[nodiscard]] bool meets(std::int64_t from, std::int64_t to) const {
    const auto next = ranges_.upper_bound(to);
    return next != ranges_.begin() && std::prev(next)->second >= from;
  }
  void clear() { ranges_.clear(); }
  [[nodiscard]] std::size_t ranges() const { return ranges_.size(); }

 private:
  std::map<std::int64_t, std::int64_t> ranges_;  // from → to, apart from one another
};

}  // namespace holdfast::sim
