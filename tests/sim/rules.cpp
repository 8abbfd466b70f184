// The rules are broken on purpose, one by one: a check that cannot fail checks nothing.
#include "sim/rules.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "core/lease_write.hpp"

namespace holdfast::sim {
namespace {

using namespace std::chrono_literals;

Plan small_plan(Scenario scenario = Scenario::steady) {
  Plan plan = draw_plan(1, scenario);
  plan.connections = 2;
  return plan;
}

/// Two workers, one table, and writes made by hand.
struct RulesAre : testing::Test {
  World world{small_plan(), 0};
  Rules rules{world};
  SimTable table;
  NodeClock clock;
  std::int64_t renewals = 0;
  std::int16_t a = rules.add_process({.owner = "a#1", .clock = &clock});
  std::int16_t b = rules.add_process({.owner = "b#1", .clock = &clock});

  RulesAre() {
    table.watch([this](const Update& update, const RowReply& reply, const Origin& origin) {
      rules.carried_out(update, reply, origin);
    });
    by_people({Change::set("desired_state", "STARTED"), Change::set("lease_expires_at_ms", 0)});
  }
  void by_people(std::vector<Change> changes) { execute(-1, {"CONN#c0", std::move(changes), Condition::always()}); }
  void execute(std::int16_t process, Update update) {
    const Now now{world.now(), clock.wall(world.now())};
    (void)table.execute(store::Request(std::move(update)), {process, now.instant, now.instant, false}, now);
  }
  LeaseWrite write(LeaseWrite::Kind kind, std::int64_t epoch) {
    LeaseWrite write;
    write.kind = kind;
    write.key = "CONN#c0";
    write.attempt = {static_cast<std::uint64_t>(epoch), static_cast<std::uint64_t>(kind)};
    write.epoch = {epoch};
    write.expires_at = clock.wall(world.now()) + 20s;
    if (kind == LeaseWrite::Kind::renew) write.renewal = ++renewals;
    return write;
  }
  void claim(std::int16_t process, const std::string& owner, std::int64_t epoch) {
    execute(process, render(write(LeaseWrite::Kind::claim, epoch), WorkerId(owner)));
  }
  /// As render() makes it, but without the condition that protects the row.
  void unconditional(std::int16_t process, const std::string& owner, LeaseWrite made) {
    Update update = render(made, WorkerId(owner));
    Condition only_names_the_epoch;
    only_names_the_epoch.kind = Condition::Kind::any;
    only_names_the_epoch.operands = {Condition::always(), Condition::equals("lease_epoch", made.epoch.value)};
    update.condition = only_names_the_epoch;
    execute(process, std::move(update));
  }
  std::shared_ptr<LeaseGuard> grant(std::int16_t process, std::int64_t epoch, Duration time, std::int64_t last = 0) {
    auto guard = std::make_shared<LeaseGuard>(Epoch{epoch}, clock.instant(world.now()) + time);
    rules.granted(process, 0, guard, last);
    return guard;
  }
  /// A sink is given a record of it, which may name another epoch.
  void offer(std::int16_t process, const std::shared_ptr<LeaseGuard>& guard, Duration later = {},
             std::int64_t epoch = 1) {
    Record record;
    record.epoch = {epoch};
    record.guard = &guard;
    rules.offered(process, 0, record, clock.instant(world.now()) + later);
  }
  /// It asks for a write, and hears of the outcome.
  void ask(std::int16_t process, const std::string& owner, const LeaseWrite& made, Outcome outcome) {
    const Update update = render(made, WorkerId(owner));
    RowReply reply;
    reply.outcome = outcome;
    rules.asked(process, update);
    rules.answered(process, update, reply, false);
  }
  void pass(Duration time) {
    const Instant end = world.now() + time;
    world.loop.call_after(time, [] {});
    while (world.timeline.step(end)) {
    }
  }
  void expect_broken(const std::string& rule) const {
    ASSERT_TRUE(rules.violation().has_value()) << rule << " was not noticed";
    EXPECT_EQ(rules.violation()->rule, rule) << rules.violation()->what;
  }
  void expect_kept() const {
    EXPECT_FALSE(rules.violation().has_value()) << rules.violation()->rule << ": " << rules.violation()->what;
  }
};

TEST_F(RulesAre, kept_by_a_life_as_it_should_be) {
  claim(a, "a#1", 1);
  const auto guard = grant(a, 1, 1s);
  offer(a, guard);
  rules.durable(a, 0, {1}, 1, 5, false);
  LeaseWrite renewal = write(LeaseWrite::Kind::renew, 1);
  renewal.last_seq = 5;
  execute(a, render(renewal, WorkerId("a#1")));
  guard->revoke();
  execute(a, render(write(LeaseWrite::Kind::release, 1), WorkerId("a#1")));
  expect_kept();
  EXPECT_EQ(rules.row(0).last_seq, 5);
  EXPECT_EQ(rules.row(0).owner, "");
}

TEST_F(RulesAre, broken_by_two_believers) {
  claim(a, "a#1", 1);
  (void)grant(a, 1, 1s);
  (void)grant(b, 2, 1s);
  expect_broken("S1");
}

TEST_F(RulesAre, broken_by_a_write_without_a_fence) {
  claim(a, "a#1", 1);
  execute(a, render(write(LeaseWrite::Kind::release, 1), WorkerId("a#1")));
  claim(b, "b#1", 2);
  unconditional(a, "a#1", write(LeaseWrite::Kind::renew, 1));
  expect_broken("S2");
}

TEST_F(RulesAre, broken_by_an_unconditional_release) {
  claim(a, "a#1", 1);
  execute(a, render(write(LeaseWrite::Kind::release, 1), WorkerId("a#1")));
  claim(b, "b#1", 2);
  unconditional(a, "a#1", write(LeaseWrite::Kind::release, 1));
  expect_broken("S2");
}

TEST_F(RulesAre, broken_by_an_epoch_that_is_used_again) {
  claim(a, "a#1", 1);
  execute(a, render(write(LeaseWrite::Kind::release, 1), WorkerId("a#1")));
  unconditional(b, "b#1", write(LeaseWrite::Kind::claim, 1));
  expect_broken("S3");
}

TEST_F(RulesAre, broken_by_a_belief_that_is_counted_from_the_answer) {
  claim(a, "a#1", 1);
  (void)grant(a, 1, world.plan.terms.lease - world.plan.terms.margin + 1ms);
  expect_broken("S4");
}

TEST_F(RulesAre, broken_by_a_loss_that_nothing_proves) {
  claim(a, "a#1", 1);
  (void)grant(a, 1, 1s);
  rules.told_to_stop(a, 0, {1}, LossReason::taken_over);
  expect_broken("S6");
}

TEST_F(RulesAre, broken_by_an_effect_after_the_belief) {
  claim(a, "a#1", 1);
  const auto guard = grant(a, 1, 1s);
  offer(a, guard, 2s);
  expect_broken("S7");
}

TEST_F(RulesAre, broken_by_a_loss_that_is_told_twice) {
  claim(a, "a#1", 1);
  const auto guard = grant(a, 1, 1s);
  guard->revoke();
  rules.told_to_stop(a, 0, {1}, LossReason::belief_expired);
  rules.told_to_stop(a, 0, {1}, LossReason::belief_expired);
  expect_broken("S7");
}

TEST_F(RulesAre, broken_by_a_belief_that_comes_back) {
  claim(a, "a#1", 1);
  const auto guard = grant(a, 1, 1s);
  ask(a, "a#1", write(LeaseWrite::Kind::renew, 1), Outcome::throttled);
  pass(2s);
  execute(a, render(write(LeaseWrite::Kind::renew, 1), WorkerId("a#1")));
  expect_kept();
  EXPECT_TRUE(guard->extend(clock.instant(world.now()) + 1s));
  execute(a, render(write(LeaseWrite::Kind::renew, 1), WorkerId("a#1")));
  expect_broken("S7");
}

TEST_F(RulesAre, broken_by_a_start_after_the_belief) {
  claim(a, "a#1", 1);
  (void)grant(a, 1, 0s);
  expect_broken("S7");
}

TEST_F(RulesAre, broken_by_a_row_that_keeps_others_out_for_less_than_its_holder_believes) {
  claim(a, "a#1", 1);
  (void)grant(a, 1, 1s);
  LeaseWrite late = write(LeaseWrite::Kind::renew, 1);
  late.expires_at = clock.wall(world.now()) - 1min;
  execute(a, render(late, WorkerId("a#1")));
  expect_broken("S4");
}

TEST_F(RulesAre, broken_by_two_writes_of_one_lease_at_once) {
  claim(a, "a#1", 1);
  const Update first = render(write(LeaseWrite::Kind::renew, 1), WorkerId("a#1"));
  const Update second = render(write(LeaseWrite::Kind::renew, 1), WorkerId("a#1"));
  rules.asked(a, first);
  rules.answered(a, first, RowReply{}, false);  // of unknown fate
  rules.asked(a, second);
  expect_kept();
  rules.asked(a, second);
  expect_broken("S11");
}

TEST_F(RulesAre, broken_by_a_claim_that_does_not_know_its_own_success) {
  claim(a, "a#1", 1);
  Row row;
  row.key = "CONN#c0";
  row.attributes = {{"lease_owner", Value("a#1")}, {"lease_epoch", Value(std::int64_t{1})}};
  RowReply conflict;
  conflict.outcome = Outcome::conflict;
  conflict.value = row;
  rules.answered(a, render(write(LeaseWrite::Kind::claim, 1), WorkerId("a#1")), conflict, false);
  expect_broken("S5");
}

TEST_F(RulesAre, broken_by_a_drain_that_leaves_out_the_last_checkpoint) {
  claim(a, "a#1", 1);
  (void)grant(a, 1, 1s);
  rules.durable(a, 0, {1}, 1, 5, false);
  execute(a, render(write(LeaseWrite::Kind::release, 1), WorkerId("a#1")));
  expect_kept();
  rules.gave_back(a, 0);
  expect_broken("S11");
}

TEST_F(RulesAre, broken_by_a_claim_of_what_shall_not_run) {
  by_people({Change::set("desired_state", "STOPPED")});
  unconditional(a, "a#1", write(LeaseWrite::Kind::claim, 1));
  expect_broken("S8");
}

TEST_F(RulesAre, broken_by_a_claim_that_makes_a_row) {
  Update update = render(write(LeaseWrite::Kind::claim, 1), WorkerId("a#1"));
  update.key = "CONN#c1";
  update.condition = Condition::always();
  execute(a, std::move(update));
  expect_broken("S8");
}

TEST_F(RulesAre, broken_by_a_checkpoint_before_the_acknowledgement) {
  claim(a, "a#1", 1);
  (void)grant(a, 1, 1s);
  rules.durable(a, 0, {1}, 1, 5, false);
  LeaseWrite renewal = write(LeaseWrite::Kind::renew, 1);
  renewal.last_seq = 6;
  execute(a, render(renewal, WorkerId("a#1")));
  expect_broken("S9");
}

TEST_F(RulesAre, broken_by_a_checkpoint_that_goes_back) {
  by_people({Change::set("last_seq", 9)});
  claim(a, "a#1", 1);
  LeaseWrite renewal = write(LeaseWrite::Kind::renew, 1);
  renewal.last_seq = 6;
  execute(a, render(renewal, WorkerId("a#1")));
  expect_broken("S9");
}

TEST_F(RulesAre, broken_by_a_hole_without_a_record) {
  claim(a, "a#1", 1);
  (void)grant(a, 1, 1s);
  rules.durable(a, 0, {1}, 1, 5, false);
  rules.durable(a, 0, {1}, 7, 7, false);
  expect_broken("S9");
}

TEST_F(RulesAre, kept_by_a_hole_with_a_record) {
  claim(a, "a#1", 1);
  (void)grant(a, 1, 1s);
  rules.durable(a, 0, {1}, 1, 5, false);
  rules.durable(a, 0, {1}, 6, 6, true);
  rules.durable(a, 0, {1}, 7, 7, false);
  expect_kept();
}

TEST_F(RulesAre, broken_by_a_message_that_is_delivered_twice_under_one_epoch) {
  claim(a, "a#1", 1);
  (void)grant(a, 1, 1s);
  rules.durable(a, 0, {1}, 1, 5, false);
  rules.durable(a, 0, {1}, 5, 5, false);
  expect_broken("S9");
}

TEST_F(RulesAre, broken_by_an_older_effect_after_a_newer_one) {
  claim(a, "a#1", 1);
  const auto first = grant(a, 1, 1s);
  first->revoke();
  execute(a, render(write(LeaseWrite::Kind::release, 1), WorkerId("a#1")));
  claim(b, "b#1", 2);
  (void)grant(b, 2, 1s);
  rules.durable(b, 0, {2}, 1, 1, false);
  rules.durable(a, 0, {1}, 1, 1, false);
  expect_broken("S1");
}

TEST_F(RulesAre, broken_by_a_claim_while_draining) {
  rules.process(a).draining_since = world.now() - 1s;
  rules.asked(a, render(write(LeaseWrite::Kind::claim, 1), WorkerId("a#1")));
  expect_broken("S11");
}

TEST_F(RulesAre, broken_by_a_release_while_the_connection_is_open) {
  claim(a, "a#1", 1);
  (void)grant(a, 1, 1s);
  rules.reading(a, 0, true);
  rules.told_to_stop(a, 0, {1}, LossReason::sink_failed);
  rules.asked(a, render(write(LeaseWrite::Kind::release, 1), WorkerId("a#1")));
  expect_broken("S11");
}

TEST_F(RulesAre, broken_by_reading_after_the_stop) {
  claim(a, "a#1", 1);
  const auto guard = grant(a, 1, 1s);
  rules.told_to_stop(a, 0, {1}, LossReason::sink_failed);
  offer(a, guard);
  expect_broken("S11");
}

TEST_F(RulesAre, broken_by_a_record_of_another_epoch) {
  claim(a, "a#1", 1);
  const auto guard = grant(a, 1, 1s);
  offer(a, guard);
  expect_kept();
  offer(a, guard, 0s, 2);
  expect_broken("S2");
}

TEST_F(RulesAre, broken_by_a_renewal_that_is_refused_although_nobody_has_edited_the_row) {
  claim(a, "a#1", 1);
  RowReply conflict;
  conflict.outcome = Outcome::conflict;
  conflict.value = Row{"CONN#c0", {{"lease_owner", "a#1"}, {"lease_epoch", std::int64_t{1}}}};
  const Update renewal = render(write(LeaseWrite::Kind::renew, 1), WorkerId("a#1"));
  by_people({Change::set("lease_renewal", 1000)});
  rules.asked(a, renewal);
  rules.answered(a, renewal, conflict, false);
  expect_kept();
  claim(a, "a#1", 2);
  execute(a, render(write(LeaseWrite::Kind::release, 1), WorkerId("a#1")));
  claim(a, "a#1", 2);
  conflict.value = Row{"CONN#c0", {{"lease_owner", "a#1"}, {"lease_epoch", std::int64_t{2}}}};
  const Update second = render(write(LeaseWrite::Kind::renew, 2), WorkerId("a#1"));
  rules.asked(a, second);
  rules.answered(a, second, conflict, false);
  expect_broken("S6");
}

// What is owed.

TEST_F(RulesAre, broken_by_two_tries_of_a_renewal_under_one_number) {
  claim(a, "a#1", 1);
  (void)grant(a, 1, 1s);
  LeaseWrite renewal = write(LeaseWrite::Kind::renew, 1);
  ask(a, "a#1", renewal, Outcome::throttled);
  ++renewal.renewal;
  ask(a, "a#1", renewal, Outcome::throttled);
  expect_kept();
  ask(a, "a#1", renewal, Outcome::throttled);
  expect_broken("S5");
}

TEST_F(RulesAre, kept_by_an_unknown_claim_that_is_made_again) {
  const LeaseWrite made = write(LeaseWrite::Kind::claim, 1);
  ask(a, "a#1", made, Outcome::unknown);
  pass(1s);
  ask(a, "a#1", made, Outcome::conflict);
  pass(2 * world.plan.terms.lease);
  rules.look_at_duties();
  expect_kept();
}

TEST_F(RulesAre, broken_by_an_unknown_claim_that_is_given_up) {
  ask(a, "a#1", write(LeaseWrite::Kind::claim, 1), Outcome::unknown);
  pass(world.plan.terms.lease / 2);
  rules.look_at_duties();
  expect_kept();
  pass(world.plan.terms.lease);
  rules.look_at_duties();
  expect_broken("S5");
}

TEST_F(RulesAre, kept_by_an_unknown_claim_that_is_given_up_by_who_stands_still) {
  ask(a, "a#1", write(LeaseWrite::Kind::claim, 1), Outcome::unknown);
  rules.process(a).control_stands_still = true;
  pass(2 * world.plan.terms.lease);
  rules.look_at_duties();
  expect_kept();
}

TEST_F(RulesAre, broken_by_a_retry_that_is_another_attempt) {
  LeaseWrite made = write(LeaseWrite::Kind::claim, 1);
  ask(a, "a#1", made, Outcome::unknown);
  made.attempt = {7, 7};
  ask(a, "a#1", made, Outcome::unknown);
  expect_broken("S5");
}

TEST_F(RulesAre, broken_by_a_belief_that_ends_without_a_try_to_renew_it) {
  claim(a, "a#1", 1);
  (void)grant(a, 1, 1s);
  pass(2s);
  rules.look_at_believers(0);
  expect_broken("S6");
}

TEST_F(RulesAre, kept_by_a_belief_that_ends_although_its_renewal_was_tried) {
  claim(a, "a#1", 1);
  (void)grant(a, 1, 1s);
  pass(500ms);
  ask(a, "a#1", write(LeaseWrite::Kind::renew, 1), Outcome::throttled);
  pass(1s);
  rules.look_at_believers(0);
  rules.told_to_stop(a, 0, {1}, LossReason::belief_expired);
  expect_kept();
}

TEST_F(RulesAre, broken_by_renewals_that_end_while_a_resource_is_stopping) {
  claim(a, "a#1", 1);
  (void)grant(a, 1, 1s);
  rules.told_to_stop(a, 0, {1}, LossReason::sink_failed);
  pass(2s);
  rules.let_go(a, 0, {1});
  expect_broken("S11");
}

TEST_F(RulesAre, broken_by_a_socket_that_stays_open_after_the_belief) {
  claim(a, "a#1", 1);
  (void)grant(a, 1, 1s);
  rules.reading(a, 0, true);
  rules.process(a).control_stands_still = true;  // which is no excuse
  pass(2s);
  rules.look_at_duties();
  expect_kept();  // it may be about to
  pass(1s);
  rules.look_at_duties();
  expect_broken("S7");
}

TEST_F(RulesAre, broken_by_a_claim_that_is_made_again_at_once) {
  const LeaseWrite made = write(LeaseWrite::Kind::claim, 1);
  LeaseWrite other = made;
  other.seen_owner = "b#1";
  ask(a, "a#1", made, Outcome::conflict);
  ask(a, "a#1", other, Outcome::conflict);  // the row has changed
  pass(1s);
  ask(a, "a#1", other, Outcome::conflict);
  expect_kept();
  ask(a, "a#1", other, Outcome::conflict);
  expect_broken("S10");
}

TEST_F(RulesAre, broken_by_who_does_not_wait_as_its_upstream_asked) {
  claim(a, "a#1", 1);
  (void)grant(a, 1, 2s);
  const Instant now = clock.instant(world.now());
  rules.told_to_wait(a, 0, now + 5s);
  rules.connects(a, 0, now + 5s);
  rules.edited(a, 0);
  rules.connects(a, 0, now);
  expect_kept();
  rules.told_to_wait(a, 0, now + 5s);
  rules.connects(a, 0, now + 4s);
  expect_broken("F37");
}

// The row of who reads the changes for all.

struct FeedRulesAre : RulesAre {
  FeedRulesAre() {
    Update made;
    made.key = "FEED#changes";
    made.condition = Condition::row_missing();
    made.changes = {Change::set(attribute::desired_state, state::feed), Change::set(attribute::expires_at, 0)};
    execute(a, made);
    expect_kept();
  }
  LeaseWrite feed_write(LeaseWrite::Kind kind, std::int64_t epoch) {
    LeaseWrite made = write(kind, epoch);
    made.key = "FEED#changes";
    made.wanted = state::feed;
    return made;
  }
  void claim_feed(std::int16_t process, const std::string& owner, std::int64_t epoch) {
    execute(process, render(feed_write(LeaseWrite::Kind::claim, epoch), WorkerId(owner)));
  }
};

TEST_F(FeedRulesAre, kept_by_a_reader_as_it_should_be) {
  claim_feed(a, "a#1", 1);
  rules.process(a).reads_changes = [] { return true; };
  rules.poked(a);
  execute(a, render(feed_write(LeaseWrite::Kind::renew, 1), WorkerId("a#1")));
  rules.process(a).reads_changes = [] { return false; };
  execute(a, render(feed_write(LeaseWrite::Kind::release, 1), WorkerId("a#1")));
  claim_feed(b, "b#1", 2);
  expect_kept();
}

TEST_F(FeedRulesAre, broken_by_two_readers) {
  rules.process(a).reads_changes = [] { return true; };
  rules.process(b).reads_changes = [] { return true; };
  claim_feed(b, "b#1", 1);
  expect_broken("S1");
}

TEST_F(FeedRulesAre, broken_by_a_write_without_a_fence) {
  claim_feed(a, "a#1", 1);
  execute(a, render(feed_write(LeaseWrite::Kind::release, 1), WorkerId("a#1")));
  claim_feed(b, "b#1", 2);
  unconditional(a, "a#1", feed_write(LeaseWrite::Kind::renew, 1));
  expect_broken("S2");
}

TEST_F(FeedRulesAre, broken_by_an_epoch_that_is_used_again) {
  claim_feed(a, "a#1", 1);
  unconditional(b, "b#1", feed_write(LeaseWrite::Kind::claim, 1));
  expect_broken("S3");
}

TEST_F(FeedRulesAre, broken_by_a_write_that_is_no_leases) {
  Update made;
  made.key = "FEED#changes";
  made.changes = {Change::set(attribute::expires_at, 5)};
  execute(b, made);
  expect_broken("S8");
}

TEST_F(FeedRulesAre, broken_by_who_tells_others_without_the_right_to) {
  rules.process(a).reads_changes = [] { return false; };
  rules.poked(a);
  expect_broken("S7");
}

TEST_F(FeedRulesAre, broken_by_a_claim_in_a_drain) {
  rules.process(a).draining_since = world.now() - 1s;
  rules.asked(a, render(feed_write(LeaseWrite::Kind::claim, 1), WorkerId("a#1")));
  expect_broken("S11");
}

TEST_F(FeedRulesAre, broken_by_looks_that_follow_each_other_too_closely) {
  QueryDue look;
  look.state = state::started;
  rules.looked(a, look, Instant(10s));
  QueryDue next_page = look;
  next_page.page = "more";
  rules.looked(a, next_page, Instant(10s) + 1ms);
  rules.looked(b, look, Instant(10s) + 1ms);
  rules.looked(a, look, Instant(11s));
  expect_kept();
  rules.looked(a, look, Instant(11s) + 1ms);
  expect_broken("S10");
}

TEST(Coverage, knows_the_first_number_that_is_missing) {
  Coverage covered;
  covered.add(5, 9);
  covered.add(1, 3);
  EXPECT_EQ(covered.first_missing(1), 4);
  covered.add(4, 4);
  EXPECT_EQ(covered.ranges(), 1U);
  EXPECT_EQ(covered.first_missing(1), 10);
  EXPECT_EQ(covered.first_missing(12), 12);
  covered.add(2, 20);
  EXPECT_EQ(covered.first_missing(1), 21);
  covered.add(21, 21);
  covered.add(30, 31);
  covered.add(40, 41);
  EXPECT_EQ(covered.ranges(), 3U);
  covered.add(22, 39);
  EXPECT_EQ(covered.ranges(), 1U);
  EXPECT_EQ(covered.first_missing(1), 42);
  EXPECT_TRUE(covered.meets(41, 50));
  EXPECT_FALSE(covered.meets(42, 50));
}

}  // namespace
}  // namespace holdfast::sim
