// What facts about a store come to: a race of writers (F32), and clocks.
#include "store/diagnosis.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <optional>

#include "store/memory/memory_store.hpp"
#include "store/race.hpp"
#include "store/rows.hpp"
#include "support/virtual_loop.hpp"

namespace holdfast::store {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using testing::StartsWith;
using Told = RaceRound::Told;

/// A row that is written in ways that a test chooses.
class RaceOf : public testing::Test {
 protected:
  using Write = std::function<RowReply(const Update&)>;

  RaceResult run(const Write& write, const std::function<RowReply()>& read) {
    std::optional<RaceResult> result;
    const auto answer = [this](const Handler<RowReply>& handler, RowReply reply) {
      loop_.post([handler, reply = std::move(reply)] { handler(reply); });
    };
    RaceParts parts{
        loop_,
        [&](const Update& update, Instant, const Handler<RowReply>& handler) { answer(handler, write(update)); },
        [&](const std::string&, Instant, const Handler<RowReply>& handler) { answer(handler, read()); }};
    race(std::move(parts), scratch_key(), loop_.instant() + 30s, [&](RaceResult done) { result = std::move(done); });
    loop_.settle();
    EXPECT_TRUE(result);
    return result.value_or(RaceResult{});
  }
  RowReply write_rightly(const Update& update) {
    RowReply reply = decide(update, row_);
    if (reply.ok()) row_ = reply.value;
    return reply;
  }
  RowReply read() { return {Outcome::applied, row_, {}}; }

  test::VirtualLoop loop_;
  std::optional<Row> row_;
};

TEST_F(RaceOf, a_store_that_excludes_has_one_winner_in_each_round_and_leaves_a_row_that_nobody_claims) {
  const RaceResult result = run([&](const Update& update) { return write_rightly(update); }, [&] { return read(); });
  EXPECT_EQ(judge_race(result).health, Health::ok) << judge_race(result).detail;
  ASSERT_EQ(result.rounds.size(), race_rounds);
  for (const RaceRound& round : result.rounds) {
    EXPECT_EQ(std::count(round.told.begin(), round.told.end(), Told::won), 1);
  }
  ASSERT_TRUE(row_);
  EXPECT_THAT(row_->key, StartsWith("DOCTOR#"));
  EXPECT_EQ(row_->text(attribute::desired_state), state::removed);
  EXPECT_FALSE(may_be_forgotten(*row_, loop_.wall()));
  EXPECT_TRUE(may_be_forgotten(*row_, loop_.wall() + 2min)) << "what sweeps tombstones takes it";
}

TEST_F(RaceOf, f32_a_store_where_the_last_writer_wins_is_refused) {
  const auto last_writer_wins = [&](Update update) {
    update.condition = Condition::always();
    return write_rightly(update);
  };
  const Finding finding = judge_race(run(last_writer_wins, [&] { return read(); }));
  EXPECT_EQ(finding.health, Health::failed);
  EXPECT_THAT(finding.detail, HasSubstr("16 of 16 writers"));
  EXPECT_THAT(finding.advice, HasSubstr("do not run workers"));
}

TEST_F(RaceOf, f32_a_store_that_loses_what_it_confirmed_is_refused) {
  const auto forget = [&](const Update& update) {
    RowReply reply = write_rightly(update);
    if (reply.ok()) row_->attributes.insert_or_assign(std::string(attribute::attempt), Value("somebody"));
    return reply;
  };
  const Finding finding = judge_race(run(forget, [&] { return read(); }));
  EXPECT_EQ(finding.health, Health::failed);
  EXPECT_THAT(finding.detail, HasSubstr("not what is there"));
}

TEST_F(RaceOf, a_conflict_told_to_the_one_whose_write_is_there_is_refused) {
  const auto deny = [&](const Update& update) {
    RowReply reply = write_rightly(update);
    reply.outcome = Outcome::conflict;
    return reply;
  };
  EXPECT_THAT(judge_race(run(deny, [&] { return read(); })).detail, HasSubstr("told that it had lost"));
}

TEST_F(RaceOf, a_winner_that_was_not_answered_is_one_all_the_same) {
  const auto lose_answers = [&](const Update& update) {
    RowReply reply = write_rightly(update);
    if (reply.ok()) reply = {Outcome::unknown, std::nullopt, {Code::unavailable, "no answer"}};
    return reply;
  };
  EXPECT_EQ(judge_race(run(lose_answers, [&] { return read(); })).health, Health::ok);
}

TEST_F(RaceOf, a_busy_store_leaves_it_undecided_and_one_that_refuses_says_why) {
  const auto busy = [](const Update&) { return RowReply{Outcome::throttled, {}, {Code::unavailable, "busy"}}; };
  const Finding undecided = judge_race(run(busy, [&] { return read(); }));
  EXPECT_EQ(undecided.health, Health::warning);
  EXPECT_THAT(undecided.detail, HasSubstr("0 of 3 races"));
  const auto refused = [](const Update&) { return RowReply{Outcome::rejected, {}, {Code::denied, "not allowed"}}; };
  EXPECT_THAT(judge_race(run(refused, [&] { return read(); })).detail, HasSubstr("not allowed"));
}

TEST(ClockAgainstServer, answers_over_a_second_narrow_the_offset_down) {
  // Ours is 300 ms behind; the Date is cut to whole seconds, asked every 83 ms, answered at once.
  std::optional<ClockOffset> offset;
  for (int i = 0; i < 14; ++i) {
    const auto ours = std::chrono::milliseconds(100'000 + 83 * i);
    const auto date = std::chrono::floor<std::chrono::seconds>(ours + 300ms);
    const ClockOffset told = ClockOffset::from_date(date + 500ms - ours, Duration::zero());
    offset = offset ? ClockOffset::both(*offset, told) : told;
  }
  EXPECT_LE(offset->least, 300ms);
  EXPECT_GE(offset->most, 300ms);
  EXPECT_LE(offset->width(), 170ms);
}

TEST(ClockAgainstServer, contradicting_answers_leave_the_second) {
  const ClockOffset jumped = ClockOffset::both({0ms, 10ms}, {5s, 6s});
  EXPECT_EQ(jumped.least, Duration(5s));
}

TEST(ClockAgainstServer, half_the_skew_warns_and_more_than_it_fails_and_what_cannot_be_told_is_no_fault) {
  const auto health = [](Duration least, Duration most) {
    return judge_clock(ClockOffset{least, most}, 1s, "").health;
  };
  EXPECT_EQ(health(-40ms, 60ms), Health::ok);
  EXPECT_EQ(health(-900ms, 900ms), Health::ok) << "it may be right";
  EXPECT_EQ(health(600ms, 700ms), Health::warning);
  EXPECT_EQ(health(-2s, -1500ms), Health::failed);
  EXPECT_THAT(judge_clock(ClockOffset{1500ms, 2s}, 1s, "").detail, HasSubstr("behind the server's"));
  EXPECT_THAT(judge_clock(ClockOffset{1h, 1h + 100ms}, 1s, "").detail, HasSubstr("clock is 60 min behind"));
  EXPECT_THAT(judge_clock(ClockOffset{-2s, -1500ms}, 1s, "").advice, HasSubstr("--skew"));
  EXPECT_EQ(judge_clock(std::nullopt, 1s, "no Date").detail, "no Date");
}

}  // namespace
}  // namespace holdfast::store
