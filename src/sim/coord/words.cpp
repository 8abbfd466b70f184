#include "sim/coord/words.hpp"

#include <array>

namespace holdfast::sim::coordinated {
namespace {

constexpr std::int32_t first_subject = 100'000;  // below are connections
constexpr std::int32_t subjects_of_a_kind = 100'000;
constexpr std::array<std::string_view, 8> kinds{"task",  "once",        "decision", "counter",
                                                "stock", "reservation", "group",    "ticket"};

}  // namespace

std::int32_t subject(Kind kind, std::size_t number) {
  return first_subject + static_cast<std::int32_t>(kind) * subjects_of_a_kind +
         static_cast<std::int32_t>(number % static_cast<std::size_t>(subjects_of_a_kind));
}

std::string name_of_subject(std::int32_t subject) {
  if (subject < first_subject) return {};
  const auto kind = static_cast<std::size_t>((subject - first_subject) / subjects_of_a_kind);
  return std::string(kinds.at(kind)) + std::to_string((subject - first_subject) % subjects_of_a_kind);
}

std::string_view words_of(Verb verb) {
  static constexpr std::array<std::string_view, 22> words{
      "acquire", "an effect",           "release",   "once",      "finish", "decide", "add",    "reserve", "confirm",
      "cancel",  "return what expired", "send",      "receive",   "ack",    "nack",   "extend", "park",    "redrive",
      "accept",  "set aside",           "reconcile", "compensate"};
  return words.at(static_cast<std::size_t>(verb));
}

std::string_view words_of(How how) {
  static constexpr std::array<std::string_view, 10> words{
      "done", "unavailable", "unknown", "busy", "mismatch", "refused", "rejected", "lost", "provisional", "nothing"};
  return words.at(static_cast<std::size_t>(how));
}

}  // namespace holdfast::sim::coordinated
