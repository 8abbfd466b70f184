#include "store/dynamodb/diagnose.hpp"

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <chrono>
#include <memory>
#include <utility>

#include "runtime/units.hpp"
#include "store/dynamodb/credentials.hpp"
#include "store/dynamodb/expression.hpp"
#include "store/dynamodb/members.hpp"
#include "store/dynamodb/table_shape.hpp"
#include "store/json.hpp"
#include "store/race.hpp"

namespace holdfast::store::dynamodb {

namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

constexpr Duration call_limit = 5s;
// The Date header has whole seconds: answers spread over more than one narrow down when it steps.
constexpr std::size_t samples_max = 14;
constexpr Duration between_samples = 83ms;
constexpr Duration narrow_enough = 150ms;

/// Without a mistake of people's this is nobody's row.
std::string probe_key() {
  return std::string(scratch_prefix) + "probe";
}

/// A write that changes nothing, since its condition cannot hold.
Update impossible() {
  return {.key = probe_key(),
          .changes = {Change::set(attribute::attempt, "probe")},
          .condition = Condition::row_exists() && Condition::row_missing()};
}

/// What is asked to see whether it may be.
struct Probe {
  Call call;
  Health refused = Health::failed;  ///< what it means for a fleet where it may not
  std::string without;              ///< what does not work then
  bool of_streams = false;
};

class Examination : public std::enable_shared_from_this<Examination> {
 public:
  Examination(ContextPtr context, Caller* streams, Instant deadline, std::function<void(Diagnosis)> done)
      : context_(std::move(context)), streams_(streams), deadline_(deadline), done_(std::move(done)) {}

  void start() {
    CredentialSource* source = context_->caller->credentials();
    if (source == nullptr) {
      found("credentials", Health::not_applicable, "calls are not signed by a source that can be asked");
      return describe();
    }
    source->get(limit(), [self = shared_from_this()](const Result<Credentials>& credentials) {
      if (!self->context_->closed) self->take_credentials(credentials);
    });
  }

 private:
  [[nodiscard]] const TableOptions& options() const { return context_->options; }
  [[nodiscard]] Instant limit() const { return std::min(deadline_, context_->loop.instant() + call_limit); }
  [[nodiscard]] std::string init_command() const { return "`holdfast init --store '" + options().url + "'`"; }

  void found(std::string check, Health health, std::string detail, std::string advice = {}) {
    result_.findings.push_back({std::move(check), health, std::move(detail), std::move(advice)});
  }
  void not_checked(std::initializer_list<const char*> checks, const std::string& why) {
    for (const char* check : checks) found(check, Health::not_checked, why);
  }
  void end() { done_(std::move(result_)); }

  void ask(const Call& call, Caller* caller, const std::function<void(const CallReply&, const Fault&)>& take) {
    const auto taken = [self = shared_from_this(), head = Call{call.operation, {}, call.is_write},
                        take](const CallReply& reply) {
      if (self->context_->closed) return;
      const bool told = reply.outcome == Outcome::applied || reply.outcome == Outcome::conflict;
      take(reply, told ? Fault{reply.outcome, {}} : self->context_->fault(head, reply));
    };
    (caller == nullptr ? context_->caller.get() : caller)->call(call, limit(), taken);
  }

  void take_credentials(const Result<Credentials>& credentials) {
    if (!credentials) {
      found("credentials", Health::failed, credentials.error().detail,
            "give this process credentials as AWS's own tools take them: AWS_PROFILE, AWS_ACCESS_KEY_ID with "
            "AWS_SECRET_ACCESS_KEY, or a role");
      not_checked({"reachable", "table", "index", "calls", "clock"}, "without credentials nothing can be asked");
      return end();
    }
    std::string detail = "from " + credentials->provider + ", access key " + credentials->access_key_id;
    if (credentials->expires_at) {
      detail += ", good for " + runtime::describe_duration(*credentials->expires_at - context_->loop.wall());
    }
    found("credentials", Health::ok, std::move(detail));
    describe();
  }

  // The table

  void describe() {
    const Call call{"DescribeTable", json::serialize(json::object{{"TableName", options().table}})};
    ask(call, nullptr, [this, asked = context_->loop.instant()](const CallReply& reply, const Fault& fault) {
      const auto took =
          runtime::describe_duration(std::chrono::ceil<std::chrono::milliseconds>(context_->loop.instant() - asked));
      take_table(reply, fault, took);
    });
  }

