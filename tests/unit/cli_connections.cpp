#include "cli/connections.hpp"

#include "cli/conn_json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/lease_table.hpp"

namespace holdfast::cli {
namespace {

using namespace std::chrono_literals;
using test::LeaseTable;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr WallTime now{std::chrono::milliseconds(1'700'000'000'000)};
constexpr std::int64_t now_ms = 1'700'000'000'000;

Attributes stream(const std::string& url) {
  Attributes made;
  made.emplace(attribute::url, url);
  made.emplace(attribute::options, Value::Map{{"seq.pointer", "/seq"}});
  return made;
}

class ConnCommands : public testing::Test {
 protected:
  LeaseTable table;

  Outcome add(bool stopped = false, const std::string& url = "ws://h/a") {
    return table.carry_out(add_connection("a", stream(url), stopped, now)).outcome;
  }
  const Row& row() { return table.row("CONN#a"); }
  Step go(Wanted wanted, std::optional<WallTime> forget_at = std::nullopt) {
    const Step step = step_to(wanted, row(), forget_at, now);
    if (step.kind == Step::Kind::write) {
      EXPECT_EQ(table.carry_out(step.update).outcome, Outcome::applied);
    }
    return step;
  }
  void give_to(const std::string& owner, std::int64_t epoch, std::int64_t expires_at_ms) {
    table.row("CONN#a").attributes.insert_or_assign(std::string(attribute::owner), owner);
    table.row("CONN#a").attributes.insert_or_assign(std::string(attribute::epoch), epoch);
    table.row("CONN#a").attributes.insert_or_assign(std::string(attribute::expires_at), expires_at_ms);
  }
};

TEST_F(ConnCommands, add_makes_a_row_that_workers_find_and_that_nobody_holds) {
  ASSERT_EQ(add(), Outcome::applied);
  EXPECT_EQ(row().text(attribute::desired_state), state::started);
  EXPECT_EQ(row().number(attribute::expires_at, -1), 0);
  EXPECT_EQ(row().number(attribute::epoch, -1), 0);
  EXPECT_EQ(row().text(attribute::url), "ws://h/a");
  EXPECT_NE(row().find(attribute::options), nullptr);
}

TEST_F(ConnCommands, add_does_not_touch_one_that_exists) {
  ASSERT_EQ(add(), Outcome::applied);
  give_to("w1#1", 4, now_ms + 10'000);
  const Row before = row();
  EXPECT_EQ(add(false, "ws://other/"), Outcome::conflict);
  EXPECT_EQ(row(), before);
  EXPECT_THAT(explain_add_conflict("a", before, now).detail, HasSubstr("exists already"));
}

TEST_F(ConnCommands, replace_changes_the_url_and_keeps_lease_epoch_progress_and_state) {
  ASSERT_EQ(add(), Outcome::applied);
  give_to("w1#1", 4, now_ms + 10'000);
  table.row("CONN#a").attributes.insert_or_assign(std::string(attribute::last_seq), 77);
  Attributes bare;
  bare.emplace(attribute::url, "ws://other/");
  ASSERT_EQ(table.carry_out(replace_connection("a", bare, false)).outcome, Outcome::applied);
  EXPECT_EQ(row().text(attribute::url), "ws://other/");
  EXPECT_EQ(row().find(attribute::options), nullptr);
  EXPECT_EQ(row().number(attribute::epoch), 4);
  EXPECT_EQ(row().number(attribute::last_seq), 77);
  EXPECT_EQ(row().text(attribute::owner), "w1#1");
  EXPECT_EQ(row().text(attribute::desired_state), state::started);
}

TEST_F(ConnCommands, replace_makes_nothing_out_of_nothing) {
  EXPECT_EQ(table.carry_out(replace_connection("a", stream("ws://h/"), false)).outcome, Outcome::conflict);
  EXPECT_EQ(table.find("CONN#a"), nullptr);
}

TEST_F(ConnCommands, stop_and_start_change_the_state_and_leave_the_lease_alone) {
  ASSERT_EQ(add(), Outcome::applied);
  give_to("w1#1", 4, now_ms + 10'000);
  EXPECT_EQ(go(Wanted::stopped).words, "stopped");
  EXPECT_EQ(row().text(attribute::desired_state), state::stopped);
  EXPECT_EQ(row().number(attribute::expires_at), now_ms + 10'000);
  EXPECT_EQ(row().number(attribute::epoch), 4);
  EXPECT_EQ(go(Wanted::stopped).kind, Step::Kind::nothing);
  const Step started = go(Wanted::started);
  EXPECT_EQ(started.words, "started");
  EXPECT_FALSE(started.repaired);
  EXPECT_EQ(row().text(attribute::owner), "w1#1");
  EXPECT_EQ(go(Wanted::started).kind, Step::Kind::nothing);
}

TEST_F(ConnCommands, a_step_does_not_happen_where_the_state_has_moved_since_it_was_read) {
  ASSERT_EQ(add(), Outcome::applied);
  const Step stop = step_to(Wanted::stopped, row(), std::nullopt, now);
  go(Wanted::removed);
  EXPECT_EQ(table.carry_out(stop.update).outcome, Outcome::conflict);
  EXPECT_EQ(row().text(attribute::desired_state), state::removed);
}

TEST_F(ConnCommands, f02_what_was_added_is_known_again_though_a_worker_has_taken_it_meanwhile) {
  const Update add = add_connection("b", stream("ws://h/"), false, now);
  ASSERT_EQ(table.carry_out(add).outcome, Outcome::applied);
  Row& taken = table.row("CONN#b");
  taken.attributes.insert_or_assign(std::string(attribute::owner), Value("w#1"));
  taken.attributes.insert_or_assign(std::string(attribute::epoch), Value(1));
  taken.attributes.insert_or_assign(std::string(attribute::last_seq), Value(9));
  EXPECT_TRUE(says_as_added(taken, add));
  EXPECT_FALSE(says_as_added(taken, add_connection("b", stream("ws://other/"), false, now)));
  EXPECT_FALSE(says_as_added(taken, add_connection("b", stream("ws://h/"), true, now)));
}

TEST_F(ConnCommands, rm_leaves_the_epoch_and_takes_the_url_and_the_secrets) {
  ASSERT_EQ(add(), Outcome::applied);
  give_to("w1#1", 4, 0);
  EXPECT_EQ(go(Wanted::removed).words, "removed");
  EXPECT_EQ(row().text(attribute::desired_state), state::removed);
  EXPECT_EQ(row().number(attribute::epoch), 4);
  EXPECT_EQ(row().find(attribute::url), nullptr);
  EXPECT_EQ(row().find(attribute::options), nullptr);
  EXPECT_EQ(row().find(attribute::tombstone_expires_at), nullptr) << "S3: kept for ever unless asked otherwise";
}

TEST_F(ConnCommands, added_again_after_rm_the_epoch_goes_on_and_the_progress_does_not) {
  ASSERT_EQ(add(), Outcome::applied);
  give_to("w1#1", 4, 0);
  table.row("CONN#a").attributes.insert_or_assign(std::string(attribute::last_seq), 77);
  go(Wanted::removed, now + 24h);
  ASSERT_EQ(add(true, "ws://new/"), Outcome::applied);
  EXPECT_EQ(row().number(attribute::epoch), 4);
  EXPECT_EQ(row().find(attribute::last_seq), nullptr);
  EXPECT_EQ(row().find(attribute::owner), nullptr);
  EXPECT_EQ(row().find(attribute::tombstone_expires_at), nullptr);
  EXPECT_EQ(row().text(attribute::desired_state), state::stopped);
  EXPECT_EQ(row().text(attribute::url), "ws://new/");
}

TEST_F(ConnCommands, one_that_was_removed_is_not_added_again_while_its_holder_may_not_know_yet) {
  ASSERT_EQ(add(), Outcome::applied);
  give_to("w1#1", 4, now_ms + 10'000);
  go(Wanted::removed);
  EXPECT_EQ(add(), Outcome::conflict);
  const Error why = explain_add_conflict("a", row(), now);
  EXPECT_THAT(why.detail, HasSubstr("w1#1 may still hold it: add it again in 15 s"));
  give_to("w1#1", 4, now_ms - 4'000);
  EXPECT_EQ(add(), Outcome::conflict) << "its clock may be behind ours";
  give_to("w1#1", 4, now_ms - 6'000);
  EXPECT_EQ(add(), Outcome::applied);
}

TEST_F(ConnCommands, one_that_was_removed_is_not_started_or_stopped) {
  ASSERT_EQ(add(), Outcome::applied);
  go(Wanted::removed);
  EXPECT_EQ(go(Wanted::started).kind, Step::Kind::refuse);
  EXPECT_EQ(go(Wanted::stopped).kind, Step::Kind::refuse);
  EXPECT_EQ(go(Wanted::removed).kind, Step::Kind::nothing);
}

TEST(Faults, f18_the_ttl_is_in_seconds_and_stands_on_tombstones_only) {
  LeaseTable table;
  table.carry_out(add_connection("a", stream("ws://h/"), false, now));
  EXPECT_EQ(table.find("CONN#a")->find(attribute::tombstone_expires_at), nullptr);
  table.carry_out(step_to(Wanted::removed, *table.find("CONN#a"), now + 3600s, now).update);
  EXPECT_EQ(table.find("CONN#a")->number(attribute::tombstone_expires_at), now_ms / 1000 + 3600);
  table.carry_out(add_connection("a", stream("ws://h/"), false, now));
  EXPECT_EQ(table.find("CONN#a")->find(attribute::tombstone_expires_at), nullptr);
}

TEST(Faults, f21_start_repairs_a_row_that_the_index_does_not_know) {
  LeaseTable table;
  // As another program might have put it there: no state, no expiry.
  Row& foreign = table.add("CONN#a");
  foreign.attributes.clear();
  foreign.attributes.emplace(attribute::url, "ws://h/");
  const Step step = step_to(Wanted::started, *table.find("CONN#a"), std::nullopt, now);
  EXPECT_TRUE(step.repaired);
  ASSERT_EQ(table.carry_out(step.update).outcome, Outcome::applied);
  EXPECT_EQ(table.find("CONN#a")->text(attribute::desired_state), state::started);
  EXPECT_EQ(table.find("CONN#a")->number(attribute::expires_at, -1), 0);
}

TEST(Faults, f21_start_repairs_one_that_is_started_but_has_no_expiry_or_one_that_is_no_number) {
  for (const Value& expiry : {Value(), Value("soon")}) {
    LeaseTable table;
    Row& foreign = table.add("CONN#a");
    foreign.attributes.erase(std::string(attribute::expires_at));
    if (expiry != Value()) foreign.attributes.emplace(attribute::expires_at, expiry);
    EXPECT_EQ(view_of(foreign, now).lease_words, "not in the index");
    const Step step = step_to(Wanted::started, foreign, std::nullopt, now);
    EXPECT_TRUE(step.repaired);
    ASSERT_EQ(table.carry_out(step.update).outcome, Outcome::applied);
    EXPECT_EQ(table.find("CONN#a")->number(attribute::expires_at, -1), 0);
  }
}

TEST(Faults, f21_a_repair_does_not_overwrite_a_lease_that_was_taken_meanwhile) {
  LeaseTable table;
  Row& foreign = table.add("CONN#a");
  foreign.attributes.erase(std::string(attribute::expires_at));
  const Step step = step_to(Wanted::started, foreign, std::nullopt, now);
  foreign.attributes.emplace(attribute::expires_at, now_ms + 5'000);
  EXPECT_EQ(table.carry_out(step.update).outcome, Outcome::conflict);
}

TEST(Faults, f21_start_keeps_an_expiry_that_others_wrote_as_a_float_or_a_text_since_somebody_may_hold_by_it) {
  for (const Value& expiry : {Value(static_cast<double>(now_ms + 5'000)), Value(std::to_string(now_ms + 5'000))}) {
    LeaseTable table;
    Row& foreign = table.add("CONN#a");
    foreign.attributes.insert_or_assign(std::string(attribute::expires_at), expiry);
    foreign.attributes.insert_or_assign(std::string(attribute::owner), Value("plain"));
    ASSERT_EQ(table.carry_out(step_to(Wanted::started, foreign, std::nullopt, now).update).outcome, Outcome::applied);
    EXPECT_EQ(table.find("CONN#a")->number(attribute::expires_at), now_ms + 5'000);
    EXPECT_EQ(table.find("CONN#a")->text(attribute::owner), "plain");
  }
}

TEST(Faults, f21_start_repairs_an_epoch_of_the_wrong_type_and_never_lowers_it) {
  const std::pair<Value, std::int64_t> cases[] = {
      {"7", 7}, {7.0, 7}, {7.5, 8}, {"abc", now_ms}, {Value(-1), now_ms}, {true, now_ms}};
  for (const auto& [seen, repaired] : cases) {
    LeaseTable table;
    Row& row = table.add("CONN#a");
    row.attributes.insert_or_assign(std::string(attribute::epoch), seen);
    EXPECT_THAT(view_of(row, now).problem, HasSubstr("conn start a"));
    const Step step = step_to(Wanted::started, row, std::nullopt, now);
    EXPECT_TRUE(step.repaired);
    ASSERT_EQ(table.carry_out(step.update).outcome, Outcome::applied);
    EXPECT_EQ(table.find("CONN#a")->number(attribute::epoch), repaired);
    EXPECT_EQ(view_of(*table.find("CONN#a"), now).problem, "");
    EXPECT_EQ(table.carry_out(step.update).outcome, Outcome::conflict) << "only what was seen is repaired";
  }
}

TEST(Faults, f21_an_epoch_without_a_successor_cannot_be_repaired_and_start_says_so) {
  for (const Value& seen : {Value(std::int64_t{INT64_MAX}), Value(1e300), Value("99999999999999999999")}) {
    LeaseTable table;
    Row& row = table.add("CONN#a");
    row.attributes.insert_or_assign(std::string(attribute::epoch), seen);
    const Step step = step_to(Wanted::started, row, std::nullopt, now);
    EXPECT_EQ(step.kind, Step::Kind::refuse);
    EXPECT_THAT(step.words, HasSubstr("another name"));
  }
}

// Sets, binaries, numbers beyond 64 bits: no condition can name them, so nothing could be changed only if it is still
// so.
TEST(Faults, f21_what_cannot_be_read_cannot_be_repaired_and_nobody_says_that_start_does) {
  const Value set = Value::Unreadable{"a set of texts"};
  for (const auto& [name, value] : std::initializer_list<std::pair<std::string_view, Value>>{
           {attribute::epoch, set}, {attribute::owner, set}, {attribute::epoch, Value::Map{{"deep", set}}}}) {
    LeaseTable table;
    Row& row = table.add("CONN#a");
    row.attributes.insert_or_assign(std::string(name), value);
    const Step step = step_to(Wanted::started, row, std::nullopt, now);
    EXPECT_EQ(step.kind, Step::Kind::refuse) << name;
    EXPECT_THAT(step.words, AllOf(HasSubstr(std::string(name)), HasSubstr("remove it"))) << name;
    EXPECT_THAT(view_of(row, now).problem, AllOf(HasSubstr("remove it"), Not(HasSubstr("conn start")))) << name;
    EXPECT_EQ(step_to(Wanted::stopped, row, std::nullopt, now).kind, Step::Kind::write) << name;
  }
}

TEST(Faults, f21_an_epoch_without_a_successor_is_not_said_to_be_repairable) {
  LeaseTable table;
  Row& row = table.add("CONN#a");
  row.attributes.insert_or_assign(std::string(attribute::epoch), Value(std::int64_t{INT64_MAX}));
  EXPECT_THAT(view_of(row, now).problem, AllOf(HasSubstr("another name"), Not(HasSubstr("conn start"))));
}

// As after a dead owner was taken out by hand: it is free, and no look reaches so far.
TEST(Faults, f21_what_is_nobodys_and_far_in_the_future_is_told_and_start_or_release_brings_it_back) {
  for (const bool by_release : {false, true}) {
    LeaseTable table;
    Row& row = table.add("CONN#a");
    row.attributes.erase(std::string(attribute::owner));
    row.attributes.insert_or_assign(std::string(attribute::expires_at), Value(std::int64_t{INT64_MAX}));
    EXPECT_THAT(view_of(row, now).problem, HasSubstr("conn start a"));
    const Step step = by_release ? release(row, 20s, now) : step_to(Wanted::started, row, std::nullopt, now);
    ASSERT_EQ(step.kind, Step::Kind::write);
    ASSERT_EQ(table.carry_out(step.update).outcome, Outcome::applied);
    EXPECT_EQ(table.find("CONN#a")->number(attribute::expires_at, -1), 0);
    EXPECT_EQ(view_of(*table.find("CONN#a"), now).problem, "");
    // S1: somebody may have claimed it meanwhile.
    table.row("CONN#a").attributes.insert_or_assign(std::string(attribute::owner), Value("w#1"));
    table.row("CONN#a").attributes.insert_or_assign(std::string(attribute::expires_at), Value(now_ms + 20'000));
    EXPECT_EQ(table.carry_out(step.update).outcome, Outcome::conflict);
  }
}

TEST(Release, says_of_a_lease_that_ends_soon_enough_that_it_is_left_as_it_is) {
  LeaseTable table;
  Row& row = table.add("CONN#a");
  row.attributes.insert_or_assign(std::string(attribute::owner), Value("w#1"));
  row.attributes.insert_or_assign(std::string(attribute::expires_at), Value(now_ms + 12'000));
  EXPECT_THAT(release(row, 20s, now).words, AllOf(HasSubstr("left as it is"), HasSubstr("12 s left")));
}

TEST(Faults, f21_start_makes_an_owner_that_is_no_text_one_and_leaves_it_its_lease) {
  LeaseTable table;
  Row& row = table.add("CONN#a");
  row.attributes.insert_or_assign(std::string(attribute::owner), Value(5));
  row.attributes.insert_or_assign(std::string(attribute::expires_at), Value(now_ms + 5'000));
  EXPECT_THAT(view_of(row, now).problem, HasSubstr("lease_owner is the number 5"));
  ASSERT_EQ(table.carry_out(step_to(Wanted::started, row, std::nullopt, now).update).outcome, Outcome::applied);
  EXPECT_EQ(table.find("CONN#a")->text(attribute::owner), "5");
  EXPECT_EQ(table.find("CONN#a")->number(attribute::expires_at), now_ms + 5'000);
}

TEST(Release, s01_shortens_a_lease_that_ends_far_ahead_to_what_its_holder_can_believe_in_and_keeps_the_epoch) {
  LeaseTable table;
  Row& row = table.add("CONN#a");
  row.attributes.insert_or_assign(std::string(attribute::owner), Value("gone#1"));
  row.attributes.insert_or_assign(std::string(attribute::epoch), Value(3));
  row.attributes.insert_or_assign(std::string(attribute::expires_at), Value(std::int64_t{INT64_MAX}));
  EXPECT_THAT(view_of(row, now).problem, AllOf(HasSubstr("gone#1"), HasSubstr("conn release a")));
  const Step step = release(row, 20s, now);
  ASSERT_EQ(table.carry_out(step.update).outcome, Outcome::applied);
  const Row& after = *table.find("CONN#a");
  EXPECT_EQ(after.number(attribute::expires_at), now_ms + 20'000);
  EXPECT_EQ(after.text(attribute::owner), "gone#1") << "one that lives keeps it by renewing";
  EXPECT_EQ(after.number(attribute::epoch), 3);
  EXPECT_EQ(release(after, 20s, now).kind, Step::Kind::nothing) << "it never makes a lease longer";
  EXPECT_EQ(table.carry_out(step.update).outcome, Outcome::conflict) << "only what was seen is shortened";
}

TEST(Release, s01_a_late_copy_takes_no_newer_promise_back_though_the_expiry_is_the_one_that_was_seen) {
  LeaseTable table;
  Row& row = table.add("CONN#a");
  row.attributes.insert_or_assign(std::string(attribute::owner), Value("w1#1"));
  row.attributes.insert_or_assign(std::string(attribute::expires_at), Value(now_ms + 21'000));
  const Step of_a_plain_worker = release(row, 20s, now);
  row.attributes.insert_or_assign(std::string(attribute::epoch), Value(3));
  row.attributes.insert_or_assign(std::string(attribute::renewal), Value(5));
  const Step step = release(row, 20s, now);
  const Row seen = row;
  // One second later, by a clock that was set back by one second.
  row.attributes.insert_or_assign(std::string(attribute::renewal), Value(6));
  EXPECT_EQ(table.carry_out(step.update).outcome, Outcome::conflict);
  row.attributes.insert_or_assign(std::string(attribute::epoch), Value(4));
  row.attributes.insert_or_assign(std::string(attribute::renewal), Value(5));
  EXPECT_EQ(table.carry_out(step.update).outcome, Outcome::conflict);
  EXPECT_EQ(table.carry_out(of_a_plain_worker.update).outcome, Outcome::conflict);
  row = seen;
  EXPECT_EQ(table.carry_out(step.update).outcome, Outcome::applied);
}

TEST(Release, shortens_a_row_whose_number_of_renewals_cannot_be_read_and_asks_no_store_to_compare_it) {
  LeaseTable table;
  Row& row = table.add("CONN#a");
  row.attributes.insert_or_assign(std::string(attribute::owner), Value("w1#1"));
  row.attributes.insert_or_assign(std::string(attribute::expires_at), Value(now_ms + 3'600'000));
  row.attributes.insert_or_assign(std::string(attribute::renewal), Value(Value::Unreadable{"a number of 30 digits"}));
  const Step step = release(row, 20s, now);
  row.attributes.insert_or_assign(std::string(attribute::renewal), Value("another"));
  EXPECT_EQ(table.carry_out(step.update).outcome, Outcome::applied);
}

TEST(Release, shortens_a_row_of_a_worker_that_counts_neither_epochs_nor_renewals) {
  LeaseTable table;
  Row& row = table.add("CONN#a");
  row.attributes.insert_or_assign(std::string(attribute::owner), Value("plain"));
  row.attributes.insert_or_assign(std::string(attribute::expires_at), Value(now_ms + 3'600'000));
  EXPECT_EQ(table.carry_out(release(row, 20s, now).update).outcome, Outcome::applied);
}

TEST(ConnectionView, tells_the_lease_in_human_terms) {
  LeaseTable table;
  Row& row = table.add("CONN#a");
  EXPECT_EQ(view_of(row, now).lease_words, "free");
  row.attributes.insert_or_assign(std::string(attribute::owner), Value("w1#1"));
  EXPECT_EQ(view_of(row, now).lease_words, "free") << "released: the owner of an expiry of 0 is history";
  EXPECT_EQ(view_of(row, now).owner, "");
  row.attributes.insert_or_assign(std::string(attribute::expires_at), Value(now_ms + 12'000));
  EXPECT_EQ(view_of(row, now).lease_words, "12 s left");
  EXPECT_EQ(view_of(row, now).owner, "w1#1");
  EXPECT_EQ(view_of(row, now).lease, ConnectionView::Lease::held);
  row.attributes.insert_or_assign(std::string(attribute::expires_at), Value(now_ms - 3'000));
  EXPECT_EQ(view_of(row, now).lease_words, "expired 3 s ago");
  EXPECT_EQ(view_of(row, now).lease, ConnectionView::Lease::expired);
}

TEST(Faults, f42_a_lease_that_is_not_held_tells_nothing_of_the_present) {
  LeaseTable table;
  Row& row = table.add("CONN#a");
  row.attributes.insert_or_assign(std::string(attribute::owner), Value("w1#1"));
  row.attributes.insert_or_assign(std::string(attribute::status), Value("flowing"));
  row.attributes.insert_or_assign(std::string(attribute::status_reason), Value("of the dead"));
  row.attributes.insert_or_assign(std::string(attribute::expires_at), Value(now_ms + 1));
  EXPECT_EQ(view_of(row, now).status, "flowing");
  EXPECT_THAT(connection_json(row, now, false), HasSubstr(R"("status":"flowing")"));
  row.attributes.insert_or_assign(std::string(attribute::expires_at), Value(now_ms - 9 * 60'000));
  EXPECT_EQ(view_of(row, now).status, "");
  EXPECT_EQ(view_of(row, now).reason, "");
  EXPECT_EQ(view_of(row, now).last_status, "flowing");
  EXPECT_THAT(connection_json(row, now, false), HasSubstr(R"("status":null,"status_reason":null)"));
}

TEST(ShownOptions, header_values_are_hidden_but_for_references) {
  Row row{"CONN#a", {}};
  row.attributes.emplace(attribute::options, Value::Map{{"seq.pointer", "/seq"},
                                                        {"headers", Value::Map{{"Authorization", "Bearer secret"},
                                                                               {"X-Env", "env:TOKEN"},
                                                                               {"X-File", "file:/run/token"},
                                                                               {"X-Number", 7}}}});
  const Value::Map shown = shown_options(row);
  EXPECT_EQ(shown.at("seq.pointer"), Value("/seq"));
  EXPECT_EQ(
      shown.at("headers"),
      Value(Value::Map{
          {"Authorization", "***"}, {"X-Env", "env:TOKEN"}, {"X-File", "file:/run/token"}, {"X-Number", "***"}}));
}

TEST(ShownOptions, what_no_option_is_called_is_hidden_since_it_may_be_headers_misspelt) {
  Row row{"CONN#a", {}};
  row.attributes.emplace(attribute::url, "ws://h/");
  row.attributes.emplace(attribute::options, Value::Map{{"header", Value::Map{{"Authorization", "Bearer secret"}}},
                                                        {"headers", "Authorization: Bearer secret"}});
  EXPECT_THAT(connection_json(row, now, true),
              AllOf(HasSubstr(R"("options":{"header":"***","headers":"***"})"),
                    HasSubstr(R"("problem":"unknown option 'header')"), Not(HasSubstr("secret"))));
}

TEST(ConnectionIds, are_names_that_a_person_can_type) {
  for (const std::string id : {"a", "btc-usd", "s0", "room/42:eu", "größe", "a.b_c@d"})
    EXPECT_TRUE(check_id(id)) << id;
  for (const std::string id : {"", "a b", "a\n", "a*", "a?", "[a]", "a\"b", "a\\b", "\x7f"}) {
    ASSERT_FALSE(check_id(id)) << id;
    EXPECT_EQ(check_id(id).error().code, Code::usage);
  }
  EXPECT_FALSE(check_id(std::string(201, 'a')));
}

TEST(ConnectionIds, are_sorted_as_people_expect) {
  std::vector<std::string> ids{"s10", "s2", "b", "s1", "s01", "a10b2", "a10b1", "a9", "s"};
  std::sort(ids.begin(), ids.end(), natural_less);
  EXPECT_THAT(ids, ElementsAre("a9", "a10b1", "a10b2", "b", "s", "s01", "s1", "s2", "s10"));
}

TEST(ImportLine, has_an_id_a_url_and_perhaps_options) {
  const auto line = parse_import_line(
      R"({"id":"a","url":"wss://example.com/a","options":{"resume.query":"since"},"stopped":true})");
  ASSERT_TRUE(line) << line.error().detail;
  EXPECT_EQ(line->id, "a");
  EXPECT_TRUE(line->stopped);
  EXPECT_EQ(line->stream.find(attribute::url)->second, Value("wss://example.com/a"));
}

TEST(ImportLine, what_is_wrong_with_it_is_told) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {"nonsense", "no JSON object"},
      {"[]", "no JSON object"},
      {R"({"url":"ws://h/"})", "id is empty"},
      {R"({"id":"a"})", "'url' is missing"},
      {R"({"id":7,"url":"ws://h/"})", "'id' is of the wrong type"},
      {R"({"id":"a","url":"http://h/"})", "ws://"},
      {R"({"id":"a","url":"ws://h/","options":{"foo":1}})", "unknown option 'foo'"},
      {R"({"id":"a","url":"ws://h/","header":"x"})", "'header' is unknown"},
      {R"({"id":"a b","url":"ws://h/"})", "has a blank"},
  };
  for (const auto& [text, expected] : cases) {
    const auto line = parse_import_line(text);
    ASSERT_FALSE(line) << text;
    EXPECT_THAT(line.error().detail, HasSubstr(expected));
  }
}

}  // namespace
}  // namespace holdfast::cli
