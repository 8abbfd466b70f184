#include "holdfast/fleet.hpp"

#include <algorithm>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>

#include "holdfast/function_sink.hpp"
#include "holdfast/store.hpp"
#include "runtime/asio_loop.hpp"
#include "runtime/clock.hpp"
#include "runtime/environment.hpp"
#include "runtime/http_client.hpp"
#include "runtime/log.hpp"
#include "runtime/shortage.hpp"
#include "runtime/signals.hpp"
#include "sink/make_sink.hpp"
#include "store/open.hpp"
#include "worker/one_line.hpp"
#include "worker/report.hpp"
#include "worker/stream_loops.hpp"
#include "worker/udp_pokes.hpp"
#include "worker/worker.hpp"

namespace holdfast {
namespace {

using worker::Worker;

constexpr Duration first_look_limit = std::chrono::seconds(10);
constexpr Duration closing_limit = std::chrono::seconds(5);
/// `timeout`, a shell, a supervisor: they tell the process and its group, and mean one stop.
constexpr Duration same_stop = std::chrono::seconds(1);
constexpr unsigned threads_max = 256;
constexpr Duration patience_max = std::chrono::hours(24);  // as the longest lease; multiples must fit into a Duration
constexpr Duration checkpoint_every_min = std::chrono::milliseconds(100);
constexpr std::size_t descriptors_spare = 20;
constexpr std::size_t name_bytes_max = 200;

std::string words_of(const std::exception& thrown, const std::string& where) {
  if (const auto shortage = runtime::shortage(thrown)) return shortage->detail;
  return where + thrown.what();
}

std::string eight_digits(std::uint64_t number) {
  return Attempt{number, 0}.to_string().substr(0, 8);
}

Result<void> check_name(const std::string& name) {
  const bool good = !name.empty() && name.size() <= name_bytes_max &&
                    std::none_of(name.begin(), name.end(), [](char c) { return c == '#' || c == ' '; }) &&
                    worker::one_line(name, name_bytes_max) == name;
  if (good) return {};
  return fail(Code::usage, "a worker's name is 1 to 200 bytes of UTF-8 without '#', spaces or control characters");
}

}  // namespace

class Fleet::Impl {
 public:
  explicit Impl(FleetOptions options) : options_(std::move(options)) {}

  Result<Report> run();
  void ask(bool drain);

  int purposes_ = 0;
  std::unique_ptr<Sink> sink_;
  std::optional<std::string> sink_spec_;
  ResourceFactory factory_;
  void failed(const std::string& what);

 private:
  Result<void> prepare();
  Result<void> open(runtime::AsioLoop& control);
  Result<void> fit_into_descriptors();
  void run_control(runtime::AsioLoop& control);
  Result<void> work(runtime::AsioLoop& control);
  void signalled(runtime::AsioLoop& control);
  [[nodiscard]] bool makes_table() const;
  void make_table(runtime::AsioLoop& control);
  void ask_store_first(runtime::AsioLoop& control);
  void refuse(runtime::AsioLoop& control, const Error& error);
  void begin(runtime::AsioLoop& control);
  void heed();
  void close_store(runtime::AsioLoop& control);
  [[nodiscard]] Report finish();

  FleetOptions options_;
  LeaseTerms terms_;
  std::string incarnation_;
  std::optional<runtime::Log> log_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<worker::UdpPokes> pokes_;  // null: none
  std::optional<worker::StreamLoops> streams_;
  std::unique_ptr<Worker> worker_;
  std::optional<runtime::Signals> signals_;
  std::optional<Instant> first_signal_;
  std::optional<Error> refused_;  // by the store, at the start
  bool used_ = false;
  bool over_ = false;  // the control loop has run; the control loop's thread

