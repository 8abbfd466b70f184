// The APIs inside AWS Lambda, as extension and as runtime, answered by the test in virtual time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "serve/lambda_extension.hpp"
#include "serve/lambda_runtime.hpp"
#include "support/fake_http.hpp"
#include "support/virtual_loop.hpp"

namespace holdfast::serve {
namespace {

using namespace std::chrono_literals;
using test::FakeHttp;
using testing::EndsWith;
using testing::HasSubstr;

class LambdaTest : public testing::Test {
 protected:
  /// What is answered next; then nothing for ever.
  void answer(std::vector<runtime::HttpReply> replies) {
    http_.serve = [replies = std::move(replies), next = std::size_t{0}](const auto&) mutable {
      return next < replies.size() ? std::optional(replies[next++]) : std::nullopt;
    };
  }
  static runtime::HttpReply no_connection() {
    return tl::unexpected(runtime::HttpFailure{runtime::HttpStage::not_sent, "refused"});
  }
  static runtime::HttpReply event(const std::string& text) { return FakeHttp::answer(200, text); }
  static runtime::HttpReply invocation(const std::string& id, const std::string& deadline = "1800000000000") {
    return FakeHttp::answer(200, "{}",
                            {{"Lambda-Runtime-Aws-Request-Id", id}, {"Lambda-Runtime-Deadline-Ms", deadline}});
  }

  test::VirtualLoop loop_;
  FakeHttp http_{loop_};
};

// ---- Extension ----

class LambdaExtensionTest : public LambdaTest {
 protected:
  void begin() {
    LambdaExtension::Events events;
    events.invoked = [&](const std::string& id, WallTime deadline) { invoked_.emplace_back(id, deadline); };
    events.shut_down = [&](WallTime deadline) { shut_down_ = deadline; };
    events.failed = [&](const Error& error) { failed_ = error; };
    extension_.emplace(api_, "id-1", std::move(events));
    loop_.advance(1s);
  }

  LambdaApi api_{http_, loop_, "127.0.0.1:9001", LambdaExtension::path};
  std::optional<LambdaExtension> extension_;
  std::vector<std::pair<std::string, WallTime>> invoked_;
  std::optional<WallTime> shut_down_;
  std::optional<Error> failed_;
};

TEST_F(LambdaExtensionTest, it_asks_for_the_next_event_as_soon_as_it_has_one) {
  answer({event(R"({"eventType":"INVOKE","requestId":"r","deadlineMs":1800000000000})")});
  begin();
  ASSERT_EQ(invoked_.size(), 1U);
  EXPECT_EQ(invoked_[0], std::pair(std::string("r"), WallTime(std::chrono::milliseconds(1'800'000'000'000))));
  ASSERT_EQ(http_.requests.size(), 2U);
  EXPECT_EQ(http_.requests[1].url, "http://127.0.0.1:9001/2020-01-01/extension/event/next");
  EXPECT_EQ(FakeHttp::header(http_.requests[1], "Lambda-Extension-Identifier"), "id-1");
  loop_.advance(24h);
  EXPECT_EQ(http_.requests.size(), 2U) << "however long the next one takes";
  EXPECT_FALSE(failed_);
}

TEST_F(LambdaExtensionTest, a_deadline_may_be_the_time_that_is_left) {
  answer({event(R"({"eventType":"SHUTDOWN","shutdownReason":"spindown","deadlineMs":2000})")});
  const WallTime now = loop_.wall();
  begin();
  ASSERT_TRUE(shut_down_);
  EXPECT_NEAR(static_cast<double>((*shut_down_ - now).count()), 2000, 10);
  EXPECT_EQ(http_.requests.size(), 1U) << "there is no other event after that";
}

TEST_F(LambdaExtensionTest, what_is_no_event_ends_it) {
  for (const char* text : {"", "[]", "{}", R"({"eventType":"INVOKE","deadlineMs":1})", R"({"eventType":"SHUTDOWN"})",
                           R"({"eventType":7,"deadlineMs":1})"}) {
    failed_.reset();
    answer({event(text)});
    begin();
    EXPECT_TRUE(failed_) << text;
  }
}

TEST_F(LambdaExtensionTest, s10_a_connection_that_is_refused_is_tried_a_few_times) {
  answer({no_connection(), no_connection(), event(R"({"eventType":"INVOKE","requestId":"r","deadlineMs":5})")});
  begin();
  EXPECT_EQ(invoked_.size(), 1U);
  answer({no_connection(), no_connection(), no_connection(), no_connection(), no_connection()});
  http_.requests.clear();
  begin();
  ASSERT_TRUE(failed_);
  EXPECT_EQ(http_.requests.size(), 4U);
}

TEST_F(LambdaExtensionTest, it_registers_for_both_kinds_of_event) {
  answer({FakeHttp::answer(200, "{}", {{"lambda-extension-identifier", "id-7"}}), FakeHttp::answer(403, "no")});
  std::vector<Result<std::string>> ids;
  for (int i = 0; i < 2; ++i) {
    LambdaExtension::enroll(api_, "holdfast", [&](auto id) { ids.push_back(std::move(id)); });
    loop_.advance(1s);
  }
  ASSERT_EQ(ids.size(), 2U);
  EXPECT_EQ(ids[0], "id-7");
  ASSERT_FALSE(ids[1]);
  EXPECT_THAT(ids[1].error().detail, HasSubstr("403"));
  EXPECT_EQ(FakeHttp::header(http_.requests[0], "Lambda-Extension-Name"), "holdfast");
  EXPECT_EQ(http_.requests[0].body, R"({"events":["INVOKE","SHUTDOWN"]})");
}

// ---- Runtime ----

class LambdaRuntimeTest : public LambdaTest {
 protected:
  Result<Invocation> next() {
    std::optional<Result<Invocation>> got;
    runtime_.next([&](auto invocation) { got = std::move(invocation); });
    EXPECT_TRUE(loop_.advance_until([&] { return got.has_value(); }, 1min));
    return *std::move(got);
  }
  Result<std::string> respond(const std::string& id, const std::string& response) {
    std::optional<Result<std::string>> told;
    runtime_.respond(id, response, [&](auto how) { told = std::move(how); });
    EXPECT_TRUE(loop_.advance_until([&] { return told.has_value(); }, 10min));
    return *std::move(told);
  }

