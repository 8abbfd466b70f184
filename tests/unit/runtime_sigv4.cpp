// The signatures that HttpClient sends, beside those of botocore, which AWS's own programs sign with.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <sstream>

#include "runtime/asio_loop.hpp"
#include "runtime/http_client.hpp"
#include "runtime/signals.hpp"
#include "runtime/sigv4.hpp"
#include "runtime/spawn.hpp"
#include "support/http_server.hpp"
#include "support/places.hpp"
#include "support/run_until.hpp"

namespace holdfast::runtime {
namespace {

using namespace std::chrono_literals;
using test::HttpServer;
using test::run_until;
using testing::HasSubstr;
using testing::Not;

/// 20150830T123600Z
std::optional<WallTime> parse_signing_time(const std::string& text) {
  int year = 0, month = 0, day = 0, hours = 0, minutes = 0, seconds = 0;
  if (std::sscanf(text.c_str(), "%4d%2d%2dT%2d%2d%2dZ", &year, &month, &day, &hours, &minutes, &seconds) != 6) {
    return std::nullopt;
  }
  return std::chrono::sys_days(std::chrono::year(year) / month / day) + std::chrono::hours(hours) +
         std::chrono::minutes(minutes) + std::chrono::seconds(seconds);
}

std::string json_text(const std::string& text) {
  std::string out = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') out += '\\';
    out += letter == '\t' ? std::string("\\t") : std::string(1, letter);
  }
  return out + "\"";
}

/// A request that was sent, as the script wants it told.
std::string told(const HttpRequest& sent, const HttpServer::Request& came) {
  std::string headers;
  for (const HttpHeader& header : sent.headers) {
    headers += (headers.empty() ? "" : ",") + json_text(header.name) + ":" + json_text(header.value);
  }
  const AwsSigning& keys = *sent.signing;
  return R"({"method":)" + json_text(sent.method) + R"(,"url":)" + json_text(sent.url) + R"(,"headers":{)" + headers +
         R"(},"body":)" + json_text(came.body) + R"(,"access_key_id":)" + json_text(keys.access_key_id) +
         R"(,"secret_access_key":)" + json_text(keys.secret_access_key) + R"(,"session_token":)" +
         json_text(keys.session_token) + R"(,"region":)" + json_text(keys.region) + R"(,"service":)" +
         json_text(keys.service) + R"(,"date":)" + json_text(came.header("X-Amz-Date").value_or("(none)")) + "}";
}

std::vector<std::string> signatures_of_botocore(const std::string& requests) {
  SpawnOptions options;
  options.arguments = {"python3", std::string(test::source_folder) + "/tests/support/botocore_signature.py",
                       requests};
  options.output = SpawnOptions::Output::pipe;
  auto child = spawn(options);
  if (!child) {
    ADD_FAILURE() << child.error().detail;
    return {};
  }
  std::istringstream output(child->read_all(60s));
  EXPECT_EQ(child->wait(60s), Exit{}) << "is python3-botocore installed? (./dev setup test)";
  std::vector<std::string> lines;
  for (std::string line; std::getline(output, line);) lines.push_back(line);
  return lines;
}

struct SigV4Test : testing::Test {
  SigV4Test() { ignore_broken_pipes(); }

  HttpRequest update(const std::string& token = "", Duration offset = 0s) const {
    HttpRequest request;
    request.method = "POST";
    request.url = server.url();
    request.body = R"({"TableName":"fleet","Key":{"Pk":{"S":"CONN#€ \"quoted\" \\ "}}})";
    request.headers = {{"Content-Type", "application/x-amz-json-1.0"},
                       {"X-Amz-Target", "DynamoDB_20120810.UpdateItem"}};
    request.signing =
        AwsSigning{"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", token, "eu-west-1", "dynamodb", offset};
    return request;
  }
  /// Sends them one after the other over one client; gives what each was signed with.
  std::vector<std::string> signatures_of(const std::vector<HttpRequest>& requests) {
    HttpClient client(loop);
    std::vector<std::string> found;
    for (const HttpRequest& request : requests) {
      const std::size_t before = came.size();
      client.send(request, loop.instant() + 60s, [](const HttpReply&) {});
      EXPECT_TRUE(run_until(loop, [&] { return came.size() > before; }));
      if (came.size() > before) found.push_back(came.back().header("Authorization").value_or("(none)"));
    }
    return found;
  }

