#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "holdfast/error.hpp"
#include "holdfast/loop.hpp"
#include "runtime/http.hpp"

namespace holdfast::serve {

/// What AWS Lambda is told of an error: in a header, and in a JSON body.
struct LambdaError {
  std::string type;     ///< "Holdfast.Busy": a word with a dot in it, for programs
  std::string message;  ///< for people
};

/// One of the two HTTP APIs that AWS Lambda has inside a function's environment (Runtime, Extensions): one request at
/// a time, on this machine. On the loop's thread.
class LambdaApi {
 public:
  /// `address`: host and port, as AWS_LAMBDA_RUNTIME_API has them. `path`: "/2018-06-01/runtime".
  LambdaApi(runtime::HttpTransport& http, Loop& loop, const std::string& address, const std::string& path);
  ~LambdaApi();
  LambdaApi(const LambdaApi&) = delete;
  LambdaApi& operator=(const LambdaApi&) = delete;

  using Handler = std::function<void(Result<runtime::HttpAnswer>)>;
  /// Waits for what comes next for as long as that takes: the environment may be frozen in between. Where there is no
  /// connection it is tried a few times.
  void next(const std::string& path, std::vector<runtime::HttpHeader> headers, Handler handler);
  /// Tries a few times where there is no connection.
  void post(const std::string& path, std::vector<runtime::HttpHeader> headers, std::string body, Handler handler);
  /// `header`: that the type goes in.
  void post_error(const std::string& path, const std::string& header, std::vector<runtime::HttpHeader> headers,
                  const LambdaError& error, Handler handler);

  [[nodiscard]] const std::string& base() const { return base_; }
  [[nodiscard]] WallTime wall() const { return loop_.wall(); }

 private:
  void send(runtime::HttpRequest request, Duration limit, int tries, Handler handler);

  runtime::HttpTransport& http_;
  Loop& loop_;
  const std::string base_;
  runtime::HttpTransport::RequestId request_ = 0;
  TimerId timer_ = 0;
};

/// In an answer that is none of those expected.
[[nodiscard]] Error unexpected_answer(const std::string& what, const runtime::HttpAnswer& answer);

}  // namespace holdfast::serve
