#include "store/dynamodb/stream_reader.hpp"

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <utility>

#include "store/dynamodb/item.hpp"
#include "store/dynamodb/members.hpp"

namespace holdfast::store::dynamodb {

namespace {

namespace json = boost::json;
using std::chrono::milliseconds;
using std::chrono::minutes;

constexpr std::size_t shards_per_page = 100;
/// A shard lives for hours; this finds those whose parents were never seen, and whether the stream is still on.
constexpr Duration list_every = minutes(3);
/// Turning a stream on is a rare act of a person; so is a new permission.
constexpr Duration ask_again_when_off = minutes(5);
/// Between two reads of a shard that has much to say, so that all its readers fit into what one shard gives.
constexpr Duration busy_pause = milliseconds(200);

bool is_type(const CallReply& reply, std::string_view type) {
  return reply.outcome != Outcome::applied && reply.aws_type == type;
}

bool is_gone(const CallReply& reply) {
  return is_type(reply, "ResourceNotFoundException");
}

std::string words_of_refusal(const CallReply& reply) {
  std::string words = "changes cannot be followed (" + reply.error.detail + ")";
  if (reply.error.code == Code::denied) {
    words +=
        ": the role needs dynamodb:DescribeTable on the table, and dynamodb:DescribeStream, GetShardIterator and "
        "GetRecords on its stream";
  }
  return words;
}

}  // namespace

std::optional<StreamReader::Ask> StreamReader::poll(Instant now) {
  if (in_flight_ >= in_flight_max) return std::nullopt;
  if (stream_.empty()) {
    if (table_asked_ != 0 || now < table_due_) return std::nullopt;
    return ask_table(now);
  }
  if (list_asked_ == 0 && now >= list_due_) return ask_shards(now);
  const auto shard = earliest();
  if (shard == shards_.end() || shard->second.due > now) return std::nullopt;
  return ask_shard(shard->first, shard->second, now);
}

std::optional<Instant> StreamReader::next() const {
  if (in_flight_ >= in_flight_max) return std::nullopt;
  std::optional<Instant> when;
  const auto at = [&when](Instant due) { when = std::min(when.value_or(due), due); };
  if (stream_.empty()) {
    if (table_asked_ == 0) at(table_due_);
    return when;
  }
  if (list_asked_ == 0) at(list_due_);
  for (const auto& [id, shard] : shards_) {
    const bool moves = shard.phase == Phase::iterating || shard.phase == Phase::reading;
    if (moves && shard.asked == 0) at(shard.due);
  }
  return when;
}

std::map<std::string, StreamReader::Shard>::iterator StreamReader::earliest() {
  auto best = shards_.end();
  for (auto at = shards_.begin(); at != shards_.end(); ++at) {
    const Shard& shard = at->second;
    const bool moves = shard.phase == Phase::iterating || shard.phase == Phase::reading;
    if (moves && shard.asked == 0 && (best == shards_.end() || shard.due < best->second.due)) best = at;
  }
  return best;
}

// What is asked.

StreamReader::Ask StreamReader::ask(const char* operation, std::string body, Instant now) {
  ++in_flight_;
  return {++last_id_, Call{operation, std::move(body)}, false, now + call_limit};
}

StreamReader::Ask StreamReader::ask_table(Instant now) {
  Ask asked = ask("DescribeTable", json::serialize(json::object{{"TableName", options_.table}}), now);
  asked.of_table = true;
  table_asked_ = asked.id;
  return asked;
}

StreamReader::Ask StreamReader::ask_shards(Instant now) {
  json::object body{{"StreamArn", stream_}, {"Limit", shards_per_page}};
  if (!page_.empty()) body.emplace("ExclusiveStartShardId", page_);
  Ask asked = ask("DescribeStream", json::serialize(body), now);
  list_asked_ = asked.id;
  return asked;
}

StreamReader::Ask StreamReader::ask_shard(const std::string& id, Shard& shard, Instant now) {
  Ask asked;
  if (shard.phase == Phase::reading) {
    const json::object body{{"ShardIterator", shard.iterator}, {"Limit", records_per_read}};
    asked = ask("GetRecords", json::serialize(body), now);
  } else {
    json::object body{{"StreamArn", stream_}, {"ShardId", id}};
    switch (shard.from) {
      case From::latest:
        body.emplace("ShardIteratorType", "LATEST");
        break;
      case From::horizon:
        body.emplace("ShardIteratorType", "TRIM_HORIZON");
        break;
      case From::after_last:
        body.emplace("ShardIteratorType", "AFTER_SEQUENCE_NUMBER");
        body.emplace("SequenceNumber", shard.last);
        break;
    }
    asked = ask("GetShardIterator", json::serialize(body), now);
  }
  shard.asked = asked.id;
  return asked;
}

// What is answered.

std::size_t StreamReader::answered(std::uint64_t id, const CallReply& reply, Instant now) {
  --in_flight_;
  if (id == table_asked_) {
    table_asked_ = 0;
    return table_answered(reply, now);
  }
  if (id == list_asked_) {
    list_asked_ = 0;
    return list_answered(reply, now);
  }
  for (auto& [name, shard] : shards_) {
    if (shard.asked != id) continue;
    shard.asked = 0;
    return shard.phase == Phase::reading ? records_answered(shard, reply, now) : iterator_answered(shard, reply, now);
  }
  return 0;  // of a stream that is no longer read
}

std::size_t StreamReader::table_answered(const CallReply& reply, Instant now) {
  if (reply.outcome == Outcome::rejected) {
    return turn_off(words_of_refusal(reply), now);
  }
  if (reply.outcome != Outcome::applied) {
    table_due_ = now + after_failure(failures_);
    return 0;
  }
  const json::object* table = object_in(reply.answer, "Table");
  const json::object* stream = table == nullptr ? nullptr : object_in(*table, "StreamSpecification");
  const json::value* enabled = stream == nullptr ? nullptr : stream->if_contains("StreamEnabled");
  const std::string arn = table == nullptr ? "" : text_in(*table, "LatestStreamArn");
  if (enabled == nullptr || *enabled != json::value(true) || arn.empty()) {
    return turn_off("table " + options_.table +
                        " has no stream: turn it on with 'holdfast init --stream'; until then releases are found "
                        "by looking, as often as --reconcile says",
                    now);
  }
  failures_ = 0;
  stream_ = arn;
  state_ = State::on;
  no_feed_.clear();
  list_due_ = now;
  return 0;
}

std::size_t StreamReader::list_answered(const CallReply& reply, Instant now) {
  if (is_gone(reply)) {
    begin_anew(now);
    return 0;  // that anything may have changed is said when it stands somewhere again
  }
  if (reply.outcome == Outcome::rejected) {
    return turn_off(words_of_refusal(reply), now);
  }
  const json::object* stream = object_in(reply.answer, "StreamDescription");
  if (reply.outcome != Outcome::applied || stream == nullptr) {
    list_due_ = now + after_failure(failures_);
    return 0;
  }
  failures_ = 0;
  if (text_in(*stream, "StreamStatus") == "DISABLED") {
    return turn_off("the stream of table " + options_.table +
                        " was turned off: turn it on with 'holdfast init --stream'; until then releases are found by "
                        "looking, as often as --reconcile says",
                    now);
  }
  if (take_page(*stream)) {
    list_due_ = now;  // the next page
    return 0;
  }
  take_list(now);
  return 0;
}

/// Whether there is another page.
bool StreamReader::take_page(const json::object& stream) {
  for (const json::value& value : array_in(stream, "Shards")) {
    const json::object* shard = value.if_object();
    if (shard == nullptr) continue;
    const json::object* range = object_in(*shard, "SequenceNumberRange");
    const bool closed = range != nullptr && !text_in(*range, "EndingSequenceNumber").empty();
    if (std::string id = text_in(*shard, "ShardId"); !id.empty()) {
      pages_.push_back({std::move(id), text_in(*shard, "ParentShardId"), closed});
    }
  }
  const std::string last = text_in(stream, "LastEvaluatedShardId");
  const bool more = !last.empty() && last != page_ && ++pages_read_ < pages_max;
  page_ = more ? last : "";
  return more;
}

void StreamReader::take_list(Instant now) {
  for (auto& [id, shard] : shards_) shard.listed = false;
  for (Listed& listed : pages_) {
    const auto [place, is_new] = shards_.try_emplace(std::move(listed.id));
    Shard& shard = place->second;
    shard.listed = true;
    if (!is_new) continue;
    shard.parent = std::move(listed.parent);
    if (has_list_) continue;
    // Where it begins: what there was before is seen by a look.
    shard.from = From::latest;
    shard.phase = listed.closed ? Phase::done : Phase::iterating;
    shard.due = now;
  }
  pages_.clear();
  pages_read_ = 0;
  has_list_ = true;
  std::erase_if(shards_, [](const auto& item) { return !item.second.listed && item.second.phase == Phase::done; });
  start_children(now);
  if (lacks_children()) {
    list_due_ = now + after_failure(relists_);
  } else {
    relists_ = 0;
    list_due_ = now + random_.between(list_every / 2, list_every * 3 / 2);
  }
}

/// Children are read after their parent, and those whose parent is forgotten at once.
void StreamReader::start_children(Instant now) {
  for (auto& [id, shard] : shards_) {
    if (shard.phase != Phase::waiting) continue;
    const auto parent = shards_.find(shard.parent);
    if (parent != shards_.end() && parent->second.phase != Phase::done) continue;
    shard.phase = Phase::iterating;
    shard.due = now;
  }
}

/// Whether a shard that was read to its end has no child in the list yet.
bool StreamReader::lacks_children() const {
  return std::ranges::any_of(shards_, [this](const auto& item) {
    if (!item.second.was_read) return false;
    return std::ranges::none_of(shards_, [&](const auto& other) { return other.second.parent == item.first; });
  });
}

std::size_t StreamReader::iterator_answered(Shard& shard, const CallReply& reply, Instant now) {
  if (reply.outcome != Outcome::applied) return shard_failed(shard, reply, now);
  shard.iterator = text_in(reply.answer, "ShardIterator");
  if (shard.iterator.empty()) return shard_failed(shard, CallReply{}, now);
  shard.failures = 0;
  shard.phase = Phase::reading;
  shard.due = now;
  // From here on nothing is missed; what happened before may have been.
  return shard.from == From::latest ? Changed::any : 0;
}

std::size_t StreamReader::records_answered(Shard& shard, const CallReply& reply, Instant now) {
  if (reply.outcome != Outcome::applied) return shard_failed(shard, reply, now);
  shard.failures = 0;
  const json::array& records = array_in(reply.answer, "Records");
  std::size_t of_use = 0;
  for (const json::value& record : records) {
    if (is_of_use(record)) ++of_use;
    const json::object* object = record.if_object();
    const json::object* change = object == nullptr ? nullptr : object_in(*object, "dynamodb");
    if (change == nullptr) continue;
    if (std::string number = text_in(*change, "SequenceNumber"); !number.empty()) shard.last = std::move(number);
  }
  shard.iterator = text_in(reply.answer, "NextShardIterator");
  if (shard.iterator.empty()) {
    shard.phase = Phase::done;
    shard.was_read = true;
    start_children(now);
    list_due_ = std::min(list_due_, now);
    return of_use;
  }
  if (!records.empty()) {
    shard.idle = idle_min;
    const bool is_behind = records.size() >= records_per_read;
    shard.due = is_behind ? now : now + random_.between(busy_pause / 2, busy_pause);
  } else {
    shard.due = now + random_.between(idle_min / 4, shard.idle);
    shard.idle = std::min(idle_max, 2 * shard.idle);
  }
  return of_use;
}

std::size_t StreamReader::shard_failed(Shard& shard, const CallReply& reply, Instant now) {
  if (is_type(reply, "ExpiredIteratorException")) {
    // After the last record that it gave; else from where it began: at the newest again, which then says that
    // anything may have changed.
    shard.phase = Phase::iterating;
    if (!shard.last.empty()) shard.from = From::after_last;
    shard.due = now;
    return 0;
  }
  if (is_type(reply, "TrimmedDataAccessException")) {
    // What was to be read is gone: on with what is new, and everything is looked at (as `latest` says).
    shard.phase = Phase::iterating;
    shard.from = From::latest;
    shard.last.clear();
    shard.due = now;
    return 0;
  }
  if (is_gone(reply)) {
    begin_anew(now);
    return 0;
  }
  if (reply.outcome == Outcome::rejected && reply.error.code == Code::denied) {
    return turn_off(words_of_refusal(reply), now);
  }
  if (reply.outcome == Outcome::rejected) shard.phase = Phase::iterating;  // the iterator may be what it dislikes
  if (!shard.last.empty()) shard.from = From::after_last;
  shard.due = now + after_failure(shard.failures);
  return 0;
}

/// From the table on: its stream may be another one by now.
void StreamReader::begin_anew(Instant now) {
  shards_.clear();
  pages_.clear();
  page_.clear();
  stream_.clear();
  has_list_ = false;
  pages_read_ = 0;
  list_asked_ = 0;
  relists_ = 0;
  table_due_ = now + after_failure(failures_);
}

/// What was not read of it any more may have been anything.
std::size_t StreamReader::turn_off(std::string why, Instant now) {
  const bool was_on = state_ == State::on;
  begin_anew(now);
  state_ = State::off;
  no_feed_ = std::move(why);
  table_due_ = now + random_.between(ask_again_when_off / 2, ask_again_when_off * 3 / 2);
  return was_on ? Changed::any : 0;
}

/// Renewals are nearly all that happens: a row that is held after a change is nobody else's business.
bool StreamReader::is_of_use(const json::value& record) const {
  const json::object* object = record.if_object();
  if (object == nullptr) return true;
  if (text_in(*object, "eventName") == "REMOVE") return false;
  const json::object* change = object_in(*object, "dynamodb");
  const json::object* image = change == nullptr ? nullptr : object_in(*change, "NewImage");
  if (image == nullptr) return true;  // a stream of keys only
  const Result<Row> row = row_from_item(*image, options_.names);
  if (!row) return true;
  if (row->key.starts_with(key_prefix::worker)) return false;
  const std::string_view wanted = row->text(attribute::desired_state);
  if (wanted == state::stopped || wanted == state::removed) return false;
  return row->text(attribute::owner).empty() || row->number(attribute::expires_at) == 0;
}

Duration StreamReader::after_failure(unsigned& failures) {
  const Duration bound = std::min(failed_max, failed_min * (std::int64_t{1} << std::min(failures, 10U)));
  ++failures;
  return random_.between(bound / 20, bound);
}

}  // namespace holdfast::store::dynamodb
