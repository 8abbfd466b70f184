#include "store/dynamodb/credentials_question.hpp"

#include <algorithm>
#include <utility>

namespace holdfast::store::dynamodb {

void HttpQuestion::ask(runtime::HttpRequest request, Patience patience, Handler handler) {
  cancel();
  request_ = std::move(request);
  patience_ = patience;
  handler_ = std::move(handler);
  tried_ = 0;
  send();
}

void HttpQuestion::cancel() {
  if (in_flight_ != 0) transport_.cancel(std::exchange(in_flight_, 0));
  if (timer_ != 0) loop_.cancel(std::exchange(timer_, 0));
}

void HttpQuestion::send() {
  ++tried_;
  in_flight_ = transport_.send(request_, loop_.instant() + patience_.each, [this](runtime::HttpReply reply) {
    in_flight_ = 0;
    take(std::move(reply));
  });
}

void HttpQuestion::take(runtime::HttpReply reply) {
  const bool may_help = !reply || reply->status == 429 || reply->status >= 500;
  const int tries = reply ? patience_.tries : std::min(patience_.tries, patience_.tries_unanswered);
  if (may_help && tried_ < tries) {
    const Duration most = patience_.pause * (1 << std::min(tried_ - 1, 10));
    timer_ = loop_.call_after(loop_.random().between(Duration::zero(), most), [this] {
      timer_ = 0;
      send();
    });
    return;
  }
  const Handler handler = std::exchange(handler_, {});  // it may ask the next question
  handler(std::move(reply));
}

}  // namespace holdfast::store::dynamodb
