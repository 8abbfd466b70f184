// Seeds, run to their ends.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "runtime/spawn.hpp"
#include "sim/campaign.hpp"
#include "sim/report.hpp"
#include "support/places.hpp"
#include "support/sanitized.hpp"

namespace holdfast::sim {
namespace {

using namespace std::chrono_literals;

#if HOLDFAST_SANITIZED || !defined(__OPTIMIZE__)
constexpr std::uint64_t seeds = 12;  // ten times slower
#else
constexpr std::uint64_t seeds = 200;
#endif

std::string first_words_of(const Sum& sum) {
  return sum.broken ? describe_broken(sum, {}) : std::string();
}

class EveryScenario : public testing::TestWithParam<std::size_t> {};

TEST_P(EveryScenario, keeps_every_rule) {
  Campaign campaign;
  campaign.first = 1000 + GetParam() * 100;
  campaign.last = campaign.first;
  campaign.scenario = static_cast<Scenario>(GetParam());
  const Sum sum = run(campaign, [](const Sum&) {});
  EXPECT_FALSE(sum.broken) << first_words_of(sum);
}

INSTANTIATE_TEST_SUITE_P(Sim, EveryScenario, testing::Range(std::size_t{0}, scenarios_count), [](const auto& number) {
  return std::string(name_of(static_cast<Scenario>(number.param)));
});

TEST(Seeds, keep_every_rule) {
  Campaign campaign;
  campaign.first = 1;
  campaign.last = seeds;
  const Sum sum = run(campaign, [](const Sum&) {});
  EXPECT_FALSE(sum.broken) << first_words_of(sum);
  EXPECT_EQ(sum.seeds, seeds);
  EXPECT_GT(sum.injected[Fault::crash], 0U);
  EXPECT_GT(sum.injected[Fault::reply_lost], 0U);
}

TEST(Plans, can_be_drawn_for_the_shortest_and_the_longest_lease) {
  for (const Duration lease : {Duration(100ms), Duration(6h)}) {
    Cuts cuts;
    cuts.lease = lease;
    for (std::uint64_t seed = 1; seed <= 300; ++seed) {
      const Plan plan = draw_plan(seed, std::nullopt, cuts);
      ASSERT_EQ(plan.terms.lease, lease);
      ASSERT_GE(plan.wall_error_most(), 0ms) << "seed " << seed;
    }
  }
}

TEST(Seeds, the_same_seed_gives_the_same_run_and_another_one_another) {
  const Result once = simulate(draw_plan(7, Scenario::swarm));
  const Result again = simulate(draw_plan(7, Scenario::swarm));
  const Result other = simulate(draw_plan(8, Scenario::swarm));
  EXPECT_EQ(once.hash, again.hash);
  EXPECT_EQ(once.steps, again.steps);
  EXPECT_GT(once.events, 100U);
  EXPECT_NE(once.hash, other.hash);
}

TEST(Seeds, have_histories_that_the_checkers_accept) {
  std::size_t recorded = 0;
  for (const Scenario scenario : {Scenario::crashes, Scenario::outage, Scenario::plain, Scenario::clocks_beyond}) {
    Cuts cuts;
    cuts.connections = 3;
    cuts.duration = 2min;
    const Result result = simulate(draw_plan(11, scenario, cuts), 0, /*judge_history=*/true);
    EXPECT_FALSE(result.violation) << name_of(scenario) << ": " << result.violation->rule << ": "
                                   << result.violation->what;
    recorded += result.recorded;
  }
  EXPECT_GT(recorded, 300U);
}

// Found by a nightly run: a process whose clock runs at half speed parks for twice as long.
TEST(Plans, give_a_parked_process_the_time_that_its_slow_clock_takes) {
  using Seconds = std::chrono::duration<double>;
  for (std::size_t scenario = 0; scenario < scenarios_count; ++scenario) {
    const Plan plan = draw_plan(1, static_cast<Scenario>(scenario));
    if (!plan.on(Fault::refusal) && !plan.on(Fault::drop)) continue;
    EXPECT_GT(Seconds(plan.time_to_come_well()), Seconds(20min) / (1 - plan.rate_error_most()))
        << name_of(plan.scenario);
  }
  const Plan slow = draw_plan(13401, Scenario::clocks_beyond);  // the seed that it was
  EXPECT_TRUE(slow.on(Fault::refusal) || slow.on(Fault::drop));
  EXPECT_GT(Seconds(slow.time_to_come_well()), Seconds(20min) / (1 - slow.rate_error_most()));
}

// In each of these a rule was too strict, and blamed who had done nothing wrong.
struct Blamed {
  std::uint64_t seed;
  Scenario scenario;
  const char* why;
};
class NobodyIsBlamed : public testing::TestWithParam<Blamed> {};

TEST_P(NobodyIsBlamed, without_a_reason) {
  const Result result = simulate(draw_plan(GetParam().seed, GetParam().scenario));
  EXPECT_FALSE(result.violation) << GetParam().why << ": " << result.violation->what;
}

INSTANTIATE_TEST_SUITE_P(
    Seeds, NobodyIsBlamed,
    testing::Values(Blamed{25, Scenario::rolling,
                           "who slept found an answer overdue before it heard that there is none"},
                    Blamed{104, Scenario::outage, "a release may pause for longer than the rule's time goes on"},
                    Blamed{50, Scenario::clocks_beyond, "a former owner's records are not the last one's to note"}),
    [](const auto& blamed) {
      return std::string(name_of(blamed.param.scenario)) + "_" + std::to_string(blamed.param.seed);
    });

// The same: who was asked to drain in an outage, and whose leases ran out while it could not give them back, was
// blamed for them at the end, where everybody is drained with nothing in the way.
TEST(Seeds, blame_nobody_for_a_drain_that_began_while_there_were_faults) {
  Cuts cuts;
  cuts.processes = 1;
  cuts.without = {Fault::throttled, Fault::request_lost, Fault::duplicate, Fault::repeat, Fault::gap, Fault::forget};
  const Result result = simulate(draw_plan(8121, Scenario::clocks_beyond, cuts));
  EXPECT_FALSE(result.violation) << result.violation->rule << ": " << result.violation->what;
  EXPECT_GT(result.marks.count(Mark::drain_cut), 0U) << "the seed is about something else by now";
}

// Seeds in which requests of which nobody hears leave their place to others.
TEST(Seeds, have_histories_that_the_checkers_accept_whatever_comes_of_a_request) {
  for (const auto& [seed, scenario] :
       {std::pair(29U, Scenario::clocks_within), std::pair(53U, Scenario::clocks_beyond)}) {
    Campaign campaign;
    campaign.first = campaign.last = seed;
    campaign.scenario = scenario;
    campaign.judges_histories = true;
    const Sum sum = run(campaign, [](const Sum&) {});
    EXPECT_FALSE(sum.broken) << first_words_of(sum);
  }
}

std::string hash_in_another_process() {
  runtime::SpawnOptions options;
  options.arguments = {test::simulator_file, "--seeds", "1..6", "--json", "/dev/stdout", "--quiet"};
  options.output = runtime::SpawnOptions::Output::pipe;
  options.dies_with_parent = true;
  auto child = runtime::spawn(options);
  if (!child) return child.error().detail;
  const std::string output = child->read_all(5min);
  const std::size_t at = output.find("\"hash\":\"");
  return at == std::string::npos ? output : output.substr(at + 8, 16);
}

TEST(Seeds, give_the_same_hash_in_another_process) {
  Campaign campaign;
  campaign.first = 1;
  campaign.last = 6;
  const Sum sum = run(campaign, [](const Sum&) {});
  char here[17];
  std::snprintf(here, sizeof here, "%016llx", static_cast<unsigned long long>(sum.hash));
  EXPECT_EQ(hash_in_another_process(), here);
}

TEST(Seeds, a_trace_is_told_where_a_rule_is_broken) {
  // Not a rule that production code breaks: one that cannot be kept in the time that is left.
  Sum sum;
  sum.broken = Shrunk{};
  sum.broken->plan = draw_plan(3, Scenario::crashes);
  sum.broken->cuts.without = {Fault::throttled, Fault::pause};
  sum.broken->cuts.duration = 1500ms;
  sum.broken_seed = 3;
  sum.first_violation = {"S1", "two of them", 4, {}};
  sum.broken->result.tail = {"a line"};
  const std::string words = describe_broken(sum, "abc");
  EXPECT_NE(words.find("./dev sim --seeds 3 --scenario crashes --seconds 1.5 --without throttled,pause --no-shrink"),
            std::string::npos)
      << words;
  EXPECT_NE(words.find("S1: two of them"), std::string::npos);
  EXPECT_NE(words.find("commit abc"), std::string::npos);
  EXPECT_NE(words.find("a line"), std::string::npos);
}

}  // namespace
}  // namespace holdfast::sim
