#include <memory>

#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/store_session.hpp"
#include "holdfast/fleet.hpp"
#include "runtime/environment.hpp"
#include "runtime/log.hpp"
#include "sink/make_sink.hpp"

namespace holdfast::cli {

namespace {

struct WorkerSettings {
  FleetOptions fleet;
  std::string sink;
  std::int64_t max_connections = 100, threads = 1;
};

Result<void> run_worker(WorkerSettings& settings) {
  FleetOptions& options = settings.fleet;
  options.max_connections = static_cast<std::size_t>(settings.max_connections);
  options.threads = static_cast<unsigned>(settings.threads);
  if (const auto terms = make_terms(options.lease); !terms) return tl::unexpected<Error>(terms.error());
  if (const auto level = runtime::parse_log_level(options.log_level); !level) {
    return tl::unexpected<Error>(Error(Code::usage, "--log-level: " + level.error().detail));
  }
  if (auto checked = sink::check_sink_spec(settings.sink); !checked) return checked;
  if (auto checked = StoreSession::check(options.store); !checked) return checked;
  runtime::raise_descriptor_limit();
  Fleet fleet(options);
  fleet.sink(settings.sink);
  const auto report = fleet.run();
  if (!report) return tl::unexpected<Error>(report.error());
  if (report->end == Report::End::failed) return fail(Code::internal, report->failure);
  return {};
}

}  // namespace

void add_worker(Setup setup) {
  const auto settings = std::make_shared<WorkerSettings>();
  CLI::App& app = add_command(
      setup,
      {.name = "worker",
       .description = "hold connections, until SIGTERM or SIGINT; a second one stops at once",
       .example = "worker --store sqlite:holdfast.db --sink ndjson:messages",
       .exit_codes = "it could not start, or ended by an unexpected error; stopped by signals it ends with 0"},
      [settings] { return run_worker(*settings); });
  FleetOptions& fleet = settings->fleet;
  LeaseOptions& lease = fleet.lease;
  add_store(app, fleet.store);
  add_text(app, "--sink", "SINK", settings->sink,
           "where messages go: stdout, or ndjson:DIR[?fsync=always|interval|never&rotate=64MiB]")
      .required();
  add_text(app, "--id", "NAME", fleet.id, "this worker's name; without it the host's name and the process id");
  add_number(app, "--max-connections", settings->max_connections, 1, 1'000'000, "how many it holds at most");
  add_duration(app, "--lease", lease.lease, "how long a lease lasts without being renewed");
  add_duration(app, "--renew", lease.renew_every, "how often each is renewed", "a quarter of the lease");
  add_duration(app, "--margin", lease.margin, "how long before its end nothing is done under it any more",
               "a tenth of the lease");
  add_duration(app, "--skew", lease.skew, "how far apart the clocks of two machines may be",
               "a twentieth of the lease");
  add_duration(app, "--reconcile", lease.reconcile_every, "how often to look for connections that nobody holds",
               "about a quarter of the lease");
  add_duration(app, "--checkpoint", fleet.checkpoint_every,
               "how often connections are checkpointed, where that is more often than they are renewed",
               "on renewals, which costs nothing more");
  add_number(app, "--threads", settings->threads, 1, 256, "threads that connections are spread over");
  add_duration(app, "--drain-timeout", fleet.drain_timeout, "how long stopping in order may take");
  add_duration(app, "--sink-patience", fleet.sink_patience, "a sink that fails for longer has everything released");
  add_text(app, "--report", "FILE", fleet.report_file, "where to write what it did, as JSON, at its end");
  add_text(app, "--advertise", "ADDRESS:PORT", fleet.advertise,
           "where other workers reach this one by UDP, to say that something became free; see docs/architecture.md");
  add_text(app, "--poke-listen", "ADDRESS:PORT", fleet.poke_listen,
           "where it listens for that, if elsewhere than advertised");
  add_text(app, "--log-level", "LEVEL", fleet.log_level, "debug, info, warning, error or off; to standard error");
}

}  // namespace holdfast::cli
