#include "sim/monotone_queue.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>
#include <vector>

namespace holdfast::sim {
namespace {

TEST(MonotoneQueue, gives_the_least_first_and_equals_in_the_order_in_which_they_came) {
  EXPECT_TRUE(rc::check([](const std::vector<std::pair<bool, std::uint64_t>>& steps, std::uint8_t shift) {
    MonotoneQueue<int> queue;
    std::multimap<std::uint64_t, int> model;  // equal keys stay in the order in which they were put in
    std::uint64_t last = 0;
    int count = 0;
    for (const auto& [takes, drawn] : steps) {
      const std::uint64_t far = drawn >> (shift % 64U);  // from close together to anywhere
      if (!takes) {
        const std::uint64_t key = far > UINT64_MAX - last ? UINT64_MAX : last + far;
        queue.push(key, count);
        model.emplace(key, count++);
        continue;
      }
      const auto taken = queue.pop(UINT64_MAX);
      RC_ASSERT(taken.has_value() == !model.empty());
      if (!taken) continue;
      RC_ASSERT(*taken == std::pair(model.begin()->first, model.begin()->second));
      last = taken->first;
      model.erase(model.begin());
    }
    for (const auto& [key, value] : model) RC_ASSERT(queue.pop(UINT64_MAX) == std::pair(key, value));
  }));
}

TEST(MonotoneQueue, keeps_what_comes_later_than_asked_for_and_takes_what_comes_before_it) {
  MonotoneQueue<int> queue;
  queue.push(1'000'000, 1);
  EXPECT_EQ(queue.pop(999'999), std::nullopt);
  queue.push(5, 2);
  EXPECT_EQ(queue.pop(1'000'000), std::pair(std::uint64_t{5}, 2));
  EXPECT_EQ(queue.pop(1'000'000), std::pair(std::uint64_t{1'000'000}, 1));
  EXPECT_EQ(queue.pop(UINT64_MAX), std::nullopt);
}

}  // namespace
}  // namespace holdfast::sim
