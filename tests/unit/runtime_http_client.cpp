#include "runtime/http_client.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <deque>
#include <map>

#include "runtime/asio_loop.hpp"
#include "runtime/clock.hpp"
#include "runtime/signals.hpp"
#include "support/certificates.hpp"
#include "support/http_server.hpp"
#include "support/run_until.hpp"
#include "support/temporary_folder.hpp"

namespace holdfast::runtime {
namespace {

using namespace std::chrono_literals;
using test::HttpServer;
using test::run_for;
using test::run_until;
using testing::HasSubstr;
using testing::Not;

struct HttpClientTest : testing::Test {
  HttpClientTest() { ignore_broken_pipes(); }

  HttpRequest post(const std::string& url, std::string body = "{}") {
    HttpRequest request;
    request.method = "POST";
    request.url = url;
    request.body = std::move(body);
    return request;
  }
  /// Sends it and waits for what it comes to.
  HttpReply ask(HttpClient& client, HttpRequest request, Duration limit = 30s) {
    std::optional<HttpReply> reply;
    client.send(std::move(request), loop.instant() + limit, [&](HttpReply came) { reply = std::move(came); });
    EXPECT_FALSE(reply) << "answered inside the call";
    EXPECT_TRUE(run_until(
        loop, [&] { return reply.has_value(); }, 60s))
        << "never answered";
    return reply ? *reply : tl::unexpected(HttpFailure{HttpStage::sent, "(none)"});
  }

