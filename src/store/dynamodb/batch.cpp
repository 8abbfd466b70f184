// Many rows: batch_get, in hundreds.
#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <chrono>
#include <deque>
#include <set>
#include <utility>

#include "store/dynamodb/context.hpp"
#include "store/dynamodb/members.hpp"
#include "store/json.hpp"

namespace holdfast::store::dynamodb {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t keys_max = 100;  // of one BatchGetItem
constexpr Duration first_delay = 50ms;
constexpr Duration delay_max = 1s;

class Batch : public std::enable_shared_from_this<Batch> {
 public:
  Batch(ContextPtr context, std::vector<std::string> keys, Instant deadline, std::function<void(RowsReply)> handler)
      : context_(std::move(context)), deadline_(deadline), handler_(std::move(handler)) {
    const std::set<std::string> each(keys.begin(), keys.end());  // the server refuses repeats
    wanted_.assign(each.begin(), each.end());
  }

  void next() {
    if (wanted_.empty()) return finish(Outcome::applied, std::move(damage_));
    const std::size_t count = std::min(wanted_.size(), keys_max);
    Call call{"BatchGetItem", begin(count)};
    asked_.assign(wanted_.begin(), wanted_.begin() + static_cast<std::ptrdiff_t>(count));
    wanted_.erase(wanted_.begin(), wanted_.begin() + static_cast<std::ptrdiff_t>(count));
    context_->call(std::move(call), deadline_,
                   [self = shared_from_this()](const CallReply& reply) { self->take(reply); });
  }

 private:
  std::string begin(std::size_t count) const {
    const TableOptions& options = context_->options;
    std::string body = R"({"ReturnConsumedCapacity":"INDEXES","RequestItems":{)";
    write_json(std::string_view(options.table), body);
    body.append(R"(:{"ConsistentRead":true,"Keys":[)");
    for (std::size_t i = 0; i < count; ++i) {
      if (i > 0) body.push_back(',');
      write_key(wanted_[i], options.names, body);
    }
    body.append("]}}}");
    return body;
  }

  void take(const CallReply& reply) {
    if (reply.outcome != Outcome::applied) {
      Fault fault = context_->fault(Call{"BatchGetItem", {}}, reply);
      return finish(fault.outcome, std::move(fault.error));
    }
    if (const boost::json::object* responses = object_in(reply.answer, "Responses")) {
      add_rows(*responses, name_in_answer(*responses), context_->options.names, rows_, damage_);
    }
    const std::vector<std::string> left = unprocessed(reply.answer);
    if (left.empty()) {
      delay_ = first_delay;
      return next();
    }
    wanted_.insert(wanted_.begin(), left.begin(), left.end());
    wait(left.size());
  }

  /// What the server had no capacity, or no room in its answer, for: again, after a while if nothing came at all.
  void wait(std::size_t left) {
    if (left < asked_.size()) {
      delay_ = first_delay;
      return next();
    }
    const Duration pause = context_->loop.random().between(Duration::zero(), delay_);  // full jitter (S10)
    if (context_->loop.instant() + pause >= deadline_) {
      return finish(Outcome::throttled,
                    {Code::unavailable, "DynamoDB had no capacity for " + std::to_string(left) + " of the rows of " +
                                            context_->options.table + " within the deadline"});
    }
    delay_ = std::min<Duration>(delay_ * 2, delay_max);
    context_->later(pause, [self = shared_from_this()] { self->next(); });
  }

  /// The table by its name, or, where it was named by its ARN, by whatever the server calls it.
  [[nodiscard]] std::string name_in_answer(const boost::json::object& by_table) const {
    if (by_table.if_contains(context_->options.table) != nullptr || by_table.empty()) return context_->options.table;
    return std::string(by_table.begin()->key());
  }

  [[nodiscard]] std::vector<std::string> unprocessed(const boost::json::object& answer) const {
    std::vector<std::string> keys;
    const boost::json::object* by_table = object_in(answer, "UnprocessedKeys");
    if (by_table == nullptr || by_table->empty()) return keys;
    const boost::json::object* table = object_in(*by_table, name_in_answer(*by_table));
    if (table == nullptr) return keys;
    for (const boost::json::value& key : array_in(*table, "Keys")) {
      if (!key.is_object()) continue;
      if (auto row = row_from_item(key.get_object(), context_->options.names)) keys.push_back(std::move(row->key));
    }
    return keys;
  }

  void finish(Outcome outcome, Error error) {
    RowsReply reply{outcome, {}, std::move(error)};
    if (outcome == Outcome::applied) reply.value = std::move(rows_);
    handler_(std::move(reply));
  }

  const ContextPtr context_;
  const Instant deadline_;
  const std::function<void(RowsReply)> handler_;
  std::deque<std::string> wanted_;
  std::vector<std::string> asked_;
  std::vector<Row> rows_;
  Error damage_;
  Duration delay_ = first_delay;
};

}  // namespace

void read_rows(const ContextPtr& context, std::vector<std::string> keys, Instant deadline,
               std::function<void(RowsReply)> handler) {
  const auto batch = std::make_shared<Batch>(context, std::move(keys), deadline, std::move(handler));
  context->later(Duration::zero(), [batch] { batch->next(); });
}

void run(const ContextPtr& context, const BatchGet& request, Instant deadline, Done done) {
  read_rows(context, request.keys, deadline, [done = std::move(done)](RowsReply reply) { done(std::move(reply)); });
}

}  // namespace holdfast::store::dynamodb
