#include "cli/demo_verify.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "store/json.hpp"

namespace holdfast::cli {

namespace {

constexpr std::size_t problems_max = 8;

const std::int64_t* number(const Attributes& object, std::string_view name) {
  const auto found = object.find(name);
  return found == object.end() ? nullptr : found->second.as_int();
}

std::string under(const std::string& id, std::int64_t epoch) {
  return "connection " + id + " under epoch " + std::to_string(epoch);
}

}  // namespace

Result<SinkRecord> parse_sink_record(std::string_view line) {
  const auto object = store::attributes_from_json(line);
  if (!object) return tl::unexpected<Error>(object.error());
  SinkRecord record;
  const auto connection = object->find("conn");
  const std::int64_t* epoch = number(*object, "epoch");
  const std::int64_t* at_ms = number(*object, "at_ms");
  if (connection == object->end() || connection->second.as_string() == nullptr || epoch == nullptr ||
      at_ms == nullptr) {
    return fail(Code::corrupt, "a record lacks conn, epoch or at_ms");
  }
  record.connection = *connection->second.as_string();
  record.epoch = *epoch;
  record.at_ms = *at_ms;
  if (const auto gap = object->find("gap"); gap != object->end()) {
    const Value::List* ends = gap->second.as_list();
    if (ends == nullptr || ends->size() != 2 || (*ends)[0].as_int() == nullptr || (*ends)[1].as_int() == nullptr) {
      return fail(Code::corrupt, "a gap is not two numbers");
    }
    record.seq = *(*ends)[0].as_int();
    record.gap_to = *(*ends)[1].as_int();
    return record;
  }
  const std::int64_t* seq = number(*object, "seq");
  if (seq == nullptr) return fail(Code::corrupt, "a record has neither seq nor gap");
  record.seq = *seq;
  return record;
}

DeliveryHistory::DeliveryHistory(std::vector<std::string> connections, std::int64_t messages)
    : messages_(messages), expected_(messages * static_cast<std::int64_t>(connections.size())) {
  for (std::string& id : connections) {
    connections_[std::move(id)].seen.resize(static_cast<std::size_t>(messages));
  }
}

void DeliveryHistory::problem(std::string words) {
  if (problems_.size() < problems_max) problems_.push_back(std::move(words));
}

void DeliveryHistory::add_damaged(std::string_view owner, std::string_view why) {
  ++strangers_;
  problem("a file of " + std::string(owner) + " has a damaged line: " + std::string(why));
}

void DeliveryHistory::add(std::string_view owner, const SinkRecord& record) {
  const auto found = connections_.find(record.connection);
  if (found == connections_.end()) {
    ++strangers_;
    return problem("a record of connection '" + record.connection + "', which does not exist");
  }
  Connection& connection = found->second;
  judge_tenure(found->first, connection, owner, record);
  if (record.gap_to) {
    ++gaps_;
    return problem(under(found->first, record.epoch) + " has a gap from " + std::to_string(record.seq) + " to " +
                   std::to_string(*record.gap_to));
  }
  if (record.seq < 1 || record.seq > messages_) {
    ++strangers_;
    return problem(under(found->first, record.epoch) + " has message " + std::to_string(record.seq) +
                   ", which was never sent");
  }
  const auto place = static_cast<std::size_t>(record.seq - 1);
  if (connection.seen[place]) {
    ++repeats_;
  } else {
    connection.seen[place] = true;
    ++delivered_;
  }
}

void DeliveryHistory::judge_tenure(const std::string& id, Connection& connection, std::string_view owner,
                                   const SinkRecord& record) {
  Tenure& tenure = connection.tenures[record.epoch];
  if (tenure.at_ms.empty()) {
    tenure.owner = owner;
    tenure.first_ms = record.at_ms;
  }
  tenure.first_ms = std::min(tenure.first_ms, record.at_ms);
  tenure.at_ms.push_back(record.at_ms);
  if (tenure.owner != owner) {
    ++shared_or_back_;
    problem(under(id, record.epoch) + " has two owners: " + tenure.owner + " and " + std::string(owner));
  }
  const auto last = connection.last_epoch.find(owner);
  if (last == connection.last_epoch.end()) {
    connection.last_epoch.emplace(owner, record.epoch);
  } else if (record.epoch < last->second) {
    ++shared_or_back_;
    problem("connection " + id + " goes back from epoch " + std::to_string(last->second) + " to " +
            std::to_string(record.epoch) + " in the files of " + std::string(owner));
  } else {
    last->second = record.epoch;
  }
}

std::int64_t DeliveryHistory::late_records(const Connection& connection, std::string* example) const {
  std::int64_t late = 0;
  std::int64_t newer_first_ms = std::numeric_limits<std::int64_t>::max();
  for (auto at = connection.tenures.rbegin(); at != connection.tenures.rend(); ++at) {
    for (const std::int64_t at_ms : at->second.at_ms) {
      if (at_ms <= newer_first_ms) continue;
      ++late;
      *example = "epoch " + std::to_string(at->first) + " (" + at->second.owner + ") has a record " +
                 std::to_string(at_ms - newer_first_ms) + " ms after a newer epoch began";
    }
    newer_first_ms = std::min(newer_first_ms, at->second.first_ms);
  }
  return late;
}

DeliveryHistory::Verdict DeliveryHistory::verdict() const {
  Verdict verdict{.delivered = delivered_,
                  .missing = expected_ - delivered_,
                  .repeats = repeats_,
                  .gaps = gaps_,
                  .overlaps = shared_or_back_,
                  .strangers = strangers_,
                  .problems = problems_};
  const auto say = [&](std::string words) {
    if (verdict.problems.size() < problems_max) verdict.problems.push_back(std::move(words));
  };
  for (const auto& [id, connection] : connections_) {
    std::string example;
    const std::int64_t late = late_records(connection, &example);
    verdict.overlaps += late;
    if (late > 0) say("connection " + id + ": " + example);
    const auto missing = std::count(connection.seen.begin(), connection.seen.end(), false);
    if (missing == 0) continue;
    const auto first = std::find(connection.seen.begin(), connection.seen.end(), false) - connection.seen.begin() + 1;
    say("connection " + id + " lacks " + std::to_string(missing) + " messages, the first is " +
        std::to_string(first));
  }
  return verdict;
}

DeliveryHistory::Failover DeliveryHistory::failover(std::string_view owner, std::int64_t at_ms) const {
  Failover result;
  std::vector<std::int64_t> times;
  for (const auto& [id, connection] : connections_) {
    auto last = connection.tenures.end();
    for (auto at = connection.tenures.begin(); at != connection.tenures.end(); ++at) {
      if (at->second.first_ms <= at_ms) last = at;
    }
    if (last == connection.tenures.end() || last->second.owner != owner) continue;
    ++result.connections;
    const auto next = std::next(last);
    if (next != connection.tenures.end()) times.push_back(next->second.first_ms - at_ms);
  }
  result.resumed = times.size();
  if (times.empty()) return result;
  std::sort(times.begin(), times.end());
  result.ms_median = times[(times.size() - 1) / 2];
  result.ms_max = times.back();
  return result;
}

}  // namespace holdfast::cli
