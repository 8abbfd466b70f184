#include "store/dynamodb/credentials.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/dynamodb/credentials_found.hpp"
#include "store/dynamodb/credentials_sts.hpp"
#include "support/credentials_test.hpp"

namespace holdfast::store::dynamodb {
namespace {

using namespace std::chrono_literals;
using runtime::HttpRequest;
using test::CredentialsTest;
using test::FakeHttp;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// ---- nothing, environment, files ----

TEST_F(CredentialsTest, with_nothing_set_up_the_error_says_what_each_provider_lacks_and_what_to_do) {
  const auto result = get();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::not_found);
  EXPECT_THAT(result.error().detail,
              AllOf(HasSubstr("AWS_ACCESS_KEY_ID is not set"), HasSubstr("AWS_WEB_IDENTITY_TOKEN_FILE is not set"),
                    HasSubstr("no file /home/me/.aws/config"), HasSubstr("no file /home/me/.aws/credentials"),
                    HasSubstr("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"), HasSubstr("EC2 metadata: no answer"),
                    HasSubstr("AWS_PROFILE")));
  EXPECT_EQ(result.error().detail.find('\n'), std::string::npos);
}

TEST_F(CredentialsTest, a_machine_that_is_not_ec2_is_found_out_within_a_second) {
  const Instant before = loop.instant();
  EXPECT_FALSE(get());
  EXPECT_LE(loop.instant() - before, 1100ms);
  EXPECT_EQ(http.requests.size(), 1U) << "asked once";
}

TEST_F(CredentialsTest, of_the_environment) {
  set("AWS_ACCESS_KEY_ID", "AKID");
  set("AWS_SECRET_ACCESS_KEY", "SECRET");
  auto result = get();
  ASSERT_TRUE(result) << result.error().detail;
  EXPECT_EQ(result->access_key_id, "AKID");
  EXPECT_EQ(result->secret_access_key, "SECRET");
  EXPECT_EQ(result->session_token, "");
  EXPECT_EQ(result->provider, "environment");
  EXPECT_FALSE(result->expires_at);
  EXPECT_EQ(machine->reads, 0) << "nothing else is looked at";
}

TEST_F(CredentialsTest, of_the_environment_with_token_and_expiry) {
  set("AWS_ACCESS_KEY_ID", "AKID");
  set("AWS_SECRET_ACCESS_KEY", "SECRET");
  set("AWS_SESSION_TOKEN", "TOKEN");
  set("AWS_CREDENTIAL_EXPIRATION", in(1h));
  const auto result = get();
  ASSERT_TRUE(result) << result.error().detail;
  EXPECT_EQ(result->session_token, "TOKEN");
  EXPECT_TRUE(result->expires_at);
}

TEST_F(CredentialsTest, half_of_the_environments_keys_is_an_error_and_nobody_else_is_asked) {
  set("AWS_ACCESS_KEY_ID", "AKID");
  credentials("[default]\naws_access_key_id = OTHER\naws_secret_access_key = s\n");
  EXPECT_THAT(error(), HasSubstr("AWS_SECRET_ACCESS_KEY is not"));
}

TEST_F(CredentialsTest, a_line_break_in_a_key_is_an_error_that_does_not_show_it) {
  set("AWS_ACCESS_KEY_ID", "AKID");
  set("AWS_SECRET_ACCESS_KEY", "HUSH\n");
  EXPECT_THAT(error(), AllOf(HasSubstr("the secret access key has a blank, a line break"), Not(HasSubstr("HUSH"))));
}

TEST_F(CredentialsTest, of_a_profile_name_it_and_its_file) {
  set("AWS_PROFILE", "dev");
  credentials("[dev]\naws_access_key_id = AKDEV\naws_secret_access_key = s\naws_session_token = t\n");
  const auto result = get();
  ASSERT_TRUE(result) << result.error().detail;
  EXPECT_EQ(result->access_key_id, "AKDEV");
  EXPECT_EQ(result->session_token, "t");
  EXPECT_EQ(result->provider, "profile dev (/home/me/.aws/credentials)");
}

TEST_F(CredentialsTest, an_unreadable_file_is_named_and_the_chain_goes_on) {
  machine->unreadable["/home/me/.aws/credentials"] = true;
  no_metadata();
  EXPECT_THAT(error(), HasSubstr("cannot read the file /home/me/.aws/credentials: Permission denied"));
}

TEST_F(CredentialsTest, a_profile_that_signs_in_by_sso_says_how_to_do_it_all_the_same) {
  set("AWS_PROFILE", "corp");
  config("[profile corp]\nsso_session = corp\nsso_account_id = 1\n");
  EXPECT_THAT(error(), AllOf(HasSubstr("sso_session"),
                             HasSubstr("credential_process = aws configure export-credentials --profile corp")));
}

TEST_F(CredentialsTest, an_error_is_one_line_whatever_it_names) {
  set("AWS_PROFILE", "no\nsuch");
  EXPECT_THAT(error(), HasSubstr("'no such'"));
  loop.advance(1min);
  set("AWS_PROFILE", "dev");
  config("[profile dev]\nrole_arn = arn:x\nsource_profile = two\n  lines\n");
  EXPECT_THAT(error(), HasSubstr("source_profile two lines is in neither file"));
}

// ---- credential_process ----

TEST_F(CredentialsTest, of_a_process) {
  config("[default]\ncredential_process = /opt/get \"two words\" --x\n");
  machine->runs = [this](const std::vector<std::string>&) -> Result<std::string> {
    return R"({"Version":1,"AccessKeyId":"AKPROC","SecretAccessKey":"s","SessionToken":"t","Expiration":")" + in(1h) +
           "\"}\n";
  };
  const auto result = get();
  ASSERT_TRUE(result) << result.error().detail;
  EXPECT_EQ(result->access_key_id, "AKPROC");
  EXPECT_EQ(result->session_token, "t");
  EXPECT_TRUE(result->expires_at);
  EXPECT_THAT(machine->commands.at(0), ElementsAre("/opt/get", "two words", "--x"));
}

