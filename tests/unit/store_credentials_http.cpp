// Each provider over a real HTTP server on loopback, through the real client: what fakes cannot tell is whether what
// is sent is what such servers take.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/asio_loop.hpp"
#include "runtime/http_client.hpp"
#include "runtime/signals.hpp"
#include "store/dynamodb/credentials.hpp"
#include "support/fake_surroundings.hpp"
#include "support/http_server.hpp"
#include "support/run_until.hpp"

namespace holdfast::store::dynamodb {
namespace {

using namespace std::chrono_literals;
using test::HttpServer;
using test::run_until;
using testing::HasSubstr;

struct CredentialsHttpTest : testing::Test {
  CredentialsHttpTest() {
    runtime::ignore_broken_pipes();
    auto made = std::make_unique<test::FakeSurroundings>(loop);
    machine = made.get();
    chain = standard_chain(loop, client, std::move(made), "eu-west-1");
  }
  Result<Credentials> get() {
    std::optional<Result<Credentials>> result;
    chain->get(loop.instant() + 60s, [&](Result<Credentials> came) { result = std::move(came); });
    EXPECT_TRUE(run_until(
        loop, [&] { return result.has_value(); }, 60s));
    return result ? *result : fail(Code::internal, "(none)");
  }

  runtime::AsioLoop loop{1};
  runtime::HttpClient client{loop};
  test::FakeSurroundings* machine = nullptr;
  std::unique_ptr<CredentialSource> chain;
};

const std::string json =
    R"({"Code":"Success","AccessKeyId":"AK","SecretAccessKey":"s","Token":"t","Expiration":"2099-01-01T00:00:00Z"})";
const std::string xml =
    "<R><Credentials><AccessKeyId>AK</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken>"
    "<Expiration>2099-01-01T00:00:00Z</Expiration></Credentials></R>";

TEST_F(CredentialsHttpTest, of_a_container) {
  HttpServer server(loop, [](const HttpServer::Request& request, const HttpServer::Answer& answer) {
    const bool good = request.method() == "GET" && request.target() == "/creds?x=1" &&
                      request.header("Authorization") == "pod token" &&
                      request.header("Accept") == "application/json";
    answer.send(good ? 200 : 400, json);
  });
  machine->variables["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = server.url("/creds?x=1");
  machine->variables["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"] = "/token";
  machine->files["/token"] = "pod token\n";
  const auto result = get();
  ASSERT_TRUE(result) << result.error().detail;
  EXPECT_EQ(result->access_key_id, "AK");
}

TEST_F(CredentialsHttpTest, of_the_metadata_service) {
  HttpServer server(loop, [](const HttpServer::Request& request, const HttpServer::Answer& answer) {
    if (request.method() == "PUT" && request.target() == "/latest/api/token" &&
        request.header("X-aws-ec2-metadata-token-ttl-seconds") == "21600")
      return answer.send(200, "the-token==");
    if (request.method() != "GET" || request.header("X-aws-ec2-metadata-token") != "the-token==")
      return answer.send(401, "");
    if (request.target() == "/latest/meta-data/iam/security-credentials/") return answer.send(200, "my-role");
    answer.send(request.target() == "/latest/meta-data/iam/security-credentials/my-role" ? 200 : 404, json);
  });
  machine->variables["AWS_EC2_METADATA_SERVICE_ENDPOINT"] = server.url();
  const auto result = get();
  ASSERT_TRUE(result) << result.error().detail;
  EXPECT_EQ(result->provider, "EC2 role my-role");
}

TEST_F(CredentialsHttpTest, of_a_web_identity) {
  HttpServer server(loop, [](const HttpServer::Request& request, const HttpServer::Answer& answer) {
    const bool good = request.method() == "POST" && !request.header("Authorization") &&
                      request.body.find("Action=AssumeRoleWithWebIdentity&") == 0 &&
                      request.body.ends_with("&WebIdentityToken=eyJ") &&
                      request.header("Content-Type") == "application/x-www-form-urlencoded; charset=utf-8";
    answer.send(good ? 200 : 400, xml);
  });
  machine->variables["AWS_ENDPOINT_URL_STS"] = server.url();
  machine->variables["AWS_WEB_IDENTITY_TOKEN_FILE"] = "/token";
  machine->variables["AWS_ROLE_ARN"] = "arn:aws:iam::1:role/r";
  machine->files["/token"] = "eyJ";
  const auto result = get();
  ASSERT_TRUE(result) << result.error().detail;
  EXPECT_EQ(result->provider, "web identity");
}

TEST_F(CredentialsHttpTest, of_a_role_by_a_signed_request) {
  std::string authorization;
  HttpServer server(loop, [&](const HttpServer::Request& request, const HttpServer::Answer& answer) {
    authorization = request.header("Authorization").value_or("");
    const bool good = request.body.find("Action=AssumeRole&") == 0 && request.header("X-Amz-Security-Token") == "tb";
    answer.send(good ? 200 : 400, xml);
  });
  machine->variables["AWS_ENDPOINT_URL_STS"] = server.url();
  machine->variables["AWS_PROFILE"] = "ops";
  machine->files["/home/me/.aws/config"] =
      "[profile ops]\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = base\n"
      "[profile base]\naws_access_key_id = AKBASE\naws_secret_access_key = sb\naws_session_token = tb\n";
  const auto result = get();
  ASSERT_TRUE(result) << result.error().detail;
  EXPECT_EQ(result->provider, "role of profile ops");
  EXPECT_THAT(authorization, HasSubstr("AWS4-HMAC-SHA256 Credential=AKBASE/"));
  EXPECT_THAT(authorization, HasSubstr("/eu-west-1/sts/aws4_request"));
}

TEST_F(CredentialsHttpTest, what_is_away_or_talks_nonsense_is_an_error) {
  machine->variables["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = "http://127.0.0.1:1/x";
  auto result = get();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::unavailable);
  EXPECT_THAT(result.error().detail, HasSubstr("container: no answer"));

  HttpServer server(loop, [](const HttpServer::Request&, const HttpServer::Answer& answer) {
    answer.send(200, std::string(1'000'000, 'x'));
  });
  machine->variables["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = server.url();
  test::run_for(loop, 600ms);  // the pause after a failure
  result = get();
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().detail, HasSubstr("container"));
}

}  // namespace
}  // namespace holdfast::store::dynamodb