  LambdaRuntime runtime_{http_, loop_, "127.0.0.1:9001"};
};

TEST_F(LambdaRuntimeTest, an_invocation_has_an_id_and_a_deadline) {
  answer({invocation("8476a536-e9f4-11e8")});
  const auto got = next();
  ASSERT_TRUE(got) << got.error().detail;
  EXPECT_EQ(got->id, "8476a536-e9f4-11e8");
  EXPECT_EQ(got->deadline, WallTime(std::chrono::milliseconds(1'800'000'000'000)));
  EXPECT_EQ(http_.requests[0].url, "http://127.0.0.1:9001/2018-06-01/runtime/invocation/next");
}

TEST_F(LambdaRuntimeTest, one_whose_id_could_be_another_path_or_that_has_no_time_is_refused) {
  for (const auto& reply :
       {invocation(""), invocation("a/b"), invocation("a?b"), invocation(std::string(300, 'a')), invocation("a", ""),
        invocation("a", "soon"), invocation("a", "-1"), FakeHttp::answer(500, "")}) {
    answer({reply});
    EXPECT_FALSE(next());
  }
}

TEST_F(LambdaRuntimeTest, a_response_that_is_too_large_for_lambda_becomes_its_error) {
  answer({FakeHttp::answer(413, "{}"), FakeHttp::answer(202, "{}")});
  EXPECT_EQ(respond("r", "x"), "");
  ASSERT_EQ(http_.requests.size(), 2U);
  EXPECT_THAT(http_.requests[1].url, EndsWith("/invocation/r/error"));
  EXPECT_EQ(FakeHttp::header(http_.requests[1], "Lambda-Runtime-Function-Error-Type"), "Holdfast.TooLarge");
}

TEST_F(LambdaRuntimeTest, what_lambda_does_not_want_any_more_is_told_and_what_it_cannot_take_is_the_end) {
  answer({FakeHttp::answer(400, "InvalidRequestID"), FakeHttp::answer(500, "")});
  const auto late = respond("r", "x");
  ASSERT_TRUE(late);
  EXPECT_THAT(*late, HasSubstr("InvalidRequestID"));
  EXPECT_FALSE(respond("r", "x"));
}

TEST_F(LambdaRuntimeTest, an_error_is_json_whatever_is_in_it) {
  answer({FakeHttp::answer(202, "{}")});
  std::optional<Result<std::string>> told;
  runtime_.fail("r", {"Holdfast.Failed", "not \"text\": \xff"}, [&](auto how) { told = std::move(how); });
  ASSERT_TRUE(loop_.advance_until([&] { return told.has_value(); }));
  EXPECT_EQ(
      http_.requests[0].body,
      R"({"errorMessage":"What went wrong cannot be shown as text.","errorType":"Holdfast.Failed","stackTrace":[]})");
}

}  // namespace
}  // namespace holdfast::serve
