#include "holdfast/flat_map.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace holdfast {
namespace {

using Numbers = FlatMap<int>;
using Model = std::map<std::string, int, std::less<>>;

std::vector<std::pair<std::string, int>> items_of(const auto& map) {
  return {map.begin(), map.end()};
}

TEST(FlatMap, holds_what_a_map_holds_whatever_was_put_in_changed_and_erased) {
  // More names than are looked through one by one, and of one length and of several.
  EXPECT_TRUE(rc::check([](const std::vector<std::pair<std::uint8_t, std::uint8_t>>& steps) {
    Numbers numbers;
    Model model;
    for (const auto& [what, which] : steps) {
      const std::string name = std::to_string(which % 120);
      switch (what % 5) {
        case 0:
          RC_ASSERT(numbers.insert_or_assign(name, what).second == model.insert_or_assign(name, what).second);
          break;
        case 1:
          RC_ASSERT(numbers.try_emplace(name, what).second == model.try_emplace(name, what).second);
          break;
        case 2:
          numbers[name] += 1;
          model[name] += 1;
          break;
        case 3:
          RC_ASSERT(numbers.emplace(name, what).first->second == model.emplace(name, what).first->second);
          break;
        default:
          RC_ASSERT(numbers.erase(name) == model.erase(name));
      }
      RC_ASSERT(items_of(numbers) == items_of(model));
      RC_ASSERT(numbers.contains(name) == model.contains(name));
      if (model.contains(name)) RC_ASSERT(numbers.at(name) == model.at(name));
    }
  }));
}

TEST(FlatMap, takes_many_names_in_any_order_and_of_one_name_the_last_value) {
  EXPECT_TRUE(rc::check([](const std::vector<std::pair<std::string, int>>& items) {
    Model model;
    for (const auto& [name, number] : items) model.insert_or_assign(name, number);
    RC_ASSERT(items_of(Numbers(items)) == items_of(model));
  }));
}

TEST(FlatMap, finds_nothing_where_nothing_is) {
  Numbers numbers{{"a", 1}};
  EXPECT_EQ(numbers.find(""), numbers.end());
  EXPECT_EQ(numbers.find("b"), numbers.end());
  EXPECT_THROW((void)numbers.at("b"), std::out_of_range);
  numbers.erase(numbers.find("a"));
  EXPECT_TRUE(numbers.empty());
}

TEST(FlatMap, two_are_equal_that_hold_the_same) {
  EXPECT_EQ((Numbers{{"a", 1}, {"b", 2}}), (Numbers{{"b", 2}, {"a", 1}}));
  EXPECT_NE((Numbers{{"a", 1}}), (Numbers{{"a", 2}}));
  EXPECT_NE((Numbers{{"a", 1}}), (Numbers{{"b", 1}}));
}

}  // namespace
}  // namespace holdfast
