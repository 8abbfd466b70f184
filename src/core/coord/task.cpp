#include "core/coord/task.hpp"

#include <algorithm>

namespace holdfast {

namespace {

using std::chrono::milliseconds;

/// Between two looks at a holder's row: often enough to notice an early release, rarely enough to cost little.
constexpr Duration least_look = milliseconds(25);
constexpr Duration most_look = std::chrono::seconds(2);

std::string seconds(Duration duration) {
  const auto tenths = std::chrono::ceil<std::chrono::duration<std::int64_t, std::deci>>(duration).count();
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

}  // namespace

AwaitTask::AwaitTask(std::string row_key, Duration skew, Instant wait_until, Instant deadline, Random& random,
                     IsWanted is_wanted)
    : RowProcedure(std::move(row_key), deadline, random, std::move(is_wanted)),
      skew_(skew),
      wait_until_(wait_until) {}

std::string AwaitTask::row_key(std::string_view task) {
  return std::string(key_prefix::task) + std::string(task);
}

AwaitTask::Plan AwaitTask::plan(Now now) {
  Ended<Candidate> candidate = lease_in(key(), find(key()));
  if (!candidate) return candidate.error();
  if (claimable_from(*candidate, skew_) <= now.wall) return *std::move(candidate);
  return std::visit([](auto step) -> Plan { return step; },
                    wait_for_holder(*candidate, skew_, wait_until_, now, random()));
}

Ended<Candidate> lease_in(std::string_view key, const Row* row) {
  if (std::optional<Candidate> candidate = task_from(key, row)) return *std::move(candidate);
  return tl::unexpected(Failure{Failure::Kind::rejected,
                                Error(Code::corrupt, "The lease in the row " + std::string(key) +
                                                         " is damaged: " + damage_of(*row).value_or("") + ".")});
}

std::variant<Pause, Failure> wait_for_holder(const Candidate& held, Duration skew, Instant wait_until, Now now,
                                             Random& random) {
  const WallTime free_from = claimable_from(held, skew);
  // As a double: an absurd expiry (year 292 million) must not overflow.
  const double left_ms = static_cast<double>(free_from.time_since_epoch().count()) -
                         static_cast<double>(now.wall.time_since_epoch().count());
  if (now.instant >= wait_until) {
    const std::string until = left_ms < 1e12
                                  ? "Its lease ends in " + seconds(milliseconds(static_cast<std::int64_t>(left_ms))) +
                                        " unless it is renewed."
                                  : std::string("Its lease has no end.");
    return Failure{Failure::Kind::busy, Error(Code::unavailable, std::string(name_in(held.key)) + " is held by " +
                                                                     held.owner + ". " + until)};
  }
  const Duration left = milliseconds(static_cast<std::int64_t>(std::min(left_ms, 1e9)));
  const Duration bound = std::clamp<Duration>(left / 8, least_look, most_look);
  // Several wait for one holder: full jitter where they look early, and after its end they come spread out.
  Duration pause = random.between(bound / 2, bound);
  if (pause >= left) pause = left + random.between(Duration::zero(), least_look);
  return Pause{std::min(now.instant + pause, wait_until), true};
}

}  // namespace holdfast
