#include "sim/campaign.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace holdfast::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t tail_most = 60;

std::string seconds_of(Duration duration) {
  char text[32];
  std::snprintf(text, sizeof text, "%.9g", std::chrono::duration<double>(duration).count());
  return text;
}

class Shrinker {
 public:
  Shrinker(const Plan& plan, Cuts cuts, const Result& broken)
      : seed_(plan.seed), scenario_(plan.scenario), rule_(broken.violation->rule) {
    best_.plan = plan;
    best_.cuts = std::move(cuts);
    best_.result = broken;
  }

  Shrunk run() {
    cut_time();
    for (std::size_t i = 0; i < faults_count; ++i) {
      const auto fault = static_cast<Fault>(i);
      if (!best_.plan.on(fault)) continue;
      Cuts cuts = best_.cuts;
      cuts.without.push_back(fault);
      (void)try_with(std::move(cuts));
    }
    lower(&Cuts::processes, best_.plan.processes);
    lower(&Cuts::connections, best_.plan.connections);
    cut_time();
    best_.result = simulate(best_.plan, tail_most);
    return std::move(best_);
  }

 private:
  static constexpr int runs_most = 120;

  bool try_with(Cuts cuts) {
    if (best_.runs >= runs_most) return false;
    ++best_.runs;
    const Plan plan = draw_plan(seed_, scenario_, cuts);
    const Result result = simulate(plan);
    if (!result.violation || result.violation->rule != rule_) return false;
    best_.plan = plan;
    best_.cuts = std::move(cuts);
    best_.result = result;
    return true;
  }
  /// Nothing after the moment at which it broke is needed; a rule of the end (liveness) may need less of the
  /// beginning.
  void cut_time() {
    const Duration at = best_.result.violation->at - Timeline::start;
    if (at < best_.plan.duration) {
      Cuts cuts = best_.cuts;
      cuts.duration = at + 1ms;
      (void)try_with(std::move(cuts));
    }
    for (int i = 0; i < 4; ++i) {
      Cuts cuts = best_.cuts;
      cuts.duration = best_.plan.duration / 2;
      if (!try_with(std::move(cuts))) return;
    }
  }
  void lower(std::optional<std::size_t> Cuts::*what, std::size_t now) {
    for (const std::size_t wanted : {std::size_t{1}, std::size_t{2}, now / 4, now / 2, now - 1}) {
      if (wanted == 0 || wanted >= now) continue;
      Cuts cuts = best_.cuts;
      cuts.*what = wanted;
      if (try_with(std::move(cuts))) return;
    }
  }

  const std::uint64_t seed_;
  const Scenario scenario_;
  std::string rule_;
  Shrunk best_;
};

}  // namespace

Shrunk shrink(const Plan& plan, const Cuts& cuts, const Result& broken) {
  return Shrinker(plan, cuts, broken).run();
}

std::string replay_command(const Shrunk& shrunk) {
  const Plan& plan = shrunk.plan;
  const Cuts& cuts = shrunk.cuts;
  std::string command =
      "./dev sim --seeds " + std::to_string(plan.seed) + " --scenario " + std::string(name_of(plan.scenario));
  if (cuts.duration) command += " --seconds " + seconds_of(*cuts.duration);
  if (cuts.lease) command += " --lease " + seconds_of(*cuts.lease);
  if (cuts.processes) command += " --processes " + std::to_string(*cuts.processes);
  if (cuts.connections) command += " --connections " + std::to_string(*cuts.connections);
  if (!cuts.without.empty()) {
    command += " --without ";
    for (std::size_t i = 0; i < cuts.without.size(); ++i) {
      command += (i == 0 ? "" : ",") + std::string(name_of(cuts.without[i]));
    }
  }
  if (shrunk.judged_histories) command += " --histories";
  return command + " --no-shrink";
}

Sum run(const Campaign& campaign, const std::function<void(const Sum&)>& progress) {
  Sum sum;
  for (std::uint64_t seed = campaign.first;; ++seed) {
    const Plan plan = draw_plan(seed, campaign.scenario, campaign.cuts);
    const Result result = simulate(plan, 0, campaign.judges_histories);
    ++sum.seeds;
    sum.recorded += result.recorded;
    sum.steps += result.steps;
    sum.events += result.events;
    sum.hash = seed_of(sum.hash ^ result.hash, "sum");
    sum.virtual_time += result.virtual_time;
    sum.longest_to_come_well = std::max(sum.longest_to_come_well, result.well_after);
    sum.margins_below_skew += plan.margin_is_below_skew() ? 1 : 0;
    ++sum.by_scenario[static_cast<std::size_t>(plan.scenario)];
    for (std::size_t i = 0; i < faults_count; ++i) {
      const auto fault = static_cast<Fault>(i);
      sum.injected[fault] += result.injected[fault];
    }
    sum.marks.add(result.marks);
    if (result.violation) {
      sum.broken_seed = seed;
      sum.first_violation = *result.violation;
      if (campaign.shrinks && result.violation->rule != "history") {
        sum.broken = shrink(plan, campaign.cuts, result);
      } else {
        sum.broken = Shrunk{plan, campaign.cuts, simulate(plan, tail_most, campaign.judges_histories), 0,
                            campaign.judges_histories};
      }
      return sum;
    }
    progress(sum);
    if (seed == campaign.last) return sum;  // not by <=: the last one may be the highest there is
  }
}

}  // namespace holdfast::sim
