#include "core/coord/tries.hpp"

#include <algorithm>

namespace holdfast {

namespace {

constexpr Duration first_pause = std::chrono::milliseconds(10);
constexpr Duration longest_pause = std::chrono::seconds(1);
/// What half of the time left does not fall below: halves alone never come to an end.
constexpr Duration shortest_bound = std::chrono::milliseconds(1);

}  // namespace

void Tries::failed(Error error, Now now) {
  last_ = std::move(error);
  put_off(now);
  ++failures_;
}

void Tries::lost_race(Now now) {
  if (failures_ > 0) put_off(now);
  ++failures_;
}

void Tries::put_off(Now now) {
  const unsigned doublings = std::min(failures_, 7U);
  const Duration bound = std::min({first_pause * (1 << doublings), longest_pause, (deadline_ - now.instant) / 2});
  not_before_ = now.instant + random_.between(Duration::zero(), std::max(bound, shortest_bound));
}

std::optional<Pause> Tries::pause(Now now, Instant not_before) const {
  const Instant until = std::max(not_before_, not_before);
  if (now.instant >= until) return std::nullopt;
  return Pause{std::min(until, deadline_)};
}

Failure Tries::failure() const {
  const std::string why = last_.detail.empty() ? "There was no time left to ask the store." : last_.detail;
  if (in_doubt_) {
    return {Failure::Kind::unknown, Error(Code::unavailable, "It is not known whether this happened: " + why)};
  }
  return {Failure::Kind::unavailable, Error(Code::unavailable, "Nothing happened: " + why)};
}

}  // namespace holdfast
