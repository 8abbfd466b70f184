// RFC 6455 section 4, the client's half of it, and what hostile servers make of it.
#include "ws/handshake.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ws/http_text.hpp"

namespace holdfast::ws {
namespace {

using namespace std::chrono_literals;
using State = ResponseReader::State;

constexpr std::string_view key = "dGhlIHNhbXBsZSBub25jZQ==";  // the RFC's own example

Url url(std::string_view text) {
  return *parse_url(text);
}

std::string answer(const std::string& extra = "") {
  return "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
         "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n" +
         extra + "\r\n";
}

std::string without(std::string text, const std::string& line) {
  const std::size_t at = text.find(line);
  EXPECT_NE(at, std::string::npos);
  return text.erase(at, line.size());
}

ResponseReader reader(std::vector<std::string> subprotocols = {}, std::size_t limit = 16384) {
  const WallTime now = std::chrono::sys_days(std::chrono::year(1994) / 11 / 6) + 8h + 49min + 7s;
  return ResponseReader(key, std::move(subprotocols), limit, now);
}

std::string broken_by(const std::string& text, std::vector<std::string> subprotocols = {}) {
  ResponseReader response = reader(std::move(subprotocols));
  EXPECT_EQ(response.feed(text), State::broken) << text;
  return response.why();
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// ---- the request

TEST(Rfc6455, s4_1_the_request_has_every_header_that_is_required) {
  const auto request = make_request(url("ws://feed.example:8080/a?b=c"), {}, {}, key);
  ASSERT_TRUE(request);
  EXPECT_EQ(*request,
            "GET /a?b=c HTTP/1.1\r\nHost: feed.example:8080\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n");
}

TEST(Rfc6455, s4_1_the_key_is_sixteen_bytes_in_base64) {
  EXPECT_EQ(make_key({'t', 'h', 'e', ' ', 's', 'a', 'm', 'p', 'l', 'e', ' ', 'n', 'o', 'n', 'c', 'e'}), key);
  EXPECT_EQ(accept_for(key), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

TEST(Rfc6455, s4_1_subprotocols_are_asked_for_in_order_and_headers_are_added) {
  const auto request =
      make_request(url("ws://h/"), {{"Authorization", "Bearer x"}, {"X-Empty", ""}}, {"b", "a"}, key);
  ASSERT_TRUE(request);
  EXPECT_TRUE(has(*request, "\r\nSec-WebSocket-Protocol: b, a\r\n"));
  EXPECT_TRUE(has(*request, "\r\nAuthorization: Bearer x\r\nX-Empty: \r\n\r\n"));
}

TEST(WsHandshake, nothing_from_outside_can_break_out_of_its_line) {
  const std::vector<std::string> poisons = {"a\r\nEvil: 1", "a\nEvil: 1", "a\rEvil", std::string("a\0b", 3), "a\x7F"};
  for (const std::string& poison : poisons) {
    const auto value = make_request(url("ws://h/"), {{"X", poison}}, {}, key);
    ASSERT_FALSE(value);
    EXPECT_EQ(value.error().code, Code::usage);
    EXPECT_FALSE(has(value.error().detail, "Evil")) << "values may be secrets";
    EXPECT_FALSE(make_request(url("ws://h/"), {{poison, "v"}}, {}, key));
    EXPECT_FALSE(make_request(url("ws://h/"), {}, {poison}, key));
    Url target = url("ws://h/");
    target.target += poison;
    EXPECT_FALSE(make_request(target, {}, {}, key));
    Url host = url("ws://h/");
    host.host += poison;
    EXPECT_FALSE(make_request(host, {}, {}, key));
  }
  EXPECT_FALSE(make_request(url("ws://h/"), {{"Bad Name", "v"}}, {}, key));
  EXPECT_FALSE(make_request(url("ws://h/"), {{"", "v"}}, {}, key));
  EXPECT_FALSE(make_request(url("ws://h/"), {}, {"a", "a"}, key)) << "RFC 6455 4.1: each name once";
}

TEST(WsHandshake, headers_that_the_handshake_sets_cannot_be_set_from_outside) {
  for (const char* name : {"Host", "host", "UPGRADE", "Connection", "Sec-WebSocket-Key", "sec-websocket-protocol",
                           "Sec-WebSocket-Extensions", "Content-Length", "Transfer-Encoding"}) {
    EXPECT_FALSE(make_request(url("ws://h/"), {{name, "v"}}, {}, key)) << name;
  }
}

// ---- the answer

TEST(Rfc6455, s4_1_a_good_answer_opens_and_what_follows_belongs_to_the_frames) {
  ResponseReader response = reader();
  EXPECT_EQ(response.feed(answer() + "\x81\x02hi"), State::open);
  EXPECT_EQ(response.rest(), "\x81\x02hi");
  EXPECT_EQ(response.subprotocol(), "");
}

TEST(Rfc6455, s4_1_header_names_and_tokens_have_no_case) {
  ResponseReader response = reader();
  EXPECT_EQ(response.feed("HTTP/1.1 101\r\nUPGRADE:  WebSocket \r\nconnection: keep-alive, UPGRADE\r\n"
                          "sec-websocket-accept:s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"),
            State::open);
}

TEST(Rfc6455, s4_1_an_answer_is_the_same_wherever_it_is_cut) {
  const std::string text = answer("Sec-WebSocket-Protocol: v2\r\n") + "rest";
  for (std::size_t cut = 0; cut < text.size(); ++cut) {
    ResponseReader response = reader({"v1", "v2"});
    response.feed(std::string_view(text).substr(0, cut));
    ASSERT_EQ(response.feed(std::string_view(text).substr(cut)), State::open) << cut;
    if (cut < text.size() - 4) {
      ASSERT_EQ(response.rest(), "rest") << cut;
    }
    ASSERT_EQ(response.subprotocol(), "v2");
  }
}

TEST(Rfc6455, s4_1_each_of_the_six_checks_fails_by_itself) {
  EXPECT_TRUE(has(broken_by(without(answer(), "Upgrade: websocket\r\n")), "Upgrade: websocket"));
  EXPECT_TRUE(has(broken_by(without(answer(), "Connection: Upgrade\r\n")), "Connection: Upgrade"));
  EXPECT_TRUE(has(broken_by(without(answer(), "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n")), "Accept"));
  std::string wrong_key = answer();
  wrong_key[wrong_key.find("s3pP")] = 'S';
  EXPECT_TRUE(has(broken_by(wrong_key), "does not belong to our key"));
  EXPECT_TRUE(has(broken_by(answer("Sec-WebSocket-Extensions: permessage-deflate\r\n")), "permessage-deflate"));
  EXPECT_TRUE(has(broken_by(answer("Sec-WebSocket-Protocol: v3\r\n"), {"v1", "v2"}), "'v3'"));
  EXPECT_TRUE(has(broken_by(answer("Sec-WebSocket-Protocol: v1\r\n")), "'v1'")) << "none was asked for";
  EXPECT_TRUE(has(broken_by(answer("Sec-WebSocket-Protocol: v1\r\nSec-WebSocket-Protocol: v2\r\n"), {"v1", "v2"}),
                  "more than one"));
  EXPECT_TRUE(has(broken_by(answer("Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n")), "Accept")) << "twice";
}

TEST(Rfc6455, s4_1_a_server_may_choose_no_subprotocol) {
  EXPECT_EQ(reader({"v1"}).feed(answer()), State::open);
}

TEST(WsHandshake, what_is_not_a_header_is_refused) {
  broken_by("SSH-2.0-OpenSSH_9.2\r\n");
  broken_by("HTTP/2.0 101 x\r\n\r\n");
  broken_by("HTTP/1.1 1o1 x\r\n\r\n");
  broken_by("HTTP/1.1 99 x\r\n\r\n");
  broken_by("HTTP/1.1 1010\r\n\r\n");
  broken_by("HTTP/1.0 101 Switching Protocols\r\n" + answer().substr(answer().find("\r\n") + 2));
  broken_by("HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(has(broken_by(answer("X: a\r\n b\r\n")), "folded"));
  EXPECT_TRUE(has(broken_by(answer(std::string("X: a\0b\r\n", 8))), "NUL"));
  EXPECT_TRUE(has(broken_by(answer("X: a\nY: b\r\n")), "stray line break"));
  EXPECT_TRUE(has(broken_by(answer("X: a\rY: b\r\n")), "stray line break"));
  EXPECT_TRUE(has(broken_by(answer("no colon here\r\n")), "not a header"));
  EXPECT_TRUE(has(broken_by(answer("X : a\r\n")), "not a header"));
  EXPECT_TRUE(has(broken_by(answer(": a\r\n")), "not a header"));
  EXPECT_TRUE(has(broken_by(answer("X: a\x01\r\n")), "control character"));
}

TEST(WsHandshake, something_that_is_not_http_is_told_by_its_first_bytes) {
  ResponseReader response = reader();
  EXPECT_EQ(response.feed("H"), State::more);
  EXPECT_EQ(response.feed("TTX"), State::broken);
}

TEST(WsHandshake, a_header_longer_than_the_limit_is_refused_before_its_end_is_seen) {
  ResponseReader endless = reader({}, 1000);
  EXPECT_EQ(endless.feed("HTTP/1.1 101 x\r\nX: " + std::string(1001, 'x')), State::broken);
  ResponseReader whole = reader({}, 150);
  EXPECT_EQ(whole.feed(answer("X: " + std::string(100, 'x') + "\r\n")), State::broken);
  ResponseReader with_frames = reader({}, 1000);
  EXPECT_EQ(with_frames.feed(answer() + std::string(5000, 'x')), State::open) << "frames are not header";
}

TEST(WsHandshake, the_end_of_the_stream_without_an_answer_is_said) {
  ResponseReader nothing = reader();
  EXPECT_EQ(nothing.finish(), State::broken);
  EXPECT_TRUE(has(nothing.why(), "without an answer"));
  ResponseReader half = reader();
  half.feed("HTTP/1.1 101 Sw");
  EXPECT_EQ(half.finish(), State::broken);
  EXPECT_TRUE(has(half.why(), "inside the header"));
}

// ---- refusals

TEST(Faults, f37_a_refusal_comes_with_status_retry_after_and_the_beginning_of_the_body) {
  ResponseReader response = reader();
  EXPECT_EQ(response.feed("HTTP/1.1 503 Service Unavailable\r\nRetry-After: 30\r\nContent-Length: 9\r\n\r\nbusy"),
            State::more);
  EXPECT_EQ(response.feed(" now!tail"), State::refused);
  EXPECT_EQ(response.status(), 503);
  EXPECT_EQ(response.retry_after(), Duration(30s));
  EXPECT_EQ(response.body(), "busy now!");
}

TEST(Faults, f43_a_refusal_without_an_end_is_still_one) {
  ResponseReader response = reader();
  EXPECT_EQ(response.feed("HTTP/1.1 404 Not Found\r\n\r\nno such stream"), State::more);
  EXPECT_EQ(response.finish(), State::refused);
  EXPECT_EQ(response.body(), "no such stream");
}

TEST(WsHandshake, of_a_body_512_bytes_are_kept_and_made_harmless) {
  ResponseReader response = reader();
  EXPECT_EQ(response.feed("HTTP/1.1 200 OK\r\n\r\n\x1B[2J\n" + std::string(1000, 'x')), State::refused);
  EXPECT_EQ(response.body().size(), 512U);
  EXPECT_TRUE(response.body().starts_with(" [2J x"));
}

TEST(WsHandshake, a_chunked_body_is_taken_out_of_its_chunks) {
  ResponseReader response = reader();
  EXPECT_EQ(response.feed("HTTP/1.1 500 Oops\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n"), State::more);
  EXPECT_EQ(response.feed("3;ext=1\r\nefg\r\n0\r\n\r\n"), State::refused);
  EXPECT_EQ(response.body(), "abcdefg");
}

TEST(WsHandshake, an_answer_without_a_body_is_whole_at_once) {
  EXPECT_EQ(reader().feed("HTTP/1.1 204 No Content\r\n\r\n"), State::refused);
  EXPECT_EQ(reader().feed("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"), State::refused);
}

TEST(WsHandshake, text_from_outside_is_made_fit_to_be_shown) {
  EXPECT_EQ(http::harmless("caf\xC3\xA9", 100), "caf\xC3\xA9");
  EXPECT_EQ(http::harmless("caf\xC3\xA9", 4), "caf") << "no half characters";
  EXPECT_EQ(http::harmless("a\xFF\xC3\xA9z", 100), "a???z");
  EXPECT_EQ(http::harmless("a\tb\x7F", 100), "a b ");
  EXPECT_EQ(http::harmless("", 100), "");
}

// ---- Retry-After (RFC 9110 section 10.2.3)

std::optional<Duration> after(std::string_view value) {
  const WallTime now = std::chrono::sys_days(std::chrono::year(1994) / 11 / 6) + 8h + 49min + 7s;
  return parse_retry_after(value, now);
}

TEST(Faults, f37_retry_after_is_read_as_seconds_and_as_a_date) {
  EXPECT_EQ(after("0"), Duration(0));
  EXPECT_EQ(after(" 120 "), Duration(120s));
  EXPECT_EQ(after("Sun, 06 Nov 1994 08:49:37 GMT"), Duration(30s));
  EXPECT_EQ(after("Sunday, 06-Nov-94 08:49:37 GMT"), Duration(30s));
  EXPECT_EQ(after("Sun Nov  6 08:49:37 1994"), Duration(30s));
  EXPECT_EQ(after("Mon, 07 Nov 1994 00:00:00 GMT"), Duration(15h + 10min + 53s));
}

TEST(Faults, f37_a_retry_after_that_makes_no_sense_is_bounded_or_ignored) {
  EXPECT_EQ(after("Sun, 06 Nov 1990 08:49:37 GMT"), Duration(0)) << "in the past";
  EXPECT_EQ(after("99999999999999999999"), Duration(24h * 365));
  EXPECT_EQ(after("Sun, 06 Nov 9994 08:49:37 GMT"), Duration(24h * 365));
  for (const char* text :
       {"", "-1", "1.5", "soon", "Sun, 31 Feb 1994 08:49:37 GMT", "Sun, 06 Nov 1994 25:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 CET", "Sun, 06 Foo 1994 08:49:37 GMT", "a b c d e f g h", ", , ,"}) {
    EXPECT_EQ(after(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace holdfast::ws