  void take_table(const CallReply& reply, const Fault& fault, const std::string& took) {
    const bool denied = reply.aws_type.starts_with("AccessDenied");
    if (reply.outcome != Outcome::applied && reply.aws_type.empty()) {
      found("reachable", Health::failed, fault.error.detail,
            "check the endpoint, the region, the network and what stands between (proxy, firewall, VPC endpoint)");
      not_checked({"table", "index", "calls", "clock"}, "the server is not reached");
      return end();
    }
    found("reachable", Health::ok,
          context_->options.endpoint.empty() ? options().region + " answered in " + took
                                             : options().endpoint + " answered in " + took);
    if (reply.outcome == Outcome::applied) return take_shape(reply.answer);
    if (denied) {
      found("table", Health::not_checked, "its shape cannot be seen without dynamodb:DescribeTable");
      found("index", Health::not_checked, "see Query below");
      found("call DescribeTable", Health::warning, fault.error.detail,
            "allow dynamodb:DescribeTable on the table, if workers are to hear of changes by its stream");
      return look_at_ttl();
    }
    const bool refused = fault.error.code == Code::denied;
    if (refused) {
      std::erase_if(result_.findings, [](const Finding& finding) { return finding.check == "credentials"; });
      found("credentials", Health::failed, fault.error.detail,
            "check whose keys these are, the region that they are for, and this machine's clock");
    } else {
      found("table", Health::failed, fault.error.detail,
            fault.error.code == Code::not_found
                ? "make it with " + init_command() + ", or correct the name, the region or the endpoint in --store"
                : "see what DynamoDB says of it; 'holdfast init' makes a table that does");
    }
    not_checked({"index", "calls", "clock"}, refused ? "the credentials are refused" : "there is no table to ask");
    end();
  }

  void take_shape(const json::object& answer) {
    const json::object* table = object_in(answer, "Table");
    if (table == nullptr) {
      found("table", Health::failed, "the answer to DescribeTable has no table",
            "check what answers at the endpoint");
      return end();
    }
    const TableShape shape = shape_of(*table, options());
    const bool misfit = shape.misfit && !shape.has_index;
    if (misfit) {
      found("table", Health::failed, *shape.misfit,
            "name its key with key=NAME in --store, or take another table: " + init_command() + " makes one");
    } else if (!shape.is_active) {
      found("table", Health::warning, "the table is being made or changed", "wait, and run doctor again");
    } else {
      found("table", Health::ok,
            "its key is the text " + options().names.key() +
                (shape.is_on_demand ? ", paid on demand" : ", with provisioned capacity"));
    }
    take_index(shape, misfit);
    take_stream(*table, shape.has_stream);
    if (misfit) {
      not_checked({"calls", "clock"}, "the table has another key");
      return end();
    }
    look_at_ttl();
  }

  void take_index(const TableShape& shape, bool misfit) {
    index_fails_ = !shape.has_index || !shape.index_is_active || shape.misfit;
    if (misfit) return not_checked({"index"}, "the table has another key");
    if (!shape.has_index) {
      return found("index", Health::failed, "there is no index " + options().index + ": workers find nothing",
                   "add it with " + init_command() + ", or name another with index= in --store");
    }
    if (shape.misfit) {
      return found("index", Health::failed, *shape.misfit,
                   "name another with index= in --store and make it with `holdfast init`, or delete this one first");
    }
    if (!shape.index_is_active) {
      return found("index", Health::failed, "the index " + options().index + " is still being made",
                   "wait; what is held is kept meanwhile. " + init_command() + " waits until it is there");
    }
    found("index", Health::ok, options().index + " is there, over all attributes");
  }

  void take_stream(const json::object& table, bool has_stream) {
    if (has_stream) stream_arn_ = text_in(table, "LatestStreamArn");
    found("stream", has_stream ? Health::ok : Health::not_applicable,
          has_stream ? "is on: workers can hear of changes"
                     : "is off: what becomes free is found by looking, as often as --reconcile says "
                       "(`holdfast init --stream` turns it on)");
  }

  void look_at_ttl() {
    const Call call{"DescribeTimeToLive", json::serialize(json::object{{"TableName", options().table}})};
    ask(call, nullptr, [this](const CallReply& reply, const Fault& fault) {
      take_ttl(reply, fault);
      prepare();
      next_probe();
    });
  }

