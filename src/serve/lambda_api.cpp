#include "serve/lambda_api.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <utility>

#include "core/utf8.hpp"

namespace holdfast::serve {

namespace {

using namespace std::chrono_literals;

/// Longer than any environment lives.
constexpr Duration for_ever = std::chrono::hours(24 * 365);
constexpr Duration post_limit = 5s;
constexpr int tries_most = 4;
constexpr Duration pause_most = 200ms;
/// What Lambda hands to a function is 6 MB; this bounds what is taken from whoever else answers.
constexpr std::size_t answer_most = 32 << 20;

}  // namespace

LambdaApi::LambdaApi(runtime::HttpTransport& http, Loop& loop, const std::string& address, const std::string& path)
    : http_(http), loop_(loop), base_("http://" + address + path) {}

LambdaApi::~LambdaApi() {
  if (request_ != 0) http_.cancel(request_);
  if (timer_ != 0) loop_.cancel(timer_);
}

void LambdaApi::send(runtime::HttpRequest request, Duration limit, int tries, Handler handler) {
  runtime::HttpRequest copy = request;
  copy.answer_bytes_max = answer_most;
  request_ = http_.send(std::move(copy), loop_.instant() + limit,
                        [this, request = std::move(request), limit, tries,
                         handler = std::move(handler)](runtime::HttpReply reply) mutable {
                          request_ = 0;
                          if (reply) return handler(*std::move(reply));
                          if (tries <= 1) {
                            return handler(tl::unexpected(Error(Code::unavailable, reply.error().detail)));
                          }
                          const Duration pause = loop_.random().between(Duration::zero(), pause_most);
                          timer_ = loop_.call_after(pause, [this, request = std::move(request), limit, tries,
                                                            handler = std::move(handler)]() mutable {
                            timer_ = 0;
                            send(std::move(request), limit, tries - 1, std::move(handler));
                          });
                        });
}

void LambdaApi::next(const std::string& path, std::vector<runtime::HttpHeader> headers, Handler handler) {
  runtime::HttpRequest request;
  request.url = base_ + path;
  request.headers = std::move(headers);
  send(std::move(request), for_ever, tries_most, std::move(handler));
}

void LambdaApi::post(const std::string& path, std::vector<runtime::HttpHeader> headers, std::string body,
                     Handler handler) {
  runtime::HttpRequest request;
  request.method = "POST";
  request.url = base_ + path;
  request.headers = std::move(headers);
  request.headers.push_back({"Content-Type", "application/json"});
  request.body = std::move(body);
  send(std::move(request), post_limit, tries_most, std::move(handler));
}

void LambdaApi::post_error(const std::string& path, const std::string& header,
                           std::vector<runtime::HttpHeader> headers, const LambdaError& error, Handler handler) {
  headers.push_back({header, error.type});
  const bool is_text = is_utf8(error.message);
  const boost::json::object body{
      {"errorMessage", is_text ? error.message : std::string("What went wrong cannot be shown as text.")},
      {"errorType", error.type},
      {"stackTrace", boost::json::array()}};
  post(path, std::move(headers), boost::json::serialize(body), std::move(handler));
}

Error unexpected_answer(const std::string& what, const runtime::HttpAnswer& answer) {
  return {Code::unavailable, what + ": the answer was " + std::to_string(answer.status) +
                                 (answer.body.empty() ? "" : " " + answer.body.substr(0, 200))};
}

}  // namespace holdfast::serve
