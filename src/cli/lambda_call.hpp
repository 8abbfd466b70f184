#pragma once
#include <optional>
#include <string>

#include "runtime/asio_loop.hpp"
#include "runtime/http_client.hpp"
#include "serve/lambda_api.hpp"

namespace holdfast::cli {

/// Where the APIs of AWS Lambda are, inside a function's environment. Code::usage elsewhere.
[[nodiscard]] Result<std::string> lambda_api_address(const std::string& what_for);

/// One of them, for what is said before there is a store, and so a loop: each call waits for its answer.
class LambdaCall {
 public:
  LambdaCall(const std::string& address, const std::string& path);

  /// Begins what calls back, and waits for that.
  template <class T>
  [[nodiscard]] T wait(const std::function<void(serve::LambdaApi&, std::function<void(T)>)>& begin) {
    std::optional<T> got;
    begin(api_, [&](T value) {
      got = std::move(value);
      loop_.stop();
    });
    while (!got) loop_.run();
    return *std::move(got);
  }

 private:
  runtime::AsioLoop loop_;
  runtime::HttpClient http_;
  serve::LambdaApi api_;
};

}  // namespace holdfast::cli
