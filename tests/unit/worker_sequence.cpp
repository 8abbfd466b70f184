#include "worker/sequence.hpp"

#include <gtest/gtest.h>

namespace holdfast::worker {
namespace {

std::optional<std::int64_t> seq_of(std::string_view message, std::string_view pointer) {
  SeqReader reader;
  return reader.read(message, SeqPointer(pointer));
}

TEST(SeqReader, finds_the_number_at_the_pointer) {
  EXPECT_EQ(seq_of(R"({"seq":41})", "/seq"), 41);
  EXPECT_EQ(seq_of(R"({"a":{"seq":1},"seq" : 42 , "b":[]})", "/seq"), 42);
  EXPECT_EQ(seq_of(R"({"data":[{"id":7},{"id":8}]})", "/data/1/id"), 8);
  EXPECT_EQ(seq_of(R"([10,20,30])", "/2"), 30);
  EXPECT_EQ(seq_of(R"({"a/b":{"m~n":5}})", "/a~1b/m~0n"), 5);
  EXPECT_EQ(seq_of(R"({"":3})", "/"), 3);
  EXPECT_EQ(seq_of(R"({"1":6})", "/1"), 6) << "a number in a pointer names a member of an object, too";
  EXPECT_EQ(seq_of(R"({"seq":0})", "/seq"), 0);
  EXPECT_EQ(seq_of(R"({"seq":9223372036854775807})", "/seq"), INT64_MAX);
}

TEST(SeqReader, a_string_of_digits_is_a_number_too) {
  EXPECT_EQ(seq_of(R"({"seq":"41"})", "/seq"), 41);
  EXPECT_EQ(seq_of(R"({"seq":"41x"})", "/seq"), std::nullopt);
  EXPECT_EQ(seq_of(R"({"seq":""})", "/seq"), std::nullopt);
  EXPECT_EQ(seq_of(R"({"seq":" 41"})", "/seq"), std::nullopt);
}

TEST(SeqReader, anything_else_is_no_number) {
  for (const char* message : {"",
                              " ",
                              "{",
                              "}",
                              "[",
                              "null",
                              "41",
                              "\"seq\"",
                              "{}",
                              R"({"sex":1})",
                              R"({"seq":null})",
                              R"({"seq":true})",
                              R"({"seq":-1})",
                              R"({"seq":1.5})",
                              R"({"seq":[1]})",
                              R"({"seq":{"seq":1}})",
                              R"({"seq":9223372036854775808})",
                              R"({"seq":"-1"})",
                              R"({"seq":)",
                              R"({"seq)",
                              "not json at all"}) {
    EXPECT_EQ(seq_of(message, "/seq"), std::nullopt) << message;
  }
  EXPECT_EQ(seq_of(R"([1,2])", "/5"), std::nullopt);
  EXPECT_EQ(seq_of(R"([1,2])", "/x"), std::nullopt);
  EXPECT_EQ(seq_of(R"([1,2])", "/01"), std::nullopt);
  EXPECT_EQ(seq_of(R"({"a":1})", "/a/b"), std::nullopt);
}

TEST(SeqReader, one_reader_takes_small_and_large_messages_in_turn) {
  SeqReader reader;
  const SeqPointer pointer("/seq");
  for (const std::size_t size : {10U, 100'000U, 20U, 300'000U, 1U}) {
    const std::string message = R"({"data":")" + std::string(size, 'x') + R"(","seq":5})";
    EXPECT_EQ(reader.read(message, pointer), 5);
  }
}

TEST(Sequence, the_first_number_of_all_begins_it_wherever_it_is) {
  Sequence sequence;
  EXPECT_FALSE(sequence.see(5000).hole());
  EXPECT_EQ(sequence.last(), 5000);
}

TEST(Sequence, zero_is_a_number_like_any_other) {
  Sequence sequence;
  EXPECT_FALSE(sequence.see(0).repeat);
  EXPECT_TRUE(sequence.see(0).repeat);
  EXPECT_TRUE(sequence.see(2).hole());
}

TEST(Sequence, repeats_and_holes_are_told_from_what_is_new) {
  Sequence sequence(10);
  EXPECT_TRUE(sequence.see(9).repeat);
  EXPECT_TRUE(sequence.see(10).repeat);
  EXPECT_FALSE(sequence.see(11).hole());
  const Sequence::Seen seen = sequence.see(15);
  EXPECT_FALSE(seen.repeat);
  EXPECT_EQ(seen.hole_from, 12);
  EXPECT_EQ(seen.hole_to, 14);
  EXPECT_EQ(sequence.last(), 15);
}

TEST(Sequence, s09_numbers_are_used_up_at_the_last_one_and_do_not_begin_anew_below_zero) {
  Sequence sequence(INT64_MAX - 1);
  EXPECT_EQ(sequence.next(), INT64_MAX);
  EXPECT_EQ(sequence.next(), std::nullopt);
  EXPECT_EQ(sequence.last(), INT64_MAX);
  EXPECT_TRUE(sequence.see(INT64_MAX).repeat);
}

TEST(Sequence, going_back_is_seen_within_a_connection_only) {
  Sequence sequence(10);
  EXPECT_FALSE(sequence.see(8).went_back);
  EXPECT_FALSE(sequence.see(11).went_back);
  EXPECT_TRUE(sequence.see(3).went_back);
  sequence.connection_began();
  EXPECT_FALSE(sequence.see(1).went_back);
}

}  // namespace
}  // namespace holdfast::worker
