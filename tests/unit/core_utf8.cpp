#include "core/utf8.hpp"

#include <gtest/gtest.h>

#include <string>

namespace holdfast {
namespace {

TEST(Utf8, what_is_wrong_is_found_wherever_it_stands_among_ascii) {
  for (std::size_t before = 0; before < 20; ++before) {
    for (std::size_t after = 0; after < 20; ++after) {
      const auto with = [&](const char* middle) {
        return std::string(before, 'a') + middle + std::string(after, 'z');
      };
      EXPECT_TRUE(is_utf8(with("")));
      EXPECT_TRUE(is_utf8(with("é")));
      EXPECT_TRUE(is_utf8(with("😀")));
      EXPECT_FALSE(is_utf8(with("\xff"))) << before << " before, " << after << " after";
      EXPECT_FALSE(is_utf8(with("\xc3"))) << before << " before, " << after << " after";
      EXPECT_FALSE(is_utf8(with("\xed\xa0\x80"))) << before << " before, " << after << " after";
    }
  }
}

}  // namespace
}  // namespace holdfast
