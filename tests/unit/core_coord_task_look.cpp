// Looking at tasks, and taking a lease away by hand.
#include "core/coord/task_look.hpp"

#include <gmock/gmock.h>

#include "core/coord/names.hpp"
#include "core/coord/once.hpp"
#include "support/procedure_run.hpp"

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using test::Mishap;
using testing::HasSubstr;
using testing::UnorderedElementsAre;
using Kind = TaskView::Kind;
using State = TaskView::State;

class TaskLookTest : public testing::Test {
 protected:
  Row& add(Kind kind, const std::string& name, const std::string& owner, std::int64_t epoch, Duration left) {
    Row& row = table_.add(task_key(kind, name));
    const auto ends = run_.now.wall + std::chrono::ceil<std::chrono::milliseconds>(left);
    row.attributes = {{std::string(attribute::desired_state), Value(state::task)},
                      {std::string(attribute::epoch), Value(epoch)},
                      {std::string(attribute::expires_at), Value(std::int64_t{ends.time_since_epoch().count()})}};
    if (!owner.empty()) row.attributes.insert_or_assign(std::string(attribute::owner), Value(owner));
    return row;
  }
  static void apply(const std::vector<Change>& changes, Row& row) { ASSERT_TRUE(holdfast::apply(changes, row)); }
  Ended<std::optional<TaskView>> read(Kind kind, const std::string& name) {
    ReadTask reading(kind, name, run_.now.instant + 10s, random_);
    run_.run(reading);
    return *reading.result();
  }
  Ended<TaskPage> list(std::size_t most) {
    ListTasks listing(most, {}, run_.now.instant + 10s, random_);
    run_.run(listing);
    return *listing.result();
  }
  Ended<ReleasedTask> release(Kind kind, const std::string& name, std::int64_t epoch) {
    ReleaseTask releasing(kind, name, {epoch}, run_.now.instant + 10s, random_);
    run_.run(releasing);
    return *releasing.result();
  }
  std::string_view owner(Kind kind, const std::string& name) {
    return table_.find(task_key(kind, name))->text(attribute::owner);
  }

  test::LeaseTable table_;
  test::ProcedureRun run_{table_};
  Random random_{1};
};

TEST_F(TaskLookTest, a_task_is_free_held_or_was_held) {
  add(Kind::task, "free", "", 4, 0s);
  add(Kind::task, "held", "me", 5, 10s);
  add(Kind::task, "ended", "gone", 6, -10s);
  EXPECT_EQ(read(Kind::task, "free").value()->state, State::free);
  const auto held = read(Kind::task, "held").value().value();
  EXPECT_EQ(held.state, State::held);
  EXPECT_EQ(held.kind, Kind::task);
  EXPECT_EQ(held.name, "held");
  EXPECT_EQ(held.owner, "me");
  EXPECT_EQ(held.epoch, Epoch{5});
  EXPECT_EQ(read(Kind::task, "ended").value()->state, State::ended);
  EXPECT_FALSE(read(Kind::task, "none").value());
  EXPECT_FALSE(read(Kind::once, "held").value()) << "a key of the same name is another";
}

TEST_F(TaskLookTest, a_result_is_shown_for_as_long_as_it_stands) {
  Row& row = add(Kind::once, "k", "", 1, 0s);
  apply(LookOnce::result_changes({false, "no such customer", run_.now.wall}, 1h, run_.now.wall), row);
  auto done = read(Kind::once, "k").value().value();
  EXPECT_EQ(done.state, State::failed);
  EXPECT_EQ(done.result->content, "no such customer");
  apply(LookOnce::result_changes({true, "paid", run_.now.wall}, 1h, run_.now.wall), row);
  EXPECT_EQ(read(Kind::once, "k").value()->state, State::done);
  run_.pass(1h + 1s);
  done = read(Kind::once, "k").value().value();
  EXPECT_EQ(done.state, State::free) << "whoever is next runs it";
  EXPECT_FALSE(done.result);
}

