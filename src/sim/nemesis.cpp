#include "sim/nemesis.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace holdfast::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::array timed{Fault::outage,       Fault::partition, Fault::rejection,      Fault::crash,
                           Fault::pause,        Fault::stall,     Fault::drain,          Fault::leave,
                           Fault::join,         Fault::wall_step, Fault::upstream_down,  Fault::sink_stall,
                           Fault::sink_failure, Fault::sink_full, Fault::stop_start,     Fault::edit,
                           Fault::remove_add,   Fault::tamper,    Fault::throttle_burst, Fault::stream_off};

}  // namespace

Nemesis::Nemesis(const Surroundings& around, People& people)
    : around_(around),
      world_(around.world),
      people_(people),
      random_(seed_of(world_.plan.seed, "nemesis")),
      weather_(world_, random_) {}

Nemesis::~Nemesis() = default;

void Nemesis::start() {
  processes_.resize(world_.plan.processes + 1);  // one place more, for those who join
  runs_.resize(processes_.size());
  for (std::size_t place = 0; place < world_.plan.processes; ++place) start_at(place);
  for (std::size_t place = 0; place < world_.plan.plain_workers; ++place) {
    plain_.push_back(std::make_unique<PlainWorker>(around_, place));
  }
  for (const Fault fault : timed) {
    if (world_.plan.on(fault)) next(fault);
  }
  if (world_.plan.scenario == Scenario::rolling) after(world_.plan.terms.lease * 2, [this] { rolling_restart(0); });
}

void Nemesis::after(Duration time, Task task) {
  weather_.after(time, std::move(task));
}

void Nemesis::next(Fault fault) {
  after(weather_.until_next(fault), [this, fault] {
    strike(fault);
    next(fault);
  });
}

Duration Nemesis::some_leases(double least, double most) {
  return weather_.some_leases(least, most);
}

void Nemesis::strike(Fault fault) {
  bury();
  if (strike_store(fault) || strike_people(fault)) return;
  std::vector<Process*> all;
  for (const auto& process : processes_) {
    if (process && !process->ended()) all.push_back(process.get());
  }
  if (fault == Fault::join) {
    for (std::size_t place = 0; place < processes_.size(); ++place) {
      if (processes_[place]) continue;
      world_.inject(fault);
      return start_at(place);
    }
    return;
  }
  if (all.empty()) return;
  world_.inject(fault);
  strike_process(fault, *all[random_.below(all.size())]);
}

bool Nemesis::strike_store(Fault fault) {
  if (weather_.strike(fault)) return true;
  if (fault == Fault::stream_off) {
    world_.inject(fault);
    around_.stream->turn(false);
    after(some_leases(0.1, 3), [this] { around_.stream->turn(true); });
    return true;
  }
  if (fault == Fault::upstream_down) {
    world_.inject(fault);
    world_.upstreams_down = true;
    after(some_leases(0.05, 2), [this] { world_.upstreams_down = false; });
    return true;
  }
  return false;
}

bool Nemesis::strike_people(Fault fault) {
  switch (fault) {
    case Fault::stop_start:
      people_.stop_or_start();
      return true;
    case Fault::edit:
      people_.edit();
      return true;
    case Fault::remove_add:
      people_.remove_or_add();
      return true;
    case Fault::tamper:
      people_.tamper();
      return true;
    default:
      return false;
  }
}

