// The index, and the walk over all rows.
#include <algorithm>
#include <boost/json/value.hpp>
#include <utility>

#include "store/dynamodb/context.hpp"
#include "store/dynamodb/members.hpp"
#include "store/dynamodb/number.hpp"
#include "store/json.hpp"
#include "store/rows.hpp"

namespace holdfast::store::dynamodb {

namespace {

// A page's token is where its last row stands in the index: `0:NUMBER:KEY`, with the number's digits as they are in
// the table, for they may be more than 64 bits. The 0 makes it one that check() takes for a token.

std::string token_of(const boost::json::object& last, const TableOptions& options) {
  const boost::json::object* typed = object_in(last, options.names.theirs(attribute::expires_at));
  const boost::json::value* digits = typed == nullptr ? nullptr : typed->if_contains("N");
  const auto key = row_from_item(last, options.names);
  if (digits == nullptr || !digits->is_string() || !key) return {};
  return to_token(0, std::string(digits->get_string()) + ":" + key->key);
}

/// Appends `{"Pk":…,"desired_state":…,"lease_expires_at_ms":…}`; false where the token is none of this store's.
bool write_place(const std::string& token, const QueryDue& query, const TableOptions& options, std::string& out) {
  const auto position = position_from(token);
  const std::size_t colon = position ? position->key.find(':') : std::string::npos;
  if (colon == std::string::npos) return false;
  const std::string digits = position->key.substr(0, colon);
  if (!expiry_from_number(digits, options.names.expiry_unit())) return false;
  write_key(position->key.substr(colon + 1), options.names, out);
  out.back() = ',';
  write_json(options.names.theirs(attribute::desired_state), out);
  out.push_back(':');
  write_value(Value(query.state), out);
  out.push_back(',');
  write_json(options.names.theirs(attribute::expires_at), out);
  out.push_back(':');
  write_number(digits, out);
  out.push_back('}');
  return true;
}

/// The condition on the index's second attribute. Its bound below takes in a bit too much where there is one above
/// as well, since DynamoDB then includes both: what is read as too early is left out afterwards.
void write_key_condition(const QueryDue& query, std::int64_t last, const TableOptions& options, std::string& body) {
  const ExpiryUnit unit = options.names.expiry_unit();
  const bool from_start = query.from == WallTime::min();
  const bool to_end = last == INT64_MAX;
  std::string condition = "#0 = :0";
  std::string values = R"("ExpressionAttributeValues":{":0":)";
  write_value(Value(query.state), values);
  const auto bound = [&](const char* name, std::int64_t ms) {
    values.append(",\"").append(name).append("\":");
    write_number(highest_number_within(ms, unit), values);
  };
  const std::int64_t before_first = from_start ? 0 : query.from.time_since_epoch().count() - 1;
  if (!from_start && !to_end) {
    condition += " AND #1 BETWEEN :1 AND :2";
    bound(":1", before_first);
    bound(":2", last);
  } else if (!from_start) {
    condition += " AND #1 > :1";
    bound(":1", before_first);
  } else if (!to_end) {
    condition += " AND #1 <= :1";
    bound(":1", last);
  }
  add_member(body, "KeyConditionExpression", condition);
  body.append(R"(,"ExpressionAttributeNames":{"#0":)");
  write_json(options.names.theirs(attribute::desired_state), body);
  if (!from_start || !to_end) {
    body.append(R"(,"#1":)");
    write_json(options.names.theirs(attribute::expires_at), body);
  }
  body.append("},").append(values).push_back('}');
}

PageReply page_from(const CallReply& reply, const QueryDue& query, const TableOptions& options) {
  PageReply page{Outcome::applied, {}, {}};
  add_rows(reply.answer, "Items", options.names, page.value.rows, page.error);
  std::erase_if(page.value.rows, [&](const Row& row) {
    return WallTime(std::chrono::milliseconds(row.number(attribute::expires_at))) < query.from;
  });
  const boost::json::object* last = object_in(reply.answer, "LastEvaluatedKey");
  if (last != nullptr) page.value.next = token_of(*last, options);
  return page;
}

/// All rows of an owner, from all pages of the table.
class Walk : public std::enable_shared_from_this<Walk> {
 public:
  Walk(ContextPtr context, std::string owner, Instant deadline, Done done)
      : context_(std::move(context)), owner_(std::move(owner)), deadline_(deadline), done_(std::move(done)) {}

  void next() {
    const TableOptions& options = context_->options;
    Call call{"Scan", begin_body(options) + R"(,"ConsistentRead":true)"};
    add_member(call.body, "FilterExpression", "#0 = :0");
    call.body.append(R"(,"ExpressionAttributeNames":{"#0":)");
    write_json(options.names.theirs(attribute::owner), call.body);
    call.body.append(R"(},"ExpressionAttributeValues":{":0":)");
    write_value(Value(owner_), call.body);
    call.body.push_back('}');
    if (!last_key_.empty()) {
      call.body.append(R"(,"ExclusiveStartKey":)");
      write_key(last_key_, options.names, call.body);
    }
    call.body.push_back('}');
    context_->call(std::move(call), deadline_,
                   [self = shared_from_this()](const CallReply& reply) { self->take(reply); });
  }

 private:
  void take(const CallReply& reply) {
    if (reply.outcome != Outcome::applied) {
      Fault fault = context_->fault(Call{"Scan", {}}, reply);
      return done_(RowsReply{fault.outcome, {}, std::move(fault.error)});
    }
    add_rows(reply.answer, "Items", context_->options.names, reply_.value, reply_.error);
    const boost::json::object* last = object_in(reply.answer, "LastEvaluatedKey");
    if (last == nullptr) {
      reply_.outcome = Outcome::applied;
      return done_(std::move(reply_));
    }
    const auto key = row_from_item(*last, context_->options.names);
    if (!key || key->key == last_key_) {
      return done_(RowsReply{Outcome::unknown, {}, {Code::corrupt, "the server does not say where its page ends"}});
    }
    last_key_ = key->key;
    next();
  }

  const ContextPtr context_;
  const std::string owner_;
  const Instant deadline_;
  const Done done_;
  std::string last_key_;
  RowsReply reply_;
};

}  // namespace

void run(const ContextPtr& context, const QueryDue& request, Instant deadline, Done done) {
  const TableOptions& options = context->options;
  const auto answer = [&](PageReply reply) {
    context->later(Duration::zero(), [done, reply = std::move(reply)] { done(reply); });
  };
  const auto last = last_expiry(request.before);
  const bool is_empty = !last || (request.from != WallTime::min() && request.from.time_since_epoch().count() > *last);
  if (is_empty) return answer({Outcome::applied, {}, {}});
  Call call{"Query", begin_body(options)};
  call.purpose = request.purpose;
  add_member(call.body, "IndexName", options.index);
  call.body.append(",\"Limit\":").append(std::to_string(std::min(request.limit, page_rows_max)));
  write_key_condition(request, *last, options, call.body);
  if (!request.page.empty()) {
    call.body.append(R"(,"ExclusiveStartKey":)");
    if (!write_place(request.page, request, options, call.body)) {
      return answer({Outcome::rejected, {}, {Code::usage, "this is no page token of this store"}});
    }
  }
  call.body.push_back('}');
  context->call(std::move(call), deadline, [context, request, done = std::move(done)](const CallReply& reply) {
    if (reply.outcome == Outcome::applied) return done(page_from(reply, request, context->options));
    Fault fault = context->fault(Call{"Query", {}}, reply);
    done(PageReply{fault.outcome, {}, std::move(fault.error)});
  });
}

void run(const ContextPtr& context, const QueryOwned& request, Instant deadline, Done done) {
  std::make_shared<Walk>(context, request.owner, deadline, std::move(done))->next();
}

}  // namespace holdfast::store::dynamodb
