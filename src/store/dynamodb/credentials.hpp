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
namespace holdfast::runtime {
class HttpTransport;
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

class Surroundings;

/// The standard chain in the standard order (botocore's; ADR 0019): the environment; a profile's role with a source;
/// web identity; a profile's keys in the credentials file, its credential_process, its keys in the config file; the
/// container's endpoint; EC2's metadata service. The first that is set up decides: where it fails, so does get().
///
/// What is handed out is fetched once and kept. The first get() within a while of its expiry (a random time from 10
/// to 15 minutes, less for what lives shorter) has it fetched anew aside, while the old ones are handed out as long
/// as they are good. One fetch at a time; after a failed one none for a random time that grows up to 15 s, in which
/// get() without good credentials fails at once.
///
/// `region` is for STS: that of the table. Destroying this ends what is under way; handlers owed do not run then.
[[nodiscard]] std::unique_ptr<CredentialSource> standard_chain(Loop& loop, runtime::HttpTransport& transport,
                                                               std::unique_ptr<Surroundings> surroundings,
                                                               std::string region);

}  // namespace holdfast::store::dynamodb