  AsioLoop loop{1};
};

const HttpServer::Serve echo = [](const HttpServer::Request& request, const HttpServer::Answer& answer) {
  answer.send(200, request.body, "X-Here: yes\r\n");
};

TEST_F(HttpClientTest, sends_method_headers_and_body_and_gives_status_headers_and_body) {
  HttpServer::Request seen;
  HttpServer server(loop, [&](const HttpServer::Request& request, const HttpServer::Answer& answer) {
    seen = request;
    answer.send(418, "short and stout", "X-Kind:  teapot \r\n");
  });
  HttpClient client(loop);
  HttpRequest request = post(server.url("/a?b=c"), "hello");
  request.headers = {{"Content-Type", "text/plain"}, {"X-One", "1"}};
  const HttpReply reply = ask(client, std::move(request));
  ASSERT_TRUE(reply) << reply.error().detail;
  EXPECT_EQ(reply->status, 418);
  EXPECT_EQ(reply->body, "short and stout");
  ASSERT_NE(reply->header("x-kind"), nullptr);
  EXPECT_EQ(*reply->header("x-kind"), "teapot");
  EXPECT_EQ(reply->header("x-other"), nullptr);
  EXPECT_EQ(seen.method(), "POST");
  EXPECT_EQ(seen.target(), "/a?b=c");
  EXPECT_EQ(seen.body, "hello");
  EXPECT_EQ(seen.header("content-type"), "text/plain");
  EXPECT_EQ(seen.header("x-one"), "1");
  EXPECT_FALSE(seen.header("expect"));
}

TEST_F(HttpClientTest, speaks_get_and_put_and_says_no_content_type_of_its_own) {
  std::vector<HttpServer::Request> seen;
  HttpServer server(loop, [&](const HttpServer::Request& request, const HttpServer::Answer& answer) {
    seen.push_back(request);
    answer.send(200, "token");
  });
  HttpClient client(loop);
  HttpRequest put;
  put.method = "PUT";
  put.url = server.url("/latest/api/token");
  put.headers = {{"X-aws-ec2-metadata-token-ttl-seconds", "21600"}};
  EXPECT_TRUE(ask(client, put));
  HttpRequest get;
  get.url = server.url("/after");
  EXPECT_TRUE(ask(client, get));
  EXPECT_TRUE(ask(client, post(server.url(), "a=1")));
  ASSERT_EQ(seen.size(), 3U);
  EXPECT_EQ(seen[0].method(), "PUT");
  EXPECT_EQ(seen[0].header("content-length"), "0");
  EXPECT_EQ(seen[0].header("x-aws-ec2-metadata-token-ttl-seconds"), "21600");
  EXPECT_EQ(seen[1].method(), "GET");
  EXPECT_FALSE(seen[1].header("x-aws-ec2-metadata-token-ttl-seconds")) << "nothing is left of the request before";
  EXPECT_EQ(seen[2].method(), "POST");
  for (const auto& request : seen) EXPECT_FALSE(request.header("content-type")) << request.head;
}

TEST_F(HttpClientTest, uses_a_connection_again) {
  HttpServer server(loop, echo);
  HttpClient client(loop);
  for (int i = 0; i < 20; ++i) {
    const HttpReply reply = ask(client, post(server.url(), std::to_string(i)));
    ASSERT_TRUE(reply) << reply.error().detail;
    EXPECT_EQ(reply->body, std::to_string(i));
  }
  EXPECT_EQ(server.connections(), 1U);
  EXPECT_EQ(client.counts().connections, 1U);
  EXPECT_EQ(client.counts().requests, 20U);
}

TEST_F(HttpClientTest, carries_many_at_once_over_no_more_connections_than_it_may) {
  std::deque<std::pair<std::string, HttpServer::Answer>> held;
  std::size_t most = 0;
  HttpServer server(loop, [&](const HttpServer::Request& request, const HttpServer::Answer& answer) {
    held.emplace_back(request.body, answer);
    most = std::max(most, held.size());
    if (held.size() < 8) return;  // out of order, and only when all that may come have come
    for (; !held.empty(); held.pop_back()) held.back().second.send(200, held.back().first);
  });
  HttpLimits limits;
  limits.connections_per_host = 8;
  HttpClient client(loop, limits);
  std::map<std::string, std::string> answers;
  for (int i = 0; i < 800; ++i) {
    const std::string body = std::to_string(i);
    client.send(post(server.url(), body), loop.instant() + 60s,
                [&, body](const HttpReply& reply) { answers[body] = reply ? reply->body : reply.error().detail; });
  }
  ASSERT_TRUE(run_until(loop, [&] { return answers.size() == 800; }));
  for (const auto& [asked, answered] : answers) EXPECT_EQ(asked, answered);
  EXPECT_EQ(most, 8U);
  EXPECT_EQ(server.connections(), 8U);
}

TEST_F(HttpClientTest, refuses_what_would_wait_beyond_its_limit_without_having_sent_it) {
  HttpServer server(loop, [](const HttpServer::Request&, const HttpServer::Answer&) {});
  HttpLimits limits;
  limits.connections_per_host = 1;
  limits.waiting_max = 1;
  HttpClient client(loop, limits);
  int others = 0;
  client.send(post(server.url()), loop.instant() + 60s, [&](const HttpReply&) { ++others; });
  client.send(post(server.url()), loop.instant() + 60s, [&](const HttpReply&) { ++others; });
  const HttpReply reply = ask(client, post(server.url()));
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().stage, HttpStage::not_sent);
  EXPECT_THAT(reply.error().detail, HasSubstr("too many requests are waiting"));
  EXPECT_EQ(others, 0);
}

TEST_F(HttpClientTest, a_deadline_ends_a_request_that_was_sent_and_one_that_waits) {
  HttpServer server(loop, [](const HttpServer::Request&, const HttpServer::Answer&) {});
  HttpLimits limits;
  limits.connections_per_host = 1;
  HttpClient client(loop, limits);
  std::vector<HttpFailure> failures;
  const auto keep = [&](const HttpReply& reply) {
    if (!reply) failures.push_back(reply.error());
  };
  const Instant end = loop.instant() + 200ms;
  client.send(post(server.url()), end + 1ms, keep);
  client.send(post(server.url()), end, keep);
  ASSERT_TRUE(run_until(loop, [&] { return failures.size() == 2; }));
  EXPECT_EQ(failures[0].stage, HttpStage::not_sent) << "it waited for its turn: " << failures[0].detail;
  EXPECT_EQ(failures[1].stage, HttpStage::sent) << failures[1].detail;
  EXPECT_EQ(server.requests(), 1U);
}

TEST_F(HttpClientTest, a_request_whose_time_is_over_is_not_begun) {
  HttpServer server(loop, echo);
  HttpClient client(loop);
  const HttpReply reply = ask(client, post(server.url()), 0s);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().stage, HttpStage::not_sent);
  run_for(loop, 50ms);
  EXPECT_EQ(server.connections(), 0U);
}

