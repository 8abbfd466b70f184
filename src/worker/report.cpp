#include "worker/report.hpp"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <vector>

namespace holdfast {
namespace {

namespace json = boost::json;

std::string_view to_string(Report::End end) {
  switch (end) {
    case Report::End::drained:
      return "drained";
    case Report::End::cut:
      return "cut";
    case Report::End::stopped:
      return "stopped";
    case Report::End::failed:
      break;
  }
  return "failed";
}

std::string_view to_string(Failover::Kind kind) {
  return kind == Failover::Kind::crash ? "crash" : "graceful";
}

json::object counts(const std::map<std::string, std::int64_t>& values) {
  json::object object;
  for (const auto& [name, count] : values) object[name] = count;
  return object;
}

json::object failover(const Failover& value) {
  json::object object{{"connection", value.connection},
                      {"epoch", value.epoch.value},
                      {"kind", to_string(value.kind)},
                      {"claimed_ms", value.claimed_ms}};
  if (value.first_message_ms) {
    object["first_message_ms"] = *value.first_message_ms;
  } else {
    object["first_message_ms"] = nullptr;
  }
  return object;
}

/// Over those failovers of the kind after which a message came.
json::object summary(const Report& report, Failover::Kind kind) {
  std::vector<std::int64_t> times;
  std::int64_t count = 0;
  for (const Failover& value : report.failovers) {
    if (value.kind != kind) continue;
    ++count;
    if (value.first_message_ms) times.push_back(*value.first_message_ms);
  }
  std::sort(times.begin(), times.end());
  json::object object{{"count", count}, {"with_message", times.size()}};
  object["first_message_ms_median"] = times.empty() ? json::value(nullptr) : json::value(times[times.size() / 2]);
  object["first_message_ms_max"] = times.empty() ? json::value(nullptr) : json::value(times.back());
  return object;
}

json::object to_object(const Tally& tally) {
  return {{"messages", tally.messages},
          {"bytes", tally.bytes},
          {"repeats_dropped", tally.repeats_dropped},
          {"gaps", tally.gaps},
          {"unnumbered", tally.unnumbered},
          {"seq_went_back", tally.seq_went_back},
          {"reconnects", tally.reconnects}};
}

json::object to_object(const Consumed& consumed, double seconds) {
  const auto per_second = [seconds](double units) { return seconds > 0 ? units / seconds : 0.0; };
  return {{"requests", consumed.requests},
          {"attempts", consumed.attempts},
          {"throttled", consumed.throttled},
          {"counted", consumed.counted},
          {"table_write_units", consumed.table_write_units},
          {"index_write_units", consumed.index_write_units},
          {"table_read_units", consumed.table_read_units},
          {"index_read_units", consumed.index_read_units},
          {"write_units_per_second", per_second(consumed.write_units())},
          {"read_units_per_second", per_second(consumed.read_units())}};
}

/// Null where the store has no such thing.
json::value capacity(const Report& report) {
  if (report.capacity.empty()) return nullptr;
  const double seconds = std::chrono::duration<double>(report.ended - report.started).count();
  Consumed total;
  json::object kinds;
  for (const auto& [kind, consumed] : report.capacity) {
    kinds[kind] = to_object(consumed, seconds);
    total += consumed;
  }
  return json::object{{"kinds", std::move(kinds)}, {"total", to_object(total, seconds)}};
}

}  // namespace

std::string to_json(const Report& report) {
  json::object store;
  for (const auto& [kind, outcomes] : report.store) store[kind] = counts(outcomes);
  json::array failovers;
  for (const Failover& value : report.failovers) failovers.push_back(failover(value));
  const json::object document{
      {"worker", report.worker},
      {"incarnation", report.incarnation},
      {"end", to_string(report.end)},
      {"failure", report.failure},
      {"started_at_ms", report.started.time_since_epoch().count()},
      {"ended_at_ms", report.ended.time_since_epoch().count()},
      {"leases", json::object{{"claims", report.claims},
                              {"conflicts", report.conflicts},
                              {"renewals", report.renewals},
                              {"renewal_late_ms_max", report.renewal_late_ms_max},
                              {"releases", report.releases},
                              {"cut", report.cut},
                              {"losses", counts(report.losses)}}},
      {"store", std::move(store)},
      {"capacity", capacity(report)},
      {"changes", json::object{{"read", report.changes_read},
                               {"pokes_sent", report.pokes_sent},
                               {"pokes_heard", report.pokes_heard},
                               {"pokes_refused", report.pokes_refused}}},
      {"sink_failures", report.sink_failures},
      {"streams", to_object(report.tally)},
      {"failover", json::object{{"crash", summary(report, Failover::Kind::crash)},
                                {"graceful", summary(report, Failover::Kind::graceful)}}},
      {"failovers", std::move(failovers)},
      {"failovers_left_out", report.failovers_left_out},
  };
  return json::serialize(document) + "\n";
}

namespace worker {

Result<void> try_report(const std::string& file) {
  const std::string temporary = file + ".try";
  std::error_code ignored;
  const bool folder = std::filesystem::is_directory(file, ignored);
  errno = EISDIR;
  if (folder || !std::ofstream(temporary, std::ios::binary | std::ios::app)) {
    return fail(Code::not_found, "cannot create the report " + file + ": " + std::strerror(errno) +
                                     ": name a file in a folder that is there and can be written");
  }
  std::remove(temporary.c_str());
  return {};
}

Result<void> write_report(const Report& report, const std::string& file) {
  const std::string temporary = file + ".part";
  const auto failed = [&](const std::string& what) {
    const std::string why = std::strerror(errno);
    std::remove(temporary.c_str());
    return fail(Code::exhausted, "cannot " + what + " the report " + file + ": " + why);
  };
  std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
  if (!out) return failed("create");
  out << to_json(report);
  out.close();
  if (!out) return failed("write");
  if (std::rename(temporary.c_str(), file.c_str()) != 0) return failed("rename");
  return {};
}

void add(Tally& total, const Tally& part) {
  total.messages += part.messages;
  total.bytes += part.bytes;
  total.repeats_dropped += part.repeats_dropped;
  total.gaps += part.gaps;
  total.unnumbered += part.unnumbered;
  total.seq_went_back += part.seq_went_back;
  total.reconnects += part.reconnects;
}

}  // namespace worker
}  // namespace holdfast
