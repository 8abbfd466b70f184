#include "worker/one_line.hpp"

#include <gtest/gtest.h>

namespace holdfast::worker {
namespace {

TEST(OneLine, leaves_plain_text_in_any_language_as_it_is) {
  for (const char* text : {"", "no such file", "é ü 漢字 🙂", "{\"a\":1}"})
    EXPECT_EQ(one_line(text, 300), text);
}

TEST(OneLine, is_cut_between_two_characters) {
  const std::string text = "aé漢🙂";  // 1, 2, 3 and 4 bytes
  const std::size_t ends[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10};
  for (std::size_t limit = 0; limit <= 10; ++limit) EXPECT_EQ(one_line(text, limit), text.substr(0, ends[limit]));
}

TEST(OneLine, what_is_no_utf_8_is_replaced) {
  const std::string mark = "\xEF\xBF\xBD";
  EXPECT_EQ(one_line("a\xFFz", 300), "a" + mark + "z");
  EXPECT_EQ(one_line("\xC3", 300), mark) << "cut off";
  EXPECT_EQ(one_line("\xC0\xAF", 300), mark + mark) << "overlong";
  EXPECT_EQ(one_line("\xED\xA0\x80", 300), mark + mark + mark) << "a surrogate";
  EXPECT_EQ(one_line("\xF4\x90\x80\x80", 300), mark + mark + mark + mark) << "above U+10FFFF";
  EXPECT_EQ(one_line("\xFF\xFF", 4), mark) << "nor does a replacement pass the limit";
}

TEST(OneLine, controls_are_spaces_and_marks_of_direction_go) {
  EXPECT_EQ(one_line("a\nb\tc\x1B[31m\x7F", 300), "a b c [31m ");
  EXPECT_EQ(one_line("a\xC2\x9B"
                     "31mb",
                     300),
            "a 31mb")
      << "C1";
  EXPECT_EQ(one_line("a\xE2\x80\xA8"
                     "b",
                     300),
            "a b")
      << "U+2028";
  EXPECT_EQ(one_line("a\xE2\x80\xAE"
                     "b\xE2\x81\xA6"
                     "c",
                     300),
            "abc")
      << "U+202E, U+2066";
}

}  // namespace
}  // namespace holdfast::worker
