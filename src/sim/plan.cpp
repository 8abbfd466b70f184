#include "sim/plan.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>

#include "holdfast/random.hpp"

namespace holdfast::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::array<std::string_view, scenarios_count> names{
    "steady", "crashes", "rolling",       "drain",         "outage",
    "churn",  "plain",   "clocks_within", "clocks_beyond", "upstreams",
    "sinks",  "swarm",   "reactive",      "coordinators",  "coordinators_beyond"};

struct Range {
  Fault fault;
  double low;
  double high;
};
/// Drawn evenly on a logarithmic scale. Parts of requests, connects and reads; events per 100 leases otherwise.
constexpr std::array<Range, faults_count> ranges{{
    {Fault::throttled, 0.001, 0.3},
    {Fault::request_lost, 0.001, 0.2},
    {Fault::reply_lost, 0.001, 0.2},
    {Fault::server_error, 0.001, 0.2},
    {Fault::slow_request, 0.001, 0.1},
    {Fault::slow_reply, 0.001, 0.1},
    {Fault::duplicate, 0.001, 0.2},
    {Fault::late_duplicate, 0.001, 0.1},
    {Fault::stale_index, 0.01, 1},
    {Fault::outage, 2, 10},
    {Fault::partition, 1, 10},
    {Fault::rejection, 1, 5},
    {Fault::crash, 1, 12},
    {Fault::pause, 1, 12},
    {Fault::stall, 1, 12},
    {Fault::drain, 1, 12},
    {Fault::leave, 1, 6},
    {Fault::join, 1, 6},
    {Fault::wall_step, 1, 20},
    {Fault::refusal, 0.01, 0.6},
    {Fault::never_opens, 0.01, 0.2},
    {Fault::drop, 0.001, 0.1},
    {Fault::mute, 0.0005, 0.01},
    {Fault::garbage, 0.001, 0.1},
    {Fault::repeat, 0.001, 0.2},
    {Fault::gap, 0.001, 0.1},
    {Fault::move_back, 0.001, 0.1},
    {Fault::forget, 1, 1},
    {Fault::upstream_down, 1, 6},
    {Fault::sink_slow, 0.01, 0.5},
    {Fault::sink_stall, 1, 10},
    {Fault::sink_failure, 1, 10},
    {Fault::sink_full, 1, 10},
    {Fault::stubborn, 0.05, 0.5},
    {Fault::stop_start, 5, 200},
    {Fault::edit, 5, 100},
    {Fault::remove_add, 2, 50},
    {Fault::tamper, 1, 10},
    {Fault::throttle_burst, 1, 10},
    {Fault::unprocessed, 0.01, 0.5},
    {Fault::stream_slow, 0.01, 0.3},
    {Fault::stream_trimmed, 0.01, 0.3},
    {Fault::poke_lost, 0.01, 0.7},
    {Fault::stream_off, 1, 6},
}};

/// What can happen to those who use the coordinators; the rest is about workers.
constexpr std::initializer_list<Fault> of_coordinators{
    Fault::throttled,      Fault::request_lost, Fault::reply_lost,     Fault::server_error, Fault::slow_request,
    Fault::slow_reply,     Fault::duplicate,    Fault::late_duplicate, Fault::stale_index,  Fault::outage,
    Fault::partition,      Fault::rejection,    Fault::crash,          Fault::pause,        Fault::wall_step,
    Fault::throttle_burst, Fault::unprocessed};

constexpr std::initializer_list<Fault> network{Fault::throttled,    Fault::request_lost,   Fault::reply_lost,
                                               Fault::server_error, Fault::slow_request,   Fault::slow_reply,
                                               Fault::duplicate,    Fault::late_duplicate, Fault::stale_index};

