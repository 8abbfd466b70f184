#include "store/dynamodb/credentials.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/credentials_test.hpp"

namespace holdfast::store::dynamodb {
namespace {

using namespace std::chrono_literals;
using runtime::HttpReply;
using runtime::HttpRequest;
using test::CredentialsTest;
using test::FakeHttp;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// ---- the container's endpoint ----

TEST_F(CredentialsTest, of_a_task_are_asked_of_the_link) {
  set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/credentials/abc?x=1");
  http.serve = [this](const HttpRequest&) { return FakeHttp::answer(200, json("AKTASK")); };
  const auto result = get();
  ASSERT_TRUE(result) << result.error().detail;
  EXPECT_EQ(result->access_key_id, "AKTASK");
  EXPECT_EQ(result->session_token, "TOKEN-AKTASK");
  EXPECT_EQ(result->provider, "container");
  EXPECT_EQ(http.requests.at(0).url, "http://169.254.170.2/v2/credentials/abc?x=1");
  EXPECT_FALSE(FakeHttp::header(http.requests[0], "Authorization"));
}

TEST_F(CredentialsTest, of_a_pod_are_asked_for_with_a_token_that_is_read_anew_each_time) {
  set("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://169.254.170.23/v1/credentials");
  set("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "/pod/token");
  set("AWS_CONTAINER_AUTHORIZATION_TOKEN", "not this one");
  machine->files["/pod/token"] = "first";
  http.serve = [this](const HttpRequest&) { return FakeHttp::answer(200, json("AKPOD")); };
  ASSERT_TRUE(get());
  EXPECT_EQ(FakeHttp::header(http.requests.at(0), "Authorization"), "first");
  machine->files["/pod/token"] = "second\n";
  loop.advance(1h);
  ASSERT_TRUE(get());
  EXPECT_EQ(FakeHttp::header(http.requests.at(1), "Authorization"), "second");
}

TEST_F(CredentialsTest, a_container_may_have_its_token_in_the_environment) {
  set("AWS_CONTAINER_CREDENTIALS_FULL_URI", "https://secrets.example.com/x");
  set("AWS_CONTAINER_AUTHORIZATION_TOKEN", "Basic abc");
  http.serve = [this](const HttpRequest&) { return FakeHttp::answer(200, json("AK")); };
  ASSERT_TRUE(get());
  EXPECT_EQ(FakeHttp::header(http.requests.at(0), "Authorization"), "Basic abc");
}

TEST_F(CredentialsTest, secrets_are_asked_without_tls_of_this_machine_and_its_link_only) {
  http.serve = [this](const HttpRequest&) { return FakeHttp::answer(200, json("AK", 20s)); };
  const auto asked = [this](const std::string& url) {
    machine->variables["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = url;
    loop.advance(2min);
    const std::size_t before = http.requests.size();
    (void)get();
    return http.requests.size() > before;
  };
  for (const char* good : {"http://localhost/x", "http://127.0.0.1:8080/x", "http://127.255.1.2", "http://[::1]/x",
                           "http://169.254.170.2/x", "http://169.254.170.23/x", "http://[fd00:ec2::23]/v1",
                           "https://anywhere.example.com/x"})
    EXPECT_TRUE(asked(good)) << good;
  for (const char* bad :
       {"http://example.com/x", "http://127.0.0.1.example.com/", "http://127.1/", "http://127.0.0.0.1/",
        "http://127.0.0.256/", "http://127.0.0.1./", "http://2130706433/", "http://169.254.169.254/",
        "http://localhost.evil.com/", "http://localhost@evil.com/", "http://evil.com#localhost", "http://[::2]/",
        "ftp://localhost/", "localhost", "http://local\thost/"})
    EXPECT_FALSE(asked(bad)) << bad;
}

TEST_F(CredentialsTest, a_relative_uri_cannot_lead_to_another_host) {
  for (const char* bad : {"@evil.com/", ".evil.com/", "x", ":80@evil.com/", "/a b", "/a\r\nX: y"}) {
    set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", bad);
    EXPECT_THAT(error(), HasSubstr("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")) << bad;
    loop.advance(1min);
  }
  EXPECT_TRUE(http.requests.empty());
}

TEST_F(CredentialsTest, a_line_break_in_a_containers_token_goes_nowhere) {
  set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/x");
  set("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "/token");
  machine->files["/token"] = "HUSH\r\nX-Evil: yes";
  EXPECT_THAT(error(), AllOf(HasSubstr("line break"), Not(HasSubstr("HUSH"))));
  loop.advance(1min);
  machine->files["/token"] = "\n";
  EXPECT_THAT(error(), HasSubstr("is empty"));
  loop.advance(1min);
  machine->files.erase("/token");
  EXPECT_THAT(error(), HasSubstr("cannot read the file /token"));
  EXPECT_TRUE(http.requests.empty());
}

TEST_F(CredentialsTest, a_container_that_does_not_answer_right_stops_the_chain) {
  set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/x");
  const std::pair<HttpReply, Code> cases[] = {
      {FakeHttp::answer(500, "HUSH"), Code::unavailable},
      {FakeHttp::answer(403, "HUSH"), Code::denied},
      {FakeHttp::answer(302, "HUSH"), Code::denied},
      {FakeHttp::answer(200, "HUSH"), Code::corrupt},
      {FakeHttp::answer(200, R"({"AccessKeyId":"HUSH"})"), Code::corrupt},
      {FakeHttp::answer(200, R"({"AccessKeyId":"A","SecretAccessKey":"HUSH","Token":"t"})"), Code::corrupt},
      {FakeHttp::answer(200, json("AK", -1h)), Code::unavailable},
      {FakeHttp::answer(200, std::string(70'000, ' ') + json("AK")), Code::unavailable},
  };
  for (const auto& [reply, code] : cases) {
    http.serve = [&reply = reply](const HttpRequest&) { return reply; };
    const auto result = get();
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, code) << result.error().detail;
    EXPECT_THAT(result.error().detail, AllOf(HasSubstr("container"), Not(HasSubstr("HUSH")), Not(HasSubstr("EC2"))));
    loop.advance(1min);
  }
  http.serve = {};
  const std::size_t before = http.requests.size();
  EXPECT_THAT(error(), HasSubstr("container: no answer"));
  EXPECT_EQ(http.requests.size(), before + 3);
}

// ---- EC2's metadata service ----

struct MetadataTest : CredentialsTest {
  MetadataTest() {
    http.serve = [this](const HttpRequest& request) -> std::optional<HttpReply> {
      if (request.method == "PUT") return token;
      if (FakeHttp::header(request, "X-aws-ec2-metadata-token") != "IMDS-TOKEN") return FakeHttp::answer(401, "");
      return request.url.ends_with("/") ? role : keys;
    };
    keys = FakeHttp::answer(200, json("AKEC2", 6h));
  }

  std::optional<HttpReply> token = FakeHttp::answer(200, "IMDS-TOKEN");
  std::optional<HttpReply> role = FakeHttp::answer(200, "my-role");
  std::optional<HttpReply> keys;
};

TEST_F(MetadataTest, gives_those_of_the_instances_role_by_its_second_version) {
  const auto result = get();
  ASSERT_TRUE(result) << result.error().detail;
  EXPECT_EQ(result->access_key_id, "AKEC2");
  EXPECT_EQ(result->provider, "EC2 role my-role");
  ASSERT_EQ(http.requests.size(), 3U);
  EXPECT_EQ(http.requests[0].url, "http://169.254.169.254/latest/api/token");
  EXPECT_EQ(FakeHttp::header(http.requests[0], "X-aws-ec2-metadata-token-ttl-seconds"), "21600");
  EXPECT_EQ(http.requests[1].url, "http://169.254.169.254/latest/meta-data/iam/security-credentials/");
  EXPECT_EQ(http.requests[2].url, "http://169.254.169.254/latest/meta-data/iam/security-credentials/my-role");
}

TEST_F(MetadataTest, is_not_asked_where_that_is_switched_off) {
  set("AWS_EC2_METADATA_DISABLED", "TRUE");
  EXPECT_THAT(error(), HasSubstr("AWS_EC2_METADATA_DISABLED is true"));
  EXPECT_TRUE(http.requests.empty());
}

TEST_F(MetadataTest, may_be_elsewhere) {
  set("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "IPv6");
  ASSERT_TRUE(get());
  EXPECT_EQ(http.requests[0].url, "http://[fd00:ec2::254]/latest/api/token");
  set("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://localhost:1338/");
  loop.advance(7h);
  keys = FakeHttp::answer(200, json("AKEC2", 6h));
  ASSERT_TRUE(get());
  EXPECT_EQ(http.requests[3].url, "http://localhost:1338/latest/api/token");
  set("AWS_EC2_METADATA_SERVICE_ENDPOINT", "nonsense");
  loop.advance(7h);
  EXPECT_THAT(error(), HasSubstr("AWS_EC2_METADATA_SERVICE_ENDPOINT"));
}

TEST_F(MetadataTest, that_answers_with_a_fault_of_its_own_is_asked_again) {
  int faults = 2;
  const auto good = http.serve;
  http.serve = [&](const HttpRequest& request) -> std::optional<HttpReply> {
    if (faults-- > 0) return FakeHttp::answer(503, "");
    return good(request);
  };
  EXPECT_TRUE(get());
}

TEST_F(MetadataTest, that_does_not_answer_right_is_told_about) {
  const auto after = [this](std::optional<HttpReply> token_, std::optional<HttpReply> role_,
                            std::optional<HttpReply> keys_) {
    token = std::move(token_);
    role = std::move(role_);
    keys = std::move(keys_);
    loop.advance(1min);
    return error();
  };
  const auto good_token = token;
  const auto good_role = role;
  EXPECT_THAT(after(std::nullopt, {}, {}), AllOf(HasSubstr("no answer"), HasSubstr("hop limit")));
  EXPECT_THAT(after(FakeHttp::answer(403, ""), {}, {}), HasSubstr("switched off"));
  EXPECT_THAT(after(FakeHttp::answer(404, ""), {}, {}), HasSubstr("404"));
  EXPECT_THAT(after(FakeHttp::answer(503, ""), {}, {}), HasSubstr("503"));
  EXPECT_THAT(after(FakeHttp::answer(200, "a\r\nX: y"), {}, {}), HasSubstr("token"));
  EXPECT_THAT(after(FakeHttp::answer(200, ""), {}, {}), HasSubstr("token"));
  EXPECT_THAT(after(good_token, FakeHttp::answer(404, ""), {}), HasSubstr("no role is attached"));
  EXPECT_THAT(after(good_token, FakeHttp::answer(200, ""), {}), HasSubstr("no role is attached"));
  EXPECT_THAT(after(good_token, FakeHttp::answer(200, "../../user-data"), {}), HasSubstr("no role's name"));
  EXPECT_THAT(after(good_token, std::nullopt, {}), HasSubstr("no answer when asked for the role"));
  EXPECT_THAT(after(good_token, good_role, FakeHttp::answer(404, "")), HasSubstr("404"));
  EXPECT_THAT(after(good_token, good_role, FakeHttp::answer(200, "HUSH")), HasSubstr("no JSON"));
  EXPECT_THAT(after(good_token, good_role,
                    FakeHttp::answer(200, R"({"Code":"AssumeRoleUnauthorizedAccess","Message":"HUSH"})")),
              AllOf(HasSubstr("trust EC2"), Not(HasSubstr("HUSH"))));
  EXPECT_THAT(after(good_token, good_role, FakeHttp::answer(200, json("AK", -1h))), HasSubstr("expired before"));
}

TEST_F(MetadataTest, that_had_some_and_is_away_may_come_back) {
  ASSERT_TRUE(get());
  loop.advance(7h);
  token = std::nullopt;
  const auto result = get();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::unavailable);
}

}  // namespace
}  // namespace holdfast::store::dynamodb