TEST_F(CredentialsTest, what_a_process_prints_is_checked_and_never_shown) {
  config("[default]\ncredential_process = get\n");
  const std::pair<std::string, std::string> cases[] = {
      {"", "no JSON object"},
      {"HUSH", "no JSON object"},
      {"[\"HUSH\"]", "no JSON object"},
      {R"({"Version":1,"AccessKeyId":"A","SecretAccessKey":"HUSH")", "no JSON object"},
      {R"({"AccessKeyId":"A","SecretAccessKey":"HUSH"})", "Version"},
      {R"({"Version":2,"AccessKeyId":"A","SecretAccessKey":"HUSH"})", "Version"},
      {R"({"Version":"1","AccessKeyId":"A","SecretAccessKey":"HUSH"})", "Version"},
      {R"({"Version":1,"SecretAccessKey":"HUSH"})", "no AccessKeyId"},
      {R"({"Version":1,"AccessKeyId":"A"})", "no SecretAccessKey"},
      {R"({"Version":1,"AccessKeyId":7,"SecretAccessKey":"HUSH"})", "no AccessKeyId"},
      {R"({"Version":1,"AccessKeyId":"A","SecretAccessKey":"HUSH","SessionToken":"a\r\nb: HUSH"})",
       "the session token"},
      {R"({"Version":1,"AccessKeyId":"A","SecretAccessKey":"HUSH","Expiration":"tomorrow"})", "Expiration"},
      {R"({"Version":1,"AccessKeyId":"A","SecretAccessKey":"HUSH","Expiration":12})", "Expiration"},
      {R"({"Version":1,"AccessKeyId":"A","SecretAccessKey":"HUSH","Expiration":")" + in(-2h) + "\"}",
       "expired before 2 h"},
      {R"({"Version":1,"AccessKeyId":"A","SecretAccessKey":")" + std::string(5000, 'H') + "\"}", "longer than any"},
  };
  for (const auto& [printed, expected] : cases) {
    machine->runs = [&printed = printed](const std::vector<std::string>&) -> Result<std::string> { return printed; };
    EXPECT_THAT(error(),
                AllOf(HasSubstr(expected), Not(HasSubstr("HUSH")), HasSubstr("credential_process of profile")))
        << printed;
    loop.advance(1min);
  }
}

TEST_F(CredentialsTest, a_process_that_fails_stops_the_chain) {
  config("[default]\ncredential_process = get\naws_access_key_id = OTHER\naws_secret_access_key = s\n");
  machine->runs = [](const std::vector<std::string>&) -> Result<std::string> {
    return fail(Code::denied, "get failed with exit code 3");
  };
  EXPECT_THAT(error(), HasSubstr("credential_process of profile default: get failed with exit code 3"));
}

