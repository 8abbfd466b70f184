// Requests are read strictly: what is wrong is refused, and named.
#include "serve/schema.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/json_document.hpp"

namespace holdfast::serve {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Type = Field::Type;

const Schema thing{"Thing",
                   "for the tests",
                   {{.name = "text", .about = "a text", .is_required = true, .least = 1, .most = 5},
                    {.name = "word", .otherwise = "b", .words = {"a", "b"}},
                    {.name = "for", .type = Type::duration, .otherwise = "10s", .least = 100, .most = 60'000},
                    {.name = "n", .type = Type::integer, .otherwise = "-3", .least = -5, .most = 5},
                    {.name = "is", .type = Type::boolean},
                    {.name = "any", .type = Type::any},
                    {.name = "items", .type = Type::counts, .least = 1, .most = 2}}};

TEST(RequestBody, is_read_with_what_was_not_said_filled_in) {
  const auto input = read_body(thing, R"({"text":"hello","items":{"a":2},"any":[1],"is":true})");
  ASSERT_TRUE(input) << input.error().detail;
  EXPECT_EQ(input->text("text"), "hello");
  EXPECT_EQ(input->text("word"), "b");
  EXPECT_EQ(input->duration("for"), 10s);
  EXPECT_EQ(input->integer("n"), -3);
  EXPECT_TRUE(input->flag("is"));
  EXPECT_EQ(input->counts("items").at("a"), 2);
}

TEST(RequestBody, that_is_wrong_is_refused_with_the_member) {
  const std::vector<std::pair<std::string, std::string>> wrong{
      {R"({})", "/text"},
      {R"({"text":1})", "/text"},
      {R"({"text":""})", "/text"},
      {R"({"text":"too long"})", "/text"},
      {R"({"text":"x","txet":1})", "/txet"},
      {R"({"text":"x","a/b~":1})", "/a~1b~0"},
      {R"({"text":"x","word":"c"})", "/word"},
      {R"({"text":"x","for":10})", "/for"},
      {R"({"text":"x","for":"10"})", "/for"},
      {R"({"text":"x","for":"99ms"})", "/for"},
      {R"({"text":"x","for":"61s"})", "/for"},
      {R"({"text":"x","n":1.5})", "/n"},
      {R"({"text":"x","n":"1"})", "/n"},
      {R"({"text":"x","n":6})", "/n"},
      {R"({"text":"x","n":99999999999999999999})", "/n"},
      {R"({"text":"x","n":18446744073709551615})", "/n"},
      {R"({"text":"x","is":"true"})", "/is"},
      {R"({"text":"x","items":{}})", "/items"},
      {R"({"text":"x","items":{"a":0}})", "/items"},
      {R"({"text":"x","items":{"a":1,"b":1,"c":1}})", "/items"},
      {R"({"text":"x","text":"y"})", "/text"},
      {R"({"text":"x","any":{"a":[{"b":1,"b":1}]}})", "/any/a/b"},
      {R"({"text":null})", "/text"},
      {R"([])", ""},
      {R"("x")", ""},
      {"", ""},
      {R"({"text":"x"} x)", ""},
      {R"({"text":"x")", "/text"},
      {R"({'text':'x'})", ""},
      {"{\"text\":\"\xff\"}", "/text"},
      {R"({"text":"x","any":{"order":12345678901234567890123}})", "/any"},
      {R"({"text":"x","any":0.1000000000000000001})", "/any"},
      {R"({"text":"x","any":)" + std::string(100'000, '[') + "}", "/any"},
  };
  for (const auto& [body, member] : wrong) {
    const auto input = read_body(thing, body);
    ASSERT_FALSE(input) << body;
    EXPECT_EQ(input.error().status, 400) << body;
    EXPECT_EQ(input.error().code, "bad_request") << body;
    EXPECT_THAT(input.error().member, testing::StartsWith(member)) << body << ": " << input.error().detail;
    EXPECT_NE(input.error().detail, "") << body;
  }
}

TEST(RequestBody, a_whole_number_that_is_too_large_is_told_as_that) {
  for (const char* number :
       {"12345678901234567890123", "-12345678901234567890123", "18446744073709551615", "1e300"}) {
    const auto input = read_body(thing, R"({"text":"x","n":)" + std::string(number) + "}");
    ASSERT_FALSE(input) << number;
    EXPECT_EQ(input.error().member, "/n");
    EXPECT_THAT(input.error().detail, HasSubstr("sign")) << number;
  }
  EXPECT_THAT(read_body(thing, R"({"text":"x","n":1.5})").error().detail, HasSubstr("a whole number"));
  EXPECT_THAT(read_query(thing.fields, "text=a&n=12345678901234567890123").error().detail, HasSubstr("sign"));
}

TEST(Query, is_read_like_a_body) {
  const auto input = read_query(thing.fields, "text=a%20b&n=5&is=false");
  ASSERT_TRUE(input) << input.error().detail;
  EXPECT_EQ(input->text("text"), "a b");
  EXPECT_EQ(input->integer("n"), 5);
  EXPECT_FALSE(input->flag("is"));
  for (const char* wrong : {"", "text=", "text=a&x=1", "text=a&text=b", "text=%zz", "text=%ff", "text=%00",
                            "text=a&n=", "text=a&n=1x", "text=a&is=yes", "text=a%2"}) {
    EXPECT_FALSE(read_query(thing.fields, wrong)) << wrong;
  }
}

TEST(Problem, is_told_as_a_document_whatever_is_in_it) {
  const auto answer = answer_of({400, "bad_request", "it said \xff", "/x"});
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(*answer.header("content-type"), "application/problem+json");
  EXPECT_THAT(answer.body, HasSubstr(R"("code":"bad_request")"));
  EXPECT_EQ(*answer_of(problem_of(Failure{Failure::Kind::unknown, {}})).header("retry-after"), "1");
  EXPECT_EQ(answer_of(problem_of(Failure{Failure::Kind::busy, {}})).header("retry-after"), nullptr);
}

}  // namespace
}  // namespace holdfast::serve
