// conn release: what frees a connection whose lease ends far in the future, without waiting for it.
#include <memory>

#include "cli/conn_select.hpp"
#include "cli/connections.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"

namespace holdfast::cli {

namespace {

constexpr int tries_max = 5;

struct ReleaseSettings {
  std::string store = "sqlite:holdfast.db";
  std::vector<std::string> patterns;
  Duration lease = std::chrono::seconds(20);
};

// What became of it, in words. Reads the row again and tries again where its owner renewed it in between.
Result<std::string> release_one(StoreSession& store, Row row, Duration lease) {
  const std::string id = id_of(row).value_or(row.key);
  for (int tries = 0; tries < tries_max; ++tries) {
    const Step step = release(row, lease, store.wall());
    if (step.kind != Step::Kind::write) return step.words;
    auto written = store.update(step.update);
    if (!written) return tl::unexpected<Error>(written.error());
    if (written->applied) return step.words;
    if (!written->row) return fail(Code::not_found, "connection '" + id + "' is gone: see 'holdfast conn ls'");
    row = std::move(*written->row);
  }
  return fail(Code::unavailable, "connection '" + id + "' is being renewed by " +
                                     std::string(row.text(attribute::owner)) + ": that one lives, see to its clock");
}

Result<void> run_release(const ReleaseSettings& settings) {
  const auto session = StoreSession::open(settings.store, StoreSession::Create::never);
  if (!session) return tl::unexpected<Error>(session.error());
  auto rows = select_connections(**session, settings.patterns, Removed::included);
  if (!rows) return tl::unexpected<Error>(rows.error());
  for (const Row& row : *rows) {
    const auto told = release_one(**session, row, settings.lease);
    if (!told) return tl::unexpected<Error>(told.error());
    if (auto printed = print(id_of(row).value_or(row.key) + ' ' + *told + '\n'); !printed) return printed;
  }
  return {};
}

}  // namespace

void add_conn_release(Setup setup) {
  const auto settings = std::make_shared<ReleaseSettings>();
  CLI::App& app = add_command(
      setup,
      {.name = "release",
       .description =
           "shorten leases that end far in the future, as after a wrong clock; a living holder keeps its lease",
       .example = "conn release btc",
       .exit_codes = "there is no such connection, or the table is not to be had"},
      [settings] { return run_release(*settings); });
  add_arguments(app, "NAME", settings->patterns, "which: ids, or patterns such as 'btc*'").required();
  add_store(app, settings->store);
  add_duration(app, "--lease", settings->lease,
               "how long the workers' leases last; with less, a holder that lives may be taken over while it acts");
}

}  // namespace holdfast::cli
