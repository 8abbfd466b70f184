// What became of a key that is to be run once.
#include <gmock/gmock.h>

#include "core/coord/names.hpp"
#include "core/coord/once.hpp"
#include "core/lease_write.hpp"
#include "support/procedure_run.hpp"

namespace holdfast {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Abandoned = OnceOptions::Abandoned;

class OnceTest : public testing::Test {
 protected:
  OnceOptions options(const char* fingerprint = "f1", Abandoned abandoned = Abandoned::rerun, Duration wait = 0s) {
    OnceOptions options;
    options.key = "pay-7";
    options.fingerprint = fingerprint;
    options.abandoned = abandoned;
    options.skew = 500ms;
    options.wait_until = run_.now.instant + wait;
    options.deadline = run_.now.instant + wait + 5s;
    return options;
  }
  Ended<OnceLook> look(OnceOptions options) {
    LookOnce looking(std::move(options), random_);
    run_.run(looking);
    return *looking.result();
  }
  /// As a claim leaves the row.
  Row& begun(std::chrono::milliseconds lease = 10s) {
    Row& row = table_.add("ONCE#pay-7");
    row.attributes = {
        {std::string(attribute::desired_state), Value(state::task)},
        {std::string(attribute::owner), Value("runner#1")},
        {std::string(attribute::epoch), Value(3)},
        {std::string(attribute::expires_at), Value((run_.now.wall + lease).time_since_epoch().count())}};
    EXPECT_TRUE(holdfast::apply(LookOnce::claim_changes(options()), row));
    return row;
  }
  Row& done(Duration retention = 24h) {
    Row& row = begun();
    row.attributes.erase(row.attributes.find(attribute::owner));
    row.attributes.insert_or_assign(std::string(attribute::expires_at), Value(0));
    EXPECT_TRUE(
        holdfast::apply(LookOnce::result_changes({true, "receipt", run_.now.wall}, retention, run_.now.wall), row));
    return row;
  }

