#pragma once
#include <functional>
#include <memory>
#include <string>

#include "holdfast/loop.hpp"
#include "runtime/http.hpp"
#include "store/dynamodb/credentials_found.hpp"
#include "store/dynamodb/surroundings.hpp"

namespace holdfast::store::dynamodb {

/// One place where credentials may be. Each answers in its own limited time. On the loop's thread; asked again only
/// after it has answered.
class CredentialProvider {
 public:
  using Handler = std::function<void(Found)>;

  virtual ~CredentialProvider() = default;
  /// The handler runs once, perhaps inside the call, and not after this was destroyed.
  virtual void ask(Handler handler) = 0;
};

/// What providers are made with; all of it outlives them.
struct ProviderParts {
  Loop& loop;
  runtime::HttpTransport& transport;
  Surroundings& surroundings;
  std::string region;  ///< for STS
};

/// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN, AWS_CREDENTIAL_EXPIRATION.
[[nodiscard]] std::unique_ptr<CredentialProvider> environment_provider(ProviderParts parts);

/// ECS tasks and EKS pods: AWS_CONTAINER_CREDENTIALS_RELATIVE_URI, or …_FULL_URI where its host is one that secrets
/// may be asked of without TLS; AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE, read anew each time, or …_TOKEN.
[[nodiscard]] std::unique_ptr<CredentialProvider> container_provider(ProviderParts parts);

/// EC2's metadata service, version 2 of it only. AWS_EC2_METADATA_DISABLED, AWS_EC2_METADATA_SERVICE_ENDPOINT,
/// …_ENDPOINT_MODE, AWS_METADATA_SERVICE_TIMEOUT and …_NUM_ATTEMPTS are heeded. Off EC2 it says so within 1 s.
[[nodiscard]] std::unique_ptr<CredentialProvider> metadata_provider(ProviderParts parts);

/// Files and web identities: what plan_credentials() decides, carried out. The files are read anew each time.
struct SourceProviders {
  CredentialProvider& environment;
  CredentialProvider& container;
  CredentialProvider& metadata;
};
[[nodiscard]] std::unique_ptr<CredentialProvider> profile_provider(ProviderParts parts, SourceProviders sources);

/// All of them, in order, as one: the first that is set up decides. Afterwards that one is asked first.
[[nodiscard]] std::unique_ptr<CredentialProvider> provider_chain(ProviderParts parts);

}  // namespace holdfast::store::dynamodb
