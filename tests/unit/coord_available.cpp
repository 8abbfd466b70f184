// Available mode: the store comes and goes, in virtual time; the journal is a real file.
#include "coord/available.hpp"

#include <gmock/gmock.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "support/available_test.hpp"

namespace holdfast::coord {
namespace {

using namespace std::chrono_literals;
using test::AvailableTest;
using test::is_committed;
using test::is_provisional;
using test::Machine;
using testing::ElementsAre;
using testing::HasSubstr;
using Way = test::GatedStore::Way;

TEST_F(AvailableTest, while_the_store_is_there_everything_is_committed_at_once) {
  EXPECT_TRUE(is_committed(here_->add(2, "a")));
  EXPECT_TRUE(is_committed(here_->decide("x", "d")));
  EXPECT_TRUE(is_committed(here_->send("g", "1", "s")));
  EXPECT_EQ(*here_->journal->count_open(), 0U);
  EXPECT_EQ(count(), 2);
}

TEST_F(AvailableTest, while_it_is_away_everything_is_provisional_and_happens_once_when_it_is_back) {
  here_->store->way = Way::shut;
  const Instant before = loop_.instant();
  EXPECT_TRUE(is_provisional(here_->add(2, "a")));
  EXPECT_LE(loop_.instant() - before, 2s + 1ms) << "no longer than the patience of the caller, and a request";
  EXPECT_TRUE(is_provisional(here_->add(2, "a"))) << "the same ticket";
  EXPECT_TRUE(is_provisional(here_->decide("x", "d")));
  EXPECT_TRUE(is_provisional(here_->send("g", "1", "s1")));
  EXPECT_TRUE(is_provisional(here_->send("g", "2", "s2")));
  const auto away = here_->reconcile();
  ASSERT_TRUE(away);
  EXPECT_TRUE(away->store_is_away);
  EXPECT_EQ(away->left, 4U);

  here_->store->way = Way::open;
  const auto report = here_->reconcile();
  ASSERT_TRUE(report);
  EXPECT_EQ(report->confirmed, 4U);
  EXPECT_TRUE(report->is_all());
  EXPECT_EQ(count(), 2);
  EXPECT_THAT(bodies("g"), ElementsAre("1", "2"));
  EXPECT_EQ(here_->reconcile()->confirmed, 0U);
  EXPECT_EQ(count(), 2);
}

TEST_F(AvailableTest, what_comes_after_something_that_waits_waits_too_so_that_order_is_kept) {
  here_->store->way = Way::shut;
  EXPECT_TRUE(is_provisional(here_->send("g", "1", "s1")));
  here_->store->way = Way::open;
  EXPECT_TRUE(is_provisional(here_->send("g", "2", "s2")));
  EXPECT_TRUE(is_committed(here_->send("other", "3", "s3")));
  ASSERT_TRUE(here_->reconcile());
  EXPECT_TRUE(is_committed(here_->send("g", "3", "s4")));
  EXPECT_THAT(bodies("g"), ElementsAre("1", "2", "3"));
}

TEST_F(AvailableTest, f29_a_reply_that_was_lost_does_not_make_it_happen_twice) {
  here_->store->way = Way::breaking;
  EXPECT_TRUE(is_provisional(here_->add(2, "a")));
  EXPECT_EQ(count(), 2);
  EXPECT_EQ(here_->intent("a").state, Intent::State::begun) << "it may have happened";
  here_->store->way = Way::open;
  EXPECT_EQ(here_->reconcile()->confirmed, 1U);
  EXPECT_EQ(count(), 2);
  EXPECT_TRUE(is_committed(here_->add(2, "a")));
  EXPECT_EQ(count(), 2);
}

// Found by the simulation: its caller is killed, calls again while the store is away, and nobody comes to reconcile
// in time. It was rejected and compensated, and had happened.
TEST_F(AvailableTest, a_ticket_that_was_carried_out_before_its_caller_was_killed_is_never_rejected) {
  ASSERT_TRUE(is_committed(here_->add(1, "a")));
  ASSERT_TRUE(is_committed(here_->send("g", "1", "s")));
  ASSERT_TRUE(is_committed(here_->decide("x", "d")));
  here_->store->way = Way::shut;
  ASSERT_TRUE(is_provisional(here_->add(1, "a")));
  ASSERT_TRUE(is_provisional(here_->send("g", "1", "s")));
  ASSERT_TRUE(is_provisional(here_->decide("x", "d")));
  here_->store->way = Way::open;
  loop_.advance(2h);
  const auto report = here_->reconcile();
  EXPECT_EQ(report->confirmed, 3U);
  EXPECT_EQ(report->rejected, 0U);
  EXPECT_THAT(here_->compensated, ElementsAre());
  EXPECT_EQ(count(), 1);
}

TEST_F(AvailableTest, stock_is_sold_out_of_what_was_set_aside_and_the_rest_comes_back) {
  put_hats(10);
  ASSERT_TRUE(here_->set_aside("quota", {{"hat", 4}}));
  EXPECT_TRUE(here_->set_aside("quota", {{"hat", 4}})) << "asked again";
  EXPECT_EQ(hats(), 6);
  here_->store->way = Way::shut;
  ASSERT_TRUE(here_->available->sell({{"hat", 3}}, "a"));
  EXPECT_EQ(here_->available->sell({{"hat", 2}}, "b").error().kind, Failure::Kind::refused);
  ASSERT_TRUE(*here_->available->give_back("quota"));
  EXPECT_EQ(here_->available->sell({{"hat", 1}}, "c").error().kind, Failure::Kind::refused);
  EXPECT_TRUE(here_->reconcile()->store_is_away);
  here_->store->way = Way::open;
  const auto report = here_->reconcile();
  EXPECT_EQ(report->confirmed, 1U);
  EXPECT_EQ(report->quotas_returned, 1U);
  EXPECT_EQ(hats(), 7);
  EXPECT_EQ(here_->reconcile()->quotas_returned, 0U);
}

// Found by an attacker: both were told that theirs are set aside, and sold them.
TEST_F(AvailableTest, nothing_that_another_has_set_aside_is_a_quota_here) {
  put_hats(10);
  const auto there = join("there");
  ASSERT_TRUE(there->set_aside("till", {{"hat", 4}}));
  const auto refused = here_->set_aside("till", {{"hat", 4}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, Failure::Kind::mismatch);
  EXPECT_FALSE(here_->available->sell({{"hat", 1}}, "a"));
  there->stop();
  there->start();
  ASSERT_TRUE(there->set_aside("till", {{"hat", 4}})) << "a journal is itself when it is opened again";
  ASSERT_TRUE(there->available->sell({{"hat", 1}}, "a"));
  ASSERT_TRUE(*there->available->give_back("till"));
  EXPECT_EQ(there->reconcile()->quotas_returned, 1U);
  EXPECT_EQ(hats(), 9);
}

TEST_F(AvailableTest, a_quota_that_was_ended_by_another_sells_nothing_more) {
  put_hats(10);
  ASSERT_TRUE(here_->set_aside("quota", {{"hat", 4}}));
  ASSERT_TRUE(here_->available->sell({{"hat", 1}}, "a"));
  (void)table_->execute(Update{"RESERVATION#quota", {Change::set(coord::outcome, "cancelled")}, Condition::always()},
                        loop_.wall());
  EXPECT_EQ(here_->reconcile()->rejected, 1U);
  EXPECT_THAT(here_->compensated, ElementsAre("a"));
  EXPECT_EQ(here_->available->sell({{"hat", 1}}, "b").error().kind, Failure::Kind::refused);
}

TEST_F(AvailableTest, a_quota_that_the_store_was_too_slow_for_is_there_when_it_is_asked_for_again) {
  put_hats(10);
  here_->store->way = Way::breaking;
  EXPECT_EQ(here_->set_aside("quota", {{"hat", 4}}).error().kind, Failure::Kind::unknown);
  here_->store->way = Way::open;
  EXPECT_TRUE(here_->set_aside("quota", {{"hat", 4}}));
  EXPECT_EQ(hats(), 6);
  EXPECT_EQ(here_->set_aside("quota", {{"hat", 5}}).error().kind, Failure::Kind::mismatch);
  EXPECT_EQ(here_->set_aside("more", {{"hat", 7}}).error().kind, Failure::Kind::refused);
}

TEST_F(AvailableTest, a_message_is_kept_as_long_as_its_sender_says_whether_it_was_committed_at_once_or_later) {
  const auto send = [&](const std::string& group) {
    return here_->ask<Sent>([&](Available& by, auto then) { by.send({"q", group, "1", 0ms, 1min}, group, then); });
  };
  const auto kept_for = [&](const std::string& group) {
    const auto until = row(message_key("q", group, 1))->number(attribute::tombstone_expires_at);
    return std::chrono::seconds(until) - loop_.wall().time_since_epoch();
  };
  ASSERT_TRUE(is_committed(send("now")));
  EXPECT_LE(kept_for("now"), 61s);
  here_->store->way = Way::shut;
  ASSERT_TRUE(is_provisional(send("later")));
  here_->store->way = Way::open;
  ASSERT_TRUE(here_->reconcile()->is_all());
  EXPECT_LE(kept_for("later"), 61s);
}

// Told as if nothing had happened.
TEST_F(AvailableTest, s5_what_the_store_did_and_the_journal_could_not_take_down_is_unknown) {
  put_hats(10);
  here_->store->after = [&] {
    if (hats() < 10) here_->remove_journal();
  };
  const auto quota = here_->set_aside("quota", {{"hat", 4}});
  ASSERT_FALSE(quota);
  EXPECT_EQ(hats(), 6);
  EXPECT_EQ(quota.error().kind, Failure::Kind::unknown);

  here_->store->after = {};
  here_->store->way = Way::breaking;
  const auto added = here_->add(1, "");
  ASSERT_FALSE(added);
  EXPECT_EQ(count(), 1);
  EXPECT_EQ(added.error().kind, Failure::Kind::unknown);
}

TEST_F(AvailableTest, a_journal_that_was_removed_is_told_as_what_does_not_mend_itself) {
  here_->store->way = Way::shut;
  here_->remove_journal();
  EXPECT_EQ(here_->add(1, "").error().kind, Failure::Kind::rejected);
  EXPECT_EQ(here_->set_aside("quota", {{"hat", 4}}).error().kind, Failure::Kind::rejected);
}

TEST_F(AvailableTest, a_decision_under_its_ticket_with_another_value_is_a_mismatch) {
  ASSERT_TRUE(is_committed(here_->decide(Value("yes"), "t")));
  EXPECT_TRUE(is_committed(here_->decide(Value("yes"), "t")));
  EXPECT_EQ(here_->decide(Value("no"), "t").error().kind, Failure::Kind::mismatch);
  here_->store->way = Way::shut;
  ASSERT_TRUE(is_provisional(here_->decide(Value("no"), "t")));
  here_->store->way = Way::open;
  EXPECT_EQ(here_->reconcile()->rejected, 1U);
  EXPECT_THAT(here_->compensated, ElementsAre("t"));
}

TEST_F(AvailableTest, tickets_have_names_of_a_length_that_fits_into_a_row) {
  EXPECT_EQ(here_->add(1, std::string(501, 't')).error().kind, Failure::Kind::rejected);
  EXPECT_EQ(here_->available->sell({{"hat", 1}}, std::string(501, 't')).error().kind, Failure::Kind::rejected);
  EXPECT_EQ(here_->set_aside(std::string(501, 'q'), {{"hat", 1}}).error().kind, Failure::Kind::rejected);
  EXPECT_TRUE(is_committed(here_->add(1, std::string(500, 't'))));
  EXPECT_TRUE(is_committed(here_->add(0, "nothing"))) << "as in the consistent mode";
}

TEST_F(AvailableTest, proposals_at_the_same_time_are_told_the_one_that_stands_in_the_journal) {
  here_->store->way = Way::shut;
  std::vector<Ended<Accepted<Decided>>> told;
  for (const char* each : {"a", "b", "c"}) {
    here_->available->decide("k", each, std::string("ticket-") + each,
                             [&](Ended<Accepted<Decided>> result) { told.push_back(std::move(result)); });
  }
  ASSERT_TRUE(loop_.advance_until([&] { return told.size() == 3; }));
  for (const auto& each : told) {
    ASSERT_TRUE(is_provisional(each));
    EXPECT_EQ(std::get<Provisional>(*each).ticket, std::get<Provisional>(*told.front()).ticket);
  }
  here_->store->way = Way::open;
  const auto report = here_->reconcile();
  EXPECT_EQ(report->confirmed, 1U);
  EXPECT_EQ(report->rejected, 0U) << "nobody was told another";
}

TEST_F(AvailableTest, a_quota_that_was_refused_is_set_aside_once_there_is_enough) {
  put_hats(10);
  EXPECT_EQ(here_->set_aside("more", {{"hat", 11}}).error().kind, Failure::Kind::refused);
  EXPECT_EQ(here_->set_aside("more", {{"hat", 11}}).error().kind, Failure::Kind::refused);
  put_hats(11);
  EXPECT_TRUE(here_->set_aside("more", {{"hat", 11}}));
  EXPECT_EQ(hats(), 0);
}

TEST_F(AvailableTest, a_quota_and_a_sale_never_have_the_same_name) {
  put_hats(10);
  ASSERT_TRUE(here_->set_aside("quota", {{"hat", 4}}));
  ASSERT_TRUE(here_->available->sell({{"hat", 1}}, "order"));
  EXPECT_EQ(here_->set_aside("order", {{"hat", 2}}).error().kind, Failure::Kind::mismatch);
  EXPECT_EQ(here_->available->sell({{"hat", 1}}, "quota").error().kind, Failure::Kind::mismatch);
  EXPECT_EQ(here_->reconcile()->confirmed, 1U);
}

TEST_F(AvailableTest, a_quota_that_was_given_back_stays_refused_however_often_it_is_asked_for) {
  put_hats(10);
  ASSERT_TRUE(here_->set_aside("quota", {{"hat", 4}}));
  ASSERT_TRUE(*here_->available->give_back("quota"));
  EXPECT_EQ(here_->set_aside("quota", {{"hat", 4}}).error().kind, Failure::Kind::refused);
  ASSERT_EQ(here_->reconcile()->quotas_returned, 1U);
  EXPECT_EQ(here_->set_aside("quota", {{"hat", 4}}).error().kind, Failure::Kind::refused);
  EXPECT_EQ(hats(), 10);
}

// Two machines, each with a journal; the way to the store comes and goes, replies get lost, processes die at any
// time. Compared with a plain account of what was accepted.
TEST_F(AvailableTest, whatever_happens_it_adds_up) {
  struct Account {
    std::int64_t added = 0, sold = 0;
    std::map<std::string, std::vector<std::string>> sent;  // by group, in the order of acceptance
  };
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    SCOPED_TRACE(seed);
    Random chance(seed);
    table_ = std::make_shared<store::MemoryTable>();
    here_.reset();
    put_hats(20);
    Account account;
    std::vector<std::unique_ptr<Machine>> machines;
    for (int i = 0; i < 2; ++i) {
      machines.push_back(join(std::to_string(seed) + "-" + std::to_string(i)));
      ASSERT_TRUE(machines.back()->set_aside("quota" + std::to_string(i), {{"hat", 6}}));
    }
    for (int step = 0; step < 24; ++step) {
      const std::size_t who = chance.below(2);
      Machine& machine = *machines[who];
      const std::string ticket = std::to_string(step);
      const std::string group = std::to_string(who) + "-" + std::to_string(chance.below(2));
      const std::int64_t size = static_cast<std::int64_t>(chance.below(3)) + 1;
      switch (chance.below(7)) {
        case 0:
          machine.store->way = static_cast<Way>(chance.below(3));
          break;
        case 1:
          if (machine.add(size, ticket)) account.added += size;
          break;
        case 2:
        case 3:
          if (machine.send(group, ticket, ticket)) account.sent[group].push_back(ticket);
          break;
        case 4:
          if (machine.available->sell({{"hat", size}}, ticket)) account.sold += size;
          break;
        case 5:
          machine.available->reconcile({}, [](const auto&) {});
          loop_.advance(chance.between(0ms, 20ms));  // and then it dies, wherever it is
          [[fallthrough]];
        case 6:
          machine.stop();
          machine.start();
          break;
      }
    }
    for (const auto& machine : machines) {
      const std::string quota = machine == machines.front() ? "quota0" : "quota1";
      ASSERT_TRUE(machine->available->give_back(quota));
      machine->store->way = Way::open;
      ASSERT_TRUE(machine->reconcile()->is_all());
      EXPECT_TRUE(machine->compensated.empty()) << "nothing was accepted that could not be kept";
      const auto settled = machine->journal->list(Journal::Which::all, 0, 1000);
      for (const Intent& each : *settled) EXPECT_EQ(each.state, Intent::State::confirmed) << each.ticket;
      EXPECT_EQ(machine->journal->quotas()->front().state, Quota::State::returned);
    }
    EXPECT_EQ(count(), account.added);
    EXPECT_LE(account.sold, 12);
    EXPECT_EQ(hats(), 20 - account.sold);
    for (const auto& [group, sent] : account.sent) EXPECT_EQ(bodies(group), sent) << group;
  }
}

}  // namespace
}  // namespace holdfast::coord