TEST_F(TaskLookTest, a_result_that_is_no_text_is_damage_as_it_is_for_whoever_wants_it_run) {
  Row& row = add(Kind::once, "k", "", 1, 0s);
  apply(LookOnce::result_changes({true, "paid", run_.now.wall}, 1h, run_.now.wall), row);
  row.attributes.insert_or_assign(std::string(coord::result), Value(7));
  for (const Duration time : {Duration(0s), Duration(2h)}) {
    run_.pass(time);
    const auto damaged = read(Kind::once, "k");
    ASSERT_FALSE(damaged);
    EXPECT_EQ(damaged.error().error.code, Code::corrupt);
  }
}

TEST_F(TaskLookTest, both_kinds_are_listed_without_what_is_damaged) {
  add(Kind::task, "a", "x", 1, 1s);
  add(Kind::once, "b", "x", 1, 2s);
  add(Kind::task, "bad", "x", -1, 3s);
  add(Kind::task, "c", "x", 1, 4s);
  table_.add("CONN#d");
  std::vector<std::string> names;
  const auto listed = list(10);
  for (const TaskView& each : listed->tasks) names.push_back(std::string(to_string(each.kind)) + " " + each.name);
  EXPECT_THAT(names, UnorderedElementsAre("task a", "once b", "task c"));
  EXPECT_EQ(list(1)->tasks.size(), 1U);
}

TEST_F(TaskLookTest, a_list_survives_what_befalls_a_request) {
  add(Kind::task, "a", "x", 1, 1s);
  run_.mishap = [](int request, bool) { return request == 0 ? Mishap::throttled : Mishap::none; };
  EXPECT_EQ(list(10)->tasks.size(), 1U);
  run_.mishap = [](int, bool) { return Mishap::lost_request; };
  EXPECT_EQ(list(10).error().kind, Failure::Kind::unavailable);
}

TEST_F(TaskLookTest, a_lease_is_taken_away_from_who_has_it_under_this_epoch) {
  add(Kind::once, "k", "me", 3, 1h);
  const auto released = release(Kind::once, "k", 3);
  ASSERT_TRUE(released);
  EXPECT_FALSE(released->was_repeat);
  EXPECT_EQ(released->task.state, State::free);
  EXPECT_EQ(owner(Kind::once, "k"), "");
  EXPECT_EQ(table_.find(task_key(Kind::once, "k"))->number(attribute::epoch), 3) << "the epoch stays (S3)";
  EXPECT_TRUE(release(Kind::once, "k", 3)->was_repeat) << "its answer may have been lost";
}

TEST_F(TaskLookTest, s02_another_epochs_lease_is_left_alone) {
  add(Kind::task, "t", "successor", 4, 1h);
  for (const std::int64_t epoch : {3, 5}) {
    const auto refused = release(Kind::task, "t", epoch);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().kind, Failure::Kind::refused);
    EXPECT_EQ(refused.error().error.code, Code::denied);
    EXPECT_THAT(refused.error().error.detail, HasSubstr("epoch 4"));
  }
  EXPECT_EQ(owner(Kind::task, "t"), "successor");
  EXPECT_EQ(release(Kind::task, "none", 1).error().error.code, Code::not_found);
  add(Kind::task, "bad", "x", -1, 1h);
  EXPECT_EQ(release(Kind::task, "bad", 1).error().kind, Failure::Kind::rejected);
}

TEST_F(TaskLookTest, a_release_whose_reply_was_lost_is_known_for_its_own) {
  add(Kind::task, "t", "me", 3, 1h);
  run_.mishap = [](int, bool is_write) { return is_write ? Mishap::lost_reply : Mishap::none; };
  EXPECT_FALSE(release(Kind::task, "t", 3)->was_repeat);
}

}  // namespace
}  // namespace holdfast
