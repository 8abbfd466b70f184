#include "serve/problem.hpp"

#include <array>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

#include "core/utf8.hpp"

namespace holdfast::serve {

namespace {

struct Status {
  int number;
  std::string_view title, code;
};
/// The code of those that the server refuses with itself.
constexpr std::array<Status, 18> statuses{{{400, "Bad Request", "bad_request"},
                                           {401, "Unauthorized", "unauthorized"},
                                           {403, "Forbidden", "forbidden"},
                                           {404, "Not Found", "not_found"},
                                           {405, "Method Not Allowed", "method_not_allowed"},
                                           {408, "Request Timeout", "too_slow"},
                                           {409, "Conflict", "conflict"},
                                           {410, "Gone", "gone"},
                                           {413, "Content Too Large", "too_large"},
                                           {415, "Unsupported Media Type", "not_json"},
                                           {417, "Expectation Failed", "bad_request"},
                                           {421, "Misdirected Request", "wrong_host"},
                                           {422, "Unprocessable Content", "mismatch"},
                                           {431, "Request Header Fields Too Large", "too_large"},
                                           {500, "Internal Server Error", "internal"},
                                           {501, "Not Implemented", "bad_request"},
                                           {503, "Service Unavailable", "overloaded"},
                                           {505, "HTTP Version Not Supported", "bad_request"}}};

const Status& status(int number) {
  for (const Status& each : statuses) {
    if (each.number == number) return each;
  }
  return status(500);
}

}  // namespace

Problem problem_of(const Failure& failure) {
  const std::string& detail = failure.error.detail;
  switch (failure.kind) {
    case Failure::Kind::unavailable:
      return {503, "unavailable", detail, {}};
    case Failure::Kind::unknown:
      return {503, "unknown", detail, {}};
    case Failure::Kind::busy:
      return {409, "busy", detail, {}};
    case Failure::Kind::mismatch:
      return {422, "mismatch", detail, {}};
    case Failure::Kind::refused:
      return {409, "refused", detail, {}};
    case Failure::Kind::rejected:
      break;
  }
  return {failure.error.code == Code::usage ? 422 : 500, "rejected", detail, {}};
}

Problem problem_of(int number, std::string_view why) {
  return {number, std::string(status(number).code), std::string(why), {}};
}

Problem bad_request(std::string detail, std::string member) {
  return {400, "bad_request", std::move(detail), std::move(member)};
}

runtime::HttpAnswer answer_of(const Problem& problem) {
  // What is quoted from a request or a row may be anything.
  const bool is_text = is_utf8(problem.detail) && is_utf8(problem.member);
  boost::json::object body{
      {"type", "about:blank"},
      {"title", status(problem.status).title},
      {"status", problem.status},
      {"code", problem.code},
      {"detail", is_text ? problem.detail : std::string("What is wrong cannot be shown as text.")}};
  if (!problem.member.empty() && is_text) body["member"] = problem.member;
  runtime::HttpAnswer answer;
  answer.status = problem.status;
  answer.headers = {{"Content-Type", "application/problem+json"}};
  if (problem.code == "unavailable" || problem.code == "unknown") answer.headers.push_back({"Retry-After", "1"});
  answer.body = boost::json::serialize(body);
  return answer;
}

}  // namespace holdfast::serve
