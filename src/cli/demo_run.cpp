#include "cli/demo_run.hpp"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <functional>
#include <map>
#include <optional>

#include "cli/connections.hpp"
#include "cli/demo_processes.hpp"
#include "cli/output.hpp"
#include "cli/sink_files.hpp"
#include "cli/store_session.hpp"
#include "holdfast/lease.hpp"
#include "runtime/units.hpp"
#include "store/json.hpp"
#include "worker/stream_options.hpp"

namespace holdfast::cli {

namespace {

using namespace std::chrono_literals;

constexpr Duration tick = 200ms;
constexpr Duration crash_allowance = 1500ms;  // beyond the lease, for orphans to be found and connected

Duration part(Duration whole, double fraction) {
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double, std::nano>(static_cast<double>(whole.count()) * fraction));
}

tl::unexpected<Error> pass(const Error& error) {
  return tl::unexpected<Error>(error);
}

std::string plural(std::size_t count, const std::string& what) {
  return std::to_string(count) + ' ' + what + (count == 1 ? "" : "s");
}

class Demo {
 public:
  Demo(const DemoOptions& options, DemoView& view, DemoFolder folder);

  Result<DemoResult> run();

 private:
  struct Worker {
    std::string name;
    runtime::Child child;
    enum class State { running, killed, stopping, stopped } state = State::running;
    std::size_t held = 0;
  };
  // A worker that went, and what became of its connections.
  struct Gone {
    DemoFailover failover;
    std::int64_t at_ms = 0;
    bool over = false;
  };

  Result<void> prepare();
  Result<void> check_table_is_empty();
  Result<void> start_feed();
  Result<void> add_connections(const std::string& address);
  Result<void> start_worker();
  Result<void> play();
  Result<void> settle();
  Result<void> await_registered();
  Result<void> act(DemoAct::Kind kind);
  Result<void> finish();

  Result<void> until(const std::function<bool()>& condition, Duration limit, const std::string& what);
  Result<void> step();
  Result<void> look_at_processes();
  Result<void> look_at_files();
  Result<void> look_at_rows();
  void look_at_failovers();
  Error ended_unexpectedly(const std::string& name, const runtime::Exit& exit);
  Worker* busiest();
  [[nodiscard]] Duration since_start() const { return started_ ? store_->instant() - *started_ : Duration::zero(); }
  void say(const std::string& words) { view_.event(since_start(), words); }
  [[nodiscard]] std::string holders() const;
  [[nodiscard]] DemoPicture picture() const;