  test::LeaseTable table_;
  test::ProcedureRun run_{table_};
  Random random_{7};
};

TEST_F(OnceTest, a_result_that_somebody_has_damaged_is_told_and_nothing_is_run_again) {
  for (const Value& damaged : {Value(0), Value(nullptr), Value(true)}) {
    done().attributes.insert_or_assign(std::string(coord::result), damaged);
    const auto found = look(options());
    ASSERT_FALSE(found);
    EXPECT_EQ(found.error().error.code, Code::corrupt);
  }
}

TEST_F(OnceTest, a_key_that_nobody_has_used_is_free) {
  const auto found = look(options());
  ASSERT_TRUE(found);
  const auto& free = std::get<OnceFree>(*found);
  EXPECT_FALSE(free.candidate.row_exists);
  EXPECT_FALSE(free.was_abandoned);
  EXPECT_EQ(run_.writes, 0);
}

TEST_F(OnceTest, what_was_run_is_told_without_a_write) {
  done();
  const auto found = look(options());
  ASSERT_TRUE(found);
  EXPECT_EQ(std::get<OnceDone>(*found).result.content, "receipt");
  EXPECT_TRUE(std::get<OnceDone>(*found).result.succeeded);
  EXPECT_EQ(std::get<OnceDone>(*found).epoch, Epoch{3});
  EXPECT_EQ(run_.requests, 1);
  EXPECT_EQ(run_.writes, 0);
}

TEST_F(OnceTest, a_failure_for_good_is_told_as_one) {
  EXPECT_TRUE(
      holdfast::apply(LookOnce::result_changes({false, "card refused", run_.now.wall}, 1h, run_.now.wall), begun()));
  EXPECT_FALSE(std::get<OnceDone>(*look(options())).result.succeeded);
}

TEST_F(OnceTest, f24_another_input_is_a_mismatch_on_every_path) {
  const auto expect_mismatch = [&](const char* path, OnceOptions how) {
    const auto found = look(std::move(how));
    ASSERT_FALSE(found) << path;
    EXPECT_EQ(found.error().kind, Failure::Kind::mismatch) << path;
    EXPECT_THAT(found.error().error.detail, HasSubstr("pay-7"));
  };
  begun();
  expect_mismatch("running", options("f2"));
  expect_mismatch("running, with patience", options("f2", Abandoned::rerun, 1min));
  done();
  expect_mismatch("done", options("f2"));
  begun(-1min);
  for (const Abandoned each : {Abandoned::rerun, Abandoned::hold, Abandoned::reconcile}) {
    expect_mismatch("abandoned", options("f2", each));
  }
  Row& row = begun();
  row.attributes.erase(row.attributes.find(attribute::owner));
  expect_mismatch("given back", options("f2"));
  EXPECT_EQ(run_.writes, 0);
}

TEST_F(OnceTest, who_has_no_fingerprint_is_not_asked_for_one) {
  done();
  EXPECT_TRUE(look(options("")));
}

TEST_F(OnceTest, f25_a_duplicate_can_fail_or_wait_for_the_result_of_the_first) {
  begun();
  const auto at_once = look(options());
  ASSERT_FALSE(at_once);
  EXPECT_EQ(at_once.error().kind, Failure::Kind::busy);

  LookOnce waiting(options("f1", Abandoned::rerun, 1min), random_);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(run_.step(waiting));
  done();
  run_.run(waiting);
  ASSERT_TRUE(*waiting.result());
  EXPECT_EQ(std::get<OnceDone>(**waiting.result()).result.content, "receipt");
}

TEST_F(OnceTest, f22_who_died_inside_leaves_a_deadline_after_which_the_policy_says) {
  begun(10s);
  run_.pass(10'498ms);  // the look takes another one
  EXPECT_FALSE(look(options())) << "not before its expiry and the skew (S1)";
  run_.pass(1s);
  const auto rerun = look(options());
  ASSERT_TRUE(rerun);
  EXPECT_TRUE(std::get<OnceFree>(*rerun).was_abandoned);
  EXPECT_EQ(std::get<OnceFree>(*rerun).candidate.epoch, Epoch{3});

  const auto hold = look(options("f1", Abandoned::hold));
  ASSERT_TRUE(hold);
  EXPECT_EQ(std::get<OnceHeld>(*hold).owner, "runner#1");
  EXPECT_EQ(std::get<OnceHeld>(*hold).epoch, Epoch{3});

  EXPECT_TRUE(std::get<OnceFree>(*look(options("f1", Abandoned::reconcile))).was_abandoned);
}

TEST_F(OnceTest, f23_a_result_that_comes_after_somebody_took_over_is_not_written) {
  begun();
  LeaseWrite release;
  release.kind = LeaseWrite::Kind::release;
  release.key = "ONCE#pay-7";
  release.epoch = {3};
  Update late = render(release, WorkerId("runner#1"));
  for (const Change& each : LookOnce::result_changes({true, "late", run_.now.wall}, 1h, run_.now.wall)) {
    late.changes.push_back(each);
  }
  begun().attributes.insert_or_assign(std::string(attribute::epoch), Value(4));
  EXPECT_EQ(table_.carry_out(late).outcome, Outcome::conflict) << "the same runner, under a later epoch";
  begun().attributes.insert_or_assign(std::string(attribute::owner), Value("runner#2"));
  EXPECT_EQ(table_.carry_out(late).outcome, Outcome::conflict);
  begun();
  EXPECT_EQ(table_.carry_out(late).outcome, Outcome::applied);
  EXPECT_EQ(std::get<OnceDone>(*look(options())).result.content, "late");
}

TEST_F(OnceTest, one_that_was_given_back_without_a_result_is_free_and_not_abandoned) {
  Row& row = begun();
  row.attributes.erase(row.attributes.find(attribute::owner));
  row.attributes.insert_or_assign(std::string(attribute::expires_at), Value(0));
  const auto found = look(options("f1", Abandoned::hold));
  ASSERT_TRUE(found);
  EXPECT_FALSE(std::get<OnceFree>(*found).was_abandoned);
}

TEST_F(OnceTest, a_result_is_kept_for_its_retention_and_then_the_key_is_as_new) {
  done(1h);
  run_.pass(59min);
  EXPECT_TRUE(std::holds_alternative<OnceDone>(*look(options())));
  run_.pass(2min);
  const auto found = look(options("f2"));
  ASSERT_TRUE(found) << "another input is no mismatch either";
  EXPECT_EQ(std::get<OnceFree>(*found).candidate.epoch, Epoch{3}) << "S3: epochs go on";
  // The next run's claim leaves nothing of the old result.
  Row& row = table_.row("ONCE#pay-7");
  EXPECT_TRUE(holdfast::apply(LookOnce::claim_changes(options("f2")), row));
  EXPECT_FALSE(once_result_in(row));
}

TEST_F(OnceTest, a_damaged_row_is_told_and_left_alone) {
  begun().attributes.insert_or_assign(std::string(attribute::epoch), Value("three"));
  const auto found = look(options());
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().kind, Failure::Kind::rejected);
}

}  // namespace
}  // namespace holdfast
