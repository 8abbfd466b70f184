#pragma once
#include <ostream>
#include <string>
#include <vector>

#include "support/dynamodb_proxy.hpp"

namespace holdfast::test {

/// What a request has to come to (S5), by a letter:
///
///   A  applied
///   M  applied, or a conflict with our own attempt in the row that comes with it: it is ours
///   C  conflict, with the row as it is
///   T  throttled: surely not done
///   U  unknown
///   R  rejected: surely not done, with words
///   E  applied or unknown: nobody can say which comes first, the deadline or the table
///
/// for each kind of request, in this order:
///
///   0  reads: get, batch_get, query_due, query_owned
///   1  an update that may be repeated, as its condition fails once it was done: a claim
///   2  an update whose condition does not hold
///   3  an update that adds: it must not be repeated
///   4  transact
///   5  initialize of a table that is not there (CreateTable is harmed)
///   6  initialize of one that is (DescribeTable is harmed)
struct FaultAndEnds {
  std::string name;
  DynamoDbProxy::Rule rule;
  std::string once;    ///< it happens to the first try
  std::string always;  ///< it happens to every try

  friend void PrintTo(const FaultAndEnds& one, std::ostream* out) { *out << one.name; }
};

// To a request that was answered, however late.
inline constexpr const char* unharmed = "AACAAAA";
// Refused before it was done: another try does no harm.
inline constexpr const char* throttled_always = "TTTTTTT";
// No answer, or none that says what became of it: what adds is not tried again.
inline constexpr const char* in_doubt_once = "AMCUAAA";
inline constexpr const char* in_doubt_always = "UUUUUUU";
inline constexpr const char* in_doubt_always_but_done = "UUUUUEU";  // the next look at the table finds it
// It was done, most likely, and its answer is spoiled: only reads are tried again.
inline constexpr const char* spoiled_once = "AUUUUAA";
inline constexpr const char* refused_for_good = "RRRRRRR";

inline DynamoDbProxy::Rule server_error(int status, std::string type, std::string message = "made by a test") {
  DynamoDbProxy::Rule rule;
  rule.fault = DynamoDbFault::error;
  rule.status = status;
  rule.type = std::move(type);
  rule.message = std::move(message);
  return rule;
}

inline std::vector<FaultAndEnds> fault_table() {
  using Fault = DynamoDbFault;
  return {
      {"delay_request", {.fault = Fault::delay_request}, unharmed, in_doubt_always_but_done},
      {"delay_reply", {.fault = Fault::delay_reply}, unharmed, in_doubt_always_but_done},
      {"drop_request", {.fault = Fault::drop_request}, in_doubt_once, in_doubt_always},
      {"drop_reply", {.fault = Fault::drop_reply}, in_doubt_once, in_doubt_always_but_done},
      {"hold_request", {.fault = Fault::hold_request}, in_doubt_once, in_doubt_always},
      {"hold_reply", {.fault = Fault::hold_reply}, in_doubt_once, in_doubt_always_but_done},
      {"cut_before_request", {.fault = Fault::cut_before_request}, in_doubt_once, in_doubt_always},
      {"cut_after_request", {.fault = Fault::cut_after_request}, in_doubt_once, in_doubt_always_but_done},
      {"cut_after_reply", {.fault = Fault::cut_after_reply}, in_doubt_once, in_doubt_always_but_done},
      {"half_body", {.fault = Fault::half_body}, in_doubt_once, in_doubt_always_but_done},
      {"no_http", {.fault = Fault::no_http}, in_doubt_once, in_doubt_always_but_done},
      {"garbage", {.fault = Fault::garbage}, spoiled_once, in_doubt_always_but_done},
      // The conflict comes as an error, and one whose checksum is wrong is no answer: it is asked for again.
      {"wrong_crc", {.fault = Fault::wrong_crc}, "AUCUUAA", in_doubt_always_but_done},
      {"status_500", {.fault = Fault::status_500}, in_doubt_once, in_doubt_always},
      {"status_500_after", {.fault = Fault::status_500_after}, in_doubt_once, in_doubt_always_but_done},
      {"status_503", {.fault = Fault::status_503}, in_doubt_once, in_doubt_always},
      {"service_unavailable", server_error(503, "ServiceUnavailable"), in_doubt_once, in_doubt_always},
      {"unprocessed", {.fault = Fault::unprocessed}, unharmed, unharmed},
      {"throttle", {.fault = Fault::throttle}, unharmed, throttled_always},
      {"throttling_exception", server_error(400, "ThrottlingException"), unharmed, throttled_always},
      {"request_limit_exceeded", server_error(400, "RequestLimitExceeded"), unharmed, throttled_always},
      {"expired_token", server_error(400, "ExpiredTokenException"), unharmed, refused_for_good},
      {"access_denied", server_error(400, "AccessDeniedException"), refused_for_good, refused_for_good},
      {"validation", server_error(400, "ValidationException", "made by a test"), refused_for_good, refused_for_good},
      {"unknown_error", server_error(400, "SomethingNewException"), refused_for_good, refused_for_good},
      // To initialize() this is news, not a fault: there is no such table, so it is made, though it may be there.
      {"resource_not_found", server_error(400, "ResourceNotFoundException"), "RRRRRRA", "RRRRRRU"},
  };
}

}  // namespace holdfast::test
