#include "core/coord/row_procedure.hpp"

#include <algorithm>

#include "core/coord/damage.hpp"
#include "holdfast/assert.hpp"

namespace holdfast {

RowWork::RowWork(std::vector<std::string> keys, Instant deadline, Random& random, IsWanted is_wanted)
    : keys_(std::move(keys)),
      is_wanted_(std::move(is_wanted)),
      random_(random),
      attempt_(random.attempt()),
      tries_(deadline, random) {
  HOLDFAST_ASSERT(!keys_.empty(), "an operation is on a row");
}

const Row* RowWork::find(std::string_view key) const {
  const auto found = std::ranges::find(rows_, key, &Row::key);
  return found == rows_.end() ? nullptr : &*found;
}

std::optional<Ask> RowWork::next(Now now) {
  HOLDFAST_ASSERT(waiting_ == Waiting::nothing, "one ask at a time");
  if (over_) return std::nullopt;
  if (!seen_ && is_wanted_ && !is_wanted_()) {
    over_ = true;
    fail(not_wanted());
    return std::nullopt;
  }
  // What was applied is told, however late.
  if (!applied_) {
    if (tries_.is_over(now)) {
      over_ = true;
      fail(tries_.failure());
      return std::nullopt;
    }
    if (const auto pause = tries_.pause(now)) {
      waiting_ = Waiting::pausing;
      return *pause;
    }
  }
  if (!seen_) return read();
  Verdict verdict = verdict_now(now);
  seen_ = false;
  if (auto* updates = std::get_if<std::vector<Update>>(&verdict)) return write(std::move(*updates));
  if (auto* pause = std::get_if<Pause>(&verdict)) {
    waiting_ = Waiting::pausing;
    pause->until = std::min(pause->until, deadline());
    return *pause;
  }
  over_ = true;
  if (auto* failure = std::get_if<Failure>(&verdict)) {
    // An earlier try may still arrive, and find things so that it is allowed (S5).
    if (failure->kind == Failure::Kind::refused && in_doubt()) failure->kind = Failure::Kind::unknown;
    fail(std::move(*failure));
  }
  return std::nullopt;
}

/// The rules', unless a row is not as they know it.
RowWork::Verdict RowWork::verdict_now(Now now) {
  const auto damaged = std::ranges::find_if(rows_, [](const Row& row) { return damage_in(row).has_value(); });
  if (damaged == rows_.end() || applied_) return judge(now);
  Failure failure = damaged_row(*damaged);
  if (in_doubt()) failure.kind = Failure::Kind::unknown;
  return failure;
}

Ask RowWork::read() {
  waiting_ = Waiting::reading;
  if (keys_.size() == 1) return ReadRow{keys_.front()};
  return ReadRows{keys_};
}

Ask RowWork::write(std::vector<Update> updates) {
  HOLDFAST_ASSERT(!updates.empty() && !applied_, "what was applied is not written again");
  waiting_ = Waiting::writing;
  if (updates.size() == 1 && keys_.size() == 1) return WriteRow{std::move(updates.front())};
  // A token stands for one content: with another, DynamoDB refuses it.
  if (updates != latest_) ++transactions_;
  latest_ = updates;
  return WriteRows{std::move(updates), attempt_.to_string() + "-" + std::to_string(transactions_ % 1000)};
}

void RowWork::on(Answer answer, Now now) {
  HOLDFAST_ASSERT(waiting_ != Waiting::nothing, "an answer to an ask");
  const Waiting waited = std::exchange(waiting_, Waiting::nothing);
  if (waited == Waiting::pausing) return;
  if (applied_) {  // it was only to be read what became of it: once
    if (answer.outcome == Outcome::applied) rows_ = std::move(answer.rows);
    seen_ = true;
    return;
  }
  // A row that is damaged is there: the rules must not take it for missing.
  if (waited == Waiting::reading && answer.lacks_damaged()) answer.outcome = Outcome::rejected;
  switch (answer.outcome) {
    case Outcome::applied:
      return applied(waited, std::move(answer.rows));
    case Outcome::conflict:
      // Of several rows only those are told whose condition failed.
      seen_ = keys_.size() == 1 && tries_.failures() == 0;
      rows_ = std::move(answer.rows);
      // Others are at it too. Again at once the first time; then who waits loses no write.
      tries_.lost_race(now);
      return;
    case Outcome::rejected:
      over_ = true;
      fail({tries_.in_doubt() ? Failure::Kind::unknown : Failure::Kind::rejected, std::move(answer.error)});
      return;
    case Outcome::unknown:
      if (waited == Waiting::writing) tries_.leave_in_doubt();
      break;
    case Outcome::throttled:
      break;
  }
  tries_.failed(std::move(answer.error), now);
}

void RowWork::applied(Waiting what, std::vector<Row> rows) {
  rows_ = std::move(rows);
  seen_ = true;
  if (what != Waiting::writing) return;
  applied_ = true;
  // A store that has to read the rows afterwards may have failed in that.
  seen_ = rows_.size() >= std::max<std::size_t>(latest_.size(), 1);
}

}  // namespace holdfast