TEST_F(CredentialsTest, a_command_line_with_an_open_quote_is_an_error) {
  config("[default]\ncredential_process = get \"HUSH\n");
  EXPECT_THAT(error(), AllOf(HasSubstr("quote"), Not(HasSubstr("HUSH"))));
}

// ---- web identity and roles ----

struct IdentityTest : CredentialsTest {
  IdentityTest() {
    set("AWS_WEB_IDENTITY_TOKEN_FILE", "/token");
    set("AWS_ROLE_ARN", "arn:aws:iam::123456789012:role/pod");
    machine->files["/token"] = "eyJ.HUSH.x\n";
    http.serve = [this](const HttpRequest&) { return FakeHttp::answer(200, xml("AKSTS")); };
  }
};

TEST_F(IdentityTest, asks_the_regions_sts_without_a_signature) {
  set("AWS_ROLE_SESSION_NAME", "me@here");
  const auto result = get();
  ASSERT_TRUE(result) << result.error().detail;
  EXPECT_EQ(result->access_key_id, "AKSTS");
  EXPECT_EQ(result->session_token, "a&b/+=");
  EXPECT_EQ(result->provider, "web identity");
  ASSERT_EQ(http.requests.size(), 1U);
  const HttpRequest& request = http.requests[0];
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.url, "https://sts.eu-west-1.amazonaws.com/");
  EXPECT_FALSE(request.signing);
  EXPECT_EQ(request.body,
            "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&"
            "RoleArn=arn%3Aaws%3Aiam%3A%3A123456789012%3Arole%2Fpod&RoleSessionName=me%40here&"
            "WebIdentityToken=eyJ.HUSH.x");
}

TEST_F(IdentityTest, reads_the_token_file_anew_each_time) {
  ASSERT_TRUE(get());
  machine->files["/token"] = "second";
  loop.advance(1h);
  ASSERT_TRUE(get());
  EXPECT_THAT(http.requests.at(1).body, HasSubstr("WebIdentityToken=second"));
}

TEST_F(IdentityTest, makes_a_session_name_where_none_is_given) {
  ASSERT_TRUE(get());
  EXPECT_THAT(http.requests.at(0).body, HasSubstr("RoleSessionName=holdfast-17"));
}

TEST_F(IdentityTest, sts_may_be_elsewhere) {
  set("AWS_ENDPOINT_URL_STS", "http://localhost:4566");
  ASSERT_TRUE(get());
  EXPECT_EQ(http.requests.at(0).url, "http://localhost:4566/");
}

TEST_F(IdentityTest, what_is_wrong_with_the_token_file_is_told_without_its_content) {
  const std::pair<std::string, std::string> cases[] = {{"", "empty"},
                                                       {" \n\n", "empty"},
                                                       {"HUSH\nHUSH2\n", "more than a token"},
                                                       {"HUSH\r\nX-Evil: 1", "more than a token"}};
  for (const auto& [content, expected] : cases) {
    machine->files["/token"] = content;
    EXPECT_THAT(error(), AllOf(HasSubstr(expected), HasSubstr("/token"), Not(HasSubstr("HUSH")))) << content;
    loop.advance(1min);
  }
  machine->files.erase("/token");
  EXPECT_THAT(error(), HasSubstr("cannot read the file /token"));
  loop.advance(1min);
  machine->unreadable["/token"] = true;
  EXPECT_THAT(error(), HasSubstr("Permission denied"));
  EXPECT_TRUE(http.requests.empty());
}

TEST_F(IdentityTest, what_sts_says_is_told_with_the_token_blotted_out) {
  http.serve = [](const HttpRequest&) {
    return FakeHttp::answer(400,
                            "<ErrorResponse><Error><Type>Sender</Type><Code>InvalidIdentityToken</Code>"
                            "<Message>bad token eyJ.HUSH.x\n &lt;here&gt;</Message></Error></ErrorResponse>");
  };
  const auto result = get();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::denied);
  EXPECT_THAT(result.error().detail,
              AllOf(HasSubstr("web identity: STS answered 400 InvalidIdentityToken: bad token ***"),
                    HasSubstr("<here>"), Not(HasSubstr("HUSH"))));
  EXPECT_EQ(result.error().detail.find('\n'), std::string::npos);
  EXPECT_EQ(http.requests.size(), 1U) << "asking again cannot help";
}

TEST_F(IdentityTest, sts_is_asked_again_when_it_fails_and_then_later) {
  http.serve = [](const HttpRequest&) { return FakeHttp::answer(503, "busy"); };
  auto result = get();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::unavailable);
  EXPECT_EQ(http.requests.size(), 3U);
  loop.advance(1min);
  http.serve = {};
  result = get();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::unavailable);
  EXPECT_THAT(result.error().detail, HasSubstr("STS gave no answer"));
}