void Nemesis::strike_process(Fault fault, Process& process) {
  world_.note(Happening::Kind::fault, process.number(), -1, static_cast<std::int64_t>(fault));
  const std::size_t place = process.place();
  const std::uint64_t run = runs_[place];
  const auto undo = [this, place, run](void (*what)(Process&)) {
    return [this, place, run, what] {
      if (Process* const still = process_at(place, run)) what(*still);
    };
  };
  switch (fault) {
    case Fault::crash:
      processes_[place].reset();
      return replace(place, some_leases(0.01, 3));
    case Fault::pause:
      process.pause();
      return after(some_leases(0.05, 4), undo([](Process& it) { it.resume(); }));
    case Fault::stall:
      process.stall();
      return after(some_leases(0.05, 3), undo([](Process& it) { it.go_on(); }));
    case Fault::drain:
      process.drain();
      return replace(place, some_leases(0.01, 0.5));
    case Fault::leave:
      process.drain();
      return replace(place, some_leases(3, 20));
    case Fault::partition:
      process.partition(true);
      return after(some_leases(0.1, 4), undo([](Process& it) { it.partition(false); }));
    case Fault::rejection:
      process.reject(true);
      return after(some_leases(0.1, 3), undo([](Process& it) { it.reject(false); }));
    case Fault::wall_step:
      return step_clock(process);
    case Fault::sink_stall:
      process.sink().stall(true);
      return after(some_leases(0.05, 3), undo([](Process& it) { it.sink().stall(false); }));
    case Fault::sink_failure:
      process.sink().fail(true);
      return after(some_leases(0.05, 5), undo([](Process& it) { it.sink().fail(false); }));
    case Fault::sink_full:
      process.sink().fill(true);
      return after(some_leases(0.05, 2), undo([](Process& it) { it.sink().fill(false); }));
    default:
      return;
  }
}

void Nemesis::step_clock(Process& process) {
  const Duration most = world_.plan.wall_error_most();
  const Duration before = process.clock().error(world_.now());
  process.set_wall_error(random_.between(-most, most), (random_.unit() - 0.5) * 1e-3);
  const Duration step = process.clock().error(world_.now()) - before;
  if (std::max(step, -step) > world_.plan.terms.skew && around_.rules.believed_by(process.number()) > 0) {
    world_.marks.hit(Mark::clock_stepped_held);
  }
}

Process* Nemesis::process_at(std::size_t place, std::uint64_t run) const {
  return runs_[place] == run ? processes_[place].get() : nullptr;
}

void Nemesis::start_at(std::size_t place) {
  runs_[place] = ++last_run_;
  processes_[place] = std::make_unique<Process>(around_, place, last_run_);
}

/// What is there ends, by itself or not, and another one comes: sometimes while the old one is still at it.
void Nemesis::replace(std::size_t place, Duration time) {
  const std::uint64_t run = runs_[place];
  after(time, [this, place, run] {
    if (runs_[place] != run) return;
    Process* const old = processes_[place].get();
    if (old != nullptr && !old->ended()) return replace(place, world_.plan.terms.lease / 2);
    start_at(place);
  });
}

void Nemesis::bury() {
  for (auto& process : processes_) {
    if (process && process->ended()) process.reset();
  }
}

void Nemesis::rolling_restart(std::size_t place) {
  bury();
  if (Process* const process = processes_[place].get(); process != nullptr && !process->ended()) {
    world_.inject(Fault::drain);
    process->drain();
  }
  replace(place, some_leases(0.02, 0.3));
  const std::size_t following = (place + 1) % world_.plan.processes;
  after(some_leases(0.5, 2), [this, following] { rolling_restart(following); });
}

void Nemesis::make_well() {
  world_.calm = true;
  world_.outage = false;
  world_.throttled_share = 0;
  world_.upstreams_down = false;
  if (around_.stream != nullptr) around_.stream->turn(true);
  bury();
  for (std::size_t place = 0; place < processes_.size(); ++place) {
    if (!processes_[place]) start_at(place);
    Process& process = *processes_[place];
    process.resume();
    process.go_on();
    process.partition(false);
    process.reject(false);
    process.set_wall_error(Duration::zero(), 0);
    process.sink().stall(false);
    process.sink().fail(false);
    process.sink().fill(false);
  }
}

void Nemesis::keep_running() {
  bury();
  for (std::size_t place = 0; place < processes_.size(); ++place) {
    if (!processes_[place]) start_at(place);
  }
}

const Process* Nemesis::drain_one() {
  bury();
  std::vector<Process*> all;
  for (const auto& process : processes_) {
    if (process && !process->draining()) all.push_back(process.get());
  }
  if (all.size() < 2) return nullptr;
  Process* const chosen = all[random_.below(all.size())];
  chosen->drain();
  return chosen;
}

void Nemesis::drain_all() {
  for (const auto& process : processes_) {
    if (process) process->drain();
  }
  for (const auto& plain : plain_) plain->retire();
}

}  // namespace holdfast::sim
