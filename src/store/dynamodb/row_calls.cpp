// One row: get and update.
#include <boost/json/value.hpp>
#include <utility>

#include "store/dynamodb/context.hpp"
#include "store/dynamodb/expression.hpp"
#include "store/dynamodb/members.hpp"

namespace holdfast::store::dynamodb {

namespace {

constexpr const char* earlier_try = "an earlier try of this write was not answered: the conflict may be with it";

/// A condition failed, and the server does not show the row.
void look_after_conflict(const ContextPtr& context, const Update& update, Instant deadline,
                         const std::function<void(RowReply)>& settle) {
  read_row(context, update.key, deadline, [context, settle](RowReply read) {
    if (read.ok()) {
      if (read.value) context->server.returns_item_on_conflict = Server::Does::no;
      read.outcome = Outcome::conflict;
      return settle(std::move(read));
    }
    // That there is no row must not be concluded from this (S6): the write is as good as unanswered.
    const std::string why = "the condition failed, but the row could not be read: " + read.error.detail;
    settle({Outcome::unknown, std::nullopt, {read.error.code, why}});
  });
}

/// What an update comes to whose condition failed, once the row is known.
RowReply after_conflict(const Update& update, RowReply reply) {
  if (reply.outcome != Outcome::conflict || !reply.value || !adds_past_the_end(update, *reply.value)) return reply;
  return {Outcome::rejected,
          std::nullopt,
          {Code::usage, "the changes to " + update.key + " cannot be made: one adds past 64 bits"}};
}

void take_update_reply(const ContextPtr& context, const Update& update, const Fault& fault, const CallReply& reply,
                       Instant deadline, const Done& done) {
  const Names& names = context->options.names;
  if (reply.outcome == Outcome::applied) {
    const boost::json::object* attributes = object_in(reply.answer, "Attributes");
    auto row = attributes == nullptr ? Result<Row>(fail(Code::corrupt, "the answer to UpdateItem has no row"))
                                     : row_from_item(*attributes, names);
    if (row) return done(RowReply{Outcome::applied, std::move(*row), {}});
    return done(RowReply{Outcome::unknown, std::nullopt, row.error()});
  }
  if (fault.outcome != Outcome::conflict) return done(RowReply{fault.outcome, std::nullopt, fault.error});
  const auto settle = [update, done, maybe_ours = reply.maybe_applied](RowReply known) {
    RowReply after = after_conflict(update, std::move(known));
    if (maybe_ours && after.outcome == Outcome::conflict) after.error = {Code::unavailable, earlier_try};
    done(std::move(after));
  };
  if (const boost::json::object* item = object_in(reply.error_body, "Item"); item != nullptr && !item->empty()) {
    context->server.returns_item_on_conflict = Server::Does::yes;
    auto row = row_from_item(*item, names);
    if (row) return settle({Outcome::conflict, std::move(*row), {}});
    return done(RowReply{Outcome::unknown, std::nullopt, row.error()});
  }
  // Either there is no row, or the server knows nothing of ReturnValuesOnConditionCheckFailure.
  if (context->server.returns_item_on_conflict == Server::Does::yes) {
    return settle({Outcome::conflict, std::nullopt, {}});
  }
  look_after_conflict(context, update, deadline, settle);
}

}  // namespace

void read_row(const ContextPtr& context, const std::string& key, Instant deadline,
              std::function<void(RowReply)> handler) {
  Call call{"GetItem", begin_body(context->options) + R"(,"ConsistentRead":true,"Key":)"};
  write_key(key, context->options.names, call.body);
  call.body.push_back('}');
  const Call head{call.operation, {}, false};
  context->call(std::move(call), deadline, [context, head, handler = std::move(handler)](const CallReply& reply) {
    if (reply.outcome != Outcome::applied) {
      Fault fault = context->fault(head, reply);
      return handler({fault.outcome, std::nullopt, std::move(fault.error)});
    }
    const boost::json::object* item = object_in(reply.answer, "Item");
    if (item == nullptr) return handler({Outcome::applied, std::nullopt, {}});
    auto row = row_from_item(*item, context->options.names);
    if (row) return handler({Outcome::applied, std::move(*row), {}});
    handler({Outcome::rejected, std::nullopt, row.error()});
  });
}

void run(const ContextPtr& context, const Get& request, Instant deadline, Done done) {
  read_row(context, request.key, deadline, [done = std::move(done)](RowReply reply) { done(std::move(reply)); });
}

void run(const ContextPtr& context, const Update& request, Instant deadline, Done done) {
  Call call{"UpdateItem", begin_body(context->options), true, !adds(request), request.purpose};
  call.body.push_back(',');
  if (auto written = write_update(request, context->options.names, call.body); !written) {
    return context->later(Duration::zero(), [done = std::move(done), error = written.error()] {
      done(RowReply{Outcome::rejected, std::nullopt, error});
    });
  }
  call.body.append(R"(,"ReturnValues":"ALL_NEW","ReturnValuesOnConditionCheckFailure":"ALL_OLD"})");
  const Call head{call.operation, {}, true};
  context->call(std::move(call), deadline,
                [context, head, request, deadline, done = std::move(done)](const CallReply& reply) {
                  const Fault fault = reply.outcome == Outcome::applied ? Fault{} : context->fault(head, reply);
                  take_update_reply(context, request, fault, reply, deadline, done);
                });
}

}  // namespace holdfast::store::dynamodb
