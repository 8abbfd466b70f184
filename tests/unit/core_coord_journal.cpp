// The rules of a journal: what an intent may become, what is drawn from a quota, and what precludes what.
#include "core/coord/journal.hpp"

#include <gmock/gmock.h>
#include <rapidcheck.h>

#include <map>
#include <vector>

#include "core/coord/names.hpp"
#include "core/coord/replay.hpp"
#include "support/procedure_run.hpp"

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using test::every_mishap;
using test::Mishap;
using testing::HasSubstr;

constexpr WallTime t0{1'700'000'000'000ms};

Intent intent_of(Wish wish, std::string ticket = "t") {
  Intent intent;
  intent.ticket = std::move(ticket);
  intent.wish = std::move(wish);
  intent.accepted_at = t0;
  intent.expires_at = t0 + 1h;
  return intent;
}

// ---- Intents ----

TEST(JournalRules, an_intent_is_begun_before_the_store_is_asked_and_then_carried_out_until_it_is_known) {
  Intent intent = intent_of(AddWish{"c", 1, {}});
  EXPECT_EQ(next_step(intent, t0), IntentStep::begin);
  begin(intent, t0);
  EXPECT_EQ(next_step(intent, t0), IntentStep::carry_out);
  EXPECT_EQ(next_step(intent, t0 + 59min), IntentStep::carry_out);
  confirm(intent, "", t0);
  EXPECT_EQ(next_step(intent, t0), IntentStep::nothing);
  EXPECT_TRUE(intent.is_over());
}

TEST(JournalRules, what_nobody_began_in_time_expires_and_what_was_begun_is_precluded) {
  Intent intent = intent_of(AddWish{"c", 1, {}});
  EXPECT_EQ(next_step(intent, t0 + 1h), IntentStep::expire);
  begin(intent, t0);
  EXPECT_EQ(next_step(intent, t0 + 1h), IntentStep::preclude);
  EXPECT_EQ(next_step(intent, t0 + std::chrono::ceil<std::chrono::milliseconds>(intent_remembered)),
            IntentStep::give_up);
}

TEST(JournalRules, a_rejected_one_is_compensated_and_then_over) {
  Intent intent = intent_of(AddWish{"c", 1, {}});
  reject(intent, "late", t0);
  EXPECT_EQ(next_step(intent, t0), IntentStep::compensate);
  begin_compensation(intent);
  EXPECT_EQ(next_step(intent, t0), IntentStep::compensate) << "who began may have died";
  EXPECT_FALSE(intent.is_over());
  end_compensation(intent);
  EXPECT_EQ(next_step(intent, t0), IntentStep::nothing);
  EXPECT_TRUE(intent.is_over());
}

TEST(JournalRules, only_what_is_rejected_has_a_compensation) {
  Intent intent = intent_of(AddWish{"c", 1, {}});
  EXPECT_TRUE(is_sound(intent));
  intent.compensation = Intent::Compensation::due;
  EXPECT_FALSE(is_sound(intent));
  intent.state = Intent::State::rejected;
  EXPECT_TRUE(is_sound(intent));
  intent.ticket.clear();
  EXPECT_FALSE(is_sound(intent));
}

TEST(JournalRules, every_wish_is_written_and_read_back) {
  const Wish all[] = {DecideWish{"k", Value(Value::List{1, "a"}), "me"}, AddWish{"c", -3, 0}, AddWish{"c", 3, {}},
                      DrawWish{{{"hat", 2}}, "quota"}, SendWish{"q", "g", "body", 5ms, 1min}};
  for (const Wish& wish : all) {
    EXPECT_FALSE(fault_in(wish));
    EXPECT_EQ(wish_from(kind_of(wish), arguments_of(wish)), wish);
    EXPECT_FALSE(wish_from("lease", arguments_of(wish))) << "a right is never provisional";
    EXPECT_FALSE(wish_from(kind_of(wish), {}));
  }
}

