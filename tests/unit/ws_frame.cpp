// The sections of RFC 6455 that a client's reader and writer of frames must obey, each by its number.
#include "ws/frame.hpp"

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "holdfast/random.hpp"

namespace holdfast::ws {
namespace {

struct Event {
  Found::Kind kind{};
  bool binary = false;
  std::uint16_t code = 0;
  std::string data;
  bool operator==(const Event&) const = default;
};

std::ostream& operator<<(std::ostream& out, const Event& event) {
  return out << "kind " << static_cast<int>(event.kind) << (event.binary ? " binary" : "") << " code " << event.code
             << " '" << event.data.substr(0, 60) << "' (" << event.data.size() << " bytes)";
}

Event text(std::string data) {
  return {Found::Kind::message, false, 0, std::move(data)};
}
Event binary(std::string data) {
  return {Found::Kind::message, true, 0, std::move(data)};
}
Event ping(std::string data) {
  return {Found::Kind::ping, false, 0, std::move(data)};
}
Event pong(std::string data) {
  return {Found::Kind::pong, false, 0, std::move(data)};
}
Event closed(std::uint16_t code, std::string reason) {
  return {Found::Kind::close, false, code, std::move(reason)};
}

/// A frame as a server sends it; `first` is the byte with FIN, reserved bits and opcode.
std::string frame(unsigned first, const std::string& payload) {
  std::string bytes(1, static_cast<char>(first));
  const std::size_t size = payload.size();
  const int length_bytes = size <= 125 ? 0 : size <= 0xFFFF ? 2 : 8;
  bytes += static_cast<char>(length_bytes == 0 ? size : length_bytes == 2 ? 126 : 127);
  for (int i = length_bytes - 1; i >= 0; --i) bytes += static_cast<char>(size >> (8 * i) & 0xFFU);
  return bytes + payload;
}

std::string raw(std::initializer_list<unsigned> bytes) {
  std::string result;
  for (const unsigned byte : bytes) result += static_cast<char>(byte);
  return result;
}

constexpr unsigned text_final = 0x81;
constexpr unsigned text_first = 0x01;
constexpr unsigned binary_final = 0x82;
constexpr unsigned more_middle = 0x00;
constexpr unsigned more_final = 0x80;
constexpr unsigned close_frame = 0x88;
constexpr unsigned ping_frame = 0x89;
constexpr unsigned pong_frame = 0x8A;

std::string close_payload(unsigned code, const std::string& reason) {
  return raw({code >> 8U, code & 0xFFU}) + reason;
}

class Stream {
 public:
  explicit Stream(std::size_t limit = 1 << 20) : reader(limit) {}
  void feed(std::string_view bytes) {
    // A copy of exactly this size: reading behind it is seen by AddressSanitizer.
    const std::vector<char> copy(bytes.begin(), bytes.end());
    std::string_view input(copy.data(), copy.size());
    for (;;) {
      const Found found = reader.next(input, assembled);
      if (found.kind == Found::Kind::nothing) break;
      events.push_back({found.kind, found.binary, found.code, std::string(found.data)});
    }
    assembled.clear();
  }
  FrameReader reader;
  Assembled assembled;
  std::vector<Event> events;
};

std::vector<Event> events_of(std::string_view bytes, std::size_t limit = 1 << 20) {
  Stream stream(limit);
  stream.feed(bytes);
  return stream.events;
}

/// The one error that these bytes are, and its code.
std::uint16_t error_of(const std::string& bytes, std::size_t limit = 1 << 20) {
  const std::vector<Event> events = events_of(bytes, limit);
  if (events.empty() || events.back().kind != Found::Kind::error) return 0;
  EXPECT_FALSE(events.back().data.empty()) << "an error says what was wrong";
  return events.back().code;
}

// ---- 5.2 Base Framing Protocol

TEST(Rfc6455, s5_2_all_three_forms_of_the_length_are_read) {
  for (const std::size_t size : {0U, 1U, 125U, 126U, 127U, 65535U, 65536U, 100000U}) {
    const std::string payload(size, 'x');
    EXPECT_EQ(events_of(frame(text_final, payload)), std::vector{text(payload)}) << size;
    EXPECT_EQ(events_of(frame(binary_final, payload)), std::vector{binary(payload)}) << size;
  }
}

TEST(Rfc6455, s5_2_a_length_must_be_in_its_shortest_form) {
  EXPECT_EQ(error_of(raw({0x82, 126, 0, 125})), 1002);
  EXPECT_EQ(error_of(raw({0x82, 127, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF})), 1002);
  EXPECT_EQ(error_of(raw({0x82, 126, 0, 126})), 0);
}

TEST(Rfc6455, s5_2_the_top_bit_of_a_length_must_be_zero) {
  EXPECT_EQ(error_of(raw({0x82, 127, 0x80, 0, 0, 0, 0, 0, 0, 1})), 1002);
}

TEST(Rfc6455, s5_2_reserved_bits_are_refused_where_no_extension_was_agreed_on) {
  for (const unsigned bit : {0x40U, 0x20U, 0x10U}) {
    for (const unsigned opcode : {text_final, binary_final, ping_frame, pong_frame, close_frame}) {
      EXPECT_EQ(error_of(frame(opcode | bit, "")), 1002);
    }
    EXPECT_EQ(error_of(frame(text_first, "a") + frame(more_final | bit, "b")), 1002);
  }
}

TEST(Rfc6455, s5_2_reserved_opcodes_are_refused) {
  for (const unsigned opcode : {3U, 4U, 5U, 6U, 7U, 11U, 12U, 13U, 14U, 15U}) {
    EXPECT_EQ(error_of(frame(0x80U | opcode, "")), 1002) << opcode;
  }
}

TEST(Rfc6455, s5_2_what_is_wrong_with_the_first_byte_is_told_by_the_first_byte) {
  EXPECT_EQ(error_of(raw({0x83})), 1002);
  EXPECT_EQ(error_of(raw({0xC1})), 1002);
  EXPECT_EQ(error_of(raw({0x09})), 1002);
}

// ---- 5.1, 5.3 Masking

TEST(Rfc6455, s5_1_a_masked_frame_from_a_server_is_refused) {
  EXPECT_EQ(error_of(raw({0x81, 0x81, 1, 2, 3, 4, 'a' ^ 1})), 1002);
  EXPECT_EQ(error_of(raw({0x89, 0x80})), 1002);
}

std::string unmasked(const std::string& bytes) {
  const auto second = static_cast<unsigned char>(bytes.at(1));
  EXPECT_EQ(second & 0x80U, 0x80U) << "a client masks every frame";
  const std::size_t length = second & 0x7FU;
  const std::size_t mask_at = length == 126 ? 4 : length == 127 ? 10 : 2;
  std::string payload = bytes.substr(mask_at + 4);
  for (std::size_t i = 0; i < payload.size(); ++i)
    payload[i] = static_cast<char>(payload[i] ^ bytes[mask_at + i % 4]);
  return payload;
}

TEST(Rfc6455, s5_3_a_client_masks_what_it_sends) {
  Random random(3);
  for (const std::size_t size : {0U, 1U, 3U, 4U, 5U, 7U, 8U, 9U, 125U, 126U, 65535U, 65536U, 70001U}) {
    std::string payload;
    for (std::size_t i = 0; i < size; ++i) payload += static_cast<char>(random.below(256));
    std::string out = "before";
    append_frame(out, Opcode::binary, payload, {0xA1, 0xB2, 0xC3, 0xD4});
    ASSERT_TRUE(out.starts_with("before"));
    const std::string sent = out.substr(6);
    EXPECT_EQ(static_cast<unsigned char>(sent[0]), binary_final);
    EXPECT_EQ(unmasked(sent), payload) << size;
    if (size > 3) {
      EXPECT_NE(sent.substr(sent.size() - size), payload);
    }
    // Unmasked, it is the frame that a server would send.
    EXPECT_EQ(sent.size(), frame(binary_final, payload).size() + 4);
  }
}

// ---- 5.4 Fragmentation

TEST(Rfc6455, s5_4_fragments_make_one_message) {
  EXPECT_EQ(events_of(frame(text_first, "Hel") + frame(more_middle, "lo ") + frame(more_final, "you")),
            std::vector{text("Hello you")});
  EXPECT_EQ(events_of(frame(0x02, "") + frame(more_middle, "") + frame(more_final, "")), std::vector{binary("")});
}

TEST(Rfc6455, s5_4_control_frames_may_come_between_fragments) {
  EXPECT_EQ(events_of(frame(text_first, "a") + frame(ping_frame, "p") + frame(more_middle, "b") +
                      frame(pong_frame, "q") + frame(more_final, "c") + frame(text_final, "d")),
            (std::vector{ping("p"), pong("q"), text("abc"), text("d")}));
}

TEST(Rfc6455, s5_4_fragments_of_two_messages_must_not_be_mixed) {
  EXPECT_EQ(error_of(frame(text_first, "a") + frame(text_final, "b")), 1002);
  EXPECT_EQ(error_of(frame(text_first, "a") + frame(0x02, "b")), 1002);
}

TEST(Rfc6455, s5_4_a_continuation_needs_something_to_continue) {
  EXPECT_EQ(error_of(frame(more_final, "a")), 1002);
  EXPECT_EQ(error_of(frame(more_middle, "a")), 1002);
  EXPECT_EQ(error_of(frame(text_final, "a") + frame(more_final, "b")), 1002);
}

// ---- 5.5 Control frames

TEST(Rfc6455, s5_5_a_control_frame_has_at_most_125_bytes) {
  EXPECT_EQ(events_of(frame(ping_frame, std::string(125, 'p'))), std::vector{ping(std::string(125, 'p'))});
  EXPECT_EQ(error_of(frame(ping_frame, std::string(126, 'p'))), 1002);
  EXPECT_EQ(error_of(raw({0x89, 127})), 1002);
}

TEST(Rfc6455, s5_5_a_control_frame_is_not_fragmented) {
  EXPECT_EQ(error_of(raw({0x09, 0})), 1002);
  EXPECT_EQ(error_of(raw({0x08, 0})), 1002);
  EXPECT_EQ(error_of(raw({0x0A, 0})), 1002);
}

TEST(Rfc6455, s5_5_1_after_a_close_frame_nothing_is_read) {
  EXPECT_EQ(events_of(frame(close_frame, close_payload(1000, "bye")) + frame(text_final, "late") + raw({0x83})),
            std::vector{closed(1000, "bye")});
}

TEST(Rfc6455, s5_5_1_half_a_code_is_refused) {
  EXPECT_EQ(error_of(frame(close_frame, "\x03")), 1002);
}

TEST(Rfc6455, s5_5_1_the_reason_of_a_close_frame_is_utf8) {
  EXPECT_EQ(events_of(frame(close_frame, close_payload(1000, "\xE2\x82\xAC"))),
            std::vector{closed(1000, "\xE2\x82\xAC")});
  EXPECT_EQ(error_of(frame(close_frame, close_payload(1000, "\xE2\x82"))), 1007);
}

TEST(Rfc6455, s5_5_2_pings_and_pongs_carry_any_bytes) {
  EXPECT_EQ(events_of(frame(ping_frame, "\xFF") + frame(pong_frame, "") + frame(ping_frame, "")),
            (std::vector{ping("\xFF"), pong(""), ping("")}));
}

// ---- 7.1.5, 7.4 Close codes

TEST(Rfc6455, s7_1_5_a_close_frame_without_a_code_counts_as_1005) {
  EXPECT_EQ(events_of(frame(close_frame, "")), std::vector{closed(1005, "")});
}

TEST(Rfc6455, s7_4_codes_that_may_not_be_sent_are_refused) {
  for (const unsigned code : {0U, 1U, 999U, 1004U, 1005U, 1006U, 1015U, 1016U, 1100U, 2000U, 2999U, 5000U, 65535U}) {
    EXPECT_EQ(error_of(frame(close_frame, close_payload(code, ""))), 1002) << code;
  }
}

TEST(Rfc6455, s7_4_every_other_code_is_told) {
  for (const unsigned code : {1000U, 1001U, 1002U, 1003U, 1007U, 1008U, 1009U, 1010U, 1011U, 1012U, 1013U, 1014U,
                              3000U, 3999U, 4000U, 4999U}) {
    EXPECT_EQ(events_of(frame(close_frame, close_payload(code, "r"))),
              std::vector{closed(static_cast<std::uint16_t>(code), "r")});
  }
}

TEST(Rfc6455, s7_1_a_close_frame_is_written_with_code_and_reason) {
  std::string out;
  append_close(out, 1001, "going", {1, 2, 3, 4});
  EXPECT_EQ(static_cast<unsigned char>(out[0]), close_frame);
  EXPECT_EQ(unmasked(out), close_payload(1001, "going"));
  out.clear();
  append_close(out, 1005, "not sent", {1, 2, 3, 4});
  EXPECT_EQ(unmasked(out), "");
}

TEST(Rfc6455, s5_5_a_reason_that_is_too_long_is_cut_between_two_characters) {
  std::string reason(122, 'x');
  reason += "\xE2\x82\xAC tail";
  std::string out;
  append_close(out, 1000, reason, {1, 2, 3, 4});
  EXPECT_EQ(unmasked(out), close_payload(1000, std::string(122, 'x')));
}

// ---- 5.6, 8.1 Text is UTF-8

TEST(Rfc6455, s8_1_text_that_is_not_utf8_is_refused_and_binary_is_not_looked_at) {
  EXPECT_EQ(error_of(frame(text_final, "ab\xC0\xAF")), 1007);
  EXPECT_EQ(error_of(frame(text_final, "ab\xE2\x82")), 1007) << "ends inside a character";
  EXPECT_EQ(events_of(frame(binary_final, "\xC0\xAF")), std::vector{binary("\xC0\xAF")});
}

TEST(Rfc6455, s8_1_a_character_may_be_cut_by_a_fragment_but_not_by_the_end) {
  EXPECT_EQ(events_of(frame(text_first, "\xE2") + frame(ping_frame, "\xFF") + frame(more_middle, "\x82") +
                      frame(more_final, "\xAC")),
            (std::vector{ping("\xFF"), text("\xE2\x82\xAC")}));
  EXPECT_EQ(error_of(frame(text_first, "\xE2\x82") + frame(more_final, "")), 1007);
}

TEST(Rfc6455, s8_1_bad_text_is_told_before_its_message_is_whole) {
  EXPECT_EQ(error_of(frame(text_first, "ok \xFF")), 1007);
  const std::string announced = raw({0x81, 126, 0x10, 0}) + "ok \xFF";
  EXPECT_EQ(error_of(announced), 1007) << "in the middle of a frame";
}

// ---- 10.4 Limits (F44: they hold for the whole message)

TEST(Faults, f44_a_message_may_be_as_long_as_the_limit_and_no_longer) {
  EXPECT_EQ(events_of(frame(binary_final, std::string(1000, 'x')), 1000).size(), 1U);
  EXPECT_EQ(error_of(frame(binary_final, std::string(1001, 'x')), 1000), 1009);
}

TEST(Faults, f44_a_head_that_announces_too_much_is_enough) {
  EXPECT_EQ(error_of(raw({0x82, 127, 0, 0, 0, 0, 0x40, 0, 0, 0})), 1009) << "1 GiB";
  EXPECT_EQ(error_of(raw({0x82, 127, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF})), 1009);
}

TEST(Faults, f44_the_limit_holds_for_all_fragments_together) {
  std::string bytes = frame(0x02, std::string(400, 'x'));
  for (int i = 0; i < 10; ++i) bytes += frame(more_middle, std::string(100, 'x'));
  EXPECT_EQ(error_of(bytes, 1000), 1009);
  const std::string fits =
      frame(0x02, std::string(400, 'x')) + frame(more_middle, std::string(600, 'y')) + frame(more_final, "");
  EXPECT_EQ(events_of(fits, 1000).size(), 1U);
  EXPECT_EQ(error_of(fits, 999), 1009);
}

// ---- wherever the stream is cut

const std::vector<std::string>& samples() {
  static const std::vector<std::string> streams = {
      frame(text_final, "one") + frame(binary_final, "two") + frame(ping_frame, "three") + frame(text_final, ""),
      frame(text_final, std::string(130, 'a')) + frame(binary_final, std::string(300, 'b')) + frame(pong_frame, "x"),
      frame(text_first, "a\xE2\x82") + frame(ping_frame, "ping") + frame(more_middle, "\xAC") +
          frame(ping_frame, "") + frame(more_final, "z") + frame(text_final, "after"),
      frame(text_final, "bad \xED\xA0\x80 text") + frame(text_final, "never"),
      frame(text_first, "bad \xF4\x90") + frame(more_final, "x"),
      frame(text_final, "ends inside a character \xDC"),
      frame(text_first, "cut \xF0\x9F") + frame(more_final, ""),
      frame(text_final, "x") + frame(close_frame, close_payload(1008, "policy \xC3\xA9")) +
          frame(text_final, "never"),
      frame(close_frame, close_payload(1005, "")),
      frame(close_frame, close_payload(1000, "\xC3")),
      frame(close_frame, "\x03"),
      frame(text_final, "x") + raw({0x83, 0}),
      frame(text_final, "x") + raw({0x81, 0x85, 1, 2, 3, 4}),
      raw({0x82, 126, 0, 100}) + std::string(100, 'x'),
      raw({0x82, 127, 0, 0, 0, 0, 0, 0, 0x10, 0}) + std::string(20, 'x'),
      raw({0x82, 127, 0x80, 0, 0, 0, 0, 0, 0, 0}) + std::string(20, 'x'),
      frame(binary_final, std::string(600, 'x')) + frame(0x02, std::string(300, 'x')) +
          frame(more_final, std::string(301, 'x')),
      frame(binary_final, std::string(601, 'x')),
      frame(ping_frame, std::string(125, 'p')) + raw({0x89, 126, 0, 126}) + std::string(126, 'p'),
      raw({0x81}),
      raw({0x81, 126, 1}),
  };
  return streams;
}

TEST(WsFrames, a_stream_gives_the_same_events_wherever_it_is_cut_in_two) {
  for (const std::string& bytes : samples()) {
    const std::vector<Event> whole = events_of(bytes, 600);
    for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
      Stream stream(600);
      stream.feed(std::string_view(bytes).substr(0, cut));
      stream.feed(std::string_view(bytes).substr(cut));
      ASSERT_EQ(stream.events, whole) << "cut at " << cut << " of " << bytes.size();
    }
  }
}

TEST(WsFrames, a_stream_gives_the_same_events_in_three_pieces_and_byte_by_byte) {
  for (const std::string& bytes : samples()) {
    const std::vector<Event> whole = events_of(bytes, 600);
    Stream single(600);
    for (const char byte : bytes) single.feed({&byte, 1});
    ASSERT_EQ(single.events, whole);
    if (bytes.size() > 120) continue;
    for (std::size_t first = 0; first <= bytes.size(); ++first) {
      for (std::size_t second = first; second <= bytes.size(); ++second) {
        Stream stream(600);
        stream.feed(std::string_view(bytes).substr(0, first));
        stream.feed(std::string_view(bytes).substr(first, second - first));
        stream.feed(std::string_view(bytes).substr(second));
        ASSERT_EQ(stream.events, whole) << "cut at " << first << " and " << second;
      }
    }
  }
}

TEST(WsFrames, a_message_that_lies_in_the_input_whole_is_handed_out_where_it_lies) {
  const std::string bytes = frame(text_final, "first") + frame(binary_final, "second");
  FrameReader reader(100);
  Assembled assembled;
  std::string_view input = bytes;
  EXPECT_EQ(reader.next(input, assembled).data.data(), bytes.data() + 2);
  EXPECT_EQ(reader.next(input, assembled).data.data(), bytes.data() + 9);
  EXPECT_TRUE(assembled.empty());
  EXPECT_TRUE(reader.between_messages());
}

TEST(WsFrames, views_of_messages_put_together_stay_valid_until_they_are_cleared) {
  std::string bytes;
  for (int i = 0; i < 50; ++i) bytes += frame(text_first, "a" + std::to_string(i)) + frame(more_final, "b");
  FrameReader reader(100);
  Assembled assembled;
  std::string_view input = bytes;
  std::vector<std::string_view> views;
  for (Found found = reader.next(input, assembled); found.kind != Found::Kind::nothing;
       found = reader.next(input, assembled)) {
    views.push_back(found.data);
  }
  ASSERT_EQ(views.size(), 50U);
  for (std::size_t i = 0; i < 50; ++i) EXPECT_EQ(views[i], "a" + std::to_string(i) + "b");
}

}  // namespace
}  // namespace holdfast::ws