  const DemoOptions options_;
  DemoView& view_;
  DemoFolder folder_;  // outlives the processes that write into it
  const std::int64_t messages_;
  std::vector<std::string> ids_;
  DeliveryHistory history_;
  SinkFiles files_;
  std::map<std::string, std::string, std::less<>> owners_;  // by worker, as files name it
  std::unique_ptr<StoreSession> store_;
  std::string store_url_;
  runtime::Child feed_;
  std::vector<Worker> workers_;
  std::vector<Gone> gone_;
  std::size_t unowned_ = 0;
  bool stopping_all_ = false;       // nobody owns anything then, and nobody should
  std::optional<Instant> started_;  // the first message
};

std::vector<std::string> stream_names(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back("s" + std::to_string(i));
  return names;
}

std::int64_t messages_per_stream(const DemoOptions& options) {
  return std::max<std::int64_t>(
      1, static_cast<std::int64_t>(std::llround(options.rate * static_cast<double>(options.seconds.count()) / 1e9)));
}

Demo::Demo(const DemoOptions& options, DemoView& view, DemoFolder folder)
    : options_(options),
      view_(view),
      folder_(std::move(folder)),
      messages_(messages_per_stream(options)),
      ids_(stream_names(options.connections)),
      history_(ids_, messages_),
      files_(folder_.path() + "/messages"),
      store_url_(options.store.empty() ? "sqlite:" + folder_.path() + "/holdfast.db" : options.store) {}

Result<DemoResult> Demo::run() {
  for (const auto stage : {&Demo::prepare, &Demo::play, &Demo::finish}) {
    const auto done = (this->*stage)();
    view_.clear();
    if (!done) return pass(done.error());
  }
  DemoResult result{.verdict = history_.verdict(), .failovers = {}, .workers = workers_.size()};
  for (Gone& each : gone_) {
    each.failover.measured = history_.failover(owners_[each.failover.worker], each.at_ms);
    result.failovers.push_back(each.failover);
  }
  return result;
}

Result<void> Demo::prepare() {
  view_.line(plural(options_.workers, "worker") + " and " + plural(options_.connections, "connection") +
             " to a feed: processes of this machine that share " +
             (options_.store.empty() ? "one SQLite file." : "the table " + options_.store + '.'));
  auto store = StoreSession::open(store_url_, StoreSession::Create::always);
  if (!store) return pass(store.error());
  store_ = std::move(*store);
  if (auto empty = check_table_is_empty(); !empty) return empty;
  store_->catch_signals();
  if (auto started = start_feed(); !started) return started;
  for (std::size_t i = 0; i < options_.workers; ++i) {
    if (auto started = start_worker(); !started) return started;
  }
  if (auto done = await_registered(); !done) return done;
  // The feed begins to speak when all streams are listened to: from then on the demo counts.
  const auto address = last_lines(folder_.log_of("feed"), 1).front();
  if (auto done = add_connections(address.substr(address.find("ws://"))); !done) return done;
  const auto speaking = [this] { return history_.delivered() > 0; };
  if (auto done = until(speaking, options_.lease * 2 + 30s, "no message arrived"); !done) return done;
  say(plural(options_.connections, "connection") + " up, one owner each: " + holders());
  return {};
}

// Workers that are real would take the demo's connections, and the demo's workers theirs.
Result<void> Demo::check_table_is_empty() {
  for (const std::string_view state : {state::started, state::stopped, state::worker}) {
    const auto rows = store_->all(state);
    if (!rows) return pass(rows.error());
    if (!rows->empty()) {
      return fail(Code::usage, "--store names a table that is in use (it has " + plural(rows->size(), "row") +
                                   " in state " + std::string(state) +
                                   "): the demo needs one of its own, so name a new one");
    }
  }
  return {};
}

Result<void> Demo::start_feed() {
  auto child = start_self(folder_, "feed",
                          {"feed", "--port", "0", "--streams", std::to_string(options_.connections), "--rate",
                           std::to_string(options_.rate), "--history", std::to_string(messages_), "--messages",
                           std::to_string(messages_), "--begin-with", std::to_string(options_.connections)});
  if (!child) return pass(child.error());
  feed_ = std::move(*child);
  const auto listening = [this] {
    const auto lines = last_lines(folder_.log_of("feed"), 1);
    return !lines.empty() && lines.front().find("ws://") != std::string::npos;
  };
  return until(listening, 20s, "the feed did not start");
}

Result<void> Demo::add_connections(const std::string& address) {
  worker::StreamOptions stream;
  stream.resume_query = "since";
  stream.seq_pointer = "/seq";
  std::vector<Update> updates;
  const std::string base = address.substr(0, address.rfind('/') + 1);
  for (const std::string& id : ids_) {
    const auto url = ws::parse_url(base + id);
    if (!url) return pass(url.error());
    stream.url = *url;
    updates.push_back(add_connection(id, stream.to_row(), false, store_->wall()));
  }
  // A few at a time: who looks first takes what it sees, so that all at once would go to one or two.
  const std::size_t share = std::max<std::size_t>(updates.size() / (options_.workers * 5), 1);
  for (std::size_t at = 0; at < updates.size(); at += share) {
    const auto end = std::min(at + share, updates.size());
    const std::vector<Update> some(updates.begin() + static_cast<std::ptrdiff_t>(at),
                                   updates.begin() + static_cast<std::ptrdiff_t>(end));
    auto done = store_->update_all(some, [](std::size_t, const StoreSession::Written&) {});
    if (!done) return done;
    if (!store_->wait(100ms)) return fail(Code::unavailable, "interrupted: all processes were ended");
  }
  return {};
}

Result<void> Demo::start_worker() {
  const std::string name = "w" + std::to_string(workers_.size() + 1);
  auto child = start_self(
      folder_, name,
      {"worker", "--store", store_url_, "--sink", "ndjson:" + folder_.path() + "/messages", "--id", name,
       "--max-connections", std::to_string(demo_capacity(options_)), "--lease",
       runtime::write_duration(options_.lease), "--report", folder_.path() + "/reports/" + name + ".json"});
  if (!child) return pass(child.error());
  workers_.push_back({.name = name, .child = std::move(*child)});
  return {};
}

Result<void> Demo::play() {
  started_ = store_->instant();
  for (const DemoAct& next : demo_plan(options_)) {
    const auto due = [&] { return since_start() >= next.at; };
    if (auto done = until(due, next.at + tick * 2, "time stood still"); !done) return done;
    if (next.kind != DemoAct::Kind::start) {
      if (auto done = settle(); !done) return done;
    }
    if (auto done = act(next.kind); !done) return done;
  }
  // The rest of the messages, as long as any still comes.
  std::int64_t last = -1;
  Instant since = store_->instant();
  const auto arrived = [&] {
    if (history_.delivered() != last) {
      last = history_.delivered();
      since = store_->instant();
    }
    const bool stuck = store_->instant() - since > options_.lease * 2 + 10s;
    return (history_.complete() && since_start() >= options_.seconds) || stuck;
  };
  return until(arrived, options_.seconds + options_.lease * 4 + 60s, "the messages did not come to an end");
}

// Waits for the last failover to be over. Not over in time is no fault here: the verdict will say it.
Result<void> Demo::settle() {
  const Instant limit = store_->instant() + options_.lease + 10s;
  const auto over = [this, limit] {
    return store_->instant() > limit ||
           std::all_of(gone_.begin(), gone_.end(), [](const Gone& gone) { return gone.over; });
  };
  return until(over, options_.lease + 20s, "time stood still");
}

// A worker that has its row in the table can be stopped in order, too.
Result<void> Demo::await_registered() {
  const auto all_there = [this] {
    return std::all_of(workers_.begin(), workers_.end(), [this](const Worker& worker) {
      if (worker.state != Worker::State::running) return true;
      const auto row = store_->get(std::string(key_prefix::worker) + worker.name);
      return row && row->has_value();
    });
  };
  return until(all_there, 20s, "a worker did not register");
}

Result<void> Demo::act(DemoAct::Kind kind) {
  if (kind == DemoAct::Kind::start) {
    if (auto started = start_worker(); !started) return started;
    say("start " + workers_.back().name);
    return await_registered();
  }
  Worker* victim = busiest();
  if (victim == nullptr) return fail(Code::internal, "no worker holds anything, so there is none to stop");
  const bool crash = kind == DemoAct::Kind::crash;
  const std::string held = ", which holds " + plural(victim->held, "connection");
  gone_.push_back({.failover = {.kind = crash ? "crash" : "graceful", .worker = victim->name, .measured = {}},
                   .at_ms = store_->wall().time_since_epoch().count()});
  victim->state = crash ? Worker::State::killed : Worker::State::stopping;
  victim->child.kill(crash ? SIGKILL : SIGTERM);
  if (crash) victim->child.wait(5s);
  say((crash ? "SIGKILL " : "SIGTERM ") + victim->name + held);
  return {};
}

Demo::Worker* Demo::busiest() {
  Worker* best = nullptr;
  for (Worker& worker : workers_) {
    if (worker.state != Worker::State::running || worker.held == 0) continue;
    if (best == nullptr || worker.held > best->held) best = &worker;
  }
  return best;
}

Result<void> Demo::finish() {
  say("stop all");
  stopping_all_ = true;
  for (Worker& worker : workers_) {
    if (worker.state != Worker::State::running) continue;
    worker.state = Worker::State::stopping;
    worker.child.kill(SIGTERM);
  }
  const auto stopped = [this] {
    return std::none_of(workers_.begin(), workers_.end(),
                        [](const Worker& worker) { return worker.state == Worker::State::stopping; });
  };
  if (auto done = until(stopped, 30s, "the workers did not stop within 30 s of SIGTERM"); !done) return done;
  feed_.stop(5s);
  return look_at_files();
}

// Lets time pass until the condition holds.
Result<void> Demo::until(const std::function<bool()>& condition, Duration limit, const std::string& what) {
  const Instant end = store_->instant() + limit;
  for (;;) {
    if (condition()) return {};
    if (store_->instant() > end) return fail(Code::unavailable, what + ": use --keep DIR and see its logs folder");
    if (auto done = step(); !done) return done;
  }
}

Result<void> Demo::step() {
  if (!store_->wait(tick)) return fail(Code::unavailable, "interrupted: all processes were ended");
  for (const auto look : {&Demo::look_at_processes, &Demo::look_at_files, &Demo::look_at_rows}) {
    if (auto done = (this->*look)(); !done) return done;
  }
  look_at_failovers();
  if (started_) view_.picture(picture(), since_start());
  return {};
}

Error Demo::ended_unexpectedly(const std::string& name, const runtime::Exit& exit) {
  view_.clear();
  for (const std::string& line : last_lines(folder_.log_of(name), 8)) tell("  " + name + ": " + one_line(line));
  return {Code::internal, "the process " + name + " ended unexpectedly with " + in_words(exit) +
                              ": its last lines are above; use --keep DIR to keep all of them"};
}

Result<void> Demo::look_at_processes() {
  if (const auto exit = feed_.wait(Duration::zero()); exit) return pass(ended_unexpectedly("feed", *exit));
  for (Worker& worker : workers_) {
    if (worker.state == Worker::State::killed || worker.state == Worker::State::stopped) continue;
    const auto exit = worker.child.wait(Duration::zero());
    if (!exit) continue;
    if (worker.state == Worker::State::running || exit->code != 0)
      return pass(ended_unexpectedly(worker.name, *exit));
    worker.state = Worker::State::stopped;
  }
  return {};
}

Result<void> Demo::look_at_files() {
  return files_.read([this](std::string_view owner, std::string_view line) {
    owners_.try_emplace(std::string(worker_of_owner(owner)), owner);
    const auto record = parse_sink_record(line);
    if (record) {
      history_.add(owner, *record);
    } else {
      history_.add_damaged(owner, record.error().detail);
    }
  });
}

Result<void> Demo::look_at_rows() {
  if (!started_ && history_.delivered() == 0) return {};
  const auto rows = store_->all(state::started);
  if (!rows) return pass(rows.error());
  std::map<std::string, std::size_t, std::less<>> held;
  unowned_ = 0;
  const WallTime now = store_->wall();
  for (const Row& row : *rows) {
    const ConnectionView view = view_of(row, now);
    if (view.lease != ConnectionView::Lease::held) ++unowned_;
    ++held[view.owner.substr(0, view.owner.find('#'))];
  }
  for (Worker& worker : workers_) worker.held = held[worker.name];
  return {};
}

void Demo::look_at_failovers() {
  for (Gone& each : gone_) {
    const auto owner = owners_.find(each.failover.worker);
    if (each.over || owner == owners_.end()) continue;
    const auto measured = history_.failover(owner->second, each.at_ms);
    if (measured.resumed < measured.connections) continue;
    each.over = true;
    say(plural(measured.connections, "connection") + " of " + each.failover.worker + " streaming again after " +
        runtime::describe_duration(std::chrono::milliseconds(measured.ms_max)) + ": " + holders());
  }
}

std::string Demo::holders() const {
  std::string text;
  for (const Worker& worker : workers_) {
    if (worker.state != Worker::State::running) continue;
    text += (text.empty() ? "" : ", ") + worker.name + ' ' + std::to_string(worker.held);
  }
  return text;
}

DemoPicture Demo::picture() const {
  DemoPicture result{
      .workers = {}, .connections = options_.connections, .unowned = unowned_, .delivered = history_.delivered()};
  for (const Worker& worker : workers_) {
    static constexpr const char* notes[] = {"", "killed", "stopping", "stopped"};
    result.workers.push_back({worker.name, notes[static_cast<std::size_t>(worker.state)], worker.held});
  }
  return result;
}

}  // namespace