TEST(JournalRules, what_can_never_be_carried_out_is_not_accepted) {
  EXPECT_TRUE(fault_in(DecideWish{"", 1, "me"}));
  EXPECT_TRUE(fault_in(AddWish{"", 1, {}}));
  EXPECT_TRUE(fault_in(DrawWish{{}, ""}));
  EXPECT_TRUE(fault_in(DrawWish{{{"hat", 0}}, ""}));
  EXPECT_TRUE(fault_in(SendWish{"q", "", "", 0ms}));
  EXPECT_TRUE(fault_in(SendWish{"q", "g", std::string(SendOptions::body_most + 1, 'x'), 0ms}));
  for (const auto delay :
       {std::chrono::milliseconds(-1), std::chrono::milliseconds(24h * 15 + 1ms), std::chrono::milliseconds::max()}) {
    EXPECT_TRUE(fault_in(SendWish{"q", "g", "body", delay})) << delay.count();
  }
  for (const auto retention : {0ms, std::chrono::milliseconds(24h * 366 + 1ms), std::chrono::milliseconds::max()}) {
    EXPECT_TRUE(fault_in(SendWish{"q", "g", "body", 0ms, retention})) << retention.count();
  }
}

TEST(JournalRules, a_message_that_an_older_program_has_accepted_is_kept_as_long_as_it_had_it) {
  Attributes before = arguments_of(SendWish{"q", "g", "body", 5ms});
  before.erase("retention_ms");
  EXPECT_EQ(wish_from("send", before), Wish(SendWish{"q", "g", "body", 5ms, SendWish().retention}));
  EXPECT_EQ(Duration(SendWish().retention), SendOptions().retention);
}

// Sums with them would overflow.
TEST(JournalRules, what_says_that_it_is_of_no_time_at_all_is_not_believed) {
  for (WallTime Intent::*time : {&Intent::accepted_at, &Intent::expires_at, &Intent::begun_at, &Intent::settled_at}) {
    for (const WallTime never : {WallTime::max(), WallTime::min()}) {
      Intent intent = intent_of(AddWish{"c", 1, {}});
      ASSERT_TRUE(is_sound(intent));
      intent.*time = never;
      EXPECT_FALSE(is_sound(intent));
    }
  }
}

// ---- Quotas ----

Quota quota_of(std::int64_t hats) {
  return {"q", {{"hat", hats}}, {{"hat", hats}}, t0 + 2h, Quota::State::open};
}

TEST(QuotaRules, nothing_is_drawn_that_might_come_back_before_it_is_settled) {
  const Quota quota = quota_of(3);
  EXPECT_TRUE(may_draw(quota, {{"hat", 3}}, t0, 2h));
  EXPECT_FALSE(may_draw(quota, {{"hat", 3}}, t0 + 1ms, 2h));
  EXPECT_FALSE(may_draw(quota, {{"hat", 4}}, t0, 1h));
  EXPECT_FALSE(may_draw(quota, {{"hat", 1}, {"shirt", 1}}, t0, 1h));
  for (const auto state : {Quota::State::asked, Quota::State::closing, Quota::State::returned}) {
    Quota other = quota;
    other.state = state;
    EXPECT_FALSE(may_draw(other, {{"hat", 1}}, t0, 1h)) << to_string(state);
  }
}