  AsioLoop loop{1};
  std::vector<HttpServer::Request> came;
  HttpServer server{loop, [this](const HttpServer::Request& request, const HttpServer::Answer& answer) {
                      came.push_back(request);
                      answer.send(200, "{}");
                    }};
};

TEST_F(SigV4Test, are_those_of_botocore_with_and_without_session_token_and_with_another_clock) {
  std::vector<HttpRequest> requests = {
      update(),          update("IQoJb3JpZ2luX2VjEJ//////////wEaCXVzLWVhc3QtMSJHMEUCIQD+token/with=signs=="),
      update("", 90min), update("another-token", -400 * 24h),
      update(),
  };
  // Keys, day, region and service change in turn: none is signed with the key of another.
  requests.push_back(update());
  requests.back().signing->secret_access_key = "another/SECRET";
  requests.push_back(update());
  requests.back().signing->region = "us-east-1";
  requests.push_back(update());
  requests.back().headers.push_back({"X-Amz-Spaced", "  a   b\tc  "});
  requests.push_back(update());
  requests.back().method = "GET";
  requests.back().url = server.url("/path/t%20o?b=2&Action=GetCallerIdentity&a-c=&a=%20");
  requests.back().body.clear();
  requests.back().headers.clear();
  requests.back().signing->service = "sts";
  requests.push_back(update());
  requests.back().body = std::string(300'000, 'x');
  const std::vector<std::string> ours = signatures_of(requests);
  ASSERT_EQ(came.size(), requests.size());
  for (const auto& request : came) {
    EXPECT_EQ(request.head.find("X-Amz-Date"), request.head.rfind("X-Amz-Date"))
        << "twice would be another signature";
  }
  std::string all;
  for (std::size_t i = 0; i + 1 < requests.size(); ++i) all += (i == 0 ? "[" : ",") + told(requests[i], came[i]);
  all += "]";
  std::vector<std::string> theirs = signatures_of_botocore(all);
  ASSERT_EQ(theirs.size() + 1, ours.size());
  for (std::size_t i = 0; i < theirs.size(); ++i) EXPECT_EQ(ours[i], theirs[i]) << came[i].head;
  EXPECT_THAT(ours.back(), HasSubstr("AWS4-HMAC-SHA256")) << "too long for a command line; signed all the same";
}

TEST(SigV4, gives_the_signatures_of_aws_s_own_examples) {
  const WallTime time = std::chrono::sys_days(std::chrono::year(2015) / 8 / 30) + 12h + 36min;
  HttpRequest request;
  request.url = "https://example.amazonaws.com/";
  request.signing =
      AwsSigning{"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "", "us-east-1", "service", 0s};
  SigV4().sign(request, time);
  ASSERT_EQ(request.headers.size(), 2U);
  EXPECT_EQ(request.headers[0].value, "20150830T123600Z");
  EXPECT_EQ(
      request.headers[1].value,
      "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
      "SignedHeaders=host;x-amz-date, Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31");
}

TEST_F(SigV4Test, are_dated_by_our_clock_and_the_offset) {
  const WallTime before = std::chrono::floor<std::chrono::seconds>(loop.wall());
  (void)signatures_of({update(), update("", 90min), update("", -36h)});
  const WallTime after = loop.wall();
  ASSERT_EQ(came.size(), 3U);
  const std::vector<Duration> offsets = {0s, 90min, -36h};
  for (std::size_t i = 0; i < 3; ++i) {
    const auto dated = parse_signing_time(came[i].header("X-Amz-Date").value_or("(none)"));
    ASSERT_TRUE(dated);
    EXPECT_GE(*dated, before + offsets[i]);
    EXPECT_LE(*dated, after + offsets[i]);
  }
}

TEST_F(SigV4Test, are_left_out_of_a_request_that_asks_for_none_even_after_one_that_did) {
  HttpRequest plain = update();
  plain.signing.reset();
  const auto found = signatures_of({update("token"), plain, update()});
  EXPECT_THAT(found[0], HasSubstr("SignedHeaders=content-type;host;x-amz-date;x-amz-security-token;x-amz-target"));
  EXPECT_EQ(found[1], "(none)");
  EXPECT_FALSE(came[1].header("X-Amz-Security-Token"));
  EXPECT_FALSE(came[1].header("X-Amz-Date"));
  EXPECT_THAT(found[2], HasSubstr("SignedHeaders=content-type;host;x-amz-date;x-amz-target"));
}

TEST_F(SigV4Test, a_failure_tells_nothing_of_what_was_signed_with) {
  const std::string token = "token-that-nobody-may-see";
  std::vector<std::string> details;
  std::vector<HttpRequest> requests = {update(token), update(token), update(token)};
  const HttpServer cutting(loop, [](const auto&, const auto& answer) { answer.close(); });
  requests[0].url = cutting.url("/?" + token);
  requests[1].url = "http://no-such-host.invalid/" + token;
  requests[2].url = "http://127.0.0.1:1/" + token;
  HttpClient client(loop);
  for (const HttpRequest& request : requests) {
    client.send(request, loop.instant() + 30s,
                [&](const HttpReply& reply) { details.push_back(reply ? "answered" : reply.error().detail); });
  }
  ASSERT_TRUE(run_until(loop, [&] { return details.size() == 3; }));
  for (const std::string& detail : details) {
    EXPECT_NE(detail, "answered");
    for (const std::string& secret : {token, requests[0].signing->secret_access_key}) {
      EXPECT_THAT(detail, Not(HasSubstr(secret)));
    }
  }
}

}  // namespace
}  // namespace holdfast::runtime