std::size_t demo_capacity(const DemoOptions& options) {
  if (options.workers <= 1) return options.connections;
  return (options.connections + options.workers - 2) / (options.workers - 1);
}

std::vector<DemoAct> demo_plan(const DemoOptions& options) {
  const auto at = [&](double fraction) { return part(options.seconds, fraction); };
  // A fleet of one needs its successor at once, and another one before that is stopped, too.
  if (options.workers == 1) {
    return {{DemoAct::Kind::crash, at(0.2)},
            {DemoAct::Kind::start, at(0.2)},
            {DemoAct::Kind::start, at(0.6)},
            {DemoAct::Kind::stop, at(0.7)}};
  }
  return {{DemoAct::Kind::crash, at(0.2)}, {DemoAct::Kind::start, at(0.45)}, {DemoAct::Kind::stop, at(0.7)}};
}

Result<void> check_demo(const DemoOptions& options) {
  if (options.lease < 500ms || options.lease > 60s) {
    return fail(Code::usage,
                "--lease must be from 500ms to 60s here: shorter ones trip over a busy machine, longer "
                "ones try your patience");
  }
  LeaseOptions lease;
  lease.lease = options.lease;
  if (const auto terms = make_terms(lease); !terms) return pass(terms.error());
  // The crash, and the next message after it, have half of the time to be got over, so that the stop after it is a
  // case of its own.
  const Duration least = (options.lease + crash_allowance + part(1s, 1 / options.rate)) * 2;
  if (options.seconds < least) {
    const auto needed = std::chrono::ceil<std::chrono::seconds>(least).count();
    return fail(Code::usage, "--seconds is too short for a lease of " + runtime::write_duration(options.lease) +
                                 ": a crash takes that long to be noticed, so use " + std::to_string(needed) +
                                 " or more");
  }
  if (options.rate * static_cast<double>(options.connections) > 50'000) {
    return fail(Code::usage, "--connections times --rate is more than 50000 messages per second: ask for fewer");
  }
  if (!options.store.empty()) return StoreSession::check(options.store);
  return {};
}

