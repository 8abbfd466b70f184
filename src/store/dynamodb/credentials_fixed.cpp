#include <memory>
#include <utility>

#include "holdfast/loop.hpp"
#include "store/dynamodb/credentials.hpp"

namespace holdfast::store::dynamodb {
namespace {

class FixedCredentials final : public CredentialSource {
 public:
  FixedCredentials(Loop& loop, Credentials credentials) : loop_(loop), credentials_(std::move(credentials)) {}

  void get(Instant /*deadline*/, Handler handler) override {
    loop_.post([credentials = credentials_, handler = std::move(handler)] { handler(credentials); });
  }
  void refused() override {}

 private:
  Loop& loop_;
  Credentials credentials_;
};

}  // namespace

std::unique_ptr<CredentialSource> fixed_credentials(Loop& loop, Credentials credentials) {
  return std::make_unique<FixedCredentials>(loop, std::move(credentials));
}

}  // namespace holdfast::store::dynamodb
