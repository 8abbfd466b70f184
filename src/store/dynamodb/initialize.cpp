// initialize(): the table, its index, its stream and its TTL; and what nothing depends on any more.
#include <algorithm>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <chrono>
#include <utility>

#include "store/dynamodb/context.hpp"
#include "store/dynamodb/expression.hpp"
#include "store/dynamodb/members.hpp"
#include "store/dynamodb/table_shape.hpp"
#include "store/json.hpp"
#include "store/rows.hpp"

namespace holdfast::store::dynamodb {

namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

constexpr Duration first_pause = 200ms;
constexpr Duration pause_max = 2s;
constexpr std::size_t forgotten_max = 500;  // rows of each kind, at each call
constexpr std::size_t deletes_max = 16;     // at once

using Reply = holdfast::Reply<std::string>;

/// Deletes rows that may be forgotten, as they were seen in the index; what changed since stays.
class Sweep : public std::enable_shared_from_this<Sweep> {
 public:
  Sweep(ContextPtr context, Instant deadline, std::function<void()> done)
      : context_(std::move(context)), deadline_(deadline), done_(std::move(done)) {}

  void start() {
    looks_ = 2;
    look(state::removed);
    look(state::worker);
  }

 private:
  void look(std::string_view state) {
    QueryDue query;
    query.state = state;
    query.before = context_->loop.wall();
    query.limit = forgotten_max;
    run(context_, query, deadline_,
        [self = shared_from_this()](Answer answer) { self->take(std::get<PageReply>(std::move(answer))); });
  }

  // What cannot be read or removed now will be another time.
  void take(PageReply reply) {
    const WallTime now = context_->loop.wall();
    for (Row& row : reply.value.rows) {
      if (may_be_forgotten(row, now)) rows_.push_back(std::move(row));
    }
    if (--looks_ > 0) return;
    if (rows_.empty()) return done_();
    for (std::size_t i = 0; i < deletes_max && !rows_.empty(); ++i) remove_next();
  }

  void remove_next() {
    const Row row = std::move(rows_.back());
    rows_.pop_back();
    Call call{"DeleteItem", begin_body(context_->options), true};
    call.body.push_back(',');
    const Update as_seen{row.key, {}, unchanged(row)};
    ++in_flight_;
    const auto removed = [self = shared_from_this()] {
      --self->in_flight_;
      if (!self->rows_.empty()) return self->remove_next();
      if (self->in_flight_ == 0) self->done_();
    };
    if (!write_update(as_seen, context_->options.names, call.body)) return context_->later(Duration::zero(), removed);
    call.body.push_back('}');
    context_->call(std::move(call), deadline_, [removed](const CallReply&) { removed(); });
  }

  static Condition unchanged(const Row& row) {
    Condition condition = Condition::row_exists();
    for (const auto name : {attribute::desired_state, attribute::expires_at, attribute::tombstone_expires_at}) {
      const Value* value = row.find(name);
      condition =
          std::move(condition) && (value == nullptr ? Condition::not_exists(name) : Condition::equals(name, *value));
    }
    return condition;
  }

  const ContextPtr context_;
  const Instant deadline_;
  const std::function<void()> done_;
  int looks_ = 0;
  std::size_t in_flight_ = 0;
  std::vector<Row> rows_;
};

class Initializer : public std::enable_shared_from_this<Initializer> {
 public:
  Initializer(ContextPtr context, Instant deadline, Done done)
      : context_(std::move(context)), deadline_(deadline), done_(std::move(done)) {}

  void look() {
    ask("DescribeTable", body_of_name(), false, [this](const CallReply& reply, Fault fault) {
      if (reply.outcome == Outcome::applied) return take_table(reply.answer);
      if (reply.aws_type == "ResourceNotFoundException" && made_.empty()) return create();
      if (reply.aws_type == "ResourceNotFoundException") return wait();  // made, but not to be seen everywhere yet
      end(fault.outcome, std::move(fault.error));
    });
  }

 private:
  using Take = std::function<void(const CallReply&, Fault)>;

  void ask(const char* operation, std::string body, bool is_write, Take take) {
    const Call head{operation, {}, is_write};
    context_->call(Call{operation, std::move(body), is_write}, deadline_,
                   [self = shared_from_this(), head, take = std::move(take)](const CallReply& reply) {
                     const bool told = reply.outcome == Outcome::applied;
                     take(reply, told ? Fault{} : self->context_->fault(head, reply));
                   });
  }

  [[nodiscard]] const TableOptions& options() const { return context_->options; }
  [[nodiscard]] std::string body_of_name() const {
    return json::serialize(json::object{{"TableName", options().table}});
  }

  void end(Outcome outcome, Error error) { done_(Reply{outcome, {}, std::move(error)}); }

  void create() {
    made_ = "made table " + options().table + " with its index " + options().index;
    change("CreateTable", body_of_create(options()));
  }

  /// A change to the table; another process may be doing the same.
  void change(const char* operation, std::string body) {
    ask(operation, std::move(body), true, [this](const CallReply& reply, Fault fault) {
      const bool is_under_way = reply.outcome == Outcome::applied || reply.aws_type == "ResourceInUseException" ||
                                reply.aws_type == "LimitExceededException" || fault.outcome == Outcome::unknown;
      if (is_under_way) return wait();
      end(fault.outcome, std::move(fault.error));
    });
  }

