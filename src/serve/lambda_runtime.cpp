#include "serve/lambda_runtime.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace holdfast::serve {

namespace {

constexpr const char* error_type = "Lambda-Runtime-Function-Error-Type";

std::string header(const runtime::HttpAnswer& answer, std::string_view name) {
  const std::string* value = answer.header(name);
  return value == nullptr ? std::string() : *value;
}

/// It becomes part of a path.
bool is_id(const std::string& text) {
  return !text.empty() && text.size() <= 256 && std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' || c == '_' ||
           c == '.';
  });
}

Result<Invocation> invocation_from(runtime::HttpAnswer answer, const std::string& where) {
  Invocation invocation;
  invocation.id = header(answer, "Lambda-Runtime-Aws-Request-Id");
  if (answer.status != 200 || !is_id(invocation.id)) return tl::unexpected(unexpected_answer(where, answer));
  invocation.trace = header(answer, "Lambda-Runtime-Trace-Id");
  invocation.function_arn = header(answer, "Lambda-Runtime-Invoked-Function-Arn");
  const std::string deadline = header(answer, "Lambda-Runtime-Deadline-Ms");
  std::int64_t ms = 0;
  const auto [end, error] = std::from_chars(deadline.data(), deadline.data() + deadline.size(), ms);
  if (error != std::errc() || end != deadline.data() + deadline.size() || ms < 0) {
    return tl::unexpected(Error(Code::unavailable, where + ": Lambda-Runtime-Deadline-Ms is no time"));
  }
  invocation.deadline = WallTime(std::chrono::milliseconds(ms));
  invocation.event = std::move(answer.body);
  return invocation;
}

/// What an answer to a response or an error means.
Result<std::string> told(const Result<runtime::HttpAnswer>& answer, const std::string& where) {
  if (!answer) return tl::unexpected<Error>(answer.error());
  if (answer->status < 300) return std::string();
  const Error error = unexpected_answer(where, *answer);
  // Of 5xx AWS says that this environment is beyond help.
  if (answer->status >= 500) return tl::unexpected<Error>(error);
  return error.detail;
}

}  // namespace

void LambdaRuntime::next(std::function<void(Result<Invocation>)> done) {
  const std::string from = "/invocation/next";
  api_.next(from, {}, [where = api_.base() + from, done = std::move(done)](Result<runtime::HttpAnswer> answer) {
    if (!answer) return done(tl::unexpected<Error>(answer.error()));
    done(invocation_from(*std::move(answer), where));
  });
}

void LambdaRuntime::respond(const std::string& id, const std::string& response, Told done) {
  const std::string to = "/invocation/" + id + "/response";
  api_.post(to, {}, response,
            [this, id, where = api_.base() + to, done = std::move(done)](const Result<runtime::HttpAnswer>& answer) {
              if (answer && answer->status == 413) {
                return fail(id, {"Holdfast.TooLarge", "the response is larger than Lambda takes (6 MB)"}, done);
              }
              done(told(answer, where));
            });
}

void LambdaRuntime::fail(const std::string& id, const LambdaError& error, Told done) {
  const std::string to = "/invocation/" + id + "/error";
  api_.post_error(to, error_type, {}, error,
                  [where = api_.base() + to, done = std::move(done)](const Result<runtime::HttpAnswer>& answer) {
                    done(told(answer, where));
                  });
}

void LambdaRuntime::tell_init_error(LambdaApi& api, const LambdaError& error, std::function<void(bool)> done) {
  api.post_error(
      "/init/error", error_type, {}, error,
      [done = std::move(done)](const Result<runtime::HttpAnswer>& answer) { done(answer && answer->status < 300); });
}

}  // namespace holdfast::serve
