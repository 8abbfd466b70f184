#include "cli/lambda_call.hpp"

#include "runtime/clock.hpp"
#include "runtime/environment.hpp"

namespace holdfast::cli {

Result<std::string> lambda_api_address(const std::string& what_for) {
  auto address = runtime::environment("AWS_LAMBDA_RUNTIME_API");
  if (address) return *std::move(address);
  return fail(Code::usage, "AWS_LAMBDA_RUNTIME_API is not set: " + what_for +
                               " is started by AWS Lambda, inside a function's environment");
}

LambdaCall::LambdaCall(const std::string& address, const std::string& path)
    : loop_(runtime::random_seed()), http_(loop_), api_(http_, loop_, address, path) {}

}  // namespace holdfast::cli
