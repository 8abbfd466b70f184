#include "store/race.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>

#include "runtime/secure_random.hpp"

namespace holdfast::store {

namespace {

using namespace std::chrono_literals;
using Told = RaceRound::Told;

constexpr Duration request_limit = 5s;
constexpr auto remembered = 60s;  // the row, after the race

std::string mark_of(std::size_t round, std::size_t writer) {
  return std::to_string(round) + "/" + std::to_string(writer);
}

/// Writer's claim on the round's epoch, on the condition that nobody has it.
Update write_of(const std::string& key, std::size_t round, std::size_t writer, WallTime now) {
  const auto epoch = static_cast<std::int64_t>(round);
  const auto forget_at = std::chrono::duration_cast<std::chrono::seconds>((now + remembered).time_since_epoch());
  Update update{.key = key};
  update.condition = round == 0 ? Condition::row_missing() : Condition::equals(attribute::epoch, epoch);
  update.changes = {Change::set(attribute::desired_state, state::removed), Change::set(attribute::expires_at, 0),
                    Change::set(attribute::epoch, epoch + 1), Change::set(attribute::attempt, mark_of(round, writer)),
                    Change::set(attribute::tombstone_expires_at, std::int64_t{forget_at.count()})};
  return update;
}

Told told_of(const RowReply& reply) {
  switch (reply.outcome) {
    case Outcome::applied:
      return Told::won;
    case Outcome::conflict:
      return reply.error.detail.empty() ? Told::lost : Told::unknown;  // with its own earlier try, perhaps
    case Outcome::throttled:
    case Outcome::rejected:
      return Told::nothing;
    case Outcome::unknown:
      return Told::unknown;
  }
  return Told::unknown;
}

class Race : public std::enable_shared_from_this<Race> {
 public:
  Race(RaceParts parts, std::string key, Instant deadline, std::function<void(RaceResult)> done)
      : parts_(std::move(parts)), key_(std::move(key)), deadline_(deadline), done_(std::move(done)) {}

  void next() {
    const bool undecided = !result_.rounds.empty() && !result_.rounds.back().found;
    const bool over = result_.error || undecided || result_.rounds.size() == race_rounds;
    if (over || parts_.loop.instant() >= deadline_) return done_(std::move(result_));
    const std::size_t round = result_.rounds.size();
    result_.rounds.emplace_back().told.resize(race_writers, Told::unknown);
    owed_ = race_writers;
    for (std::size_t writer = 0; writer < race_writers; ++writer) {
      parts_.write(write_of(key_, round, writer, parts_.loop.wall()), limit(),
                   [self = shared_from_this(), writer](const RowReply& reply) { self->take(writer, reply); });
    }
  }

 private:
  [[nodiscard]] Instant limit() const { return std::min(deadline_, parts_.loop.instant() + request_limit); }

  void take(std::size_t writer, const RowReply& reply) {
    result_.rounds.back().told[writer] = told_of(reply);
    if (reply.outcome == Outcome::rejected && !result_.error) result_.error = reply.error;
    if (--owed_ > 0) return;
    parts_.read(key_, limit(), [self = shared_from_this()](const RowReply& read) { self->look(read); });
  }

  void look(const RowReply& reply) {
    RaceRound& round = result_.rounds.back();
    round.read = reply.ok();
    if (!reply.ok() && !result_.error) result_.error = reply.error;
    for (std::size_t writer = 0; reply.ok() && reply.value && writer < race_writers; ++writer) {
      const std::string mark = mark_of(result_.rounds.size() - 1, writer);
      if (reply.value->text(attribute::attempt) == mark) round.found = writer;
    }
    next();
  }

  const RaceParts parts_;
  const std::string key_;
  const Instant deadline_;
  const std::function<void(RaceResult)> done_;
  RaceResult result_;
  std::size_t owed_ = 0;
};

constexpr const char* refuse =
    "do not run workers on this store: two would hold one connection. Use SQLite on a local disk, or a DynamoDB "
    "table "
    "in one region (where it is a global table, all workers on one replica of it)";

/// What is wrong with a round, whatever became of what is unknown; empty: nothing.
std::string broken(const RaceRound& round) {
  const auto won = std::count(round.told.begin(), round.told.end(), Told::won);
  if (won > 1) {
    return std::to_string(won) + " of " + std::to_string(round.told.size()) +
           " writers were told that they alone had won";
  }
  if (!round.read) return {};
  if (won == 1 && (!round.found || round.told[*round.found] != Told::won)) {
    return "what the winner wrote is not what is there";
  }
  const bool by_loser =
      round.found && round.told[*round.found] != Told::won && round.told[*round.found] != Told::unknown;
  if (by_loser) return "a writer that was told that it had lost is the one whose write is there";
  return {};
}

}  // namespace

Finding judge_race(const RaceResult& result) {
  Finding finding{.check = "exclusion", .health = Health::failed, .detail = {}, .advice = refuse};
  std::size_t decided = 0;
  for (const RaceRound& round : result.rounds) {
    if (std::string why = broken(round); !why.empty()) {
      finding.detail = "conditional writes do not exclude: " + why;
      return finding;
    }
    if (round.read && round.found) ++decided;
  }
  const std::string writers = std::to_string(race_writers) + " writers";
  if (decided == race_rounds) {
    return {finding.check, Health::ok,
            "in each of " + std::to_string(decided) + " races of " + writers + " on a scratch row one won", ""};
  }
  finding.health = Health::warning;
  finding.detail = std::to_string(decided) + " of " + std::to_string(race_rounds) + " races of " + writers +
                   " were decided" +
                   (result.error ? ": " + result.error->detail : ", the store was busy or too slow");
  finding.advice = "run doctor again when there is less to do, or with a longer --timeout";
  return finding;
}

std::string scratch_key() {
  runtime::SecureRandom random;
  return std::string(scratch_prefix) + random.attempt().to_string();
}

void race(RaceParts parts, std::string key, Instant deadline, std::function<void(RaceResult)> done) {
  std::make_shared<Race>(std::move(parts), std::move(key), deadline, std::move(done))->next();
}

}  // namespace holdfast::store
