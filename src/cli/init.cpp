#include <CLI/App.hpp>
#include <memory>

#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/store_session.hpp"

namespace holdfast::cli {

namespace {

constexpr std::int64_t units_max = 1'000'000'000;

struct InitSettings {
  std::string store = "sqlite:holdfast.db", billing;
  std::int64_t read_units = store::dynamodb::Billing{}.read_units;
  std::int64_t write_units = store::dynamodb::Billing{}.write_units;
  bool stream = false;
  std::function<bool()> says_units;  // on the command line, in a variable or the config file
};

/// Units say by themselves that they are provisioned.
Result<store::dynamodb::Making> making_of(const InitSettings& settings) {
  store::dynamodb::Making making;
  making.stream = settings.stream;
  const bool says_units = settings.says_units();
  if (settings.billing.empty() && !says_units) return making;
  if (!settings.billing.empty() && settings.billing != "on-demand" && settings.billing != "provisioned") {
    return fail(Code::usage, "--billing: '" + settings.billing + "' is neither on-demand nor provisioned");
  }
  const bool on_demand = settings.billing == "on-demand";
  if (on_demand && says_units) {
    return fail(Code::usage, "--read-units and --write-units go with --billing provisioned");
  }
  making.billing = {.on_demand = on_demand, .read_units = settings.read_units, .write_units = settings.write_units};
  return making;
}

Result<void> run_init(const InitSettings& settings) {
  const auto making = making_of(settings);
  if (!making) return tl::unexpected<Error>(making.error());
  const auto session = StoreSession::make(settings.store, *making);
  if (!session) return tl::unexpected<Error>(session.error());
  return print((*session)->created() + "\n");
}

}  // namespace

void add_init(Setup setup) {
  const auto settings = std::make_shared<InitSettings>();
  CLI::App& app = add_command(setup,
                              {.name = "init",
                               .description = "make the table that a fleet shares; does nothing where it is there",
                               .example = "init --store 'dynamodb://feeds?region=eu-west-1' --stream",
                               .exit_codes = "the table could not be made, or is there in a shape that does not do"},
                              [settings] { return run_init(*settings); });
  add_store(app, settings->store);
  add_switch(app, "--stream", settings->stream,
             "DynamoDB: with a stream, by which workers hear of changes at once; also where the table is there");
  add_text(app, "--billing", "HOW", settings->billing,
           "DynamoDB: how a new table is paid for, on-demand (if not told) or provisioned");
  CLI::Option& read = add_number(app, "--read-units", settings->read_units, 1, units_max,
                                 "DynamoDB: provisioned for each second, for the table and as many for its index");
  CLI::Option& write = add_number(app, "--write-units", settings->write_units, 1, units_max, "the same for writes");
  settings->says_units = [&read, &write] { return read.count() + write.count() > 0; };
}

}  // namespace holdfast::cli