  void take_ttl(const CallReply& reply, const Fault& fault) {
    const std::string wanted(options().names.theirs(attribute::tombstone_expires_at));
    if (reply.outcome != Outcome::applied) return found("ttl", Health::not_checked, fault.error.detail);
    const json::object* ttl = object_in(reply.answer, "TimeToLiveDescription");
    const std::string status = ttl == nullptr ? "" : text_in(*ttl, "TimeToLiveStatus");
    const std::string on = ttl == nullptr ? "" : text_in(*ttl, "AttributeName");
    if (status != "ENABLED" && status != "ENABLING") {
      return found("ttl", Health::warning, "is off: rows of removed connections stay until `holdfast init` is run",
                   "turn it on with " + init_command());
    }
    if (on == wanted) return found("ttl", Health::ok, "deletes tombstones, by " + wanted);
    found("ttl", Health::warning,
          "is on " + on + " instead of " + wanted + ": a live row that has it may be lost (F18)",
          "turn it off on " + on + " with 'aws dynamodb update-time-to-live', then run " + init_command());
  }

  // What may be called

  void prepare() {
    const Names& names = options().names;
    std::string key, write;
    write_key(probe_key(), names, key);
    const bool can_write = write_update(impossible(), names, write).has_value();
    std::string name;
    write_json(std::string_view(options().table), name);
    const std::string head = R"({"TableName":)" + name;
    add({"GetItem", head + R"(,"ConsistentRead":true,"Key":)" + key + "}"}, Health::failed, "nothing can be read");
    add({"BatchGetItem", R"({"RequestItems":{)" + name + R"(:{"Keys":[)" + key + "]}}}"}, Health::failed,
        "workers cannot read their rows");
    if (can_write) {
      add({"UpdateItem", head + "," + write + "}", true}, Health::failed, "nothing can be claimed or renewed");
      add({"TransactWriteItems", R"({"TransactItems":[{"Update":)" + head + "," + write + "}}]}", true},
          Health::warning, "there are no transactions; workers need none");
    }
    std::string index;
    write_json(std::string_view(options().index), index);
    std::string state;
    write_json(names.theirs(attribute::desired_state), state);
    if (!index_fails_) {
      add({"Query", head + R"(,"IndexName":)" + index +
                        R"j(,"Limit":1,"KeyConditionExpression":"#0 = :0","ExpressionAttributeNames":{"#0":)j" +
                        state + R"(},"ExpressionAttributeValues":{":0":{"S":"REMOVED"}}})"},
          Health::failed, "workers find no connection to claim");
    }
    add({"Scan", head + R"(,"Limit":1})"}, Health::warning,
        "rows that the index cannot see are not found by anybody");
    if (can_write) {
      // Its condition alone.
      Update update = impossible();
      update.changes.clear();
      std::string condition;
      if (write_update(update, names, condition)) {
        add({"DeleteItem", head + "," + condition + "}", true}, Health::warning,
            "`holdfast init` cannot sweep what may be forgotten; the table's TTL does");
      }
    }
    if (!stream_arn_.empty() && streams_ != nullptr) {
      probes_.push_back({Call{"DescribeStream", json::serialize(json::object{{"StreamArn", stream_arn_}})},
                         Health::warning, by_looking, true});
    }
    std::reverse(probes_.begin(), probes_.end());
  }

  void add(Call call, Health refused, const char* without) {
    probes_.push_back({std::move(call), refused, without, false});
  }

  void next_probe() {
    if (probes_.empty()) return finish_calls();
    const Probe probe = std::move(probes_.back());
    probes_.pop_back();
    ask(probe.call, probe.of_streams ? streams_ : nullptr, [this, probe](const CallReply& reply, const Fault& fault) {
      take_probe(probe, reply, fault);
      next_probe();
    });
  }

  void take_probe(const Probe& probe, const CallReply& reply, const Fault& fault) {
    const std::string& operation = probe.call.operation;
    const bool refused_by_condition = reply.aws_type == "TransactionCanceledException";
    if (reply.outcome == Outcome::applied || reply.outcome == Outcome::conflict || refused_by_condition) {
      allowed_ += (allowed_.empty() ? "" : ", ") + operation;
      if (operation == "GetItem" || operation == "UpdateItem") ++races_with_;
      if (operation == "Scan") result_.can_walk = true;
      if (probe.of_streams && reply.outcome == Outcome::applied) ask_stream_on(operation, reply.answer);
      return;
    }
    if (reply.aws_type == "UnknownOperationException") {
      return found("call " + operation, Health::not_applicable, "the server does not know it: " + probe.without);
    }
    const std::string on = probe.of_streams       ? "the table's stream"
                           : operation == "Query" ? "the table's /index/*"
                                                  : "the table";
    if (fault.outcome == Outcome::rejected) {
      return found("call " + operation, probe.refused, fault.error.detail,
                   (fault.error.code == Code::denied ? "allow dynamodb:" + operation + " on " + on
                                                     : "see what DynamoDB says of it") +
                       "; without it " + probe.without);
    }
    found("call " + operation, Health::warning, fault.error.detail,
          "it could not be tried: run doctor again; where it is throttled, give the table more capacity");
  }

