#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "holdfast/random.hpp"
#include "ws/utf8.hpp"

namespace holdfast::ws {
namespace {

/// RFC 3629's table, written out the slow way: the oracle.
bool valid_by_table(std::string_view text) {
  const auto at = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto in = [](unsigned byte, unsigned low, unsigned high) { return byte >= low && byte <= high; };
  const auto tail = [&](std::size_t i) { return in(at(i), 0x80, 0xBF); };
  for (std::size_t i = 0; i < text.size();) {
    const unsigned a = at(i);
    const unsigned b = at(i + 1);
    if (a < 0x80) {
      i += 1;
    } else if (in(a, 0xC2, 0xDF) && tail(i + 1)) {
      i += 2;
    } else if (((a == 0xE0 && in(b, 0xA0, 0xBF)) || (in(a, 0xE1, 0xEC) && tail(i + 1)) ||
                (a == 0xED && in(b, 0x80, 0x9F)) || (in(a, 0xEE, 0xEF) && tail(i + 1))) &&
               tail(i + 2)) {
      i += 3;
    } else if (((a == 0xF0 && in(b, 0x90, 0xBF)) || (in(a, 0xF1, 0xF3) && tail(i + 1)) ||
                (a == 0xF4 && in(b, 0x80, 0x8F))) &&
               tail(i + 2) && tail(i + 3)) {
      i += 4;
    } else {
      return false;
    }
  }
  return true;
}

std::string random_text(Random& random) {
  const std::vector<std::string> parts = {"a",
                                          "plain ascii text of some length, longer than a block of 64 bytes....",
                                          "\xC3\xA9",
                                          "\xE2\x82\xAC",
                                          "\xF0\x9F\x98\x80",
                                          "\xED\x9F\xBF",
                                          "\xEE\x80\x80",
                                          "\xF4\x8F\xBF\xBF"};
  const std::vector<std::string> faults = {"\x80",     "\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80",
                                           "\xF8\x88", "\xC3",     "\xFF",         "\xE0\x80\xAF"};
  std::string text;
  for (std::uint64_t n = random.below(12); n > 0; --n) text += parts[random.below(parts.size())];
  if (random.below(2) == 0) {
    text.insert(random.below(text.size() + 1), faults[random.below(faults.size())]);
  }
  return text;
}

TEST(WsUtf8, both_checks_agree_with_the_table_of_the_rfc) {
  Random random(20);
  int wrong = 0;
  for (int round = 0; round < 20000; ++round) {
    const std::string text = random_text(random);
    const bool expected = valid_by_table(text);
    wrong += expected ? 0 : 1;
    ASSERT_EQ(valid_utf8(text), expected);
    Utf8Checker checker;
    std::string_view rest = text;
    bool good = true;
    while (!rest.empty() && good) {
      const std::size_t size = 1 + random.below(rest.size());
      good = checker.feed(rest.substr(0, size));
      rest.remove_prefix(size);
    }
    ASSERT_EQ(good && checker.complete(), expected);
  }
  EXPECT_GT(wrong, 1000);
  EXPECT_LT(wrong, 19000);
}

TEST(WsUtf8, every_single_byte_pair_is_judged_as_the_table_says) {
  for (unsigned first = 0; first < 256; ++first) {
    for (unsigned second = 0; second < 256; ++second) {
      const std::string text = {static_cast<char>(first), static_cast<char>(second)};
      ASSERT_EQ(valid_utf8(text), valid_by_table(text)) << first << ' ' << second;
    }
  }
}

TEST(WsUtf8, the_first_byte_that_cannot_be_right_is_the_one_that_fails) {
  Utf8Checker checker;
  EXPECT_TRUE(checker.feed("abc\xED"));
  EXPECT_FALSE(checker.complete());
  EXPECT_FALSE(checker.feed("\xA0"));  // would be a surrogate, whatever follows
  EXPECT_FALSE(checker.feed("abc")) << "a failed text stays failed";
  checker.reset();
  EXPECT_TRUE(checker.feed("\xF4\x8F"));
  EXPECT_TRUE(checker.feed(""));
  EXPECT_TRUE(checker.feed("\xBF\xBF"));
  EXPECT_TRUE(checker.complete());
}

}  // namespace
}  // namespace holdfast::ws
