#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "holdfast/error.hpp"
#include "holdfast/types.hpp"

namespace holdfast {
class Loop;
}

namespace holdfast::store::dynamodb {

/// Who asks AWS: keys that sign requests. `secret_access_key` and `session_token` are secrets: show neither. The
/// access key's id may be shown.
struct Credentials {
  std::string access_key_id, secret_access_key;
  std::string session_token;  ///< of temporary credentials; empty: none
  /// By this machine's clock; nothing: they are good until AWS refuses them.
  std::optional<WallTime> expires_at;
  std::string provider;  ///< where they are from, for people: "environment", "profile dev (~/.aws/credentials)"
};

/// Where a client gets its credentials, before each attempt. On the loop's thread.
class CredentialSource {
 public:
  using Handler = std::function<void(Result<Credentials>)>;

  virtual ~CredentialSource() = default;

  /// The handler runs once, on the loop, never inside the call, soon after `deadline` at the latest. What it is given
  /// has not expired. Code::unavailable where asking again later can help; anything else is for people to mend.
  /// Errors name who was asked and what each of them lacked, and hold no secret.
  virtual void get(Instant deadline, Handler handler) = 0;

  /// AWS did not accept what get() gave (ExpiredToken, UnrecognizedClient, …): the next get() looks for other ones,
  /// unless it did so just now.
  virtual void refused() = 0;
};

/// The same credentials at every call: for tests, and for servers that accept any.
[[nodiscard]] std::unique_ptr<CredentialSource> fixed_credentials(Loop& loop, Credentials credentials);

}  // namespace holdfast::store::dynamodb