TEST_F(HttpClientTest, a_refused_connection_and_an_unknown_name_were_surely_not_sent) {
  std::uint16_t port = 0;
  {
    HttpServer gone(loop, echo);
    port = gone.port();
  }
  HttpClient client(loop);
  HttpReply reply = ask(client, post("http://127.0.0.1:" + std::to_string(port) + "/?secret=hush"));
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().stage, HttpStage::not_sent) << reply.error().detail;
  EXPECT_THAT(reply.error().detail, HasSubstr("http://127.0.0.1:" + std::to_string(port)));
  EXPECT_THAT(reply.error().detail, Not(HasSubstr("hush")));

  reply = ask(client, post("http://no-such-host.invalid/"), 20s);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().stage, HttpStage::not_sent) << reply.error().detail;

  for (const char* bad : {"ftp://127.0.0.1/", "nonsense", "", "http://"}) {
    reply = ask(client, post(bad));
    ASSERT_FALSE(reply) << bad;
    EXPECT_EQ(reply.error().stage, HttpStage::not_sent) << bad << ": " << reply.error().detail;
  }
}

/// What a server does to a request that it has taken.
struct Ill {
  std::string name;
  HttpServer::Serve serve;
};

TEST_F(HttpClientTest, what_ends_after_it_was_sent_is_said_to_have_been_sent) {
  const std::vector<Ill> ills = {
      {"closed", [](const auto&, const auto& answer) { answer.close(); }},
      {"reset", [](const auto&, const auto& answer) { answer.reset(); }},
      {"garbage",
       [](const auto&, const auto& answer) {
         answer.raw("\x16\x03\x01 this is not HTTP\r\n\r\n");
         answer.close();
       }},
      {"half a header",
       [](const auto&, const auto& answer) {
         answer.raw("HTTP/1.1 200 OK\r\nContent-Le");
         answer.close();
       }},
      {"half a body",
       [](const auto&, const auto& answer) {
         answer.raw("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345");
         answer.close();
       }},
      {"half a chunk",
       [](const auto&, const auto& answer) {
         answer.raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\n12345");
         answer.close();
       }},
      {"too long", [](const auto&, const auto& answer) { answer.send(200, std::string(2000, 'x')); }},
      {"endless headers",
       [](const auto&, const auto& answer) {
         answer.raw("HTTP/1.1 200 OK\r\n");
         for (int i = 0; i < 100; ++i) answer.raw("X-More: " + std::string(1000, 'x') + "\r\n");
       }},
  };
  for (const Ill& ill : ills) {
    HttpServer server(loop, ill.serve);
    HttpClient client(loop);
    HttpRequest request = post(server.url());
    request.answer_bytes_max = 1000;
    const HttpReply reply = ask(client, std::move(request));
    ASSERT_FALSE(reply) << ill.name;
    EXPECT_EQ(reply.error().stage, HttpStage::sent) << ill.name << ": " << reply.error().detail;
    EXPECT_EQ(server.requests(), 1U) << ill.name << ": sent once, not again in silence";
  }
}

TEST_F(HttpClientTest, a_request_on_a_kept_connection_that_is_cut_is_not_repeated_in_silence) {
  HttpServer server(loop, [](const HttpServer::Request& request, const HttpServer::Answer& answer) {
    if (request.body == "cut") return answer.close();
    answer.send(200, "fine");
  });
  HttpClient client(loop);
  ASSERT_TRUE(ask(client, post(server.url())));
  const HttpReply reply = ask(client, post(server.url(), "cut"));
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().stage, HttpStage::sent);
  EXPECT_EQ(server.requests(), 2U);
}

TEST_F(HttpClientTest, a_connection_that_the_server_closed_while_it_was_idle_is_replaced) {
  HttpServer server(loop, echo);
  HttpClient client(loop);
  for (int i = 0; i < 5; ++i) {
    const HttpReply reply = ask(client, post(server.url(), std::to_string(i)));
    ASSERT_TRUE(reply) << reply.error().detail;
    server.close_all();
    run_for(loop, 20ms);
  }
  EXPECT_EQ(server.connections(), 5U);
  EXPECT_EQ(server.requests(), 5U);
}

