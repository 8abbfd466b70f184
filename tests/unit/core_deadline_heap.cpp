#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "core/deadline_heap.hpp"

namespace holdfast {
namespace {

TEST(DeadlineHeap, gives_the_earliest_whatever_was_set_moved_and_removed) {
  EXPECT_TRUE(rc::check([](const std::vector<std::pair<std::uint8_t, std::int8_t>>& steps) {
    DeadlineHeap heap;
    std::map<Slot, Instant> known;  // what the heap should hold
    for (const auto& [what, at] : steps) {
      const Slot slot = what % 32;
      if (at < 0) {
        heap.remove(slot);
        known.erase(slot);
      } else {
        heap.set(slot, Instant(Duration(at)));
        known[slot] = Instant(Duration(at));
      }
      RC_ASSERT(heap.size() == known.size());
      RC_ASSERT(heap.contains(slot) == known.contains(slot));
      std::set<std::pair<Instant, Slot>> order;
      for (const auto& [each, when] : known) order.emplace(when, each);
      RC_ASSERT(heap.empty() == order.empty());
      if (!order.empty()) {
        RC_ASSERT(heap.top().at == order.begin()->first);
        RC_ASSERT(heap.top().slot == order.begin()->second);
      }
    }
    while (!known.empty()) {  // and in order to the end
      const DeadlineHeap::Entry top = heap.top();
      for (const auto& [slot, when] : known) RC_ASSERT(std::pair(top.at, top.slot) <= std::pair(when, slot));
      RC_ASSERT(heap.at(top.slot) == known.at(top.slot));
      known.erase(top.slot);
      heap.remove(top.slot);
    }
  }));
}

TEST(DeadlineHeap, removing_what_is_not_there_changes_nothing) {
  DeadlineHeap heap;
  heap.remove(7);
  heap.set(1, Instant(Duration(5)));
  heap.remove(7);
  EXPECT_EQ(heap.size(), 1U);
  EXPECT_FALSE(heap.at(7).has_value());
}

}  // namespace
}  // namespace holdfast