/// What a scenario always has.
std::vector<Fault> own_faults(Scenario scenario) {
  switch (scenario) {
    case Scenario::steady:
    case Scenario::swarm:
      return {};
    case Scenario::crashes:
      return {Fault::crash, Fault::pause, Fault::stall};
    case Scenario::rolling:
      return {Fault::drain};
    case Scenario::drain:
      return {Fault::drain, Fault::leave, Fault::join};
    case Scenario::outage:
      return {Fault::outage};
    case Scenario::churn:
      return {Fault::stop_start, Fault::edit, Fault::remove_add};
    case Scenario::plain:
      return {Fault::crash, Fault::drain};
    case Scenario::clocks_within:
    case Scenario::clocks_beyond:
    case Scenario::coordinators:
    case Scenario::coordinators_beyond:
      return {Fault::wall_step, Fault::crash, Fault::pause};
    case Scenario::upstreams:
      return {Fault::refusal, Fault::drop, Fault::repeat, Fault::gap};
    case Scenario::sinks:
      return {Fault::sink_slow, Fault::sink_stall, Fault::sink_failure, Fault::sink_full};
    case Scenario::reactive:
      return {Fault::stream_slow, Fault::stream_trimmed, Fault::poke_lost, Fault::stream_off,
              Fault::crash,       Fault::drain,          Fault::stop_start};
  }
  return {};
}

double spread(Random& random, double low, double high) {
  return low * std::pow(high / low, random.unit());
}

void draw_faults(Plan& plan, Random& random) {
  // Drawn for every fault, on or not: cutting one leaves the others as they were.
  const bool quiet = plan.scenario == Scenario::steady;
  const double chance = plan.scenario == Scenario::swarm ? 0.1 + 0.5 * random.unit() : 0.15;
  for (const Range& range : ranges) {
    if (range.fault >= Fault::stream_slow) continue;  // of `reactive` only, which always has them
    const double rate = spread(random, range.low, range.high);
    const bool is_network = std::find(network.begin(), network.end(), range.fault) != network.end();
    const bool drawn = random.unit() < (is_network ? std::max(chance, 0.35) : chance);
    if (!drawn) continue;
    if (quiet && !is_network) continue;
    plan.rate[range.fault] = quiet ? rate / 10 : rate;
  }
  for (const Fault fault : own_faults(plan.scenario)) {
    const Range& range = ranges[static_cast<std::size_t>(fault)];
    plan.rate[fault] = spread(random, std::sqrt(range.low * range.high), range.high);
  }
  for (std::size_t i = 0; i < faults_count && is_of_coordinators(plan.scenario); ++i) {
    const auto fault = static_cast<Fault>(i);
    const bool fits = std::find(of_coordinators.begin(), of_coordinators.end(), fault) != of_coordinators.end();
    if (!fits) plan.rate[fault] = 0;
  }
  // A plain worker's conditions name no epoch: nobody may tamper with its rows, or nothing could be promised.
  if (plan.plain_workers > 0) plan.rate[Fault::tamper] = 0;
}

/// In every second seed the margin is below the skew, far or just, and the skew up to a fifth of the lease. Not
/// beside plain workers: they wait for no skew, so that against them the margin has to do alone. With a generator of
/// its own: what else the seed draws stays as it is.
void draw_margin(LeaseOptions& lease, std::uint64_t seed, bool plain_workers) {
  Random random(seed_of(seed, "margin"));
  if (random.below(2) == 0 || plain_workers) return;
  const auto lease_ns = static_cast<double>(lease.lease.count());
  const double skew = spread(random, 0.04, 0.2);
  lease.skew = Duration(static_cast<Duration::rep>(lease_ns * skew));
  lease.margin =
      std::max<Duration>(Duration(static_cast<Duration::rep>(lease_ns * spread(random, 0.005, skew * 0.95))), 1ms);
}

Duration pick(Random& random, std::initializer_list<Duration> choices) {
  return choices.begin()[random.below(choices.size())];
}

}  // namespace

std::string_view name_of(Scenario scenario) {
  return names[static_cast<std::size_t>(scenario)];
}

std::optional<Scenario> scenario_named(std::string_view name) {
  for (std::size_t i = 0; i < scenarios_count; ++i) {
    if (names[i] == name) return static_cast<Scenario>(i);
  }
  return std::nullopt;
}

Duration Plan::wall_error_most() const {
  if (!clocks_keep_promise()) return 5 * terms.lease;
  // Two clocks then differ by less than the skew; a millisecond each for rounding.
  return terms.skew / 2 - std::chrono::milliseconds(1);
}

