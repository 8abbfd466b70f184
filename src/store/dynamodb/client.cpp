#include "store/dynamodb/client.hpp"

#include <algorithm>
#include <boost/json/value.hpp>
#include <utility>

namespace holdfast::store::dynamodb {
namespace {

namespace json = boost::json;

/// A correction that is smaller than this is none: the server would refuse the next signature as well.
constexpr Duration correction_min = std::chrono::seconds(5);

Code code_of(const Attempted& attempted) {
  const std::string& type = attempted.type;
  if (type == "ResourceNotFoundException" || type == "TableNotFoundException") return Code::not_found;
  if (attempted.verdict == Verdict::stale_keys || attempted.verdict == Verdict::wrong_clock ||
      type.starts_with("AccessDenied") || type.starts_with("MissingAuthentication") || type == "NotAuthorized" ||
      type == "InvalidSignatureException" || type == "SignatureDoesNotMatch" || type == "IncompleteSignature" ||
      type == "OptInRequired") {
    return Code::denied;
  }
  return Code::usage;
}

double number_of(const json::value* value) {
  if (value == nullptr || !value->is_number()) return 0;
  return value->to_number<double>();
}

const json::object* object_in(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value == nullptr ? nullptr : value->if_object();
}

/// What one table and its indexes consumed.
void add_units(Consumed& count, bool is_write, const json::object& told) {
  const double all = number_of(told.if_contains("CapacityUnits"));
  double indexes = 0;
  for (const std::string_view kind : {"GlobalSecondaryIndexes", "LocalSecondaryIndexes"}) {
    const json::object* named = object_in(told, kind);
    if (named == nullptr) continue;
    for (const auto& [name, index] : *named) {
      if (index.is_object()) indexes += number_of(index.as_object().if_contains("CapacityUnits"));
    }
  }
  (is_write ? count.index_write_units : count.index_read_units) += indexes;
  (is_write ? count.table_write_units : count.table_read_units) += std::max(0.0, all - indexes);
}

/// Of an answer to one request: an object, or a list of them where it could name several tables.
void count_units(Consumed& count, bool is_write, const json::object& answer) {
  const json::value* told = answer.if_contains("ConsumedCapacity");
  if (told == nullptr || !(told->is_object() || told->is_array())) return;
  ++count.counted;
  if (told->is_object()) return add_units(count, is_write, told->get_object());
  for (const json::value& table : told->get_array()) {
    if (table.is_object()) add_units(count, is_write, table.get_object());
  }
}

}  // namespace

Client::Client(Loop& loop, runtime::HttpTransport& transport, CredentialSource& credentials,
               std::shared_ptr<RetryBudget> budget, ClientOptions options)
    : loop_(loop),
      transport_(transport),
      credentials_(credentials),
      budget_(std::move(budget)),
      options_(std::move(options)) {}

Client::~Client() {
  *alive_ = false;
  for (const auto& [id, pending] : pending_) {  // nondeterminism-ok: nothing is called back, the order shows nowhere
    if (pending.request != 0) transport_.cancel(pending.request);
    if (pending.wait != 0) loop_.cancel(pending.wait);
  }
}

void Client::call(Call call, Instant deadline, std::function<void(CallReply)> handler) {
  const std::uint64_t id = ++last_id_;
  Pending& pending = pending_[id];
  const bool unnamed = call.purpose == Purpose::other;
  pending.count = &consumed_[unnamed ? call.operation : std::string(to_string(call.purpose))];
  ++pending.count->requests;
  pending.call = std::move(call);
  pending.deadline = deadline;
  pending.handler = std::move(handler);
  ask_for_credentials(id);
}

// Before each attempt: those of the one before may have expired meanwhile.
void Client::ask_for_credentials(std::uint64_t id) {
  credentials_.get(pending_.at(id).deadline, [this, alive = alive_, id](Result<Credentials> credentials) {
    if (*alive) on_credentials(id, std::move(credentials));
  });
}

void Client::on_credentials(std::uint64_t id, Result<Credentials> credentials) {
  Pending& pending = pending_.at(id);
  if (!credentials) {
    Attempted attempted;
    attempted.words = credentials.error().detail;
    const Code code = credentials.error().code;
    const bool later = code == Code::unavailable || code == Code::exhausted;
    return settle(id, pending, later ? Outcome::throttled : Outcome::rejected, code, std::move(attempted));
  }
  pending.credentials = std::move(*credentials);
  attempt(id, pending);
}

void Client::attempt(std::uint64_t id, Pending& pending) {
  ++pending.tries;
  ++pending.count->attempts;
  pending.clock_offset = clock_offset_;
  runtime::HttpRequest request;
  request.method = "POST";
  request.url = options_.endpoint;
  request.body = pending.call.body;
  request.headers.reserve(2);
  request.headers.push_back({"Content-Type", "application/x-amz-json-1.0"});
  request.headers.push_back({"X-Amz-Target", options_.target + "." + pending.call.operation});
  request.signing.emplace(
      runtime::AwsSigning{pending.credentials.access_key_id, pending.credentials.secret_access_key,
                          pending.credentials.session_token, options_.region, "dynamodb", clock_offset_});
  const Instant end = std::min(pending.deadline, loop_.instant() + options_.retry.attempt_max);
  pending.request = transport_.send(std::move(request), end,
                                    [this, id](runtime::HttpReply reply) { on_reply(id, std::move(reply)); });
}

void Client::on_reply(std::uint64_t id, runtime::HttpReply reply) {
  Pending& pending = pending_.at(id);
  pending.request = 0;
  if (reply) {
    const std::string* date = reply->header("Date");
    date_ = date != nullptr ? *date : "";
    date_came_at_ = loop_.wall();
  }
  Attempted attempted = read_attempt(std::move(reply), pending.credentials);
  decide(id, pending, std::move(attempted));
}

void Client::decide(std::uint64_t id, Pending& pending, Attempted attempted) {
  switch (attempted.verdict) {
    case Verdict::applied:
      budget_->succeeded(pending.retries_paid);
      count_units(*pending.count, pending.call.is_write, attempted.body);
      return settle(id, pending, Outcome::applied, Code::internal, std::move(attempted));
    case Verdict::conflict:
      budget_->succeeded(pending.retries_paid);
      return settle(id, pending, Outcome::conflict, Code::internal, std::move(attempted));
    case Verdict::throttled:
      ++pending.count->throttled;
      return retry_later(id, pending, std::move(attempted));
    case Verdict::not_sent:
      return retry_later(id, pending, std::move(attempted));
    case Verdict::uncertain:
    case Verdict::unreadable:
      pending.maybe_applied = pending.maybe_applied || pending.call.is_write;
      // A write whose answer is damaged was carried out, most likely: reading tells more than repeating.
      if (pending.call.is_write && (!pending.call.repeatable || attempted.verdict == Verdict::unreadable)) {
        return settle(id, pending, Outcome::unknown, Code::unavailable, std::move(attempted));
      }
      return retry_later(id, pending, std::move(attempted));
    case Verdict::wrong_clock:
      if (!std::exchange(pending.clock_corrected, true) && correct_clock(pending)) return ask_for_credentials(id);
      attempted.words += " (this machine's clock and the server's differ too much: set the clock)";
      break;
    case Verdict::stale_keys:
      credentials_.refused();
      if (!std::exchange(pending.keys_renewed, true)) return ask_for_credentials(id);
      attempted.words += " (credentials from " + pending.credentials.provider + ")";
      break;
    case Verdict::rejected:
      break;
  }
  const Code code = code_of(attempted);
  settle(id, pending, Outcome::rejected, code, std::move(attempted));
}

void Client::retry_later(std::uint64_t id, Pending& pending, Attempted attempted) {
  const Instant now = loop_.instant();
  const auto wait =
      wait_before_retry(options_.retry, pending.tries, pending.deadline - now, loop_.random(), *budget_);
  if (!wait) {
    const bool nothing_happened = attempted.verdict == Verdict::throttled || attempted.verdict == Verdict::not_sent;
    return settle(id, pending, nothing_happened ? Outcome::throttled : Outcome::unknown, Code::unavailable,
                  std::move(attempted));
  }
  ++pending.retries_paid;
  pending.wait = loop_.call_at(now + *wait, [this, id] {
    pending_.at(id).wait = 0;
    ask_for_credentials(id);
  });
}

/// From the Date header of the answer that has just come; false where that says nothing new.
bool Client::correct_clock(Pending& pending) {
  const auto measured = measured_clock_offset();
  if (!measured || std::chrono::abs(*measured - pending.clock_offset) < correction_min) return false;
  clock_offset_ = *measured;
  return true;
}

std::optional<Duration> Client::measured_clock_offset() const {
  const auto date = runtime::parse_http_date(date_);
  if (!date) return std::nullopt;
  return *date + std::chrono::milliseconds(500) - date_came_at_;  // the header has whole seconds, cut off
}

/// What the call comes to: the latest attempt's outcome, unless an earlier one may have been carried out (S5).
void Client::settle(std::uint64_t id, Pending& pending, Outcome outcome, Code code, Attempted attempted) {
  CallReply reply;
  reply.maybe_applied = pending.maybe_applied;
  reply.outcome = outcome;
  const bool told = outcome == Outcome::applied || outcome == Outcome::conflict;
  if (pending.maybe_applied && !told) reply.outcome = Outcome::unknown;
  if (outcome == Outcome::applied) {
    reply.answer = std::move(attempted.body);
  } else {
    reply.aws_type = std::move(attempted.type);
    reply.error_body = std::move(attempted.body);
  }
  if (!told) {
    std::string detail = pending.call.operation + ": " + std::move(attempted.words);
    if (pending.tries > 1) detail += " (" + std::to_string(pending.tries) + " tries)";
    reply.error = Error(code, std::move(detail));
  }
  finish(id, std::move(reply));
}

void Client::finish(std::uint64_t id, CallReply reply) {
  const auto found = pending_.find(id);
  const auto handler = std::move(found->second.handler);
  pending_.erase(found);
  handler(std::move(reply));  // may destroy this
}

}  // namespace holdfast::store::dynamodb
