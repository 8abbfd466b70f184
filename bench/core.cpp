#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/keeper.hpp"
#include "harness.hpp"

namespace holdfast::bench {
namespace {

using namespace std::chrono_literals;

/// A Keeper that holds all its leases, and a store that applies everything one millisecond later.
class Fleetful {
 public:
  explicit Fleetful(std::size_t leases)
      : keeper_(WorkerId("bench#1"), *make_terms({.lease = 20s}), {leases, 4096}, random_) {
    row_.key = "CONN#any";
    row_.attributes = {{std::string(attribute::desired_state), Value(state::started)},
                       {std::string(attribute::owner), Value("bench#1")}};
    for (std::size_t i = 0; i < leases; ++i) {
      Candidate candidate;
      candidate.key = "CONN#feed-" + std::to_string(i);
      keeper_.claim(candidate, now_);
    }
    run(8s);  // claims, and the first renewals
  }

  /// Virtual time passes; gives the renewals that were confirmed in it.
  std::uint64_t run(Duration length) {
    const std::uint64_t before = keeper_.counters().renewals;
    for (const Instant end = now_.instant + length; now_.instant < end; now_.instant += 1ms, now_.wall += 1ms) {
      for (const auto& [slot, id] : flying_) keeper_.on_write(slot, id, Outcome::applied, &row_, now_);
      flying_.clear();
      while (const auto action = keeper_.poll(now_)) {
        if (action->kind == Action::Kind::write) flying_.emplace_back(action->slot, action->write_id);
        keep(*action);
      }
      keep(keeper_.next());
    }
    return keeper_.counters().renewals - before;
  }

 private:
  Random random_{1};
  Now now_{Instant(1000s), WallTime(std::chrono::milliseconds(1'700'000'000'000))};
  Keeper keeper_;
  Row row_;
  std::vector<std::pair<Slot, WriteId>> flying_;
};

void core(Run& run) {
  Fleetful many(run.quick() ? 10'000 : 100'000);
  Fleetful few(1'000);
  const auto renewing = [](Fleetful& fleet, Duration length) {
    return [&fleet, length] {
      std::uint64_t renewals = 0;
      const double cpu = process_cpu_s();
      const double wall = wall_s();
      renewals = fleet.run(length);
      return figures(static_cast<double>(renewals), process_cpu_s() - cpu, wall_s() - wall);
    };
  };
  run.compare({.name = "renewals",
               .subjects = {{"100,000 leases", renewing(many, run.quick() ? 5s : 15s)},
                            {"1,000 leases", renewing(few, run.quick() ? 50s : 500s)}},
               .ratios = {{.subject = "100,000 leases", .figure = "per_core_second"},
                          {.subject = "100,000 leases", .to = "1,000 leases", .figure = "per_core_second"}}});
}

const Register registered{
    "core", "renewals by the Keeper at 100,000 leases beside 1,000",
    "One Keeper on virtual time in steps of one millisecond, lease 20 s, renewed every 5 s; every write is applied "
    "one "
    "step later. Counted are confirmed renewals: the write handed out, its answer taken in, the belief extended. No "
    "store and no rendering of the write: what a renewal costs in the rules alone.",
    core};

}  // namespace
}  // namespace holdfast::bench
