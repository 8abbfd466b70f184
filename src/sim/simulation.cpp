#include "sim/simulation.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "sim/coord/simulation.hpp"
#include "sim/nemesis.hpp"
#include "sim/people.hpp"

namespace holdfast::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t steps_between_looks = 4096;
/// A stream's usual lateness of 0.9 s, a poke, a look, a claim, each with its jitter and on a slow network, and a
/// clock that is a little slow; where looks alone find a row it takes half a lease and more.
constexpr Duration reaction_most = 4s;

class Simulation {
 public:
  Simulation(const Plan& plan, std::size_t tail_most, bool judge_history)
      : world_(plan, /*keeps_trace=*/tail_most > 0),
        rules_(world_),
        table_(std::make_shared<SimTable>()),
        upstreams_(make_upstreams()),
        recorder_(judge_history ? std::make_unique<Recorder>() : nullptr),
        stream_(plan.stream ? std::make_unique<SimStream>(world_) : nullptr),
        post_(plan.stream ? std::make_unique<SimPost>(world_) : nullptr),
        around_{world_, rules_, table_, upstreams_, recorder_.get(), stream_.get(), post_.get()},
        people_(around_),
        nemesis_(around_, people_),
        index_random_(seed_of(plan.seed, "index")),
        tail_most_(tail_most) {
    table_->watch([this](const Update& update, const RowReply& reply, const Origin& origin) {
      rules_.carried_out(update, reply, origin);
      if (stream_ && reply.ok()) stream_->wrote(*reply.value);
      if (recorder_) record(update, reply, origin);
    });
    if (plan.on(Fault::stale_index)) table_->let_index_lag([this] { return world_.index_lag(index_random_); });
  }

  Result run() {
    people_.add_all();
    nemesis_.start();
    look_at_duties();
    if (run_until(Timeline::start + world_.plan.duration) && come_well() && react()) all_drain();
    if (recorder_ && !rules_.violation()) {
      if (const Verdict verdict = recorder_->judge(); !verdict.good()) rules_.broken("history", verdict.words, -1);
    }
    return result();
  }

 private:
  std::vector<Upstream> make_upstreams() {
    std::vector<Upstream> all;
    for (std::size_t i = 0; i < world_.plan.connections; ++i) all.emplace_back(world_, static_cast<std::int32_t>(i));
    return all;
  }
  void record(const Update& update, const RowReply& reply, const Origin& origin) {
    if (origin.process < 0) recorder_->carried_out("people", update, reply, world_.now());
    if (origin.again) recorder_->copied(rules_.process(origin.process).owner, update, origin.sent_truth);
  }

  /// False where a rule was broken.
  bool run_until(Instant end) {
    while (!rules_.violation()) {
      if (!world_.timeline.step(end)) break;
      if (++looked_ % steps_between_looks == 0) look();
    }
    look();
    return !rules_.violation();
  }
  void look() {
    for (const auto& process : nemesis_.processes()) {
      if (process) process->check_bounds();
    }
  }

  void look_at_duties() {
    rules_.look_at_duties();
    world_.loop.call_after(world_.plan.terms.lease / 8, [this] { look_at_duties(); });
  }

  /// Liveness: without faults everything comes right within a stated time.
  bool come_well() {
    nemesis_.make_well();
    const Instant from = last_fault_ = world_.now();
    const Instant end = from + world_.plan.time_to_come_well();
    const Duration slice = world_.plan.terms.lease / 4;
    while (run_until(std::min(end, world_.now() + slice))) {
      nemesis_.keep_running();
      const std::optional<std::int32_t> wrong = first_wrong(from);
      if (wrong) well_after_ = world_.now() - from;
      // Not before the last request that is late by three leases has arrived.
      if (!wrong && world_.now() >= from + 4 * world_.plan.terms.lease) return true;
      if (world_.now() >= end) {
        if (wrong) rules_.broken("liveness", describe_wrong(*wrong, from), *wrong);
        return !wrong;
      }
    }
    return false;
  }
  [[nodiscard]] bool is_right(std::int32_t connection, Instant since) const {
    const Rules::Row& row = rules_.row(connection);
    if (row.state != state::started) {
      // Of an owner that died nobody takes it away: its lease is over, that is all.
      const std::int64_t now = world_.loop.wall().time_since_epoch().count();
      return (row.owner.empty() || row.expires_at < now) && rules_.believer(connection) < 0;
    }
    return !row.owner.empty() && rules_.flowed_at(connection) > since;
  }
  [[nodiscard]] std::optional<std::int32_t> first_wrong(Instant since) const {
    for (std::size_t i = 0; i < upstreams_.size(); ++i) {
      if (!is_right(static_cast<std::int32_t>(i), since)) return static_cast<std::int32_t>(i);
    }
    return std::nullopt;
  }
  [[nodiscard]] std::string describe_wrong(std::int32_t connection, Instant since) const {
    const Rules::Row& row = rules_.row(connection);
    const double seconds = std::chrono::duration<double>(world_.now() - since).count();
    return connection_name(connection) + " is " + row.state + ", owned by '" + row.owner + "' and " +
           (rules_.flowed_at(connection) > since ? "flows, " : "does not flow, ") + std::to_string(seconds) +
           " s after the last fault";
  }