TEST_F(HttpClientTest, goes_on_after_a_failure_with_the_same_handle) {
  bool ill = true;
  HttpServer server(loop, [&](const HttpServer::Request& request, const HttpServer::Answer& answer) {
    if (ill) return answer.send(200, std::string(100, 'x'));
    answer.send(200, request.body);
  });
  HttpClient client(loop);
  HttpRequest request = post(server.url(), "long");
  request.answer_bytes_max = 10;
  EXPECT_FALSE(ask(client, request));
  ill = false;
  const HttpReply reply = ask(client, request);
  ASSERT_TRUE(reply) << reply.error().detail;
  EXPECT_EQ(reply->body, "long");
}

TEST_F(HttpClientTest, a_cancelled_request_is_not_answered_and_its_place_is_free) {
  std::vector<HttpServer::Answer> held;
  HttpServer server(loop, [&](const HttpServer::Request& request, const HttpServer::Answer& answer) {
    if (request.body == "hold") return held.push_back(answer);
    answer.send(200, request.body);
  });
  HttpLimits limits;
  limits.connections_per_host = 1;
  HttpClient client(loop, limits);
  int cancelled = 0;
  const auto count = [&](const HttpReply&) { ++cancelled; };
  const auto in_flight = client.send(post(server.url(), "hold"), loop.instant() + 60s, count);
  const auto waiting = client.send(post(server.url(), "hold"), loop.instant() + 60s, count);
  const auto too_late = client.send(post(server.url(), "hold"), loop.instant(), count);
  client.cancel(too_late);
  client.cancel(waiting);
  ASSERT_TRUE(run_until(loop, [&] { return held.size() == 1; }));
  client.cancel(in_flight);
  client.cancel(in_flight);
  client.cancel(12345);
  const HttpReply reply = ask(client, post(server.url(), "next"));
  ASSERT_TRUE(reply) << reply.error().detail;
  for (const auto& answer : held) answer.send(200, "too late");
  run_for(loop, 50ms);
  EXPECT_EQ(cancelled, 0);
}

TEST_F(HttpClientTest, may_be_destroyed_with_requests_in_flight_and_by_a_handler) {
  HttpServer server(loop, [&](const HttpServer::Request& request, const HttpServer::Answer& answer) {
    if (request.body != "hold") answer.send(200, request.body);
  });
  int answered = 0;
  auto client = std::make_unique<HttpClient>(loop, HttpLimits{.connections_per_host = 3});
  for (int i = 0; i < 10; ++i) {
    client->send(post(server.url(), "hold"), loop.instant() + 100ms, [&](const HttpReply&) { ++answered; });
  }
  ASSERT_TRUE(run_until(loop, [&] { return server.requests() == 3; }));
  client.reset();
  run_for(loop, 200ms);
  EXPECT_EQ(answered, 0);

  client = std::make_unique<HttpClient>(loop);
  for (int i = 0; i < 10; ++i) {
    client->send(post(server.url()), loop.instant() + 30s, [&](const HttpReply&) {
      ++answered;
      client.reset();
    });
  }
  ASSERT_TRUE(run_until(loop, [&] { return answered > 0; }));
  run_for(loop, 100ms);
  EXPECT_EQ(answered, 1);
}

TEST_F(HttpClientTest, a_handler_may_send_and_cancel) {
  HttpServer server(loop, echo);
  HttpClient client(loop);
  std::vector<std::string> order;
  HttpTransport::RequestId victim = 0;
  client.send(post(server.url(), "first"), loop.instant() + 30s, [&](const HttpReply& reply) {
    order.push_back(reply ? reply->body : reply.error().detail);
    client.cancel(victim);
    client.send(post(server.url(), "second"), loop.instant() + 30s,
                [&](const HttpReply& next) { order.push_back(next ? next->body : next.error().detail); });
  });
  victim = client.send(post(server.url(), "victim"), loop.instant() + 30s, [&](const HttpReply& reply) {
    if (order.empty()) return;  // it was faster: allowed
    order.push_back(reply ? reply->body : reply.error().detail);
  });
  ASSERT_TRUE(run_until(loop, [&] { return order.size() == 2; }));
  EXPECT_EQ(order, (std::vector<std::string>{"first", "second"}));
}

