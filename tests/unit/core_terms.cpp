#include <gtest/gtest.h>

#include "holdfast/lease.hpp"
#include "holdfast/store.hpp"

namespace holdfast {
namespace {

using namespace std::chrono_literals;

TEST(LeaseTerms, follow_from_the_lease) {
  const auto terms = make_terms({.lease = 20s});
  ASSERT_TRUE(terms);
  EXPECT_EQ(terms->renew_every, 5s);
  EXPECT_EQ(terms->margin, 2s);
  EXPECT_EQ(terms->skew, 1s);
  EXPECT_EQ(terms->reconcile_every, 5s);
}

TEST(LeaseTerms, can_each_be_set) {
  const auto terms =
      make_terms({.lease = 10s, .renew_every = 2s, .margin = 500ms, .skew = 100ms, .reconcile_every = 20s});
  ASSERT_TRUE(terms);
  EXPECT_EQ(terms->renew_every, 2s);
  EXPECT_EQ(terms->margin, 500ms);
  EXPECT_EQ(terms->skew, 100ms);
  EXPECT_EQ(terms->reconcile_every, 20s);
}

TEST(LeaseTerms, work_for_the_shortest_and_the_longest_lease) {
  EXPECT_TRUE(make_terms({.lease = 100ms}));
  EXPECT_TRUE(make_terms({.lease = 24h}));
}

struct Nonsense {
  const char* name;
  LeaseOptions options;
  const char* names;  // what the sentence must name
};

class LeaseTermsRefuse : public testing::TestWithParam<Nonsense> {};

TEST_P(LeaseTermsRefuse, nonsense_with_a_sentence_that_names_it) {
  const auto terms = make_terms(GetParam().options);
  ASSERT_FALSE(terms);
  EXPECT_EQ(terms.error().code, Code::usage);
  EXPECT_NE(terms.error().detail.find(GetParam().names), std::string::npos) << terms.error().detail;
  EXPECT_EQ(terms.error().detail.find('\n'), std::string::npos);
  EXPECT_EQ(terms.error().detail.back(), '.');
}

INSTANTIATE_TEST_SUITE_P(
    Each, LeaseTermsRefuse,
    testing::Values(
        Nonsense{"lease_zero", {.lease = 0s}, "lease is 0 s"},
        Nonsense{"lease_negative", {.lease = -1s}, "lease is -1 s"},
        Nonsense{"lease_too_short", {.lease = 99ms}, "lease is 0.099 s"},
        Nonsense{"lease_too_long", {.lease = 25h}, "lease is 90000 s"},
        Nonsense{"renew_zero", {.renew_every = 0s}, "renew_every is 0 s"},
        Nonsense{"renew_after_the_belief", {.lease = 20s, .renew_every = 18s}, "Renewing every 18 s is too late"},
        Nonsense{"renew_leaves_no_retry", {.lease = 20s, .renew_every = 17s}, "leaves 1 s"},
        Nonsense{"margin_zero", {.margin = 0s}, "margin is 0 s"},
        Nonsense{"margin_negative", {.margin = -1s}, "margin is -1 s"},
        Nonsense{"skew_zero", {.skew = 0s}, "skew is 0 s"},
        Nonsense{"skew_absurd", {.skew = 48h}, "skew is 172800 s"},
        Nonsense{
            "margin_and_skew_eat_the_lease", {.lease = 10s, .margin = 6s, .skew = 4s}, "margin (6 s) and skew (4 s)"},
        Nonsense{"reconcile_zero", {.reconcile_every = 0s}, "reconcile_every is 0 s"},
        Nonsense{"reconcile_negative", {.reconcile_every = -5s}, "reconcile_every is -5 s"}),
    [](const auto& each) { return each.param.name; });

TEST(LeaseTerms, two_missed_renewals_are_too_many_by_choice_but_one_is_not) {
  // 8 s is more than half of the 18 s of belief: only one further try at the usual pace, but there is room for it.
  EXPECT_TRUE(make_terms({.lease = 20s, .renew_every = 12s}));
}

TEST(LeaseGuard, is_extended_forwards_only) {
  LeaseGuard guard(Epoch{3}, Instant(10s));
  EXPECT_TRUE(guard.holds(Instant(9s)));
  EXPECT_FALSE(guard.holds(Instant(10s)));
  guard.extend(Instant(20s));
  EXPECT_EQ(guard.until(), Instant(20s));
  guard.extend(Instant(15s));
  EXPECT_EQ(guard.until(), Instant(20s));
  EXPECT_EQ(guard.epoch(), Epoch{3});
}

TEST(LeaseGuard, nothing_is_left_of_a_belief_that_is_over) {
  LeaseGuard guard(Epoch{1}, Instant(10s));
  EXPECT_EQ(guard.left(Instant(4s)), 6s);
  EXPECT_EQ(guard.left(Instant(10s)), 0s);
  EXPECT_EQ(guard.left(Instant(11s)), 0s);
  guard.revoke();
  EXPECT_EQ(guard.left(Instant(4s)), 0s) << "S7: its end is before any time, and its distance fits into none";
}

TEST(LeaseGuard, once_revoked_stays_so) {
  LeaseGuard guard(Epoch{1}, Instant(10s));
  guard.revoke();
  guard.extend(Instant(1000s));
  EXPECT_FALSE(guard.holds(Instant(0s)));
}

TEST(Names, of_reasons_and_outcomes_are_what_reports_show) {
  EXPECT_EQ(to_string(LossReason::taken_over), "taken_over");
  EXPECT_EQ(to_string(LossReason::belief_expired), "belief_expired");
  EXPECT_EQ(to_string(LossReason::row_missing), "row_missing");
  EXPECT_EQ(to_string(LossReason::stopped), "stopped");
  EXPECT_EQ(to_string(LossReason::drained), "drained");
  EXPECT_EQ(to_string(LossReason::sink_failed), "sink_failed");
  EXPECT_EQ(to_string(Outcome::applied), "applied");
  EXPECT_EQ(to_string(Outcome::conflict), "conflict");
  EXPECT_EQ(to_string(Outcome::throttled), "throttled");
  EXPECT_EQ(to_string(Outcome::unknown), "unknown");
  EXPECT_EQ(to_string(Outcome::rejected), "rejected");
}

}  // namespace
}  // namespace holdfast
