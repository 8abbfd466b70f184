#pragma once
#include <functional>
#include <string>

#include "serve/lambda_api.hpp"

namespace holdfast::serve {

/// This process as an external extension of AWS Lambda (Extensions API, 2020-01-01). First it registers; when all is
/// ready it asks for one event after the other, which is also what says that it is done with the one before. On the
/// loop's thread.
class LambdaExtension {
 public:
  static constexpr const char* path = "/2020-01-01/extension";

  struct Events {
    /// An invocation has begun, so the one before is over; this one is over at `deadline` by the latest.
    std::function<void(const std::string& id, WallTime deadline)> invoked;
    /// The function is gone, and all of this at `deadline`.
    std::function<void(WallTime deadline)> shut_down;
    /// The API does not answer as it should: this is no extension any more.
    std::function<void(const Error&)> failed;
  };

  /// The identifier that it is known by from now on, or why not. `name`: of its file in /opt/extensions.
  static void enroll(LambdaApi& api, const std::string& name, std::function<void(Result<std::string>)> done);
  /// Of an error before the first event, and after it.
  static void tell_init_error(LambdaApi& api, const std::string& id, const LambdaError& error,
                              std::function<void()> done);
  static void tell_exit_error(LambdaApi& api, const std::string& id, const LambdaError& error,
                              std::function<void()> done);

  /// Asks for the first event.
  LambdaExtension(LambdaApi& api, std::string id, Events events);

 private:
  void ask();
  void got(const runtime::HttpAnswer& answer);

  LambdaApi& api_;
  const std::string id_;
  const Events events_;
};

}  // namespace holdfast::serve
