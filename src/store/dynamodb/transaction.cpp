// Several rows, all or none.
#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <map>
#include <utility>

#include "store/dynamodb/context.hpp"
#include "store/dynamodb/expression.hpp"
#include "store/dynamodb/members.hpp"
#include "store/json.hpp"

namespace holdfast::store::dynamodb {

namespace {

constexpr std::size_t token_bytes_max = 36;
constexpr std::string_view unused_attribute = "holdfast_unused";

/// Why each update did not happen, in their order.
struct Reason {
  std::string code, message;
  std::optional<Row> row;
};

std::vector<Reason> reasons_of(const CallReply& reply, const Names& names) {
  std::vector<Reason> reasons;
  for (const boost::json::value& value : array_in(reply.error_body, "CancellationReasons")) {
    Reason& reason = reasons.emplace_back();
    const boost::json::object* object = value.if_object();
    if (object == nullptr) continue;
    reason.code = text_in(*object, "Code");
    reason.message = text_in(*object, "Message");
    const boost::json::object* item = object_in(*object, "Item");
    if (item == nullptr || item->empty()) continue;
    if (auto row = row_from_item(*item, names)) reason.row = std::move(*row);
  }
  return reasons;
}

RowsReply refusal(Code code, std::string detail) {
  return {Outcome::rejected, {}, {code, std::move(detail)}};
}

/// A transaction that was not carried out, from the reasons of its parts: a condition that failed comes first, then
/// what can never be done, then what may work later.
RowsReply cancelled(const std::vector<Update>& updates, std::vector<Reason> reasons, const std::string& message) {
  RowsReply conflict{Outcome::conflict, {}, {}};
  RowsReply other{Outcome::throttled, {}, {Code::unavailable, "the transaction was put off: " + message}};
  bool has_conflict = false;
  for (std::size_t i = 0; i < reasons.size() && i < updates.size(); ++i) {
    Reason& reason = reasons[i];
    if (reason.code == "ConditionalCheckFailed") {
      if (reason.row && adds_past_the_end(updates[i], *reason.row)) {
        other = refusal(Code::usage, "the changes to " + updates[i].key + " cannot be made: one adds past 64 bits");
        continue;
      }
      has_conflict = true;
      if (reason.row) conflict.value.push_back(std::move(*reason.row));
    } else if (reason.code == "ValidationError" || reason.code == "ItemCollectionSizeLimitExceeded") {
      other = refusal(Code::usage, "the changes to " + updates[i].key + " cannot be made: " + reason.message);
    }
  }
  return has_conflict ? conflict : other;
}

/// In the order of the updates. What somebody removed since then is not among them.
RowsReply in_order(const std::vector<Update>& updates, RowsReply read) {
  RowsReply reply{Outcome::applied, {}, std::move(read.error)};
  if (!read.ok()) {
    reply.error.detail = "the transaction was carried out, but its rows could not be read: " + reply.error.detail;
    return reply;
  }
  std::map<std::string, Row> by_key;
  for (Row& row : read.value) {
    std::string key = row.key;
    by_key.emplace(std::move(key), std::move(row));
  }
  for (const Update& update : updates) {
    const auto found = by_key.find(update.key);
    if (found != by_key.end()) reply.value.push_back(std::move(found->second));
  }
  return reply;
}

void take_reply(const ContextPtr& context, const std::vector<Update>& updates, const CallReply& reply,
                Instant deadline, const Done& done) {
  Server::Does& does = context->server.transactions;
  if (reply.outcome == Outcome::applied) {
    does = Server::Does::yes;
    std::vector<std::string> keys;
    keys.reserve(updates.size());
    for (const Update& update : updates) keys.push_back(update.key);
    return read_rows(context, std::move(keys), deadline,
                     [updates, done](RowsReply read) { done(in_order(updates, std::move(read))); });
  }
  if (reply.aws_type == "UnknownOperationException") does = Server::Does::no;
  Fault fault = context->fault(Call{"TransactWriteItems", {}, true}, reply);
  if (reply.aws_type != "TransactionCanceledException") {
    return done(RowsReply{fault.outcome, {}, std::move(fault.error)});
  }
  does = Server::Does::yes;
  RowsReply answer = cancelled(updates, reasons_of(reply, context->options.names), message_of(reply));
  // S5: an earlier try may have been carried out, if its token was forgotten meanwhile.
  if (reply.maybe_applied && answer.outcome != Outcome::conflict) answer.outcome = Outcome::unknown;
  done(std::move(answer));
}

Result<void> write_items(const std::vector<Update>& updates, const TableOptions& options, std::string& body) {
  body.append(R"({"ReturnConsumedCapacity":"INDEXES","TransactItems":[)");
  for (const Update& update : updates) {
    body.append(&update == &updates.front() ? "" : ",").append(R"({"Update":{"TableName":)");
    write_json(std::string_view(options.table), body);
    body.push_back(',');
    // In a transaction an update has to say what it changes. What changes nothing must still make its row.
    Update complete = update;
    if (complete.changes.empty()) complete.changes.push_back(Change::remove(unused_attribute));
    if (auto written = write_update(complete, options.names, body); !written) return written;
    body.append(R"(,"ReturnValuesOnConditionCheckFailure":"ALL_OLD"}})");
  }
  body.push_back(']');
  return {};
}

}  // namespace

void run(const ContextPtr& context, const Transact& request, Instant deadline, Done done) {
  const auto refuse = [&](const Error& error) {
    context->later(Duration::zero(), [done, error] { done(RowsReply{Outcome::rejected, {}, error}); });
  };
  if (request.token.size() > token_bytes_max) {
    return refuse({Code::usage, "a transaction's token has at most 36 characters"});
  }
  Call call{"TransactWriteItems", {}, true};
  if (auto written = write_items(request.updates, context->options, call.body); !written) {
    return refuse(written.error());
  }
  // With a token, a try that is repeated is carried out once; so it always has one.
  add_member(call.body, "ClientRequestToken",
             request.token.empty() ? context->tokens.attempt().to_string() : request.token);
  call.body.push_back('}');
  context->call(std::move(call), deadline,
                [context, updates = request.updates, deadline, done = std::move(done)](const CallReply& reply) {
                  take_reply(context, updates, reply, deadline, done);
                });
}

}  // namespace holdfast::store::dynamodb