bool DemoResult::holds() const {
  const auto over = [](const DemoFailover& each) {
    return each.measured.connections > 0 && each.measured.resumed == each.measured.connections;
  };
  return verdict.holds() && std::all_of(failovers.begin(), failovers.end(), over);
}

std::string demo_json(const DemoResult& result) {
  const DeliveryHistory::Verdict& verdict = result.verdict;
  std::string text = R"({"delivered":)" + std::to_string(verdict.delivered) + R"(,"missing":)" +
                     std::to_string(verdict.missing) + R"(,"repeats":)" + std::to_string(verdict.repeats) +
                     R"(,"gaps":)" + std::to_string(verdict.gaps) + R"(,"overlaps":)" +
                     std::to_string(verdict.overlaps) + R"(,"failovers":[)";
  for (const DemoFailover& each : result.failovers) {
    if (text.back() == '}') text += ',';
    text += R"({"kind":")" + each.kind + R"(","connections":)" + std::to_string(each.measured.connections) +
            R"(,"ms_median":)" + std::to_string(each.measured.ms_median) + R"(,"ms_max":)" +
            std::to_string(each.measured.ms_max) + '}';
  }
  return text + "]}\n";
}

Result<DemoResult> run_demo(const DemoOptions& options, DemoView& view) {
  if (const auto checked = check_demo(options); !checked) return pass(checked.error());
  auto folder = DemoFolder::make(options.keep);
  if (!folder) return pass(folder.error());
  Demo demo(options, view, std::move(*folder));
  return demo.run();
}

}  // namespace holdfast::cli