  /// The stream's calls need what the one before gave.
  void ask_stream_on(const std::string& operation, const json::object& answer) {
    json::object body;
    std::string next;
    if (operation == "DescribeStream") {
      const json::object* stream = object_in(answer, "StreamDescription");
      if (stream == nullptr) return;
      const json::array& shards = array_in(*stream, "Shards");
      if (shards.empty() || !shards[0].is_object()) return;
      next = "GetShardIterator";
      body = {{"StreamArn", stream_arn_},
              {"ShardId", text_in(shards[0].get_object(), "ShardId")},
              {"ShardIteratorType", "LATEST"}};
    } else if (operation == "GetShardIterator") {
      next = "GetRecords";
      body = {{"ShardIterator", text_in(answer, "ShardIterator")}, {"Limit", 1}};
    }
    if (!next.empty()) probes_.push_back({Call{next, json::serialize(body)}, Health::warning, by_looking, true});
  }

  void finish_calls() {
    if (!allowed_.empty()) found("calls", Health::ok, "may do " + allowed_);
    result_.can_race = races_with_ == 2;
    compare_clocks();
  }

  // The clock

  void compare_clocks() {
    std::string key;
    write_key(probe_key(), options().names, key);
    std::string body = R"({"TableName":)";
    write_json(std::string_view(options().table), body);
    const Call call{"GetItem", body + R"(,"Key":)" + key + "}"};
    ask(call, nullptr, [this, asked = context_->loop.wall()](const CallReply&, const Fault&) {
      const auto measured = context_->caller->measured_clock_offset();
      if (!measured) {
        result_.no_clock = "the server's answers have no Date";
        return end();
      }
      const ClockOffset told = ClockOffset::from_date(*measured, context_->loop.wall() - asked);
      result_.clock = result_.clock ? ClockOffset::both(*result_.clock, told) : told;
      const bool enough = ++samples_ == samples_max || result_.clock->width() <= narrow_enough;
      if (enough || context_->loop.instant() + between_samples >= deadline_) return end();
      context_->later(between_samples, [self = shared_from_this()] { self->compare_clocks(); });
    });
  }

  static constexpr const char* by_looking = "what becomes free is found by looking, as often as --reconcile says";

  const ContextPtr context_;
  Caller* const streams_;
  const Instant deadline_;
  const std::function<void(Diagnosis)> done_;
  Diagnosis result_;
  std::vector<Probe> probes_;  // the next one last
  std::string stream_arn_, allowed_;
  bool index_fails_ = false;
  int races_with_ = 0;
  std::size_t samples_ = 0;
};

}  // namespace

void examine(const ContextPtr& context, Caller* streams, Instant deadline, std::function<void(Diagnosis)> done) {
  std::make_shared<Examination>(context, streams, deadline, std::move(done))->start();
}

void walk(const ContextPtr& context, const std::string& from, Instant deadline, Handler<Reply<Walked>> handler) {
  Call call{"Scan", begin_body(context->options) + R"(,"ConsistentRead":true)"};
  if (!from.empty()) {
    call.body.append(R"(,"ExclusiveStartKey":)");
    write_key(from, context->options.names, call.body);
  }
  call.body.push_back('}');
  context->call(std::move(call), deadline, [context, from, handler = std::move(handler)](const CallReply& reply) {
    if (reply.outcome != Outcome::applied) {
      Fault fault = context->fault(Call{"Scan", {}}, reply);
      return handler({fault.outcome, {}, std::move(fault.error)});
    }
    Reply<Walked> walked{Outcome::applied, {}, {}};
    Error damaged;
    add_rows(reply.answer, "Items", context->options.names, walked.value.rows, damaged);
    if (!damaged.detail.empty()) {
      walked.value.damaged.push_back({"row", Health::failed, damaged.detail, "delete it, or put it right"});
    }
    if (const json::object* last = object_in(reply.answer, "LastEvaluatedKey"); last != nullptr) {
      const auto key = row_from_item(*last, context->options.names);
      if (!key || key->key == from) {
        return handler({Outcome::unknown, {}, {Code::corrupt, "the server does not say where its page ends"}});
      }
      walked.value.next = key->key;
    }
    handler(std::move(walked));
  });
}

}  // namespace holdfast::store::dynamodb
