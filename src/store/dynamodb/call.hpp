#pragma once
#include <boost/json/object.hpp>
#include <functional>
#include <optional>
#include <string>

#include "holdfast/error.hpp"
#include "holdfast/store.hpp"
#include "holdfast/types.hpp"

namespace holdfast::store::dynamodb {

class CredentialSource;

/// One call of DynamoDB's JSON protocol.
struct Call {
  std::string operation;  ///< "UpdateItem"
  std::string body;       ///< the request, a JSON object
  bool is_write = false;  ///< what became of it is unknown where no answer came
  /// Whether a try whose outcome is unknown may be repeated. Not so for an update that adds: it could count twice.
  bool repeatable = true;
  Purpose purpose = Purpose::other;  ///< what it costs is counted by this
};

/// What a call came to, after all its tries.
struct CallReply {
  Outcome outcome = Outcome::unknown;
  boost::json::object answer;      ///< applied: the server's answer
  Error error;                     ///< throttled, unknown, rejected
  std::string aws_type;            ///< the error's type without its prefix: "ConditionalCheckFailedException"
  boost::json::object error_body;  ///< the error as the server told it: message, Item, CancellationReasons
  /// An earlier try, or this one, may have been carried out although the answer says otherwise (S5).
  bool maybe_applied = false;
};

/// What makes calls: the client, or what stands for it in a test. On the loop's thread.
class Caller {
 public:
  virtual ~Caller() = default;
  /// The handler runs once, never inside the call, soon after the deadline at the latest.
  virtual void call(Call call, Instant deadline, std::function<void(CallReply)> handler) = 0;
  /// What its calls have cost so far.
  [[nodiscard]] virtual ConsumedByKind consumed() const { return {}; }

  // For diagnosis.
  /// Who signs its calls; null: it has none to ask.
  [[nodiscard]] virtual CredentialSource* credentials() { return nullptr; }
  /// The server's clock minus ours as the latest answer's Date header has it, to within half a second and the time
  /// that the answer took. Nothing before the first answer, or without that header.
  [[nodiscard]] virtual std::optional<Duration> measured_clock_offset() const { return std::nullopt; }
};

}  // namespace holdfast::store::dynamodb
