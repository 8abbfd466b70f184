#include "core/coord/once.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/coord/damage.hpp"
#include "core/coord/memory.hpp"
#include "core/coord/names.hpp"
#include "core/coord/task.hpp"
#include "holdfast/assert.hpp"

namespace holdfast {

namespace {

using std::chrono::milliseconds;

/// F24: the one place that compares fingerprints, for every path through the plan.
bool is_mismatch(const Row& row, const std::string& fingerprint) {
  const std::string_view there = row.text(coord::fingerprint);
  return !fingerprint.empty() && !there.empty() && there != fingerprint;
}

}  // namespace

LookOnce::LookOnce(OnceOptions options, Random& random, IsWanted is_wanted)
    : RowProcedure(row_key(options.key), options.deadline, random, std::move(is_wanted)),
      options_(std::move(options)) {}

std::string LookOnce::row_key(std::string_view key) {
  return std::string(coord::once_prefix) + std::string(key);
}

std::vector<Change> LookOnce::claim_changes(const OnceOptions& options) {
  // What an earlier run left, past its retention, goes.
  return {Change::set(coord::fingerprint, options.fingerprint), Change::remove(coord::result),
          Change::remove(coord::succeeded), Change::remove(coord::completed_at),
          Change::remove(attribute::tombstone_expires_at)};
}

std::vector<Change> LookOnce::result_changes(const OnceResult& result, Duration retention, WallTime now) {
  HOLDFAST_ASSERT(result.content.size() <= OnceResult::most, "looked at by who has the result");
  return {Change::set(coord::result, result.content), Change::set(coord::succeeded, result.succeeded),
          Change::set(coord::completed_at, std::int64_t{result.at.time_since_epoch().count()}),
          // Stores sweep what is REMOVED and past its tombstone; until then it answers.
          Change::set(attribute::desired_state, state::removed),
          Change::set(attribute::tombstone_expires_at, remembered_until(now, retention))};
}

LookOnce::Plan LookOnce::plan(Now now) {
  const Row* row = find(key());
  Ended<Candidate> candidate = lease_in(key(), row);
  if (!candidate) return candidate.error();
  if (row == nullptr) return OnceFree{*std::move(candidate)};
  const std::optional<OnceResult> result = once_result_in(*row);
  const bool is_over = result && is_past_retention(*row, now.wall);
  if (!is_over && is_mismatch(*row, options_.fingerprint)) {
    return Failure{Failure::Kind::mismatch, Error(Code::usage, "The key " + options_.key +
                                                                   " was used before with another input. Use another "
                                                                   "key for another input.")};
  }
  if (is_over) return OnceFree{*std::move(candidate)};
  if (result) return OnceDone{*result, candidate->epoch};
  if (candidate->owner.empty()) return OnceFree{*std::move(candidate)};  // given back, to be run again
  if (now.wall < claimable_from(*candidate, options_.skew)) {
    return std::visit([](auto step) -> Plan { return step; },
                      wait_for_holder(*candidate, options_.skew, options_.wait_until, now, random()));
  }
  if (options_.abandoned == OnceOptions::Abandoned::hold) {
    return OnceHeld{candidate->owner, candidate->epoch, candidate->expires_at};
  }
  return OnceFree{*std::move(candidate), true};
}

RecordOnce::RecordOnce(std::string key, WorkerId owner, Epoch epoch, OnceResult result, Duration retention,
                       Instant deadline, Random& random)
    : RowProcedure(LookOnce::row_key(key), deadline, random),
      name_(std::move(key)),
      owner_(std::move(owner)),
      epoch_(epoch),
      result_(std::move(result)),
      retention_(retention) {}

RecordOnce::Plan RecordOnce::plan(Now now) {
  const auto refused = [this](std::string why) {
    is_overtaken_ = true;
    return Failure{Failure::Kind::refused,
                   Error(Code::denied, "The result of " + name_ + " is not recorded: " + std::move(why))};
  };
  const Row* row = find(key());
  if (row == nullptr) return refused("its row is gone.");
  const Ended<Candidate> lease = lease_in(key(), row);
  if (!lease) return lease.error();
  if (lease->epoch != epoch_) {
    return refused("it has epoch " + std::to_string(lease->epoch.value) + " by now, and was run under " +
                   std::to_string(epoch_.value) + ".");
  }
  // Nobody else records anything under this epoch.
  if (std::optional<OnceResult> there = once_result_in(*row)) return *std::move(there);
  if (lease->owner != owner_.value) return refused("it was given back, or released by hand, before.");
  LeaseWrite end;
  end.kind = LeaseWrite::Kind::release;
  end.key = key();
  end.attempt = attempt();
  end.epoch = epoch_;
  end.at = now.wall;
  Update update = render(end, owner_);
  std::ranges::move(LookOnce::result_changes(result_, retention_, now.wall), std::back_inserter(update.changes));
  return std::vector{std::move(update)};
}

std::optional<OnceResult> once_result_in(const Row& row) {
  const Value* content = row.find(coord::result);
  if (content == nullptr || damage_in(row)) return std::nullopt;
  OnceResult result;
  result.content = *content->as_string();
  const Value* succeeded = row.find(coord::succeeded);
  result.succeeded = succeeded == nullptr || *succeeded->as_bool();
  result.at = WallTime(milliseconds(row.number(coord::completed_at)));
  return result;
}

}  // namespace holdfast