double Plan::rate_error_most() const {
  if (!clocks_keep_promise()) return 0.5;
  // A belief that a slow clock draws out still ends before the lease does: that is what the margin is for (S4).
  const double covered = static_cast<double>(terms.margin.count()) / static_cast<double>(terms.lease.count());
  return std::min(0.03, 0.9 * covered);
}

Duration Plan::time_to_come_well() const {
  Duration time = 12 * terms.lease + 2 * wall_error_most() + drain_timeout + 4 * message_every;
  time += stream ? 6 * terms.reconcile_every : 0s;           // looks are rare, and rarer after failures
  time += 3min;                                              // opening, backoff, Retry-After
  if (on(Fault::refusal) || on(Fault::drop)) time += 21min;  // parked for 10 to 20 minutes
  // A monotonic clock that runs at half speed goes on doing so: to its process all that lasts twice as long.
  return clocks_keep_promise() ? time : 2 * time;
}

std::uint64_t seed_of(std::uint64_t seed, std::string_view part, std::uint64_t number) {
  std::uint64_t hash = 0xcbf29ce484222325U ^ seed;
  const auto add = [&](std::uint64_t value) {
    hash = (hash ^ value) * 0x9E3779B97F4A7C15U;
    hash ^= hash >> 29U;
  };
  for (const char character : part) add(static_cast<unsigned char>(character));
  add(number + 1);
  return hash;
}

Plan draw_plan(std::uint64_t seed, std::optional<Scenario> scenario, const Cuts& cuts) {
  Random random(seed_of(seed, "plan"));
  Plan plan;
  plan.seed = seed;
  // `reactive` was there last: drawn by itself, it takes a part of all seeds and leaves the others as they were.
  auto drawn = static_cast<Scenario>(random.below(static_cast<std::size_t>(Scenario::reactive)));
  if (Random(seed_of(seed, "reactive")).below(13) == 0) drawn = Scenario::reactive;
  // So do these.
  const std::uint64_t ticket = Random(seed_of(seed, "coordinators")).below(40);
  if (ticket < 5) drawn = ticket == 0 ? Scenario::coordinators_beyond : Scenario::coordinators;
  plan.scenario = scenario.value_or(drawn);
  plan.stream = plan.scenario == Scenario::reactive;

  LeaseOptions lease;
  lease.lease = pick(random, {3s, 10s, 20s, 20s, 60s});
  if (cuts.lease) lease.lease = *cuts.lease;
  draw_margin(lease, seed, plan.scenario == Scenario::plain);
  // So rare that what is taken within seconds was not found by looking.
  if (plan.stream) lease.reconcile_every = 4 * lease.lease;
  plan.terms = make_terms(lease).value();
  plan.duration = plan.terms.lease * static_cast<std::int64_t>(20 + random.below(60));
  plan.processes = 2 + random.below(5);
  plan.connections = static_cast<std::size_t>(spread(random, 3, 60));
  if (is_of_coordinators(plan.scenario)) plan.connections = 1 + plan.connections % 3;
  plan.stream_threads = random.below(4) == 0 ? 2 : 1;
  plan.plain_workers = plan.scenario == Scenario::plain ? 1 + random.below(3) : 0;
  plan.latency = pick(random, {500us, 2ms, 5ms, 30ms});
  plan.message_every = pick(random, {500ms, 2s, 10s, 30s});
  plan.change_feed = random.below(5) == 0;
  plan.drain_timeout = pick(random, {5s, 20s, 60s});
  plan.sink_patience = pick(random, {5s, 30s});
  // Often enough for all, though not for all without one; sometimes scarce.
  const std::size_t share = (plan.connections + plan.processes - 1) / plan.processes;
  plan.capacity = random.below(3) == 0 ? share + 1 : plan.connections + 10;
  if (cuts.processes) plan.processes = *cuts.processes;
  if (cuts.connections) plan.connections = *cuts.connections;
  if (plan.stream) plan.capacity = plan.connections + 10;
  if (cuts.processes || cuts.connections) plan.capacity = std::max(plan.capacity, plan.connections);
  if (cuts.duration) plan.duration = *cuts.duration;

  draw_faults(plan, random);
  for (const Fault fault : cuts.without) plan.rate[fault] = 0;
  return plan;
}

}  // namespace holdfast::sim
