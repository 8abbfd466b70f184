#include "sim/process.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "sim/resource.hpp"

namespace holdfast::sim {
namespace {

using namespace std::chrono_literals;

std::string incarnation_of(Random& random) {
  char text[16];
  std::snprintf(text, sizeof text, "%08x", static_cast<unsigned>(random.next() & 0xFFFFFFFFU));
  return text;
}

}  // namespace

Process::Process(const Surroundings& around, std::size_t place, std::uint64_t run)
    : world_(around.world),
      rules_(around.rules),
      recorder_(around.recorder),
      place_(place),
      random_(seed_of(world_.plan.seed, "process", run)),
      network_(world_, random_),
      log_(runtime::LogLevel::info, [this](runtime::LogLevel, std::string_view line) { heard(line); }),
      control_(world_.timeline, clock_, random_.next()),
      sink_loop_(world_.timeline, clock_, random_.next()) {
  clock_ = draw_clock(world_, random_);
  if (world_.plan.on(Fault::wall_step)) {
    const Duration most = world_.plan.wall_error_most();
    set_wall_error(random_.between(-most, most), (random_.unit() - 0.5) * 1e-4);
  }
  const Plan& plan = world_.plan;
  worker::WorkerOptions options;
  options.name = "w" + std::to_string(place);
  options.incarnation = incarnation_of(random_);
  options.terms = plan.terms;
  options.max_connections = plan.capacity;
  options.drain_timeout = plan.drain_timeout;
  options.sink_patience = plan.sink_patience;
  options.sink_failure = [this] { return sink_->failure(); };

  number_ = rules_.add_process({.owner = options.name + "#" + options.incarnation, .clock = &clock_});
  sink_ = std::make_unique<SimSink>(world_, rules_, sink_loop_, number_, random_.next());
  std::vector<Loop*> homes;
  for (std::size_t i = 0; i < plan.stream_threads; ++i) {
    Thread thread;
    thread.loop = std::make_unique<NodeLoop>(world_.timeline, clock_, random_.next());
    thread.connector =
        std::make_unique<SimConnector>(world_, rules_, around.upstreams, *thread.loop, number_, random_.next());
    thread.group = std::make_unique<worker::StreamGroup>(*thread.loop, *thread.connector, *sink_);
    sink_->attach(*thread.connector);
    homes.push_back(thread.loop.get());
    threads_.push_back(std::move(thread));
  }
  sink_->on_progress([this] {
    for (const Thread& thread : threads_) thread.group->sink_progressed();
  });
  store_ = std::make_unique<SimStore>(around.table, control_, world_.loop, number_, hooks(),
                                      plan.change_feed && !plan.stream, around.stream);
  if (around.post != nullptr) {
    pokes_ = around.post->open(
        number_, control_, [this] { return network_.partitioned(); },
        [this](std::string_view text) {
          if (text.starts_with("holdfast rows")) rules_.poked(number_);
        });
    options.pokes = pokes_.get();
    options.poke_token = random_.attempt().to_string();
  }
  worker_ = std::make_unique<worker::Worker>(
      std::move(options), control_, std::move(homes), *store_,
      [this](const Row& row, Loop& loop) { return make_resource(row, loop); }, log_,
      [this] { ended_ = rules_.process(number_).ended = true; });
  rules_.process(number_).reads_changes = [this] { return worker_->reads_changes(); };
  world_.note(Happening::Kind::process, number_, -1, 1);
  control_.post([this] { worker_->start(); });
}

Process::~Process() {
  world_.note(Happening::Kind::process, number_, -1, ended_ ? 3 : 4);
  report_marks();
  if (draining() && !ended_) world_.marks.hit(Mark::died_draining);
  if (!ended_ && worker_->reads_changes()) world_.marks.hit(Mark::reader_died);
  sink_->on_progress({});
  if (!ended_) sink_->die();
  rules_.died(number_);
  worker_.reset();
  for (Thread& thread : threads_) thread.loop->clear();
  control_.clear();
  sink_loop_.clear();
  for (Thread& thread : threads_) thread.loop->clear();
}

std::unique_ptr<Resource> Process::make_resource(const Row& row, Loop& loop) {
  (void)row;
  for (const Thread& thread : threads_) {
    if (thread.loop.get() != &loop) continue;
    return std::make_unique<WatchedResource>(thread.group->make_stream(), world_, rules_, loop, number_);
  }
  return nullptr;
}

void Process::drain() {
  if (draining() || ended_) return;
  world_.note(Happening::Kind::process, number_, -1, 2);
  control_.post([this] {
    if (worker_->draining()) return;
    rules_.process(number_).draining_since = world_.now();
    worker_->drain();
  });
}

void Process::pause() {
  if (std::exchange(paused_, true)) return;
  paused_at_ = world_.now();
  stands_still(true, true);
  believed_when_paused_ = rules_.believed_by(number_);
  control_.pause();
  sink_loop_.pause();
  for (const Thread& thread : threads_) thread.loop->pause();
}

void Process::resume() {
  if (!std::exchange(paused_, false)) return;
  if (believed_when_paused_ > 0) {
    const bool lost = rules_.believed_by(number_) < believed_when_paused_;
    world_.marks.hit(lost ? Mark::pause_over_lease : Mark::woke_without_loss);
  }
  stands_still(false, false);
  // Threads wake in any order, and find timers and arrivals in any order.
  std::vector<NodeLoop*> loops{&control_, &sink_loop_};
  for (const Thread& thread : threads_) loops.push_back(thread.loop.get());
  for (std::size_t i = loops.size(); i > 1; --i) std::swap(loops[i - 1], loops[random_.below(i)]);
  for (NodeLoop* loop : loops) loop->resume(random_.below(2) == 0);
}

void Process::stall() {
  if (paused_) return;
  // With a generator of its own: what else the process draws stays as it is.
  Random random(seed_of(world_.plan.seed, "stall", 1000 * ++stalls_ + static_cast<std::uint64_t>(number_)));
  if (random.below(3) == 0) {
    control_.pause();
    return stands_still(true, rules_.process(number_).streams_stand_still);
  }
  for (const Thread& thread : threads_) thread.loop->pause();
  stands_still(rules_.process(number_).control_stands_still, true);
}

void Process::go_on() {
  if (paused_) return;
  control_.resume(random_.below(2) == 0);
  for (const Thread& thread : threads_) thread.loop->resume(random_.below(2) == 0);
  stands_still(false, false);
}

void Process::stands_still(bool control, bool streams) {
  Known& known = rules_.process(number_);
  known.control_stands_still = control;
  known.streams_stand_still = streams;
  if (!control && !streams) known.stood_still_until = world_.now();
}

void Process::set_wall_error(Duration error, double drift) {
  clock_.set_wall_error(world_.now(), error, drift, world_.plan.wall_error_most());
}

void Process::heard(std::string_view line) {
  if (said_.size() < 200) said_.emplace_back(line);
  const auto says = [&](std::string_view words) { return line.find(words) != std::string_view::npos; };
  if (says("no longer reads the table's changes") && draining()) world_.marks.hit(Mark::reader_left);
  if (says("did not stop in time")) world_.marks.hit(Mark::cut_off);
  if (says("belong to nobody and this worker is full")) world_.marks.hit(Mark::full_and_unowned);
  if (says("still failing, so everything is given back")) world_.marks.hit(Mark::sink_released_all);
}

void Process::report_marks() {
  const Report report = worker_->report();
  if (report.pokes_heard > 0) world_.marks.hit(Mark::poke_heard);
  if (report.pokes_refused > 0) world_.marks.hit(Mark::poke_refused);
  if (ended_ && report.end == Report::End::drained) world_.marks.hit(Mark::drained);
  if (ended_ && report.end == Report::End::cut) world_.marks.hit(Mark::drain_cut);
  for (const Failover& failover : report.failovers) {
    world_.marks.hit(failover.kind == Failover::Kind::crash ? Mark::failover_crash : Mark::failover_graceful);
  }
}

void Process::check_bounds() {
  const std::size_t pending = store_->pending();
  const std::size_t most = 256 + 8;  // writes of leases, one look, one worker row, what the change feed takes
  if (pending > most) {
    rules_.broken("S10", "p" + std::to_string(number_) + " has " + std::to_string(pending) + " requests under way",
                  -1);
  }
  std::size_t tasks = control_.waiting() + sink_loop_.waiting();
  for (const Thread& thread : threads_) tasks += thread.loop->waiting();
  const std::size_t tasks_most = 300 + 12 * world_.plan.connections + 2 * pending;
  if (!paused_ && tasks > tasks_most) {
    rules_.broken("S10",
                  "p" + std::to_string(number_) + " has " + std::to_string(tasks) + " timers and tasks waiting", -1);
  }
  check_drain();
}

/// S11: whatever its resources, its sink and the store do, a drain has its limit.
void Process::check_drain() {
  const Known& known = rules_.process(number_);
  if (paused_ || ended_ || !known.draining_since) return;
  const Instant since = std::max(*known.draining_since, known.stood_still_until);
  const double slowest = world_.plan.clocks_keep_promise() ? 1.1 : 2.5;
  const Duration passed = world_.now() - since - 2s;
  if (std::chrono::duration<double>(passed) > std::chrono::duration<double>(world_.plan.drain_timeout) * slowest) {
    rules_.broken("S11", "p" + std::to_string(number_) + " is still draining after its limit", -1);
  }
}

// Its way to the table.

SimStore::Hooks Process::hooks() {
  SimStore::Hooks hooks;
  hooks.judge = [this](const store::Request& request) { return network_.judge(request); };
  hooks.reachable = [&world = world_] { return !world.outage; };
  hooks.asked = [this](const store::Request& request) {
    if (const auto* update = std::get_if<Update>(&request)) rules_.asked(number_, *update);
    if (const auto* query = std::get_if<QueryDue>(&request)) rules_.looked(number_, *query, control_.instant());
    if (recorder_ != nullptr) recorder_->asked(rules_.process(number_).owner, request, world_.now());
  };
  // Kept by what is under way when this process has died.
  hooks.answered = [&rules = rules_, &world = world_, recorder = recorder_, number = number_](
                       const store::Request& request, const store::Answer& answer, bool late) {
    const auto* update = std::get_if<Update>(&request);
    if (update != nullptr) rules.answered(number, *update, std::get<RowReply>(answer), late);
    if (recorder != nullptr && !late) recorder->answered(request, answer, world.now());
  };
  return hooks;
}

}  // namespace holdfast::sim
