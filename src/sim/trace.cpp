#include "sim/trace.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "holdfast/lease.hpp"
#include "holdfast/store.hpp"
#include "sim/coord/words.hpp"
#include "sim/faults.hpp"
#include "sim/timeline.hpp"
#include "sim/world.hpp"

namespace holdfast::sim {
namespace {

using Kind = Happening::Kind;

std::string number(std::int64_t value) {
  return std::to_string(value);
}

std::string words(const Happening& it) {
  static constexpr std::array<std::string_view, 6> requests{"claim", "renewal",    "release",
                                                            "look",  "worker row", "other"};
  static constexpr std::array<std::string_view, 5> stages{"?", "starts", "is asked to drain", "has ended", "is gone"};
  static constexpr std::array<std::string_view, 7> edits{"started", "stopped",         "edited",        "removed",
                                                         "added",   "expiry tampered", "owner tampered"};
  switch (it.kind) {
    case Kind::asked:
      return "asks: " + std::string(requests.at(static_cast<std::size_t>(it.a))) + ", epoch " + number(it.b);
    case Kind::carried_out:
      return "the table: " + std::string(to_string(static_cast<Outcome>(it.a))) + "; row: epoch " + number(it.b) +
             ", last_seq " + number(it.c);
    case Kind::answered:
      return "hears: " + std::string(to_string(static_cast<Outcome>(it.a)));
    case Kind::granted:
      return "starts it under epoch " + number(it.b) + " after seq " + number(it.c);
    case Kind::told_to_stop:
      return "its resource is told to stop: " + std::string(to_string(static_cast<LossReason>(it.a))) + ", epoch " +
             number(it.b);
    case Kind::let_go:
      return "its resource is gone, epoch " + number(it.b);
    case Kind::written:
      return "sink: durable under epoch " + number(it.b) + ": " + number(it.a) + ".." + number(it.c);
    case Kind::left_out:
      return "sink: leaves out records of epoch " + number(it.b);
    case Kind::opened:
      return "upstream open, resumes after " + number(it.a);
    case Kind::closed:
      return "upstream ended: " + number(it.a);
    case Kind::fault:
      return "fault: " + std::string(name_of(static_cast<Fault>(it.a)));
    case Kind::process:
      return std::string(stages.at(static_cast<std::size_t>(it.a)));
    case Kind::people:
      return "people: " + std::string(edits.at(static_cast<std::size_t>(it.a)));
    case Kind::plain:
      return "plain worker believes until " + number(it.c / 1'000'000) + " ms";
    case Kind::calls:
      return std::string(coordinated::words_of(static_cast<coordinated::Verb>(it.a)));
    case Kind::hears:
      return std::string(coordinated::words_of(static_cast<coordinated::Verb>(it.a))) + ": " +
             std::string(coordinated::words_of(static_cast<coordinated::How>(it.b))) +
             (it.c == 0 ? std::string() : ", " + number(it.c));
    case Kind::left:
      return "the table: row written; epoch " + number(it.b) + ", number " + number(it.c);
  }
  return {};
}

}  // namespace

std::vector<Happening> Trace::last(std::int32_t connection, std::size_t most) const {
  std::vector<Happening> chosen;
  const std::size_t size = last_.size();
  for (std::size_t i = size; i-- > 0 && chosen.size() < most;) {
    const Happening& one = last_[(next_ + i) % size];
    // What was done to a process as a whole, or to all, concerns every connection.
    const bool to_all = one.connection < 0 && (one.kind == Kind::fault || one.kind == Kind::process);
    if (connection < 0 || to_all || one.connection == connection) chosen.push_back(one);
  }
  std::reverse(chosen.begin(), chosen.end());
  return chosen;
}

std::string describe(const Happening& it) {
  char head[96];
  const double seconds = std::chrono::duration<double>(it.at - Timeline::start).count();
  char who[16] = "-";
  if (it.process >= 0) std::snprintf(who, sizeof who, "p%d", int{it.process});
  const std::string what = it.connection >= 0 ? connection_name(it.connection) : std::string();
  std::snprintf(head, sizeof head, "%12.6f s  %-4s %-5s ", seconds, who, what.c_str());
  return head + words(it);
}

}  // namespace holdfast::sim
