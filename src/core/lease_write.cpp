#include "core/lease_write.hpp"

#include <utility>

#include "core/number.hpp"

namespace holdfast {

namespace {

constexpr std::size_t changes_most = 10;  // of a claim, with its status

Value number(WallTime time) {
  return Value(std::int64_t{time.time_since_epoch().count()});
}

/// A plain worker may leave an attribute out, or write null, where we write 0 or nothing: to us they are the same.
Condition equals_or_absent(std::string_view name, Value value) {
  return Condition::absent(name) || Condition::equals(name, std::move(value));
}

Condition nobody_owns() {
  return equals_or_absent(attribute::owner, "");
}

/// S8: nothing is created, only what shall run is claimed, and only in the state in which it was seen. The epoch
/// alone would not do: plain workers leave it as it is when they claim, but they do change the expiry or the owner.
Condition as_seen(const LeaseWrite& write) {
  const std::int64_t seen_epoch = write.epoch.value - 1;
  Condition epoch = seen_epoch == 0 ? equals_or_absent(attribute::epoch, std::int64_t{0})
                                    : Condition::equals(attribute::epoch, seen_epoch);
  Condition owner =
      write.seen_owner.empty() ? nobody_owns() : Condition::equals(attribute::owner, Value(write.seen_owner));
  Condition expiry = write.seen_expires_at == WallTime{}
                         ? equals_or_absent(attribute::expires_at, std::int64_t{0})
                         : Condition::equals(attribute::expires_at, number(write.seen_expires_at));
  Condition lease = std::move(epoch) && std::move(owner) && std::move(expiry);
  if (write.wanted.empty()) return Condition::row_exists() && std::move(lease);
  return Condition::row_exists() && Condition::equals(attribute::desired_state, Value(write.wanted)) &&
         std::move(lease);
}

/// The write's row, and room for its changes and for those that the shell adds.
Update update_of(const LeaseWrite& write) {
  Update update;
  update.key = write.key;
  update.changes.reserve(changes_most);
  return update;
}

Update render_claim(const LeaseWrite& write, const WorkerId& owner) {
  // S1: an owner may go on until its expiry, and its clock may be behind ours by the skew.
  Condition free = nobody_owns() || Condition::absent(attribute::expires_at) ||
                   Condition::is(attribute::expires_at, Condition::Compare::less_equal, number(write.free_before));
  Update update = update_of(write);
  update.condition = write.row_exists ? as_seen(write) && std::move(free) : Condition::row_missing();
  if (write.wanted.empty()) update.changes.push_back(Change::set(attribute::desired_state, state::task));
  update.changes.push_back(Change::set(attribute::owner, owner.value));
  update.changes.push_back(Change::set(attribute::epoch, write.epoch.value));
  update.changes.push_back(Change::set(attribute::attempt, write.attempt.to_string()));
  update.changes.push_back(Change::set(attribute::renewal, std::int64_t{0}));
  update.changes.push_back(Change::set(attribute::expires_at, number(write.expires_at)));
  update.changes.push_back(Change::remove(attribute::released_at));
  return update;
}

Update render_renewal(const LeaseWrite& write, const WorkerId& owner) {
  Update update = update_of(write);
  // A delayed duplicate of an older renewal must not take back what a newer one has promised. The number tells them
  // apart; the expiry may go down, where a clock was set back. A row without a number has seen no renewal of ours.
  update.condition = fence(owner, write.epoch) &&
                     !Condition::is(attribute::renewal, Condition::Compare::greater_equal, write.renewal);
  update.changes.push_back(Change::set(attribute::attempt, write.attempt.to_string()));
  update.changes.push_back(Change::set(attribute::renewal, write.renewal));
  update.changes.push_back(Change::set(attribute::expires_at, number(write.expires_at)));
  return update;
}

Update render_release(const LeaseWrite& write, const WorkerId& owner) {
  Update update = update_of(write);
  update.condition = fence(owner, write.epoch);
  // The epoch stays for good (S3).
  update.changes.push_back(Change::remove(attribute::owner));
  update.changes.push_back(Change::set(attribute::expires_at, std::int64_t{0}));
  update.changes.push_back(Change::set(attribute::attempt, write.attempt.to_string()));
  update.changes.push_back(Change::set(attribute::released_at, number(write.at)));
  return update;
}

}  // namespace

std::optional<std::string> damage_of(const Row& row) {
  const Value* owner = row.find(attribute::owner);
  if (!is_absent(owner) && owner->as_string() == nullptr) return "lease_owner is " + describe(*owner);
  // With any other it could be taken for free, and no claim of it would ever be granted.
  const Value* expiry = row.find(attribute::expires_at);
  if (!is_absent(expiry) && expiry->as_int() == nullptr) return "lease_expires_at_ms is " + describe(*expiry);
  const Value* epoch = row.find(attribute::epoch);
  if (is_absent(epoch)) return std::nullopt;
  const std::int64_t* number = epoch->as_int();
  if (number == nullptr || *number < 0) return "lease_epoch is " + describe(*epoch);
  if (*number == INT64_MAX) return "lease_epoch is " + describe(*epoch) + ", which has no successor";
  return std::nullopt;
}

std::optional<Candidate> candidate_from(const Row& row) {
  return row.text(attribute::desired_state) == state::started ? lease_of(row) : std::nullopt;
}

std::optional<Candidate> lease_of(const Row& row) {
  if (damage_of(row)) return std::nullopt;
  Candidate candidate;
  candidate.key = row.key;
  candidate.epoch = {row.number(attribute::epoch)};
  candidate.owner = row.text(attribute::owner);
  candidate.expires_at = WallTime(std::chrono::milliseconds(row.number(attribute::expires_at)));
  candidate.released_at = WallTime(std::chrono::milliseconds(row.number(attribute::released_at)));
  return candidate;
}

std::optional<Candidate> task_from(std::string_view key, const Row* row) {
  std::optional<Candidate> candidate = row == nullptr ? Candidate{} : lease_of(*row);
  if (!candidate) return std::nullopt;
  candidate->key = key;
  candidate->row_exists = row != nullptr;
  return candidate;
}

WallTime claimable_from(std::string_view owner, WallTime expires_at, Duration skew) {
  if (owner.empty() || expires_at == WallTime{}) return WallTime::min();
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(skew);
  // An absurd expiry (somebody wrote 9223372036854775807) must not wrap around into "long ago".
  return expires_at > WallTime::max() - wait ? WallTime::max() : expires_at + wait;
}

Condition fence(const WorkerId& owner, Epoch epoch) {
  return Condition::equals(attribute::owner, owner.value) && Condition::equals(attribute::epoch, epoch.value);
}

Update render(const LeaseWrite& write, const WorkerId& owner) {
  Update update = write.kind == LeaseWrite::Kind::claim   ? render_claim(write, owner)
                  : write.kind == LeaseWrite::Kind::renew ? render_renewal(write, owner)
                                                          : render_release(write, owner);
  if (write.last_seq) update.changes.push_back(Change::set(attribute::last_seq, *write.last_seq));
  return update;
}

}  // namespace holdfast
