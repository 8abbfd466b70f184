#include "core/coord/names.hpp"

#include <gmock/gmock.h>

#include <string>

namespace holdfast::coord {
namespace {

TEST(Names, are_of_whatever_fits_into_a_row_s_key_and_on_one_line) {
  for (const std::string& good :
       {std::string("t"), std::string("a b#c/d"), std::string("é😀"), std::string(500, 'x')}) {
    EXPECT_TRUE(check_name("It", good)) << good;
  }
  for (const auto& [bad, why] :
       {std::pair(std::string(), "bytes"), std::pair(std::string(501, 'x'), "bytes"),
        std::pair(std::string("a\nb"), "control"), std::pair(std::string("a\x7f"), "control"),
        std::pair(std::string("a\0b", 3), "control"), std::pair(std::string("\xff"), "UTF-8"),
        std::pair(std::string("\xed\xa0\x80"), "UTF-8")}) {
    const auto checked = check_name("It", bad);
    ASSERT_FALSE(checked) << why;
    EXPECT_EQ(checked.error().code, Code::usage);
    EXPECT_THAT(checked.error().detail, testing::HasSubstr(why));
  }
}

}  // namespace
}  // namespace holdfast::coord
