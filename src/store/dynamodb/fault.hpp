#pragma once
#include <string>
#include <string_view>

#include "holdfast/store.hpp"
#include "store/dynamodb/call.hpp"
#include "store/dynamodb/table_url.hpp"

namespace holdfast::store::dynamodb {

/// What became of a call, and what to do about it, in words.
struct Fault {
  Outcome outcome = Outcome::unknown;
  Error error;
};

/// Reads the error of a reply that is not applied: which outcome of S5 it is, with advice that names the table. An
/// error whose type is not known keeps the outcome that the client gave it. A write that may have been carried out by
/// an earlier try is unknown whatever the last one says, but for a conflict: that one shows the row.
[[nodiscard]] Fault fault_of(const Call& call, const CallReply& reply, const TableOptions& options);

/// What the server said, from the error's body.
[[nodiscard]] std::string message_of(const CallReply& reply);

}  // namespace holdfast::store::dynamodb
