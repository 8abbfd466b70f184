#include "core/hexadecimal.hpp"

#include <gtest/gtest.h>

#include <array>

#include "holdfast/types.hpp"

namespace holdfast {
namespace {

TEST(Hexadecimal, writes_two_digits_for_each_byte) {
  std::string text = "0x";
  append_hexadecimal(std::array<unsigned char, 4>{0x00, 0x0F, 0xA0, 0xFF}, text);
  EXPECT_EQ(text, "0x000fa0ff");
  EXPECT_EQ((Attempt{0x0123456789abcdefU, 0xfU}.to_string()), "0123456789abcdef000000000000000f");
}

TEST(PercentEncoded, leaves_the_unreserved_characters_and_those_that_are_named) {
  EXPECT_EQ(percent_encoded("aZ09-._~ /\xE9"), "aZ09-._~%20%2F%E9");
  EXPECT_EQ(percent_encoded("/a b/", "/"), "/a%20b/");
}

TEST(PercentDecoded, gives_back_what_was_encoded) {
  EXPECT_EQ(percent_decoded("a%20%2f%E9."), "a /\xE9.");
  for (const char* wrong : {"%", "%4", "a%4g", "%%41"}) EXPECT_EQ(percent_decoded(wrong), std::nullopt) << wrong;
}

}  // namespace
}  // namespace holdfast
