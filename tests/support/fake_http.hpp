#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "holdfast/loop.hpp"
#include "runtime/http.hpp"

namespace holdfast::test {

/// An HttpTransport without a network: the test says what is answered. Everything on the loop's thread.
class FakeHttp final : public runtime::HttpTransport {
 public:
  /// The answer; nothing: none comes, and the request fails at its deadline.
  using Serve = std::function<std::optional<runtime::HttpReply>(const runtime::HttpRequest&)>;

  explicit FakeHttp(Loop& loop, Serve serve_ = {}) : serve(std::move(serve_)), loop_(loop) {}
  ~FakeHttp() override {
    for (const auto& [id, timer] : in_flight_) loop_.cancel(timer);
  }

  [[nodiscard]] static runtime::HttpReply answer(int status, std::string body,
                                                 std::vector<runtime::HttpHeader> headers = {}) {
    runtime::HttpAnswer result;
    result.status = status;
    result.body = std::move(body);
    result.headers = std::move(headers);
    return result;
  }

  RequestId send(runtime::HttpRequest request, Instant deadline, Handler handler) override {
    const RequestId id = ++last_id_;
    requests.push_back(request);
    auto reply = serve ? serve(request) : std::nullopt;
    if (reply && *reply && (*reply)->body.size() > request.answer_bytes_max)
      reply = tl::unexpected(runtime::HttpFailure{runtime::HttpStage::sent, "the answer is too large"});
    const Instant when = reply ? loop_.instant() + takes : deadline;
    if (!reply) reply = tl::unexpected(runtime::HttpFailure{runtime::HttpStage::not_sent, "timed out"});
    in_flight_[id] = loop_.call_at(when, [this, id, reply = *std::move(reply), handler = std::move(handler)] {
      in_flight_.erase(id);
      handler(reply);
    });
    return id;
  }
  void cancel(RequestId request) override {
    const auto found = in_flight_.find(request);
    if (found == in_flight_.end()) return;
    loop_.cancel(found->second);
    in_flight_.erase(found);
  }

  [[nodiscard]] std::size_t in_flight() const { return in_flight_.size(); }
  [[nodiscard]] static std::optional<std::string> header(const runtime::HttpRequest& request,
                                                         const std::string& name) {
    for (const auto& header : request.headers)
      if (header.name == name) return header.value;
    return std::nullopt;
  }

  Serve serve;
  Duration takes = std::chrono::milliseconds(1);  ///< from request to answer
  std::vector<runtime::HttpRequest> requests;     ///< all there were

 private:
  Loop& loop_;
  RequestId last_id_ = 0;
  std::map<RequestId, TimerId> in_flight_;
};

}  // namespace holdfast::test
