#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "store/dynamodb/credentials_provider.hpp"

namespace holdfast::store::dynamodb {
namespace {

class EnvironmentProvider final : public CredentialProvider {
 public:
  explicit EnvironmentProvider(ProviderParts parts) : surroundings_(parts.surroundings) {}

  void ask(Handler handler) override { handler(look()); }

 private:
  [[nodiscard]] Found look() const {
    const auto id = surroundings_.variable("AWS_ACCESS_KEY_ID");
    if (!id) return Found::nothing("environment: AWS_ACCESS_KEY_ID is not set");
    Credentials credentials;
    credentials.provider = "environment";
    credentials.access_key_id = *id;
    const auto secret = surroundings_.variable("AWS_SECRET_ACCESS_KEY");
    if (!secret)
      return Found::failed(
          {Code::usage,
           "environment: AWS_ACCESS_KEY_ID is set, but AWS_SECRET_ACCESS_KEY is not: set both or neither"});
    credentials.secret_access_key = *secret;
    auto token = surroundings_.variable("AWS_SESSION_TOKEN");
    if (!token) token = surroundings_.variable("AWS_SECURITY_TOKEN");
    credentials.session_token = token.value_or("");
    if (const auto expiry = surroundings_.variable("AWS_CREDENTIAL_EXPIRATION")) {
      credentials.expires_at = parse_iso_time(*expiry);
      if (!credentials.expires_at)
        return Found::failed(
            {Code::usage, "environment: AWS_CREDENTIAL_EXPIRATION is no time like 2026-11-30T05:42:00Z"});
    }
    if (const auto wrong = wrong_with(credentials))
      return Found::failed({Code::usage, "environment: " + wrong->detail});
    return Found::have(std::move(credentials));
  }

  Surroundings& surroundings_;
};

}  // namespace

std::unique_ptr<CredentialProvider> environment_provider(ProviderParts parts) {
  return std::make_unique<EnvironmentProvider>(std::move(parts));
}

}  // namespace holdfast::store::dynamodb
