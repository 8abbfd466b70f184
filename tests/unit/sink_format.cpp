#include "sink/format.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>

#include "support/sink_records.hpp"

namespace holdfast::sink {
namespace {

using test::Line;
using test::parse_line;
using test::text_record;

std::string formatted(const Record& record) {
  Bytes out;
  Formatter formatter;
  formatter.append(record, out);
  return std::string(out.view());
}

std::string base64(std::string_view data) {
  Bytes out;
  append_base64(data, out);
  return std::string(out.view());
}

TEST(NdjsonFormat, a_text_record_is_one_line_with_the_documented_fields) {
  EXPECT_EQ(formatted(text_record("btc", 7, R"({"a":1})")),
            "{\"conn\":\"btc\",\"epoch\":1,\"seq\":7,\"at_ms\":1700000000000,\"data\":\"{\\\"a\\\":1}\"}\n");
}

TEST(NdjsonFormat, a_gap_names_the_first_and_the_last_missing_number) {
  Record gap = text_record("btc", 8, "");
  gap.kind = Record::Kind::gap;
  gap.gap_to = 11;
  EXPECT_EQ(formatted(gap), "{\"conn\":\"btc\",\"epoch\":1,\"gap\":[8,11],\"at_ms\":1700000000000}\n");
}

TEST(NdjsonFormat, a_message_without_a_number_says_null) {
  EXPECT_TRUE(parse_line(formatted(text_record("btc", Record::no_seq, "hello"))).seq_is_null);
}

TEST(NdjsonFormat, every_byte_survives_at_every_place_of_a_block) {
  for (int byte = 0; byte < 128; ++byte) {
    for (std::size_t before = 0; before < 40; ++before) {
      std::string text(before, 'x');
      text += static_cast<char>(byte);
      text += std::string(40, 'y');
      const std::string line = formatted(text_record("c", 1, text));
      ASSERT_EQ(line.find('\n'), line.size() - 1) << byte;
      ASSERT_EQ(parse_line(line).data, text) << "byte " << byte << " after " << before;
    }
  }
}

TEST(NdjsonFormat, characters_beyond_ascii_are_written_as_they_are) {
  const std::string text = "é ß 漢字 😀 \x7f end of it, and long enough for a block or two: 漢字 😀";
  const std::string line = formatted(text_record("ü\"\n", 1, text));
  EXPECT_NE(line.find("漢字 😀"), std::string::npos);
  EXPECT_EQ(parse_line(line).data, text);
  EXPECT_EQ(parse_line(line).conn, "ü\"\n");
}

TEST(NdjsonFormat, any_ascii_text_of_any_length_survives_a_round_trip) {
  rc::check([] {
    const auto length = *rc::gen::inRange<std::size_t>(0, 9000);
    auto seed = *rc::gen::arbitrary<std::uint32_t>();
    // Mostly quotes and controls in some runs, mostly letters in others.
    const auto density = 1U + seed % 50U;
    std::string text(length, 'a');
    for (char& c : text) {
      seed = seed * 1'664'525U + 1'013'904'223U;
      c = (seed >> 16U) % density == 0 ? "\"\\\n\t\x01\x1f\b"[(seed >> 8U) % 7U]
                                       : static_cast<char>('a' + (seed >> 24U) % 26U);
    }
    RC_ASSERT(parse_line(formatted(text_record("c", 1, text))).data == text);
  });
}

TEST(NdjsonFormat, all_escapes_fit_where_every_byte_needs_the_longest_one) {
  const std::string text(10'000, '\x01');
  EXPECT_EQ(parse_line(formatted(text_record("c", 1, text))).data, text);
}

TEST(NdjsonFormat, binary_goes_out_as_base64) {
  // RFC 4648, section 10.
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foob"), "Zm9vYg==");
  EXPECT_EQ(base64("fooba"), "Zm9vYmE=");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64("\xFF\xFE\xFD\xFC"), "//79/A==");
  Record record = text_record("c", 1, "foobar");
  record.kind = Record::Kind::binary;
  EXPECT_EQ(parse_line(formatted(record)).data_b64, "Zm9vYmFy");
}

TEST(NdjsonFormat, one_formatter_tells_connections_and_epochs_apart) {
  Bytes out;
  Formatter formatter;
  Record record = text_record("a", 1, "x");
  formatter.append(record, out);
  record.connection = "b";
  formatter.append(record, out);
  record.epoch = Epoch{2};
  formatter.append(record, out);
  const auto lines = test::parse_lines(out.view());
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0].conn, "a");
  EXPECT_EQ(lines[1].conn, "b");
  EXPECT_EQ(lines[1].epoch, 1);
  EXPECT_EQ(lines[2].epoch, 2);
}

}  // namespace
}  // namespace holdfast::sink
