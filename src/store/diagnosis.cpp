#include "store/diagnosis.hpp"

#include <algorithm>

#include "runtime/units.hpp"

namespace holdfast::store {

namespace {

using namespace std::chrono_literals;

/// "12 ms behind the server's", "0 to 40 ms ahead of …": a distance whose sign is a word.
std::string words_of(const ClockOffset& offset) {
  const auto shown = [](Duration duration) {
    return runtime::describe_duration(std::chrono::round<std::chrono::milliseconds>(std::chrono::abs(duration)));
  };
  const auto between = [&](Duration near, Duration far) {
    return shown(near) == shown(far) ? shown(far) : shown(near) + " to " + shown(far);
  };
  const std::string server = "this machine's clock is ";
  if (offset.least > Duration::zero()) return server + between(offset.least, offset.most) + " behind the server's";
  if (offset.most < Duration::zero()) return server + between(offset.most, offset.least) + " ahead of the server's";
  return server + "within " + shown(std::max(offset.most, -offset.least)) + " of the server's";
}

}  // namespace

std::string_view to_string(Health health) {
  switch (health) {
    case Health::ok:
      return "ok";
    case Health::warning:
      return "warning";
    case Health::failed:
      return "failed";
    case Health::not_applicable:
      return "not applicable";
    case Health::not_checked:
      return "not checked";
  }
  return "";
}

ClockOffset ClockOffset::from_date(Duration measured, Duration took) {
  return {measured - 500ms, measured + 500ms + took};
}

ClockOffset ClockOffset::both(const ClockOffset& first, const ClockOffset& second) {
  const ClockOffset common{std::max(first.least, second.least), std::min(first.most, second.most)};
  return common.least <= common.most ? common : second;
}

Finding judge_clock(const std::optional<ClockOffset>& offset, Duration skew, const std::string& why_not) {
  Finding finding{.check = "clock", .health = Health::not_applicable, .detail = why_not, .advice = {}};
  if (!offset) return finding;
  finding.detail = words_of(*offset) + "; skew is " + runtime::describe_duration(skew);
  const Duration surely = std::max({offset->least, -offset->most, Duration::zero()});
  finding.health = Health::ok;
  // Another machine may be as wrong the other way.
  if (surely > skew / 2) {
    finding.health = surely > skew ? Health::failed : Health::warning;
    finding.advice =
        "set this machine's clock (chrony or ntpd), or give all workers a larger --skew: while clocks differ by more "
        "than that, two workers may believe in one lease";
  }
  return finding;
}

Diagnosable* diagnosable(Store& store) {
  return dynamic_cast<Diagnosable*>(&store);
}

}  // namespace holdfast::store