TEST_F(HttpClientTest, uses_no_processor_while_it_has_nothing_to_do_and_while_it_waits) {
  std::vector<HttpServer::Answer> held;
  HttpServer server(loop, [&](const HttpServer::Request& request, const HttpServer::Answer& answer) {
    if (request.body == "hold") return held.push_back(answer);
    answer.send(200, request.body);
  });
  HttpClient client(loop);
  ASSERT_TRUE(ask(client, post(server.url())));
  server.close_all();  // readable for ever: the end of an idle connection
  bool answered = false;
  client.send(post(server.url(), "hold"), loop.instant() + 60s, [&](const HttpReply&) { answered = true; });
  ASSERT_TRUE(run_until(loop, [&] { return held.size() == 1; }));
  int handlers = 0;
  loop.context().restart();
  const Instant end = boot_now() + 500ms;
  while (boot_now() < end) handlers += static_cast<int>(loop.context().run_one_for(50ms));
  EXPECT_LT(handlers, 20) << "a busy loop runs thousands";
  held[0].send(200, "at last");
  EXPECT_TRUE(run_until(loop, [&] { return answered; }));
}

TEST_F(HttpClientTest, verifies_certificate_and_host_name) {
  const test::TemporaryFolder folder;
  const test::Authority authority;
  const std::string trusted = folder.file("ca.pem");
  authority.write(trusted);
  HttpServer good(loop, echo, authority.server({.names = "DNS:localhost"}));
  HttpServer expired(loop, echo, authority.server({.names = "DNS:localhost", .days_from = -9, .days_to = -2}));

  HttpLimits limits;
  limits.ca_file = trusted;
  HttpClient client(loop, limits);
  for (int i = 0; i < 3; ++i) {
    const HttpReply reply = ask(client, post(good.url("/", "localhost")));
    ASSERT_TRUE(reply) << reply.error().detail;
  }
  EXPECT_EQ(good.connections(), 1U);

  HttpClient stranger(loop);
  for (const auto& [who, url] : std::vector<std::pair<HttpClient*, std::string>>{
           {&client, good.url("/", "127.0.0.1")},  // not a name of that certificate
           {&client, expired.url("/", "localhost")},
           {&stranger, good.url("/", "localhost")}}) {  // an authority that the system does not know
    const HttpReply reply = ask(*who, post(url, "secret"));
    ASSERT_FALSE(reply) << url;
    EXPECT_EQ(reply.error().stage, HttpStage::not_sent) << reply.error().detail;
    EXPECT_THAT(reply.error().detail, HasSubstr("not trusted"));
  }
  EXPECT_EQ(good.requests() + expired.requests(), 3U);
}

TEST(HttpLimits, for_aws_certificates_are_where_its_own_programs_look_for_them) {
  ::unsetenv("AWS_CA_BUNDLE");
  EXPECT_EQ(http_limits_for_aws().ca_file, "");
  ::setenv("AWS_CA_BUNDLE", "/some/bundle.pem", 1);
  EXPECT_EQ(http_limits_for_aws().ca_file, "/some/bundle.pem");
  ::unsetenv("AWS_CA_BUNDLE");
}

TEST_F(HttpClientTest, a_server_that_does_not_finish_connecting_is_given_up_after_the_limit) {
  const test::Authority authority;
  HttpServer plain(loop, echo);  // takes the TLS greeting for the beginning of a request and waits for more
  HttpLimits limits;
  limits.connect_max = 100ms;
  HttpClient client(loop, limits);
  const HttpReply reply = ask(client, post("https://localhost:" + std::to_string(plain.port()) + "/"));
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().stage, HttpStage::not_sent) << reply.error().detail;
}

TEST(HttpDate, is_read_where_it_is_one) {
  EXPECT_EQ(parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT"), WallTime(784111777s));
  EXPECT_EQ(parse_http_date("Thu, 29 Feb 2024 23:59:60 GMT"), WallTime(1709251200s));
  for (const char* bad :
       {"", "Sun, 06 Nov 1994 08:49:37", "Sun, 30 Feb 2024 08:49:37 GMT", "Sun, 06 nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:49:37 GMT", "Sun, 06 Nov 1994 0x:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994"}) {
    EXPECT_FALSE(parse_http_date(bad)) << bad;
  }
}

}  // namespace
}  // namespace holdfast::runtime
