#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "holdfast/loop.hpp"
#include "runtime/secure_random.hpp"
#include "store/dynamodb/call.hpp"
#include "store/dynamodb/fault.hpp"
#include "store/dynamodb/item.hpp"
#include "store/dynamodb/table_url.hpp"
#include "store/request.hpp"

namespace holdfast::store::dynamodb {

/// What was found out about the server, from its answers.
struct Server {
  enum class Does { not_known, yes, no };
  Does transactions = Does::not_known;
  Does returns_item_on_conflict = Does::not_known;
  Does stream = Does::not_known;  ///< whether the table has one
};

/// What the requests of one store share. Once it is closed no call and no timer of theirs comes back.
struct Context : std::enable_shared_from_this<Context> {
  Context(Loop& loop_, TableOptions options_, std::unique_ptr<Caller> caller_)
      : loop(loop_), options(std::move(options_)), caller(std::move(caller_)) {}

  /// Makes a call whose reply comes back unless the store was closed meanwhile.
  void call(Call call, Instant deadline, std::function<void(CallReply)> handler);
  /// Runs it later, unless the store was closed meanwhile.
  void later(Duration delay, std::function<void()> task);
  /// The fault of a reply that is not applied.
  [[nodiscard]] Fault fault(const Call& call, const CallReply& reply) const { return fault_of(call, reply, options); }

  Loop& loop;
  const TableOptions options;
  std::unique_ptr<Caller> caller;  // gone with the store, and its calls with it
  Server server;
  runtime::SecureRandom tokens;  // two processes whose loops have one seed must not come to one token
  bool closed = false;
};
using ContextPtr = std::shared_ptr<Context>;

using Done = std::function<void(Answer)>;  ///< called once, not inside run(), unless the store is closed

// Carry out one request each, with as many calls as it takes, within the deadline.
void run(const ContextPtr& context, const Initialize& request, Instant deadline, Done done);
void run(const ContextPtr& context, const Get& request, Instant deadline, Done done);
void run(const ContextPtr& context, const BatchGet& request, Instant deadline, Done done);
void run(const ContextPtr& context, const Update& request, Instant deadline, Done done);
void run(const ContextPtr& context, const Transact& request, Instant deadline, Done done);
void run(const ContextPtr& context, const QueryDue& request, Instant deadline, Done done);
void run(const ContextPtr& context, const QueryOwned& request, Instant deadline, Done done);

/// The consistent row; shared by those that look at a row after a write.
void read_row(const ContextPtr& context, const std::string& key, Instant deadline,
              std::function<void(RowReply)> handler);
void read_rows(const ContextPtr& context, std::vector<std::string> keys, Instant deadline,
               std::function<void(RowsReply)> handler);

/// `{"TableName":"jobs","ReturnConsumedCapacity":"INDEXES"` : how the body of a call on items begins.
[[nodiscard]] std::string begin_body(const TableOptions& options);
/// Appends `,"name":"text"`.
void add_member(std::string& body, std::string_view name, std::string_view text);

/// Rows out of an array of items, appended; those that cannot be read are told in the error.
void add_rows(const boost::json::object& answer, std::string_view array, const Names& names, std::vector<Row>& rows,
              Error& error);

}  // namespace holdfast::store::dynamodb