TEST(QuotaRules, a_ticket_that_lives_for_centuries_outlives_its_quota) {
  const WallTime now(1'796'000'000'000ms);
  const Quota quota{"q", {{"hat", 1}}, {{"hat", 1}}, now + 1h, Quota::State::open};
  EXPECT_TRUE(may_draw(quota, {{"hat", 1}}, now, 1min));
  for (const Duration age : {Duration(2h), Duration(24h * 90'000), Duration::max()}) {
    EXPECT_FALSE(may_draw(quota, {{"hat", 1}}, now, age));
  }
}

TEST(QuotaRules, whatever_is_drawn_and_given_back_it_is_never_more_than_was_set_aside) {
  EXPECT_TRUE(rc::check([](const std::vector<std::pair<bool, std::uint8_t>>& steps) {
    Quota quota = quota_of(20);
    std::vector<Basket> out;
    std::int64_t drawn = 0;
    for (const auto& [gives_back, size] : steps) {
      const Basket basket{{"hat", size % 7 + 1}};
      if (gives_back && !out.empty()) {
        undraw(quota, out.back());
        drawn -= out.back().at("hat");
        out.pop_back();
      } else if (may_draw(quota, basket, t0, 1h)) {
        draw(quota, basket);
        drawn += basket.at("hat");
        out.push_back(basket);
      } else {
        RC_ASSERT(drawn + basket.at("hat") > 20);
      }
      const std::int64_t left = quota.left.contains("hat") ? quota.left.at("hat") : 0;
      RC_ASSERT(drawn <= 20 && left + drawn == 20);
    }
  }));
}

// ---- In the store ----

class DrawTest : public testing::Test {
 protected:
  DrawTest() {
    put("hat", 10);
    Reserve reserving({"quota", {{"hat", 5}}, 1h}, deadline(), random_);
    run_.run(reserving);
  }
  void put(std::string_view sku, std::int64_t count) {
    table_.add(Reserve::stock_key(sku)).attributes.insert_or_assign(std::string(coord::available), Value(count));
  }
  std::int64_t available() { return table_.find(Reserve::stock_key("hat"))->number(coord::available); }
  [[nodiscard]] Instant deadline() const { return run_.now.instant + 10s; }
  Ended<Reservation> draw_hats(std::string id, std::int64_t count) {
    Draw drawing({std::move(id), "quota", {{"hat", count}}}, deadline(), random_);
    run_.run(drawing);
    return *drawing.result();
  }
  Ended<Reservation> cancel() {
    EndReservation ending({"quota", Reservation::State::held, {{"hat", 5}}, {}, false}, Reservation::State::cancelled,
                          0s, deadline(), random_);
    run_.run(ending);
    return *ending.result();
  }

  test::LeaseTable table_;
  test::ProcedureRun run_{table_};
  Random random_{7};
};

TEST_F(DrawTest, what_is_drawn_is_sold_and_what_is_left_comes_back) {
  EXPECT_EQ(draw_hats("a", 2)->state, Reservation::State::confirmed);
  EXPECT_TRUE(draw_hats("a", 2)->was_repeat);
  EXPECT_EQ(draw_hats("a", 3).error().kind, Failure::Kind::mismatch);
  EXPECT_EQ(draw_hats("b", 4).error().kind, Failure::Kind::refused);
  EXPECT_TRUE(draw_hats("b", 2));
  EXPECT_EQ(available(), 5);
  ASSERT_TRUE(cancel());
  EXPECT_EQ(available(), 6);
  EXPECT_EQ(draw_hats("c", 1).error().kind, Failure::Kind::refused);
}

TEST_F(DrawTest, a_sale_under_the_name_of_what_it_is_drawn_from_is_a_mismatch) {
  EXPECT_EQ(draw_hats("quota", 2).error().kind, Failure::Kind::mismatch);
  ASSERT_TRUE(cancel());
  EXPECT_EQ(available(), 10);
}

// Found by an attacker: a journal had forgotten its confirmed ticket, took it from its next quota, and was told that
// it was rejected.
TEST_F(DrawTest, what_was_sold_is_sold_whichever_quota_it_is_drawn_from_the_next_time) {
  ASSERT_TRUE(draw_hats("a", 2));
  Reserve reserving({"next", {{"hat", 5}}, 1h}, deadline(), random_);
  run_.run(reserving);
  const auto rows = table_.rows();
  const auto again = [&](std::string id, std::int64_t hats) {
    Draw drawing({std::move(id), "next", {{"hat", hats}}}, deadline(), random_);
    run_.run(drawing);
    return *drawing.result();
  };
  ASSERT_TRUE(again("a", 2));
  EXPECT_TRUE(again("a", 2)->was_repeat);
  EXPECT_EQ(again("a", 1).error().kind, Failure::Kind::mismatch);
  EXPECT_EQ(again("quota", 3).error().kind, Failure::Kind::mismatch) << "it is no sale";
  EXPECT_EQ(table_.rows(), rows);
}

TEST_F(DrawTest, what_was_sold_under_an_id_is_not_reserved_under_it) {
  ASSERT_TRUE(draw_hats("a", 2));
  Reserve reserving({"a", {{"hat", 2}}, 1h}, deadline(), random_);
  run_.run(reserving);
  EXPECT_EQ(reserving.result()->error().kind, Failure::Kind::mismatch);
}

TEST_F(DrawTest, all_of_it_may_be_drawn) {
  EXPECT_TRUE(draw_hats("a", 5));
  ASSERT_TRUE(cancel());
  EXPECT_EQ(available(), 5);
}

TEST_F(DrawTest, who_ends_a_reservation_while_it_is_drawn_on_returns_what_is_left) {
  EndReservation ending({"quota", Reservation::State::held, {{"hat", 5}}, {}, false}, Reservation::State::cancelled,
                        0s, deadline(), random_);
  ASSERT_TRUE(run_.step(ending)) << "it has seen five";
  ASSERT_TRUE(draw_hats("a", 2));
  run_.run(ending);
  ASSERT_TRUE(*ending.result());
  EXPECT_EQ(available(), 8);
}

TEST_F(DrawTest, whatever_befalls_one_request_it_is_drawn_once) {
  for (const Mishap mishap : every_mishap) {
    for (int nth = 0; nth < 6; ++nth) {
      SCOPED_TRACE(testing::Message() << "mishap " << static_cast<int>(mishap) << " at request " << nth);
      table_ = {};
      put("hat", 10);
      Reserve reserving({"quota", {{"hat", 5}}, 1h}, deadline(), random_);
      run_.mishap = [](int, bool) { return Mishap::none; };
      run_.run(reserving);
      run_.requests = 0;
      run_.mishap = [&](int request, bool) { return request == nth ? mishap : Mishap::none; };
      EXPECT_TRUE(draw_hats("a", 2));
      run_.arrive_late();
      ASSERT_TRUE(cancel());
      run_.arrive_late();
      EXPECT_EQ(available(), 8);
    }
  }
}

class PrecludeTest : public DrawTest {
 protected:
  Verdict replay(const Intent& intent, Replay::Way way = Replay::Way::carry_out) {
    Replay replay(intent, run_.now, deadline(), random_, way);
    run_.run(replay);
    return replay.verdict(merge_equal);
  }
  bool is_taken(const Intent& intent) {
    Preclude precluding(memory_key(intent.wish, intent.ticket).value(), deadline(), random_);
    run_.run(precluding);
    return precluding.result()->value().is_taken;
  }
  bool has_happened(const Intent& intent) {
    return is_taken(intent) && replay(intent, Replay::Way::look).kind == Verdict::Kind::confirmed;
  }
  static std::vector<Intent> intents() {
    return {intent_of(AddWish{"c", 1, {}}), intent_of(DrawWish{{{"hat", 1}}, "quota"}),
            intent_of(SendWish{"q", "g", "body", 0ms})};
  }
};

TEST_F(PrecludeTest, what_is_precluded_never_happens_whoever_asks_for_it_again) {
  for (const Intent& intent : intents()) {
    SCOPED_TRACE(kind_of(intent.wish));
    EXPECT_FALSE(has_happened(intent));
    EXPECT_FALSE(has_happened(intent)) << "told again, after a crash";
    const auto rows = table_.rows();
    const Verdict verdict = replay(intent);
    EXPECT_EQ(verdict.kind, Verdict::Kind::rejected) << verdict.error.detail;
    EXPECT_FALSE(verdict.may_arrive);
    EXPECT_EQ(table_.rows(), rows);
  }
}

TEST_F(PrecludeTest, a_sale_out_of_what_the_store_knows_nothing_of_waits_for_a_person_and_is_not_rejected) {
  table_.erase(Reserve::row_key("quota"));  // somebody made a new table in the place of the one it was set aside in
  const Verdict verdict = replay(intent_of(DrawWish{{{"hat", 1}}, "quota"}));
  EXPECT_EQ(verdict.kind, Verdict::Kind::stuck);
  EXPECT_THAT(verdict.error.detail, testing::HasSubstr("is this the same table?"));
}

TEST_F(PrecludeTest, a_reservation_that_was_precluded_is_none_and_not_damaged) {
  EXPECT_FALSE(has_happened(intents()[1]));
  ReadReservation reading(intents()[1].ticket, deadline(), random_);
  run_.run(reading);
  EXPECT_EQ(reading.result()->error().error.code, Code::not_found);
}

TEST_F(PrecludeTest, a_reservation_under_its_ticket_is_no_sale_that_has_happened) {
  Reserve reserving({"t", {{"hat", 1}}, 1h}, deadline(), random_);
  run_.run(reserving);
  ASSERT_TRUE(reserving.result()->has_value());
  EXPECT_FALSE(has_happened(intent_of(DrawWish{{{"hat", 1}}, "quota"})));
}

TEST_F(PrecludeTest, a_message_that_was_precluded_is_not_told_as_sent) {
  const Intent intent = intent_of(SendWish{"q", "g", "body", 0ms});
  EXPECT_FALSE(has_happened(intent));
  Send sending({"q", "g", "body", intent.ticket}, deadline(), random_);
  run_.run(sending);
  ASSERT_FALSE(*sending.result());
  EXPECT_EQ(sending.result()->error().kind, Failure::Kind::mismatch);
  EXPECT_THAT(sending.result()->error().error.detail, testing::HasSubstr("never sent"));
}

TEST_F(PrecludeTest, what_has_happened_is_not_precluded) {
  for (const Intent& intent : intents()) {
    SCOPED_TRACE(kind_of(intent.wish));
    EXPECT_EQ(replay(intent).kind, Verdict::Kind::confirmed);
    EXPECT_TRUE(has_happened(intent));
    EXPECT_EQ(replay(intent).kind, Verdict::Kind::confirmed);
  }
}

TEST_F(PrecludeTest, what_another_did_under_its_id_is_not_what_was_to_be_done) {
  const std::vector<Intent> others{intent_of(AddWish{"c", 7, {}}), intent_of(DrawWish{{{"hat", 2}}, "quota"}),
                                   intent_of(SendWish{"q", "g", "other", 0ms})};
  for (std::size_t nth = 0; nth < others.size(); ++nth) {
    SCOPED_TRACE(kind_of(others[nth].wish));
    ASSERT_EQ(replay(intents()[nth]).kind, Verdict::Kind::confirmed);
    const auto rows = table_.rows();
    EXPECT_TRUE(is_taken(others[nth]));
    const Verdict verdict = replay(others[nth], Replay::Way::look);
    EXPECT_EQ(verdict.kind, Verdict::Kind::rejected);
    EXPECT_FALSE(verdict.may_arrive);
    EXPECT_EQ(table_.rows(), rows);
  }
}

TEST_F(PrecludeTest, who_looks_whether_it_has_happened_does_not_carry_it_out) {
  auto all = intents();
  all.push_back(intent_of(AddWish{"c", -1, 0}));  // that the rules would refuse
  for (const Intent& intent : all) {
    SCOPED_TRACE(kind_of(intent.wish));
    const auto rows = table_.rows();
    const Verdict verdict = replay(intent, Replay::Way::look);
    EXPECT_EQ(verdict.kind, Verdict::Kind::stuck) << "what was taken is gone: it is precluded by the next pass";
    EXPECT_FALSE(verdict.may_arrive);
    EXPECT_EQ(table_.rows(), rows);
  }
}

TEST_F(PrecludeTest, the_id_of_a_message_that_is_no_longer_remembered_is_taken_over) {
  const Intent intent = intent_of(SendWish{"q", "g", "body", 0ms});
  ASSERT_EQ(replay(intent).kind, Verdict::Kind::confirmed);
  run_.pass(intent_remembered + 1h);
  EXPECT_FALSE(is_taken(intent)) << "that is another's, of long ago";
  EXPECT_EQ(replay(intent).kind, Verdict::Kind::rejected);
}

TEST_F(PrecludeTest, a_request_that_is_still_on_its_way_finds_it_precluded) {
  for (const Intent& intent : intents()) {
    SCOPED_TRACE(kind_of(intent.wish));
    run_.mishap = [](int, bool is_write) { return is_write ? Mishap::late_request : Mishap::none; };
    EXPECT_EQ(replay(intent).kind, Verdict::Kind::wait);
    run_.mishap = [](int, bool) { return Mishap::none; };
    EXPECT_FALSE(has_happened(intent));
    const auto rows = table_.rows();
    run_.arrive_late();
    EXPECT_EQ(table_.rows(), rows);
  }
}

TEST_F(PrecludeTest, a_store_that_cannot_be_used_says_nothing_about_an_intent_and_a_damaged_row_does) {
  table_.add("COUNTER#c").attributes.insert_or_assign(std::string(coord::value), Value("many"));
  EXPECT_EQ(replay(intent_of(AddWish{"c", 1, {}})).kind, Verdict::Kind::stuck);
  run_.mishap = [](int, bool) { return Mishap::throttled; };
  EXPECT_EQ(replay(intent_of(AddWish{"d", 1, {}})).kind, Verdict::Kind::wait);
}

TEST_F(PrecludeTest, what_the_store_rejects_is_of_the_store_or_about_the_intent_by_its_code) {
  const std::map<Code, Verdict::Kind> verdicts{
      {Code::usage, Verdict::Kind::stuck},     {Code::not_found, Verdict::Kind::wait},
      {Code::denied, Verdict::Kind::wait},     {Code::unavailable, Verdict::Kind::wait},
      {Code::exhausted, Verdict::Kind::stuck}, {Code::corrupt, Verdict::Kind::stuck},
      {Code::internal, Verdict::Kind::stuck}};
  auto all = intents();
  all.push_back(intent_of(DecideWish{"k", "x", "me"}));
  for (const auto& [code, kind] : verdicts) {
    for (const Intent& intent : all) {
      SCOPED_TRACE(testing::Message() << kind_of(intent.wish) << ", code " << static_cast<int>(code));
      Replay replay(intent, run_.now, deadline(), random_);
      ASSERT_TRUE(replay.next(run_.now));
      Answer answer;
      answer.outcome = Outcome::rejected;
      answer.error = Error(code, "why");
      replay.on(std::move(answer), run_.now);
      ASSERT_FALSE(replay.next(run_.now));
      EXPECT_EQ(replay.verdict(merge_equal).kind, kind);
      EXPECT_EQ(replay.verdict(merge_equal).error.detail, "why");
    }
  }
}

TEST_F(PrecludeTest, of_a_decision_the_merge_judges_what_another_has_proposed) {
  const Intent ours = intent_of(DecideWish{"k", "x", "me"});
  EXPECT_EQ(replay(ours).kind, Verdict::Kind::confirmed);
  EXPECT_EQ(replay(ours).kind, Verdict::Kind::confirmed) << "ours, by another of its tries";
  EXPECT_EQ(replay(intent_of(DecideWish{"k", "x", "me"}, "other")).kind, Verdict::Kind::confirmed) << "as good";
  const Verdict other = replay(intent_of(DecideWish{"k", "y", "me"}, "other"));
  EXPECT_EQ(other.kind, Verdict::Kind::rejected);
  EXPECT_THAT(other.note, HasSubstr("me#t"));
}

}  // namespace
}  // namespace holdfast
