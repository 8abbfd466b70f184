// What a client that keeps to the rules is given.
#include "runtime/http_server.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/http_client.hpp"
#include "support/served.hpp"

namespace holdfast::runtime {
namespace {

using namespace std::chrono_literals;
using test::HttpServerTest;
using test::RawClient;
using test::run_until;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST_F(HttpServerTest, hands_on_method_target_headers_and_body_and_sends_the_answer) {
  open();
  holds = true;
  RawClient client = connect();
  client.send("PUT /a/b?c=d HTTP/1.1\r\nHost: h\r\nX-One: 1\r\nContent-Length: 5\r\n\r\nhello");
  ASSERT_TRUE(run_until(loop, [&] { return !held.empty(); }));
  const HttpIncoming& request = held[0]->request();
  EXPECT_EQ(request.method, "PUT");
  EXPECT_EQ(request.target, "/a/b?c=d");
  EXPECT_EQ(request.body, "hello");
  ASSERT_NE(request.header("x-one"), nullptr);
  EXPECT_EQ(*request.header("x-one"), "1");
  HttpAnswer answer;
  answer.status = 418;
  answer.headers = {{"X-Kind", "teapot"}};
  answer.body = "short and stout";
  held[0]->answer(answer);
  ASSERT_TRUE(client.receives("short and stout"));
  EXPECT_THAT(client.received, StartsWith("HTTP/1.1 418 "));
  EXPECT_THAT(client.received, HasSubstr("\r\nX-Kind: teapot\r\n"));
  EXPECT_THAT(client.received, HasSubstr("\r\nContent-Length: 15\r\n"));
  EXPECT_THAT(client.received, HasSubstr("\r\nDate: "));
  EXPECT_THAT(client.received, Not(HasSubstr("Connection:")));
}

TEST_F(HttpServerTest, another_implementation_understands_it) {
  open();
  HttpClient client(loop);
  for (int i = 0; i < 3; ++i) {
    HttpRequest request;
    request.method = "POST";
    request.url = "http://" + server->address().text() + "/x";
    request.body = std::string(100'000, 'b');
    std::optional<HttpReply> reply;
    client.send(request, loop.instant() + 30s, [&](HttpReply came) { reply = std::move(came); });
    ASSERT_TRUE(run_until(loop, [&] { return reply.has_value(); }));
    ASSERT_TRUE(*reply) << reply->error().detail;
    EXPECT_EQ((*reply)->body, "POST /x [" + request.body + "]");
  }
  EXPECT_EQ(client.counts().connections, 1U) << "kept";
  EXPECT_EQ(server->counts().served, 3U);
}

TEST_F(HttpServerTest, requests_sent_ahead_are_answered_in_their_order_one_at_a_time) {
  open();
  holds = true;
  RawClient client = connect();
  client.send(
      "GET /1 HTTP/1.1\r\nHost: h\r\n\r\nPOST /2 HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nxGET /3 HTTP/1.1\r\n"
      "Host: h\r\n\r\n");
  for (std::size_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(run_until(loop, [&] { return held.size() > i; }));
    test::run_for(loop, 20ms);
    ASSERT_EQ(held.size(), i + 1) << "the next one waits";
    held[i]->answer(echo(held[i]->request()));
  }
  ASSERT_TRUE(client.receives("GET /3 []"));
  const auto at = [&](const std::string& text) { return client.received.find(text); };
  EXPECT_LT(at("GET /1 []"), at("POST /2 [x]"));
  EXPECT_LT(at("POST /2 [x]"), at("GET /3 []"));
}

TEST_F(HttpServerTest, a_request_may_come_byte_by_byte) {
  open();
  RawClient client = connect();
  const std::string request =
      "POST /slow HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nX-T: "
      "1\r\n\r\n";
  for (const char byte : request) {
    client.send({&byte, 1});
    test::run_for(loop, 1ms);
  }
  ASSERT_TRUE(client.receives("POST /slow [abcde]"));
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].header("x-t"), nullptr) << "a trailer is no header";
}

TEST_F(HttpServerTest, head_is_told_the_length_and_given_no_body) {
  open();
  RawClient client = connect();
  client.send("HEAD /x HTTP/1.1\r\nHost: h\r\n\r\nGET /y HTTP/1.1\r\nHost: h\r\n\r\n");
  ASSERT_TRUE(client.receives("GET /y []"));
  EXPECT_THAT(client.received, HasSubstr("Content-Length: 10\r\n\r\nHTTP/1.1 200"));
}

TEST_F(HttpServerTest, an_answer_of_204_has_no_length) {
  open();
  holds = true;
  RawClient client = connect();
  client.send("OPTIONS * HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  ASSERT_TRUE(run_until(loop, [&] { return !held.empty(); }));
  EXPECT_EQ(held[0]->request().target, "*");
  HttpAnswer answer;
  answer.status = 204;
  held[0]->answer(answer);
  ASSERT_TRUE(client.is_ended());
  EXPECT_THAT(client.received, Not(HasSubstr("Content-Length")));
}

TEST_F(HttpServerTest, who_expects_to_be_told_to_go_on_is_told) {
  open();
  RawClient client = connect();
  client.send("POST /x HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  ASSERT_TRUE(client.receives("HTTP/1.1 100 Continue\r\n\r\n"));
  EXPECT_TRUE(seen.empty());
  client.send("ok");
  EXPECT_TRUE(client.receives("POST /x [ok]"));
}

TEST_F(HttpServerTest, who_is_not_admitted_is_told_before_the_body_is_taken) {
  options.admit = [](const HttpIncoming& request) -> std::optional<HttpAnswer> {
    if (request.header("authorization") != nullptr) return std::nullopt;
    HttpAnswer answer;
    answer.status = 401;
    answer.body = "who are you";
    return answer;
  };
  open();
  const std::string told = say("POST /x HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 1000\r\n\r\n");
  EXPECT_THAT(told, StartsWith("HTTP/1.1 401 "));
  EXPECT_THAT(told, Not(HasSubstr("100 Continue")));
  EXPECT_TRUE(seen.empty());
  RawClient client = connect();
  client.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\nGET /y HTTP/1.1\r\nHost: h\r\nAuthorization: me\r\n\r\n");
  EXPECT_TRUE(client.receives("GET /y []")) << "where no body was left out, the connection is kept";
}

TEST_F(HttpServerTest, an_old_client_is_served_and_let_go) {
  open();
  EXPECT_THAT(say("GET /x HTTP/1.0\r\n\r\n"), EndsWith("GET /x []"));
  RawClient client = connect();
  client.send("GET /1 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  ASSERT_TRUE(client.receives("GET /1 []"));
  EXPECT_THAT(client.received, HasSubstr("Connection: keep-alive"));
}

TEST_F(HttpServerTest, a_target_with_a_host_in_it_is_its_path) {
  open();
  EXPECT_THAT(say("GET http://h:1/a?b HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"), EndsWith("GET /a?b []"));
  EXPECT_THAT(say("GET http://h HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"), EndsWith("GET / []"));
  say("GET http://there:1/a HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(*seen.back().header("host"), "there:1") << "which counts for more than the header";
}

TEST_F(HttpServerTest, who_closes_his_half_is_still_answered) {
  open();
  holds = true;
  RawClient client = connect();
  bool hung_up = false;
  client.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
  ASSERT_TRUE(run_until(loop, [&] { return !held.empty(); }));
  held[0]->on_hang_up([&] { hung_up = true; });
  client.close_half();
  ASSERT_TRUE(run_until(loop, [&] { return hung_up; }));
  held[0]->answer(echo(held[0]->request()));
  EXPECT_TRUE(client.receives("GET /x []"));
  EXPECT_TRUE(client.is_ended());
}

TEST_F(HttpServerTest, that_a_client_has_gone_is_noticed_while_its_request_waits) {
  open();
  holds = true;
  bool hung_up = false;
  std::optional<bool> sent;
  {
    RawClient client = connect();
    client.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
    ASSERT_TRUE(run_until(loop, [&] { return !held.empty(); }));
    held[0]->on_hang_up([&] { hung_up = true; });
  }
  ASSERT_TRUE(run_until(loop, [&] { return hung_up; }));
  held[0]->answer(echo(held[0]->request()), [&](bool was_sent) { sent = was_sent; });
  ASSERT_TRUE(run_until(loop, [&] { return sent.has_value() && server->counts().connections == 0; }));
  EXPECT_EQ(server->counts().requests, 0U);
}

TEST_F(HttpServerTest, that_a_client_has_gone_is_noticed_whatever_it_has_sent_ahead) {
  open();
  holds = true;
  for (const char* ahead : {"\r\n", "GET /y HTTP/1.1\r\nHost: h\r\n\r\n"}) {
    for (const bool at_once : {true, false}) {
      SCOPED_TRACE(std::string(ahead) + (at_once ? "with the request" : "after it"));
      bool hung_up = false;
      const std::string request = "GET /x HTTP/1.1\r\nHost: h\r\n\r\n";
      {
        RawClient client = connect();
        client.send(at_once ? request + ahead : request);
        ASSERT_TRUE(run_until(loop, [&] { return !held.empty(); }));
        held[0]->on_hang_up([&] { hung_up = true; });
        if (!at_once) client.send(ahead);
        test::run_for(loop, 50ms);
        EXPECT_FALSE(hung_up);
      }
      EXPECT_TRUE(run_until(loop, [&] { return hung_up; }));
      ASSERT_TRUE(run_until(loop, [&] {
        held.clear();  // also what was sent ahead
        return server->counts().connections == 0;
      }));
    }
  }
}

TEST_F(HttpServerTest, who_has_gone_before_he_is_asked_about_is_told_of_all_the_same) {
  open();
  holds = true;
  {
    RawClient client = connect();
    client.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
    ASSERT_TRUE(run_until(loop, [&] { return !held.empty(); }));
  }
  test::run_for(loop, 50ms);
  bool hung_up = false;
  held[0]->on_hang_up([&] { hung_up = true; });
  EXPECT_FALSE(hung_up) << "never inside the call";
  EXPECT_TRUE(run_until(loop, [&] { return hung_up; }));
}

TEST_F(HttpServerTest, a_request_that_is_dropped_is_answered_all_the_same) {
  open();
  holds = true;
  RawClient client = connect();
  client.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
  ASSERT_TRUE(run_until(loop, [&] { return !held.empty(); }));
  held.clear();
  EXPECT_TRUE(client.receives("HTTP/1.1 500 "));
}

TEST_F(HttpServerTest, an_answer_after_the_end_of_the_server_is_nobodys) {
  open();
  holds = true;
  RawClient client = connect();
  client.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
  ASSERT_TRUE(run_until(loop, [&] { return !held.empty(); }));
  bool hung_up = false;
  held[0]->on_hang_up([&] { hung_up = true; });
  server.reset();
  EXPECT_TRUE(hung_up);
  std::optional<bool> sent;
  held[0]->answer(HttpAnswer{}, [&](bool was_sent) { sent = was_sent; });
  EXPECT_EQ(sent, false);
  held.clear();
  EXPECT_TRUE(client.is_ended());
  EXPECT_EQ(client.received, "");
}

TEST_F(HttpServerTest, draining_ends_what_is_idle_and_answers_what_is_under_way) {
  open();
  holds = true;
  RawClient idle = connect();
  RawClient busy = connect();
  busy.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
  ASSERT_TRUE(run_until(loop, [&] { return !held.empty() && server->counts().connections == 2; }));
  bool done = false;
  server->drain(1h, [&] { done = true; });
  EXPECT_TRUE(idle.is_ended());
  EXPECT_FALSE(done);
  held[0]->answer(echo(held[0]->request()));
  ASSERT_TRUE(busy.receives("GET /x []"));
  EXPECT_THAT(busy.received, HasSubstr("Connection: close"));
  busy.close();
  EXPECT_TRUE(run_until(loop, [&] { return done; }));
}

TEST_F(HttpServerTest, draining_cuts_what_takes_too_long) {
  open();
  holds = true;
  RawClient busy = connect();
  busy.send("GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
  ASSERT_TRUE(run_until(loop, [&] { return !held.empty(); }));
  bool done = false;
  server->drain(10ms, [&] { done = true; });
  EXPECT_TRUE(run_until(loop, [&] { return done; }));
  EXPECT_TRUE(busy.is_ended());
}

TEST(HttpDate, is_written_as_it_is_read) {
  for (const auto seconds : {784111777s, 0s, 1709251199s, 1893456000s}) {
    const WallTime time(seconds);
    EXPECT_EQ(parse_http_date(write_http_date(time)), time) << write_http_date(time);
  }
  EXPECT_EQ(write_http_date(WallTime(784111777s)), "Sun, 06 Nov 1994 08:49:37 GMT");
}

}  // namespace
}  // namespace holdfast::runtime