  std::mutex mutex_;                      // guards from here ...
  runtime::AsioLoop* control_ = nullptr;  // while it can be posted to
  bool drain_asked_ = false;
  bool stop_asked_ = false;
  std::string failure_;  // ... to here
};

Result<void> Fleet::Impl::prepare() {
  if (std::exchange(used_, true)) return fail(Code::usage, "a Fleet runs once");
  if (purposes_ != 1) {
    return fail(Code::usage, "say once what the worker is for: sink(), on_message() or holds()");
  }
  if (options_.id.empty()) options_.id = runtime::host_and_process();
  if (auto good = check_name(options_.id); !good) return good;
  if (auto good = worker::UdpPokes::check(options_.advertise, options_.poke_listen); !good) return good;
  if (options_.threads < 1 || options_.threads > threads_max) return fail(Code::usage, "threads must be 1 to 256");
  if (options_.max_connections < 1) return fail(Code::usage, "a worker must be allowed at least one connection");
  for (const Duration each : {options_.drain_timeout, options_.sink_patience}) {
    if (each <= Duration::zero() || each > patience_max) {
      return fail(Code::usage,
                  "the drain timeout and the patience with a sink must be above zero, and a day at most");
    }
  }
  if (options_.checkpoint_every && *options_.checkpoint_every < checkpoint_every_min) {
    return fail(Code::usage, "checkpoints can be asked for every 100 ms at most");
  }
  const auto level = runtime::parse_log_level(options_.log_level);
  if (!level) return tl::unexpected(level.error());
  auto terms = make_terms(options_.lease);
  if (!terms) return tl::unexpected(terms.error());
  terms_ = *terms;
  log_.emplace(runtime::Log::to_stderr(*level));
  incarnation_ = eight_digits(runtime::random_seed());
  runtime::ignore_broken_pipes();
  return {};
}

Result<void> Fleet::Impl::open(runtime::AsioLoop& control) {
  auto store = store::open_store(options_.store, control, [&control] {
    return std::make_unique<runtime::HttpClient>(control, runtime::http_limits_for_aws());
  });
  if (!store) return tl::unexpected(store.error());
  store_ = *std::move(store);
  if (!options_.advertise.empty()) {
    auto pokes = worker::UdpPokes::open(control, options_.advertise, options_.poke_listen);
    if (!pokes) return tl::unexpected(pokes.error());
    pokes_ = *std::move(pokes);
  }
  if (!options_.report_file.empty()) {
    if (auto tried = worker::try_report(options_.report_file); !tried) return tried;
  }
  if (sink_spec_) {
    auto sink = sink::make_sink(*sink_spec_, options_.id + "-" + incarnation_, runtime::random_seed());
    if (!sink) return tl::unexpected(sink.error());
    sink_ = *std::move(sink);
  }
  return factory_ ? Result<void>() : fit_into_descriptors();
}

/// What cannot have a socket is not claimed: others may have room for it.
Result<void> Fleet::Impl::fit_into_descriptors() {
  const std::size_t limit = runtime::raise_descriptor_limit();
  // What is open now, and what is still to be opened: files of sink, store and report; three for each loop; sockets
  // of addresses that race each other.
  const std::size_t taken = runtime::open_descriptors() + descriptors_spare + 3 * std::size_t{options_.threads};
  const std::size_t room = limit - std::min(limit, taken);
  if (room >= options_.max_connections) return {};
  const std::string few = "only " + std::to_string(limit) + " files may be open";
  const std::string advice = ": raise the limit (ulimit -n)";
  if (room == 0) return fail(Code::exhausted, few + ", too few for a single connection" + advice);
  log_->warning(few + ", so it holds at most " + std::to_string(room) + " connections instead of " +
                std::to_string(options_.max_connections) + advice);
  options_.max_connections = room;
  return {};
}

Result<Report> Fleet::Impl::run() {
  if (auto ready = prepare(); !ready) return tl::unexpected(ready.error());
  std::optional<runtime::AsioLoop> loop;
  Result<void> outcome;
  try {
    loop.emplace(runtime::random_seed());
    outcome = open(*loop);
  } catch (const std::exception& thrown) {
    const auto shortage = runtime::shortage(thrown);
    outcome = tl::unexpected(
        shortage.value_or(Error(Code::internal, std::string("the worker cannot start: ") + thrown.what())));
  }
  if (!loop) return tl::unexpected(outcome.error());
  runtime::AsioLoop& control = *loop;
  if (outcome) outcome = work(control);
  const bool began = worker_ != nullptr;
  const Report report = finish();
  pokes_.reset();  // before its loop
  if (sink_) sink_->close(report.end == Report::End::drained ? closing_limit : std::chrono::seconds(1));
  streams_.reset();  // after the sink, whose thread tells them of its progress
  if (store_) close_store(control);
  if (!outcome) return tl::unexpected(outcome.error());
  if (began && !options_.report_file.empty()) {
    if (auto written = worker::write_report(report, options_.report_file); !written) {
      log_->error(written.error().detail);
      return tl::unexpected(written.error());
    }
  }
  if (report.end == Report::End::failed) return fail(Code::internal, report.failure);
  return report;
}

/// Until the worker has ended.
Result<void> Fleet::Impl::work(runtime::AsioLoop& control) {
  run_control(control);
  if (streams_) {
    streams_->end([this] {
      log_->error(
          "a thread of the connections does not come back, so this process cannot end by itself: a handler or "
          "a file in it waits. A signal ends it now");
      signals_.reset();
    });
  }
  signals_.reset();
  {
    const std::lock_guard lock(mutex_);
    control_ = nullptr;
  }
  if (refused_) return tl::unexpected(*refused_);
  return {};
}

/// On this thread. Afterwards nothing new begins: what is still owed runs when the store is closed, and finds
/// control_ null.
void Fleet::Impl::run_control(runtime::AsioLoop& control) {
  {
    const std::lock_guard lock(mutex_);
    control_ = &control;
  }
  try {
    if (options_.handle_signals) {
      signals_.emplace(control, [this, &control](int) { signalled(control); });
    }
    control.post([this, &control] { makes_table() ? make_table(control) : ask_store_first(control); });
    control.run();
  } catch (const std::exception& thrown) {
    failed(words_of(thrown, "the control loop ended by an unexpected error: "));
    // The leases run out by themselves; nothing may act under them any more (F14).
    if (worker_) worker_->stop();
  }
  over_ = true;
}

void Fleet::Impl::signalled(runtime::AsioLoop& control) {
  const Instant now = control.instant();
  if (!first_signal_) {
    first_signal_ = now;
    return ask(true);
  }
  if (now - *first_signal_ < same_stop) return;
  const std::size_t held = worker_ ? worker_->held() : 0;
  log_->warning("a second signal: stopping at once, " + std::to_string(held) + " held are not given back");
  ask(false);
  // A third has the system's own effect, should even stopping at once be stuck.
  control.post([this] { signals_.reset(); });
}

void Fleet::Impl::refuse(runtime::AsioLoop& control, const Error& error) {
  refused_ = error;
  control.stop();
}

/// So that the first worker on a fresh machine needs no other command before it. A table that costs money, and that
/// workers have no permission to make, is made by 'holdfast init' alone.
bool Fleet::Impl::makes_table() const {
  return options_.make_table && store::may_create(options_.store);
}

void Fleet::Impl::make_table(runtime::AsioLoop& control) {
  store_->initialize(control.instant() + first_look_limit, [this, &control](const Reply<std::string>& reply) {
    if (over_) return;  // it is being closed
    if (reply.outcome == Outcome::rejected) return refuse(control, reply.error);
    // Also what was not asked for: a mistyped path looks just like a new one.
    if (reply.ok() && reply.value.starts_with("made")) log_->info(reply.value);
    ask_store_first(control);
  });
}

/// A store that can never work as it is should be told about at once, not found out from a worker that idles. One
/// that is merely away may come back: the worker begins all the same.
void Fleet::Impl::ask_store_first(runtime::AsioLoop& control) {
  QueryDue query;
  query.state = state::started;
  query.before = WallTime::max();
  query.limit = 1;
  query.purpose = Purpose::look;
  store_->query_due(std::move(query), control.instant() + first_look_limit, [this, &control](const PageReply& reply) {
    if (over_) return;  // it is being closed
    if (reply.outcome == Outcome::rejected) return refuse(control, reply.error);
    if (reply.ok() && reply.value.rows.empty()) {
      log_->info("nothing is started in " + options_.store +
                 " yet: add connections with 'holdfast conn add --store " + options_.store + "'");
    }
    begin(control);
  });
}

void Fleet::Impl::begin(runtime::AsioLoop& control) {
  streams_.emplace(options_.threads, [this](const std::string& what) { failed(what); });
  worker::WorkerOptions options;
  options.name = options_.id;
  options.incarnation = incarnation_;
  options.pokes = pokes_.get();
  options.poke_token = Attempt{runtime::random_seed(), runtime::random_seed()}.to_string();
  options.terms = terms_;
  options.max_connections = options_.max_connections;
  options.drain_timeout = options_.drain_timeout;
  options.sink_patience = options_.sink_patience;
  if (options_.checkpoint_every && *options_.checkpoint_every < terms_.renew_every) {
    options.checkpoint_every = *options_.checkpoint_every;
  }
  if (sink_) {
    options.sink_failure = [this] { return sink_->failure(); };
    options.sink_failed_for_good = [this] { return sink_->failed_for_good(); };
  }
  ResourceFactory factory = factory_ ? factory_ : streams_->carry(*sink_, [this, &control](worker::Trouble trouble) {
    control.post([this, trouble = std::move(trouble)] {
      if (worker_) worker_->troubled(trouble);
    });
  });
  worker_ = std::make_unique<Worker>(std::move(options), control, streams_->loops(), *store_, std::move(factory),
                                     *log_, [&control] { control.stop(); });
  worker_->start();
  heed();
}

void Fleet::Impl::ask(bool drain) {
  const std::lock_guard lock(mutex_);
  (drain ? drain_asked_ : stop_asked_) = true;
  if (control_ != nullptr) control_->post([this] { heed(); });
}

/// On the control loop. A drain that comes before begin() waits for it: begin() comes by here.
void Fleet::Impl::heed() {
  if (over_) return;  // asked for after the end, or in the same moment
  bool drain = false;
  bool stop = false;
  {
    const std::lock_guard lock(mutex_);
    drain = drain_asked_;
    stop = stop_asked_ || !failure_.empty();
  }
  if (stop && !worker_) {
    control_->stop();  // the store has not answered yet; nothing is held
  } else if (stop) {
    worker_->stop();
  } else if (drain && worker_) {
    worker_->drain();
  }
}

/// Any thread. A worker that has lost a loop does not live on (F14).
void Fleet::Impl::failed(const std::string& what) {
  log_->error(what);
  const std::lock_guard lock(mutex_);
  if (failure_.empty()) failure_ = what;
  if (control_ != nullptr) control_->post([this] { heed(); });
}

Report Fleet::Impl::finish() {
  Report report;
  report.worker = options_.id;
  report.incarnation = incarnation_;
  report.end = Report::End::stopped;
  if (worker_) report = worker_->report();
  if (!failure_.empty()) {
    report.end = Report::End::failed;
    report.failure = failure_;
  }
  worker_.reset();
  return report;
}

void Fleet::Impl::close_store(runtime::AsioLoop& control) {
  control.call_after(closing_limit, [&control] { control.stop(); });
  store_->close([&control] { control.stop(); });
  try {
    control.run();
  } catch (const std::exception& thrown) {
    log_->error(words_of(thrown, "the store could not be closed in order: "));
  }
  store_.reset();
}

Fleet::Fleet(FleetOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}
Fleet::~Fleet() = default;

void Fleet::sink(std::unique_ptr<Sink> sink) {
  ++impl_->purposes_;
  impl_->sink_ = std::move(sink);
}

void Fleet::sink(std::string spec) {
  ++impl_->purposes_;
  impl_->sink_spec_ = std::move(spec);
}

void Fleet::on_message(std::function<void(const Record&)> handler) {
  ++impl_->purposes_;
  impl_->sink_ =
      std::make_unique<FunctionSink>([impl = impl_.get(), handler = std::move(handler)](const Record& record) {
        try {
          handler(record);
        } catch (const std::exception& thrown) {
          impl->failed(std::string("the message handler threw: ") + thrown.what());
          throw;
        }
      });
}

void Fleet::holds(ResourceFactory factory) {
  ++impl_->purposes_;
  impl_->factory_ = std::move(factory);
}

Result<Report> Fleet::run() {
  return impl_->run();
}
void Fleet::drain() {
  impl_->ask(true);
}
void Fleet::stop() {
  impl_->ask(false);
}

}  // namespace holdfast
