#include "cli/output.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "cli/demo_view.hpp"

namespace holdfast::cli {
namespace {

TEST(TimeUntil, of_whatever_a_row_says_fits_into_a_duration) {
  const WallTime now(std::chrono::milliseconds(1'796'000'000'000));
  EXPECT_EQ(time_until(now + std::chrono::seconds(5), now), std::chrono::seconds(5));
  EXPECT_EQ(time_until(now - std::chrono::seconds(5), now), -std::chrono::seconds(5));
  EXPECT_GT(Duration(time_until(WallTime::max(), now)), std::chrono::hours(24 * 365 * 100));
  EXPECT_LT(Duration(time_until(WallTime::min(), now)), -std::chrono::hours(24 * 365 * 100));
}

TEST(Table, columns_are_as_wide_as_their_widest_cell_and_numbers_stand_to_the_right) {
  Table table({{"ID"}, {"SEQ", Table::Align::right}, {"STATE"}});
  table.add({"a", "5", "STARTED"});
  table.add({"longer", "12345", "-"});
  EXPECT_EQ(table.render(),
            "ID        SEQ  STATE\n"
            "a           5  STARTED\n"
            "longer  12345  -\n");
}

TEST(Table, characters_of_several_bytes_count_as_one) {
  Table table({{"ID"}, {"X"}});
  table.add({"größe", "1"});
  table.add({"abcde", "2"});
  EXPECT_EQ(table.render(), "ID     X\ngröße  1\nabcde  2\n");
}

TEST(Table, what_others_wrote_stays_in_its_cell_and_does_nothing_to_the_terminal) {
  Table table({{"ID"}, {"REASON"}});
  table.add({"a\n\x1b[31mb", "c\rd\n"});
  table.add({std::string(2000, 'k'), ""});
  const std::string text = table.render();
  EXPECT_NE(text.find("a  [31mb"), std::string::npos);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
  EXPECT_EQ(text.find_first_of("\x1b\r"), std::string::npos);
  EXPECT_LT(text.size(), 1000U);
}

TEST(Table, the_last_column_is_cut_to_fit_and_says_so) {
  Table table({{"ID"}, {"REASON"}});
  table.add({"a", "größer als alles, was in eine Zeile passt"});
  table.add({"b", "short"});
  EXPECT_EQ(table.render(30),
            "ID  REASON\n"
            "a   größer als alles, was in …\n"
            "b   short\n");
  EXPECT_EQ(table.render(5),
            "ID  REASON\n"
            "a   größer als alles, w…\n"
            "b   short\n")
      << "less than that says nothing";
}

TEST(OneLine, makes_control_characters_harmless) {
  EXPECT_EQ(one_line("a\nb\x1b[31mc\n"), "a b [31mc");
}

TEST(Glob, stars_questions_and_sets_match) {
  EXPECT_TRUE(glob_matches("*", ""));
  EXPECT_TRUE(glob_matches("*", "anything"));
  EXPECT_TRUE(glob_matches("btc*", "btc"));
  EXPECT_TRUE(glob_matches("btc*usd", "btc-eur-usd"));
  EXPECT_TRUE(glob_matches("*a*b*c", "xxaxxbxxbxc"));
  EXPECT_TRUE(glob_matches("s?", "s1"));
  EXPECT_TRUE(glob_matches("s[0-3]", "s2"));
  EXPECT_TRUE(glob_matches("s[!0-3]", "s7"));
  EXPECT_TRUE(glob_matches("s[]x]", "s]"));
  EXPECT_TRUE(glob_matches("[", "[")) << "a set without an end is itself";
}

TEST(Glob, everything_else_does_not) {
  EXPECT_FALSE(glob_matches("", "a"));
  EXPECT_FALSE(glob_matches("btc*", "xbtc"));
  EXPECT_FALSE(glob_matches("btc*usd", "btc-usdx"));
  EXPECT_FALSE(glob_matches("s?", "s"));
  EXPECT_FALSE(glob_matches("s?", "s12"));
  EXPECT_FALSE(glob_matches("s[0-3]", "s4"));
  EXPECT_FALSE(glob_matches("s[!0-3]", "s3"));
  EXPECT_FALSE(glob_matches("a", "A"));
  EXPECT_FALSE(glob_matches("a.c", "abc")) << "a dot is a dot";
}

TEST(Glob, many_stars_do_not_take_for_ever) {
  const std::string pattern = "a*a*a*a*a*a*a*a*a*a*a*a*a*b";
  EXPECT_FALSE(glob_matches(pattern, std::string(5'000, 'a')));
}

TEST(Glob, only_what_has_a_wildcard_is_one) {
  EXPECT_FALSE(is_glob("btc-usd.1"));
  EXPECT_TRUE(is_glob("btc*"));
  EXPECT_TRUE(is_glob("s?"));
  EXPECT_TRUE(is_glob("s[12]"));
}

TEST(DemoPicture, has_a_bar_per_worker_as_long_as_what_it_holds) {
  const DemoPicture picture{.workers = {{"w1", "killed", 0}, {"w2", "", 3}, {"w10", "stopping", 1}},
                            .connections = 6,
                            .unowned = 2,
                            .delivered = 12'345};
  EXPECT_EQ(render_picture(picture, std::chrono::milliseconds(3400), 80, false),
            (std::vector<std::string>{"  3.4 s  12,345 messages delivered, 2 connections without an owner",
                                      "  w1   killed", "  w2   ███ 3", "  w10  █ 1 stopping"}));
}

TEST(DemoPicture, a_bar_never_outgrows_the_terminal) {
  const DemoPicture picture{.workers = {{"w1", "", 5'000}}, .connections = 5'000, .unowned = 0, .delivered = 0};
  const auto lines = render_picture(picture, Duration::zero(), 60, false);
  std::size_t blocks = 0;
  for (std::size_t at = lines[1].find("█"); at != std::string::npos; at = lines[1].find("█", at + 1)) ++blocks;
  EXPECT_GT(blocks, 10U);
  EXPECT_LT(blocks, 60U);
}

TEST(Commas, stand_between_thousands) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1'000), "1,000");
  EXPECT_EQ(with_commas(1'234'567), "1,234,567");
  EXPECT_EQ(with_commas(-1'000), "-1,000");
}

}  // namespace
}  // namespace holdfast::cli
