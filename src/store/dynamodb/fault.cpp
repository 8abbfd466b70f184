#include "store/dynamodb/fault.hpp"

#include <algorithm>
#include <array>
#include <boost/json/value.hpp>
#include <utility>

namespace holdfast::store::dynamodb {

namespace {

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool is_one_of(std::string_view type, std::initializer_list<std::string_view> types) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

/// "table jobs in eu-west-1": which one it is about.
std::string where(const TableOptions& options) {
  std::string text = "table " + options.table;
  if (!options.endpoint.empty()) return text + " at " + options.endpoint;
  return options.region.empty() ? text : text + " in " + options.region;
}

/// As a shell takes it, for all its `&` and `?`.
std::string init_command(const TableOptions& options) {
  return "`holdfast init --store '" + options.url + "'`";
}

Fault rejected(Code code, std::string detail) {
  return {Outcome::rejected, {code, std::move(detail)}};
}

Fault throttled(std::string detail) {
  return {Outcome::throttled, {Code::unavailable, std::move(detail)}};
}

std::string without_end(std::string text) {
  while (text.ends_with('.') || text.ends_with(' ')) text.pop_back();
  return text;
}

/// DynamoDB's type for everything that is wrong with a request; only the message tells what.
Fault validation(const std::string& message, const TableOptions& options) {
  if (has(message, "backfilling")) {
    return throttled("the index " + options.index + " of " + where(options) + " is still being made: wait, or see " +
                     init_command(options));
  }
  if (has(message, "does not have the specified index")) {
    return rejected(Code::not_found, where(options) + " has no index " + options.index + ": make it with " +
                                         init_command(options) + ", or name another with index=");
  }
  if (has(message, "does not match the schema") || has(message, "required keys was not given")) {
    return rejected(Code::usage, where(options) + " has another key than the text " + options.names.key() +
                                     ": name its own with key= in the store's URL");
  }
  if (has(message, "size has exceeded") || has(message, "size to update has exceeded")) {
    return rejected(Code::usage, "the row would be larger than the 400 KB that DynamoDB lets one have");
  }
  if (has(message, "Type mismatch for Index Key")) {
    return rejected(Code::usage, "an attribute of an index of " + where(options) +
                                     " would get a value of another type than the index is made for: " + message);
  }
  return rejected(Code::usage, "DynamoDB refuses the request to " + where(options) + ": " + message);
}

bool is_about_credentials(std::string_view type) {
  return is_one_of(type, {"UnrecognizedClientException", "InvalidSignatureException", "ExpiredTokenException",
                          "ExpiredToken", "InvalidClientTokenId", "MissingAuthenticationTokenException",
                          "IncompleteSignatureException", "InvalidAccessKeyId", "SignatureDoesNotMatch"});
}

bool is_throttling(std::string_view type) {
  return is_one_of(type, {"ProvisionedThroughputExceededException", "ThrottlingException", "Throttling",
                          "RequestLimitExceeded", "LimitExceededException", "TooManyRequestsException",
                          "TransactionConflictException", "ReplicatedWriteConflictException"});
}

/// Nothing where the type is not one that is known.
std::optional<Fault> known_fault(const Call& call, const std::string& type, const std::string& message,
                                 const Error& told, const TableOptions& options) {
  if (type == "ConditionalCheckFailedException") return Fault{Outcome::conflict, {}};
  if (type == "ResourceNotFoundException") {
    return rejected(Code::not_found, "there is no " + where(options) + ": make it with " + init_command(options) +
                                         ", or correct the name, the region or the endpoint");
  }
  if (type == "AccessDeniedException" || type == "AccessDenied") {
    return rejected(Code::denied, "these credentials may not do " + call.operation + " on " + where(options) +
                                      ": allow dynamodb:" + call.operation +
                                      " on the table and on its /index/* (DynamoDB says: " + message + ")");
  }
  if (is_about_credentials(type)) {
    // The client knows where they are from.
    if (!told.detail.empty()) return rejected(Code::denied, told.detail);
    return rejected(Code::denied, "the credentials are refused (" + type + ": " + message +
                                      "): check them, the region and this machine's clock");
  }
  if (type == "ValidationException") return validation(message, options);
  if (type == "ItemCollectionSizeLimitExceededException") {
    return rejected(Code::exhausted, "a local index of " + where(options) + " is full: " + message);
  }
  if (type == "RequestEntityTooLarge" || type == "RequestTooLarge" || type == "SerializationException") {
    return rejected(Code::usage, "DynamoDB does not take the request to " + where(options) + ": " + message);
  }
  if (type == "IdempotentParameterMismatchException") {
    return rejected(Code::usage, "the token of this transaction was used for another one within 10 minutes");
  }
  if (type == "TransactionInProgressException") {
    return Fault{Outcome::unknown, {Code::unavailable, "the transaction with this token is still being carried out"}};
  }
  if (type == "UnknownOperationException") {
    return rejected(Code::usage, "the server of " + where(options) + " does not know " + call.operation);
  }
  if (type == "ResourceInUseException") {
    return throttled(where(options) + " is being made or changed: " + message);
  }
  if (is_throttling(type)) {
    if (!told.detail.empty()) return throttled(told.detail);
    return throttled("DynamoDB takes no more for now (" + type + (message.empty() ? "" : ": " + message) + ")");
  }
  return std::nullopt;
}

}  // namespace

std::string message_of(const CallReply& reply) {
  for (const char* name : {"message", "Message"}) {
    const boost::json::value* message = reply.error_body.if_contains(name);
    if (message != nullptr && message->is_string()) return without_end(std::string(message->get_string()));
  }
  return {};
}

Fault fault_of(const Call& call, const CallReply& reply, const TableOptions& options) {
  Fault fault = known_fault(call, reply.aws_type, message_of(reply), reply.error, options)
                    .value_or(Fault{reply.outcome, reply.error});
  // What the client found out about the tries before this answer is not undone by what the answer says (S5).
  const bool says_not_done = fault.outcome == Outcome::throttled || fault.outcome == Outcome::rejected;
  if (call.is_write && says_not_done && (reply.maybe_applied || reply.outcome == Outcome::unknown)) {
    fault.outcome = Outcome::unknown;
  }
  if (fault.outcome != Outcome::conflict && fault.error.detail.empty()) {
    fault.error = {Code::unavailable, "no answer from " + where(options)};
  }
  return fault;
}

}  // namespace holdfast::store::dynamodb
