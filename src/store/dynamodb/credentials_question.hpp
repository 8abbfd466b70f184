#pragma once
#include <functional>

#include "holdfast/loop.hpp"
#include "runtime/http.hpp"

namespace holdfast::store::dynamodb {

/// One question over HTTP at a time, asked again where that may help: no answer, 429 or 5xx. Whoever destroys it
/// hears nothing more. On the loop's thread.
class HttpQuestion {
 public:
  struct Patience {
    int tries = 1;
    Duration each{};           ///< for one try
    Duration pause{};          ///< between tries: a random part of it, twice as much each time
    int tries_unanswered = 1;  ///< as long as there was no answer at all, no more than these
  };
  using Handler = std::function<void(runtime::HttpReply)>;

  HttpQuestion(Loop& loop, runtime::HttpTransport& transport) : loop_(loop), transport_(transport) {}
  ~HttpQuestion() { cancel(); }
  HttpQuestion(const HttpQuestion&) = delete;
  HttpQuestion& operator=(const HttpQuestion&) = delete;

  /// The last try's answer, or failure. The handler runs once, never inside the call; it may ask the next question.
  void ask(runtime::HttpRequest request, Patience patience, Handler handler);
  void cancel();

 private:
  void send();
  void take(runtime::HttpReply reply);

  Loop& loop_;
  runtime::HttpTransport& transport_;
  runtime::HttpRequest request_;
  Patience patience_;
  Handler handler_;
  int tried_ = 0;
  runtime::HttpTransport::RequestId in_flight_ = 0;
  TimerId timer_ = 0;
};

}  // namespace holdfast::store::dynamodb
