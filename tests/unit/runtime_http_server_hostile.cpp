// What a client that does not keep to the rules is given, and what it cannot take.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "runtime/environment.hpp"
#include "runtime/http_server.hpp"
#include "support/served.hpp"

namespace holdfast::runtime {
namespace {

using namespace std::chrono_literals;
using namespace std::string_literals;
using test::HttpServerTest;
using test::RawClient;
using test::run_until;
using testing::HasSubstr;
using testing::StartsWith;

/// The server answers with this status and closes; nobody was served.
struct HttpServerRefuses : HttpServerTest {
  void expect(int status, const std::string& request) {
    const std::string told = say(request);
    EXPECT_THAT(told, StartsWith("HTTP/1.1 " + std::to_string(status) + " ")) << request.substr(0, 200);
    EXPECT_THAT(told, HasSubstr("Connection: close\r\n"));
    EXPECT_TRUE(seen.empty()) << request.substr(0, 200);
  }
};

TEST_F(HttpServerRefuses, what_two_readers_could_read_as_different_requests) {
  open();
  const std::string start = "POST /x HTTP/1.1\r\nHost: h\r\n";
  const std::string smuggled = "\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n";
  expect(400, start + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n" + smuggled);
  expect(400, start + "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n" + smuggled);
  expect(400, start + "Content-Length: 4\r\nContent-Length: 5\r\n" + smuggled);
  expect(400, start + "Content-Length: 4\r\nContent-Length: 4\r\n" + smuggled);
  expect(400, start + "Content-Length: 4, 5\r\n" + smuggled);
  expect(400, start + "Content-Length: -1\r\n" + smuggled);
  expect(400, start + "Content-Length: +4\r\n" + smuggled);
  expect(400, start + "Content-Length: 0x4\r\n" + smuggled);
  expect(400, start + "Content-Length: 99999999999999999999\r\n" + smuggled);
  expect(400, start + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n" + smuggled);
  expect(501, start + "Transfer-Encoding: gzip\r\n" + smuggled);
  expect(501, start + "Transfer-Encoding: chunked, gzip\r\n" + smuggled);
  expect(501, start + "Transfer-Encoding: gzip, chunked\r\n" + smuggled);
  expect(501, start + "Transfer-Encoding: xchunked\r\n" + smuggled);
  expect(400, start + "Transfer-Encoding : chunked\r\n" + smuggled);
  expect(400, "POST /x HTTP/1.0\r\nTransfer-Encoding: chunked\r\n" + smuggled);
}

TEST_F(HttpServerRefuses, what_is_no_request) {
  open();
  expect(400, "hello\r\n\r\n");
  expect(400, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 TLS\r\n\r\n");
  expect(400, "GET  /two-blanks HTTP/1.1\r\nHost: h\r\n\r\n");
  expect(400, "GET /\x01 HTTP/1.1\r\nHost: h\r\n\r\n");
  expect(400, "GET /x HTTP/1.1\r\nHost: h\r\nNo colon\r\n\r\n");
  expect(400, "GET /x HTTP/1.1\r\nHost: h\r\nX: a\0b\r\n\r\n"s);
  expect(400, "GET /x HTTP/1.1\r\n\r\n");
  expect(400, "GET /x HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n");
  expect(400, "GET x HTTP/1.1\r\nHost: h\r\n\r\n");
  expect(400, "GET * HTTP/1.1\r\nHost: h\r\n\r\n");
  expect(400, "CONNECT h:1 HTTP/1.1\r\nHost: h\r\n\r\n");
  expect(505, "GET /x HTTP/1.1\nHost: h\n\n\r\n\r\n");
  expect(505, "GET /x HTTP/2.0\r\nHost: h\r\n\r\n");
  expect(505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  expect(417, "POST /x HTTP/1.1\r\nHost: h\r\nExpect: a miracle\r\nContent-Length: 1\r\n\r\nx");
}

TEST_F(HttpServerRefuses, what_is_larger_than_its_limit) {
  open({.header_bytes_max = 2000, .body_bytes_max = 1000});
  expect(431, "GET /" + std::string(3000, 'x') + " HTTP/1.1\r\nHost: h\r\n\r\n");
  expect(431, "GET /x HTTP/1.1\r\nHost: h\r\nX: " + std::string(1 << 20, 'x') + "\r\n\r\n");
  expect(431, std::string(1 << 20, 'x'));
  std::string many = "GET /x HTTP/1.1\r\nHost: h\r\n";
  for (int i = 0; i < 1000; ++i) many += "X: y\r\n";
  expect(431, many + "\r\n");
  const std::string start = "POST /x HTTP/1.1\r\nHost: h\r\n";
  expect(413, start + "Content-Length: 1001\r\n\r\n");
  expect(413, start + "Content-Length: 18446744073709551615\r\n\r\n");
  expect(413, start + "Content-Length: 1001\r\nExpect: 100-continue\r\n\r\n");
  expect(413, start + "Content-Length: 1001\r\n\r\n" + std::string(1 << 19, 'b'));
}

TEST_F(HttpServerRefuses, bombs_of_chunks) {
  open({.body_bytes_max = 1000});
  const std::string start = "POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";
  expect(413, start + "FFFFFFFF\r\n");
  expect(400, start + "FFFFFFFFFFFFFFFFF\r\n");
  std::string ones;
  for (int i = 0; i < 2000; ++i) ones += "1\r\nx\r\n";
  expect(413, start + ones);
  expect(400, start + "-1\r\n\r\n");
  expect(400, start + "1;" + std::string(1 << 20, 'x') + "\r\nx\r\n0\r\n\r\n");
  expect(400, start + "1\r\nxy\r\n0\r\n\r\n");
}

TEST_F(HttpServerTest, too_large_headers_behind_a_body_are_no_way_in) {
  open({.header_bytes_max = 2000});
  const std::string told = say("POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nT: " +
                               std::string(1 << 20, 't') + "\r\n\r\n");
  EXPECT_THAT(told, testing::Not(HasSubstr(" 200 ")));
  EXPECT_TRUE(seen.empty());
}

TEST_F(HttpServerTest, who_does_not_finish_his_headers_is_told_and_let_go) {
  open({.head = 50ms});
  EXPECT_THAT(say("GET /x HTTP/1.1\r\nHost: h"), StartsWith("HTTP/1.1 408 "));
}

TEST_F(HttpServerTest, who_does_not_finish_his_body_is_told_and_let_go) {
  open({.body = 50ms});
  EXPECT_THAT(say("POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nab"), StartsWith("HTTP/1.1 408 "));
  EXPECT_TRUE(seen.empty());
  EXPECT_EQ(server->counts().requests, 0U);
}

TEST_F(HttpServerTest, who_sends_one_byte_now_and_then_does_not_get_more_time) {
  open({.head = 200ms});
  RawClient client = connect();
  client.send("GET /x HTTP/1.1\r\n");
  for (int i = 0; i < 1000 && !client.ended; ++i) {
    client.send("X");
    test::run_for(loop, 5ms);
    client.take();
  }
  EXPECT_THAT(client.received, StartsWith("HTTP/1.1 408 "));
}

TEST_F(HttpServerTest, who_says_nothing_is_let_go_without_a_word) {
  open({.idle = 50ms});
  RawClient client = connect();
  EXPECT_TRUE(client.is_ended());
  EXPECT_EQ(client.received, "");
}

TEST_F(HttpServerTest, who_does_not_take_his_answer_is_cut) {
  open({.write = 100ms});
  holds = true;
  RawClient client = connect();
  client.read_little();
  client.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
  ASSERT_TRUE(run_until(loop, [&] { return !held.empty(); }));
  HttpAnswer answer;
  answer.status = 200;
  answer.body = std::string(64 << 20, 'x');
  std::optional<bool> sent;
  held[0]->answer(std::move(answer), [&](bool was_sent) { sent = was_sent; });
  ASSERT_TRUE(run_until(loop, [&] { return sent.has_value(); }));
  EXPECT_FALSE(*sent);
  EXPECT_EQ(server->counts().connections, 0U);
  EXPECT_EQ(server->counts().requests, 0U);
}

TEST_F(HttpServerTest, half_a_request_and_the_end_is_nothing) {
  open();
  for (const char* half :
       {"", "GE", "GET /x HTTP/1.1\r\nHost: h\r\n", "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nx",
        "POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n"}) {
    RawClient client = connect();
    client.send(half);
    client.close_half();
    EXPECT_TRUE(client.is_ended()) << half;
    EXPECT_EQ(client.received, "") << half;
  }
  EXPECT_TRUE(seen.empty());
  EXPECT_TRUE(run_until(loop, [&] { return server->counts().connections == 0; }));
}

TEST_F(HttpServerTest, a_thousand_idle_connections_hold_nobody_up) {
  if (raise_descriptor_limit() < 2200) GTEST_SKIP() << "too few descriptors";
  open();
  std::deque<RawClient> idle;
  for (int i = 0; i < 1000; ++i) {
    idle.push_back(connect());
    if (i % 50 == 0) test::run_for(loop, 1ms);
  }
  ASSERT_TRUE(run_until(loop, [&] { return server->counts().connections == 1000; }));
  RawClient client = connect();
  client.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_TRUE(client.receives("GET /x []"));
  idle.clear();
  EXPECT_TRUE(run_until(loop, [&] { return server->counts().connections == 1; }));
}

TEST_F(HttpServerTest, above_its_connections_the_one_that_was_idle_for_longest_makes_room) {
  open({.connections_max = 2});
  holds = true;
  RawClient busy = connect();
  busy.send("GET /busy HTTP/1.1\r\nHost: h\r\n\r\n");
  ASSERT_TRUE(run_until(loop, [&] { return held.size() == 1; }));
  RawClient idle = connect();
  ASSERT_TRUE(run_until(loop, [&] { return server->counts().connections == 2; }));
  RawClient third = connect();
  EXPECT_TRUE(idle.is_ended());
  third.send("GET /third HTTP/1.1\r\nHost: h\r\n\r\n");
  ASSERT_TRUE(run_until(loop, [&] { return held.size() == 2; }));
  RawClient fourth = connect();
  EXPECT_TRUE(fourth.receives("HTTP/1.1 503 ")) << "nobody is idle";
  EXPECT_TRUE(fourth.is_ended());
  EXPECT_THAT(fourth.received, HasSubstr("Retry-After: 1\r\n"));
}

TEST_F(HttpServerTest, above_its_requests_it_says_so_at_once) {
  open({.requests_max = 1});
  holds = true;
  RawClient first = connect();
  first.send("GET /1 HTTP/1.1\r\nHost: h\r\n\r\n");
  ASSERT_TRUE(run_until(loop, [&] { return held.size() == 1; }));
  EXPECT_THAT(say("GET /2 HTTP/1.1\r\nHost: h\r\n\r\n"), StartsWith("HTTP/1.1 503 "));
  held[0]->answer(echo(held[0]->request()));
  ASSERT_TRUE(first.receives("GET /1 []"));
  RawClient third = connect();
  third.send("GET /3 HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_TRUE(run_until(loop, [&] { return held.size() == 2; }));
}

TEST_F(HttpServerTest, what_it_refuses_with_is_its_owners_to_say) {
  options.refuse = [](int status, std::string_view why) {
    HttpAnswer answer;
    answer.status = status;
    answer.body = "{\"why\":\"" + std::string(why) + "\"}";
    return answer;
  };
  open();
  EXPECT_THAT(say("nonsense\r\n\r\n"), HasSubstr("{\"why\":\"This is no HTTP request.\"}"));
}

}  // namespace
}  // namespace holdfast::runtime
