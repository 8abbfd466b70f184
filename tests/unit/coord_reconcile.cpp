// What a journal holds is settled: in order, one thing holding up no other, and what is rejected is made good for.
#include "coord/reconcile.hpp"

#include <gmock/gmock.h>

#include <map>
#include <memory>
#include <string>

#include "support/available_test.hpp"

namespace holdfast::coord {
namespace {

using namespace std::chrono_literals;
using test::is_committed;
using test::is_provisional;
using testing::ElementsAre;
using testing::HasSubstr;
using Way = test::GatedStore::Way;

class ReconcileTest : public test::AvailableTest {};

TEST_F(ReconcileTest, of_a_decision_that_was_anothers_the_merge_judges) {
  const auto there = join("there");
  here_->store->way = Way::shut;
  ASSERT_TRUE(is_provisional(here_->decide("mine", "d")));
  const auto second = here_->decide("also mine", "e");
  ASSERT_TRUE(is_provisional(second));
  EXPECT_EQ(std::get<Provisional>(*second).ticket, "d") << "the first proposal wins here too";
  ASSERT_TRUE(is_committed(there->decide("theirs", "x")));
  here_->store->way = Way::open;
  const auto report = here_->reconcile();
  EXPECT_EQ(report->rejected, 1U);
  EXPECT_THAT(here_->compensated, ElementsAre("d"));
  EXPECT_THAT(here_->intent("d").note, HasSubstr("me#x"));
}

TEST_F(ReconcileTest, what_the_rules_refuse_is_rejected_and_compensated_once) {
  here_->store->way = Way::shut;
  ASSERT_TRUE(is_provisional(here_->add(-1, "a", 0)));
  here_->store->way = Way::open;
  EXPECT_EQ(here_->reconcile()->compensated, 1U);
  ASSERT_TRUE(here_->reconcile());
  EXPECT_THAT(here_->compensated, ElementsAre("a"));
  EXPECT_EQ(here_->add(-1, "a", 0).error().kind, Failure::Kind::refused) << "a ticket ends once";
}

TEST_F(ReconcileTest, it_is_noted_as_begun_before_the_store_is_asked) {
  here_->store->way = Way::shut;
  const auto accepted = here_->add(1, "");
  ASSERT_TRUE(is_provisional(accepted));
  const std::string ticket = std::get<Provisional>(*accepted).ticket;
  EXPECT_EQ(here_->intent(ticket).state, Intent::State::accepted);
  here_->store->way = Way::open;
  bool asked = false;
  here_->store->before = [&] {
    asked = true;
    EXPECT_NE(here_->intent(ticket).state, Intent::State::accepted);
  };
  ASSERT_TRUE(here_->reconcile());
  EXPECT_TRUE(asked);
}

TEST_F(ReconcileTest, a_rejected_ticket_is_precluded_in_the_store) {
  here_->store->way = Way::shut;
  ASSERT_TRUE(is_provisional(here_->add(-1, "a", 0)));
  here_->store->way = Way::open;
  ASSERT_TRUE(here_->reconcile());
  EXPECT_TRUE(row(operation_key(Add::row_key(AddOptions::To::counter, "c"), "a"))) << "a late request finds it taken";
}

TEST_F(ReconcileTest, a_compensation_that_failed_or_was_broken_off_is_told_that_it_is_a_repeat) {
  here_->store->way = Way::shut;
  ASSERT_TRUE(is_provisional(here_->add(-1, "a", 0)));
  here_->store->way = Way::open;
  here_->compensation = fail(Code::unavailable, "no mail");
  const auto failed = here_->reconcile();
  EXPECT_EQ(failed->left, 1U);
  EXPECT_THAT(failed->notes, ElementsAre(HasSubstr("no mail")));
  here_->stop();
  here_->start();
  here_->compensation = {};
  EXPECT_TRUE(here_->reconcile()->is_all());
  EXPECT_THAT(here_->compensated, ElementsAre("a", "a again"));
}

// S10: a compensation that was slow held up whatever stood after it in the journal.
TEST_F(ReconcileTest, all_that_is_open_is_carried_out_and_goods_are_back_before_anything_is_compensated) {
  put_hats(10);
  ASSERT_TRUE(here_->set_aside("quota", {{"hat", 4}}));
  ASSERT_TRUE(*here_->available->give_back("quota"));
  here_->store->way = Way::shut;
  ASSERT_TRUE(is_provisional(here_->add(-1, "a", 0)));
  ASSERT_TRUE(is_provisional(here_->add(-2, "b", 0)));
  ASSERT_TRUE(is_provisional(here_->send("g", "1", "s")));
  here_->store->way = Way::open;
  here_->at_compensation = [&](const std::string&) {
    EXPECT_EQ(here_->intent("b").state, Intent::State::rejected);
    EXPECT_EQ(here_->intent("s").state, Intent::State::confirmed);
    EXPECT_EQ(hats(), 10);
  };
  EXPECT_TRUE(here_->reconcile()->is_all());
  EXPECT_THAT(here_->compensated, ElementsAre("a", "b"));
}

TEST_F(ReconcileTest, s10_a_compensation_that_does_not_end_has_failed_and_holds_up_nobody) {
  here_->store->way = Way::shut;
  ASSERT_TRUE(is_provisional(here_->add(-1, "a", 0)));
  ASSERT_TRUE(is_provisional(here_->add(-1, "b", 0)));
  here_->store->way = Way::open;
  here_->hangs = "a";
  const auto report = here_->reconcile();
  EXPECT_EQ(report->compensated, 1U);
  EXPECT_EQ(report->left, 1U);
  EXPECT_THAT(report->notes, ElementsAre(HasSubstr("a: its compensation failed")));
  EXPECT_TRUE(here_->intent("b").is_over());
  EXPECT_TRUE(*here_->journal->lock()) << "the journal is free for others";
  here_->journal->unlock();

  here_->much_later({});
  EXPECT_FALSE(here_->intent("a").is_over()) << "nobody waits for it any more: it may have been begun again";
  here_->hangs.clear();
  EXPECT_TRUE(here_->reconcile()->is_all());
  EXPECT_THAT(here_->compensated, ElementsAre("a", "b", "a again"));
}

TEST_F(ReconcileTest, what_is_accepted_during_a_compensation_is_carried_out_before_the_next_one) {
  here_->store->way = Way::shut;
  ASSERT_TRUE(is_provisional(here_->add(-1, "a", 0)));
  ASSERT_TRUE(is_provisional(here_->add(-1, "b", 0)));
  here_->store->way = Way::open;
  here_->at_compensation = [&](const std::string& ticket) {
    if (ticket == "b") {
      EXPECT_TRUE(here_->intent("s").is_settled());
      return;
    }
    Intent sent;
    sent.ticket = "s";
    sent.wish = SendWish{"q", "g", "1", 0ms};
    sent.accepted_at = loop_.wall();
    sent.expires_at = loop_.wall() + 1h;
    ASSERT_TRUE(here_->journal->append(sent, {}, loop_.wall()));
  };
  const auto report = here_->reconcile();
  EXPECT_EQ(report->confirmed, 1U);
  EXPECT_EQ(report->compensated, 2U);
  EXPECT_TRUE(report->is_all());
}

TEST_F(ReconcileTest, what_is_rejected_is_made_good_for_although_the_store_is_away) {
  damage_counter();
  here_->store->way = Way::shut;
  ASSERT_TRUE(is_provisional(here_->add(1, "stuck")));
  ASSERT_TRUE(is_provisional(here_->decide("mine", "d")));
  ASSERT_TRUE(is_committed(join("there")->decide("theirs", "x")));
  here_->store->way = Way::open;
  here_->compensation = fail(Code::unavailable, "no mail");
  EXPECT_EQ(here_->reconcile()->left, 2U);
  here_->store->way = Way::shut;
  here_->compensation = {};
  const auto report = here_->reconcile();
  EXPECT_TRUE(report->store_is_away);
  EXPECT_EQ(report->compensated, 1U) << "and once in this pass";
  EXPECT_EQ(report->left, 1U);
  EXPECT_THAT(report->notes, ElementsAre(HasSubstr("the store is away")));
}

TEST_F(ReconcileTest, a_store_that_comes_back_during_a_compensation_is_asked_before_the_next_one) {
  here_->store->way = Way::shut;
  ASSERT_TRUE(is_provisional(here_->add(-1, "a", 0)));
  ASSERT_TRUE(is_provisional(here_->add(-1, "b", 0)));
  here_->store->way = Way::open;
  here_->compensation = fail(Code::unavailable, "no mail");
  EXPECT_EQ(here_->reconcile()->left, 2U);
  here_->store->way = Way::shut;
  ASSERT_TRUE(is_provisional(here_->send("g", "1", "s")));
  here_->compensation = {};
  here_->at_compensation = [&](const std::string& ticket) {
    if (ticket == "a") here_->store->way = Way::open;
    EXPECT_EQ(here_->intent("s").is_settled(), ticket == "b");
  };
  const auto report = here_->reconcile();
  EXPECT_TRUE(report->is_all());
  EXPECT_EQ(report->compensated, 2U);
  EXPECT_EQ(report->confirmed, 1U);
}

TEST_F(ReconcileTest, what_is_too_old_is_rejected_and_never_happens) {
  here_->store->way = Way::shut;
  ASSERT_TRUE(is_provisional(here_->add(1, "a")));
  here_->store->way = Way::breaking;
  ASSERT_TRUE(is_provisional(here_->add(1, "b")));
  here_->store->way = Way::open;
  loop_.advance(1h);
  EXPECT_EQ(here_->reconcile()->rejected, 2U) << "b waited behind a";
  EXPECT_EQ(count(), 0);
}

TEST_F(ReconcileTest, what_is_too_old_and_may_have_happened_is_looked_for) {
  here_->store->way = Way::breaking;
  ASSERT_TRUE(is_provisional(here_->add(1, "a")));
  here_->store->way = Way::open;
  loop_.advance(1h);
  EXPECT_EQ(here_->reconcile()->confirmed, 1U);
  EXPECT_EQ(count(), 1);
}

// It was confirmed: something stood under its id, and nobody looked what.
TEST_F(ReconcileTest, what_is_too_old_and_whose_id_another_has_used_for_something_else_is_rejected) {
  const auto there = join("there");
  put_hats(10);
  ASSERT_TRUE(here_->set_aside("quota", {{"hat", 4}}));
  ASSERT_TRUE(there->set_aside("theirs", {{"hat", 4}}));
  here_->store->way = Way::shut;
  ASSERT_TRUE(here_->available->sell({{"hat", 1}}, "d"));
  ASSERT_TRUE(here_->reconcile()->store_is_away);
  ASSERT_TRUE(is_provisional(here_->add(7, "a")));
  ASSERT_TRUE(is_provisional(here_->send("g", "ours", "s")));
  for (const char* ticket : {"d", "a", "s"}) ASSERT_EQ(here_->intent(ticket).state, Intent::State::begun);
  ASSERT_TRUE(is_committed(there->add(5, "a")));
  ASSERT_TRUE(is_committed(there->send("g", "theirs", "s")));
  ASSERT_TRUE(there->available->sell({{"hat", 2}}, "d"));
  ASSERT_EQ(there->reconcile()->confirmed, 1U);
  here_->store->way = Way::open;
  loop_.advance(1h);
  const auto report = here_->reconcile();
  EXPECT_EQ(report->confirmed, 0U);
  EXPECT_EQ(report->rejected, 3U);
  EXPECT_THAT(here_->compensated, ElementsAre("d", "a", "s"));
  EXPECT_EQ(count(), 5);
  EXPECT_THAT(bodies("g"), ElementsAre("theirs"));
}

// What is of the store as a whole ends the pass: nothing else is to be had of it. Anything else is about one row.
TEST_F(ReconcileTest, one_whose_row_the_store_rejects_holds_up_its_own_subject_only_and_no_table_everything) {
  const std::map<Code, bool> ends_the_pass{
      {Code::usage, false},     {Code::not_found, true}, {Code::denied, true},   {Code::unavailable, true},
      {Code::exhausted, false}, {Code::corrupt, false},  {Code::internal, false}};
  for (const auto& [code, ends] : ends_the_pass) {
    for (const bool is_too_late : {false, true}) {  // to be carried out, or to be precluded
      const std::string name = std::to_string(static_cast<int>(code)) + (is_too_late ? " too late" : "");
      SCOPED_TRACE(name);
      table_ = std::make_shared<store::MemoryTable>();
      here_ = join(name);
      here_->store->way = Way::shut;
      ASSERT_TRUE(is_provisional(here_->decide("x", "d")));
      ASSERT_TRUE(is_provisional(here_->add(1, "rejected")));
      ASSERT_TRUE(is_provisional(here_->send("g", "1", "s")));
      here_->store->way = Way::open;
      here_->store->rejects = is_too_late ? "rejected" : "DECISION";
      here_->store->rejects_as = code;
      if (is_too_late) loop_.advance(1h);
      const auto report = here_->reconcile();
      EXPECT_EQ(report->store_is_away, ends);
      EXPECT_EQ(here_->intent("s").is_settled(), !ends);
      EXPECT_EQ(report->left, ends ? (is_too_late ? 2U : 3U) : 1U);
      EXPECT_THAT(report->notes, ElementsAre(HasSubstr("no such key")));
    }
  }
}

TEST_F(ReconcileTest, a_quota_that_cannot_be_given_back_holds_up_no_other) {
  put_hats(10);
  ASSERT_TRUE(here_->set_aside("one", {{"hat", 4}}));
  ASSERT_TRUE(here_->set_aside("two", {{"hat", 4}}));
  for (const char* quota : {"one", "two"}) ASSERT_TRUE(*here_->available->give_back(quota));
  (void)table_->execute(Update{"RESERVATION#two", {Change::set(coord::outcome, 7)}, Condition::always()},
                        loop_.wall());
  here_->store->way = Way::shut;
  ASSERT_TRUE(is_provisional(here_->add(-1, "a", 0)));
  here_->store->way = Way::open;
  const auto report = here_->reconcile();
  EXPECT_FALSE(report->store_is_away);
  EXPECT_EQ(report->quotas_returned, 1U);
  EXPECT_EQ(report->left, 1U);
  EXPECT_THAT(report->notes, ElementsAre(HasSubstr("quota two")));
  EXPECT_THAT(here_->compensated, ElementsAre("a"));
  EXPECT_EQ(hats(), 6);
}

TEST_F(ReconcileTest, one_that_is_stuck_holds_up_its_own_subject_only) {
  damage_counter();
  here_->store->way = Way::shut;
  ASSERT_TRUE(is_provisional(here_->add(1, "a")));
  ASSERT_TRUE(is_provisional(here_->add(1, "b")));
  ASSERT_TRUE(is_provisional(here_->send("g", "1", "s")));
  here_->store->way = Way::open;
  const auto report = here_->reconcile();
  EXPECT_EQ(report->confirmed, 1U);
  EXPECT_EQ(report->left, 2U);
  EXPECT_FALSE(here_->intent("b").is_settled());
}

}  // namespace
}  // namespace holdfast::coord