  void wait() {
    const Duration pause = context_->loop.random().between(pause_ / 2, pause_);
    pause_ = std::min<Duration>(pause_ * 2, pause_max);
    if (context_->loop.instant() + pause >= deadline_) {
      return end(Outcome::unknown, {Code::unavailable, "table " + options().table + " or its index is still being " +
                                                           "made: run 'holdfast init' again to wait for it"});
    }
    context_->later(pause, [self = shared_from_this()] { self->look(); });
  }

  void take_table(const json::object& answer) {
    const json::object* table = object_in(answer, "Table");
    if (table == nullptr) {
      return end(Outcome::unknown, {Code::corrupt, "the answer to DescribeTable has no table"});
    }
    const TableShape shape = shape_of(*table, options());
    context_->server.stream = shape.has_stream ? Server::Does::yes : Server::Does::no;
    if (shape.misfit) return end(Outcome::rejected, {Code::corrupt, *shape.misfit});
    if (!shape.is_active || (shape.has_index && !shape.index_is_active)) return wait();
    if (!shape.has_index) {
      note("added the index " + options().index);
      return change("UpdateTable", body_of_add_index(options(), shape.is_on_demand));
    }
    if (options().making.stream && !shape.has_stream) {
      note("turned its stream on");
      return change("UpdateTable", body_of_add_stream(options()));
    }
    // As it was made just now, it is as was asked.
    if (made_.empty() && !shape.differs.empty()) differs_ = "; " + shape.differs;
    look_at_ttl();
  }

  void note(const std::string& what) {
    if (made_.empty()) made_ = "table " + options().table + " was there; ";
    if (notes_.find(what) == std::string::npos) notes_ += (notes_.empty() ? "" : "; ") + what;
  }

  /// F18: the table itself forgets tombstones, and nothing else, when their seconds have passed.
  void look_at_ttl() {
    ask("DescribeTimeToLive", body_of_name(), false, [this](const CallReply& reply, const Fault& fault) {
      if (reply.outcome != Outcome::applied) {
        differs_ += "; its tombstones stay until 'holdfast init' is run again, since TTL cannot be set here (" +
                    fault.error.detail + ")";
        return probe();
      }
      const std::string_view wanted = options().names.theirs(attribute::tombstone_expires_at);
      const json::object* ttl = object_in(reply.answer, "TimeToLiveDescription");
      const json::value* status = ttl == nullptr ? nullptr : ttl->if_contains("TimeToLiveStatus");
      const bool is_set = status != nullptr && (*status == "ENABLED" || *status == "ENABLING");
      if (!is_set) return set_ttl(wanted);
      const json::value* name = ttl->if_contains("AttributeName");
      if (name != nullptr && name->is_string() && std::string_view(name->get_string()) != wanted) {
        differs_ += "; its TTL is on " + std::string(name->get_string()) + " instead of " + std::string(wanted) +
                    ": tombstones stay until 'holdfast init' is run again, and a live row that has " +
                    std::string(name->get_string()) + " may be lost";
      }
      probe();
    });
  }

  void set_ttl(std::string_view attribute) {
    const json::object body{{"TableName", options().table},
                            {"TimeToLiveSpecification", {{"Enabled", true}, {"AttributeName", attribute}}}};
    ask("UpdateTimeToLive", json::serialize(body), true, [this](const CallReply& reply, const Fault& fault) {
      if (reply.outcome != Outcome::applied) differs_ += "; its TTL could not be set (" + fault.error.detail + ")";
      probe();
    });
  }

  /// Whether the server has transactions: one that changes nothing, and fails.
  void probe() {
    std::string body = R"({"TransactItems":[{"ConditionCheck":{"TableName":)";
    write_json(std::string_view(options().table), body);
    body.append(R"(,"Key":)");
    write_key("holdfast-probe", options().names, body);
    body.append(R"j(,"ConditionExpression":"attribute_exists(#0)","ExpressionAttributeNames":{"#0":)j");
    write_json(std::string_view(options().names.key()), body);
    body.append("}}}]}");
    ask("TransactWriteItems", std::move(body), false, [this](const CallReply& reply, const Fault&) {
      if (reply.aws_type == "UnknownOperationException") context_->server.transactions = Server::Does::no;
      if (reply.aws_type == "TransactionCanceledException") context_->server.transactions = Server::Does::yes;
      std::make_shared<Sweep>(context_, deadline_, [self = shared_from_this()] { self->finish(); })->start();
    });
  }

  void finish() {
    std::string done =
        made_.empty() ? "table " + options().table + " is there, with its index " + options().index : made_ + notes_;
    done_(Reply{Outcome::applied, done + differs_, {}});
  }

  const ContextPtr context_;
  const Instant deadline_;
  const Done done_;
  Duration pause_ = first_pause;
  std::string made_, notes_, differs_;
};

}  // namespace

void run(const ContextPtr& context, const Initialize& /*request*/, Instant deadline, Done done) {
  std::make_shared<Initializer>(context, deadline, std::move(done))->look();
}

}  // namespace holdfast::store::dynamodb