TEST_F(IdentityTest, an_answer_of_sts_that_is_none_is_an_error) {
  const std::string good = xml("AKSTS");
  const auto without = [&good](const std::string& part) {
    std::string result = good;
    result.erase(result.find("<" + part + ">"), part.size() + 2);
    return result;
  };
  for (const std::string& body : {std::string(), std::string("{}"), without("Credentials"), without("AccessKeyId"),
                                  without("SecretAccessKey"), without("SessionToken"), without("Expiration"),
                                  xml("AK\nX: HUSH"), xml("AKSTS", -1min), std::string(100'000, 'x')}) {
    http.serve = [&body](const HttpRequest&) { return FakeHttp::answer(200, body); };
    EXPECT_THAT(error(), AllOf(HasSubstr("web identity"), Not(HasSubstr("SECRET")), Not(HasSubstr("HUSH"))))
        << body.substr(0, 500);
    loop.advance(1min);
  }
}

TEST_F(IdentityTest, an_expiry_is_counted_by_the_clock_of_who_gave_it) {
  loop.shift_wall(3h);  // this machine is ahead
  http.serve = [this](const HttpRequest&) {
    loop.shift_wall(-3h);
    const std::string body = xml("AKSTS");
    loop.shift_wall(3h);
    return FakeHttp::answer(200, body, {{"Date", "Tue, 14 Nov 2023 22:13:21 GMT"}});
  };
  ASSERT_EQ(in(-3h), "2023-11-14T22:13:21Z") << "as the Date header says";
  const auto result = get();
  ASSERT_TRUE(result) << result.error().detail;
  EXPECT_GT(*result->expires_at, loop.wall() + 59min);
  EXPECT_LT(*result->expires_at, loop.wall() + 61min);
}

TEST_F(CredentialsTest, of_a_role_are_asked_for_with_the_sources_keys) {
  set("AWS_PROFILE", "ops");
  config(
      "[profile ops]\nrole_arn = arn:aws:iam::1:role/ops\nsource_profile = base\nexternal_id = x y\n"
      "duration_seconds = 3600\nrole_session_name = me\n");
  credentials("[base]\naws_access_key_id = AKBASE\naws_secret_access_key = sbase\naws_session_token = tbase\n");
  http.serve = [this](const HttpRequest&) { return FakeHttp::answer(200, xml("AKROLE")); };
  const auto result = get();
  ASSERT_TRUE(result) << result.error().detail;
  EXPECT_EQ(result->access_key_id, "AKROLE");
  EXPECT_EQ(result->provider, "role of profile ops");
  const HttpRequest& request = http.requests.at(0);
  ASSERT_TRUE(request.signing);
  EXPECT_EQ(request.signing->access_key_id, "AKBASE");
  EXPECT_EQ(request.signing->secret_access_key, "sbase");
  EXPECT_EQ(request.signing->session_token, "tbase");
  EXPECT_EQ(request.signing->region, "eu-west-1");
  EXPECT_EQ(request.signing->service, "sts");
  EXPECT_EQ(request.body,
            "Action=AssumeRole&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fops&RoleSessionName=me&"
            "ExternalId=x%20y&DurationSeconds=3600");
}

TEST_F(CredentialsTest, of_a_role_by_way_of_a_role) {
  set("AWS_PROFILE", "top");
  config(
      "[profile top]\nrole_arn = arn:aws:iam::1:role/top\nsource_profile = mid\n"
      "[profile mid]\nrole_arn = arn:aws:iam::1:role/mid\nsource_profile = base\n"
      "[profile base]\naws_access_key_id = AKBASE\naws_secret_access_key = s\n");
  http.serve = [this](const HttpRequest& request) {
    return FakeHttp::answer(200, xml(request.body.find("mid") != std::string::npos ? "AKMID" : "AKTOP"));
  };
  const auto result = get();
  ASSERT_TRUE(result) << result.error().detail;
  EXPECT_EQ(result->access_key_id, "AKTOP");
  EXPECT_EQ(http.requests.at(1).signing->access_key_id, "AKMID");
}

TEST_F(CredentialsTest, of_a_role_whose_source_is_a_container) {
  set("AWS_PROFILE", "ops");
  set("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/creds");
  config("[profile ops]\nrole_arn = arn:aws:iam::1:role/ops\ncredential_source = EcsContainer\n");
  http.serve = [this](const HttpRequest& request) {
    return FakeHttp::answer(200, request.method == "GET" ? json("AKTASK") : xml("AKROLE"));
  };
  const auto result = get();
  ASSERT_TRUE(result) << result.error().detail;
  EXPECT_EQ(result->access_key_id, "AKROLE");
  EXPECT_EQ(http.requests.at(1).signing->access_key_id, "AKTASK");
}

TEST_F(CredentialsTest, of_a_role_that_cannot_be_had_say_why) {
  set("AWS_PROFILE", "ops");
  config(
      "[profile ops]\nrole_arn = arn:aws:iam::1:role/ops\nsource_profile = base\nmfa_serial = arn:aws:iam::1:mfa/me\n"
      "[profile base]\naws_access_key_id = A\naws_secret_access_key = s\n");
  EXPECT_THAT(error(), AllOf(HasSubstr("mfa_serial"), HasSubstr("export-credentials --profile ops")));
  loop.advance(1min);
  config("[profile ops]\nrole_arn = arn:aws:iam::1:role/ops\ncredential_source = Environment\n");
  EXPECT_THAT(error(), HasSubstr("role of profile ops: its source has none: environment: AWS_ACCESS_KEY_ID"));
  loop.advance(1min);
  config("[profile ops]\nrole_arn = nonsense\nsource_profile = base\n");
  EXPECT_THAT(error(), HasSubstr("arn:"));
  loop.advance(1min);
  config(
      "[profile ops]\nrole_arn = arn:aws:iam::1:role/ops\nsource_profile = base\nduration_seconds = 5\n[profile "
      "base]\n");
  EXPECT_THAT(error(), HasSubstr("duration_seconds"));
}

// ---- the parts ----

TEST(CredentialParts, a_time_is_read_in_every_form_that_aws_writes) {
  const WallTime expected = WallTime(std::chrono::milliseconds(1'795'975'320'000));
  for (const char* text :
       {"2026-11-29T18:02:00Z", "2026-11-29T18:02:00+00:00", "2026-11-29 18:02:00z", "2026-11-29T20:02:00.000+02:00",
        "2026-11-29T13:02:00-0500", "2026-11-29T18:02:00.0001234Z"})
    EXPECT_EQ(parse_iso_time(text), expected) << text;
  EXPECT_EQ(parse_iso_time("2026-11-29T18:02:00.25Z"), expected + 250ms);
  for (const char* text :
       {"", "2026", "2026-11-29", "2026-11-29T18:02:00", "2026-13-29T18:02:00Z", "2026-02-30T18:02:00Z",
        "2026-11-29T25:02:00Z", "2026-11-29T18:02:00Zx", "2026-11-29T18:02:00+", "1764440520", "20261129T180200Z",
        "2026-11-29T18:02:00.Z", "-026-11-29T18:02:00Z"})
    EXPECT_FALSE(parse_iso_time(text)) << text;
}

TEST(CredentialParts, quoted_words_are_one_short_line_without_secrets) {
  EXPECT_EQ(quotable("a\nb\x1b[31m SECRET SECRET \xff", {"SECRET", ""}), "a b [31m *** ***  ");
  EXPECT_LE(quotable(std::string(5000, 'x'), {}).size(), 203U);
}

TEST(CredentialParts, xml_is_read_as_far_as_sts_writes_it) {
  EXPECT_EQ(xml_text("<a><b>x &lt;&amp;lt; y</b></a>", "b"), "x <&lt; y");
  EXPECT_EQ(xml_text("<a><b>x</a>", "b"), "");
  EXPECT_EQ(xml_text("</b><b>", "b"), "");
  EXPECT_EQ(xml_text("", "b"), "");
}

TEST(CredentialParts, fixed_ones_are_given_each_time) {
  test::VirtualLoop loop;
  const auto source = fixed_credentials(loop, {"AK", "s", "", {}, "fixed"});
  int given = 0;
  source->get(loop.instant(), [&](Result<Credentials> credentials) { given += credentials->access_key_id == "AK"; });
  EXPECT_EQ(given, 0) << "not inside the call";
  source->refused();
  source->get(loop.instant(), [&](Result<Credentials> credentials) { given += credentials->access_key_id == "AK"; });
  loop.settle();
  EXPECT_EQ(given, 2);
}

}  // namespace
}  // namespace holdfast::store::dynamodb
