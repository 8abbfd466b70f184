#pragma once
#include <functional>
#include <optional>
#include <string>

#include "serve/lambda_api.hpp"

namespace holdfast::serve {

/// What a function is called with.
struct Invocation {
  std::string id;
  std::string event;  ///< as it came
  std::string trace;  ///< of X-Ray; empty: none
  std::string function_arn;
  WallTime deadline{};
};

/// This process as a custom runtime of AWS Lambda (Runtime API, 2018-06-01). On the loop's thread.
class LambdaRuntime {
 public:
  static constexpr const char* path = "/2018-06-01/runtime";

  LambdaRuntime(runtime::HttpTransport& http, Loop& loop, const std::string& address)
      : api_(http, loop, address, path) {}

  /// The next one, however long that takes; Code::unavailable where the API does not answer as it should.
  void next(std::function<void(Result<Invocation>)> done);
  /// What came of it. Where it is larger than Lambda takes, that is told as the invocation's error. An invocation
  /// that Lambda has ended is nobody's any more: told by a text, and no error.
  using Told = std::function<void(Result<std::string>)>;
  void respond(const std::string& id, const std::string& response, Told done);
  void fail(const std::string& id, const LambdaError& error, Told done);
  static void tell_init_error(LambdaApi& api, const LambdaError& error, std::function<void(bool)> done);

 private:
  LambdaApi api_;
};

}  // namespace holdfast::serve
