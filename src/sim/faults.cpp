#include "sim/faults.hpp"

namespace holdfast::sim {
namespace {

constexpr std::array<std::string_view, faults_count> names{
    "throttled",      "request_lost", "reply_lost", "server_error",   "slow_request", "slow_reply",  "duplicate",
    "late_duplicate", "stale_index",  "outage",     "partition",      "rejection",    "crash",       "pause",
    "stall",          "drain",        "leave",      "join",           "wall_step",    "refusal",     "never_opens",
    "drop",           "mute",         "garbage",    "repeat",         "gap",          "move_back",   "forget",
    "upstream_down",  "sink_slow",    "sink_stall", "sink_failure",   "sink_full",    "stubborn",    "stop_start",
    "edit",           "remove_add",   "tamper",     "throttle_burst", "unprocessed",  "stream_slow", "stream_trimmed",
    "poke_lost",      "stream_off"};

}  // namespace

std::string_view name_of(Fault fault) {
  return names[static_cast<std::size_t>(fault)];
}

std::optional<Fault> fault_named(std::string_view name) {
  for (std::size_t i = 0; i < faults_count; ++i) {
    if (names[i] == name) return static_cast<Fault>(i);
  }
  return std::nullopt;
}

}  // namespace holdfast::sim