  /// Where one reads the changes for all: what becomes free is taken long before anybody would look for it.
  bool react() {
    if (!stream_) return true;
    for (std::size_t i = 0; i < std::min<std::size_t>(3, upstreams_.size()); ++i) {
      const auto connection = static_cast<std::int32_t>(i);
      const auto owned = [&] { return !rules_.row(connection).owner.empty(); };
      if (rules_.row(connection).state != state::started) continue;
      people_.stop_or_start(connection);
      if (!run_while(owned, 2 * world_.plan.terms.lease)) return false;
      if (owned()) continue;  // of an owner that died as it was stopped: nobody takes that away
      people_.stop_or_start(connection);
      if (!run_while([&] { return !owned(); }, reaction_most)) return false;
      if (owned()) continue;
      rules_.broken("liveness", connection_name(connection) + " was started and nobody took it within seconds",
                    connection);
      return false;
    }
    return reacts_to_drain();
  }
  bool reacts_to_drain() {
    const Process* const leaving = nemesis_.drain_one();
    if (leaving == nullptr) return true;
    if (!run_while([&] { return !leaving->ended(); }, world_.plan.drain_timeout + world_.plan.terms.lease))
      return false;
    const auto first_orphan = [&] {
      for (std::size_t i = 0; i < upstreams_.size(); ++i) {
        const Rules::Row& row = rules_.row(static_cast<std::int32_t>(i));
        if (row.state == state::started && row.owner.empty()) return static_cast<std::int32_t>(i);
      }
      return -1;
    };
    if (!run_while([&] { return first_orphan() >= 0; }, reaction_most)) return false;
    if (first_orphan() < 0) return true;
    rules_.broken("liveness", connection_name(first_orphan()) + " was given back and nobody took it within seconds",
                  first_orphan());
    return false;
  }
  /// False where a rule was broken.
  template <class Predicate>
  bool run_while(Predicate holds, Duration most) {
    const Instant end = world_.now() + most;
    while (holds() && world_.now() < end) {
      if (!run_until(std::min(end, world_.now() + 50ms))) return false;
    }
    return true;
  }

  /// S11: with nothing in its way, a drain gives everything back. Who was asked to drain while there were faults, and
  /// is still at it, had something in its way.
  void all_drain() {
    const auto asked = [this](std::int16_t process) { return rules_.process(process).draining_since > last_fault_; };
    std::vector<std::int16_t> believers;
    for (std::size_t i = 0; i < upstreams_.size(); ++i) {
      believers.push_back(rules_.believer(static_cast<std::int32_t>(i)));
    }
    nemesis_.drain_all();
    if (!run_until(world_.now() + world_.plan.drain_timeout + world_.plan.terms.lease)) return;
    for (const auto& process : nemesis_.processes()) {
      if (!process || !asked(process->number())) continue;
      if (!process->ended() || process->worker().report().end != Report::End::drained) {
        return rules_.broken("S11",
                             "p" + std::to_string(process->number()) + " was drained with nothing in its way, " +
                                 "and did not give everything back",
                             -1);
      }
    }
    for (std::size_t i = 0; i < upstreams_.size(); ++i) {
      if (believers[i] < 0 || !asked(believers[i])) continue;
      const std::string& owner = rules_.process(believers[i]).owner;
      if (rules_.row(static_cast<std::int32_t>(i)).owner != owner) {
        rules_.gave_back(believers[i], static_cast<std::int32_t>(i));
        continue;
      }
      return rules_.broken("S11", owner + " was drained and still owns the row", static_cast<std::int32_t>(i));
    }
  }

  Result result() {
    Result result = result_of(world_, rules_.violation(), well_after_, tail_most_);
    if (recorder_) result.recorded = recorder_->history().size();
    nemesis_.end();
    result.marks = world_.marks;
    return result;
  }

  World world_;
  Rules rules_;
  std::shared_ptr<SimTable> table_;
  std::vector<Upstream> upstreams_;
  std::unique_ptr<Recorder> recorder_;
  std::unique_ptr<SimStream> stream_;
  std::unique_ptr<SimPost> post_;
  Surroundings around_;
  People people_;
  Nemesis nemesis_;
  Random index_random_;
  const std::size_t tail_most_;
  std::uint64_t looked_ = 0;
  Instant last_fault_{};
  Duration well_after_{};
};

}  // namespace

Result simulate(const Plan& plan, std::size_t tail_most, bool judge_history) {
  if (is_of_coordinators(plan.scenario)) return coordinated::simulate(plan, tail_most);
  return Simulation(plan, tail_most, judge_history).run();
}

}  // namespace holdfast::sim
