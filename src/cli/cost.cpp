// `holdfast cost`: what a fleet on DynamoDB costs, by arithmetic.
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>

#include "cli/cost_estimate.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "runtime/units.hpp"

namespace holdfast::cli {

namespace {

namespace json = boost::json;

struct CostSettings {
  std::int64_t connections = 0, workers = 1;
  Duration renew = std::chrono::seconds(5);
  std::optional<Duration> reconcile, checkpoint;
  std::string mode = "lease";
  std::size_t row_size = 500;
  double moves_per_day = 1, utilization = 70;
  Prices prices;
  bool json = false;
};

std::string fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

json::object to_object(const CostLine& line) {
  return {{"requests_per_second", line.requests},
          {"table_write_units_per_second", line.table_write_units},
          {"index_write_units_per_second", line.index_write_units},
          {"table_read_units_per_second", line.table_read_units},
          {"index_read_units_per_second", line.index_read_units},
          {"on_demand_per_month", line.on_demand}};
}

/// Of what is counted in whole ones: 5000, not 5E3.
std::int64_t whole(double count) {
  return std::llround(count);
}

std::string as_json(const CostQuestion& asked, const CostEstimate& estimate) {
  json::object kinds;
  for (const CostLine& line : estimate.lines) kinds[line.kind] = to_object(line);
  const ProvisionedUnits& units = estimate.provisioned;
  const json::object document{
      {"connections", whole(asked.connections)},
      {"workers", whole(asked.workers)},
      {"mode", asked.mode == CostMode::lease ? "lease" : "session"},
      {"renew_every_s", std::chrono::duration<double>(asked.renew_every).count()},
      {"kinds", std::move(kinds)},
      {"total", to_object(estimate.total)},
      {"on_demand", json::object{{"per_month", estimate.total.on_demand},
                                 {"per_connection_month", estimate.total.on_demand / asked.connections}}},
      {"provisioned", json::object{{"table_write_units", whole(units.table_write)},
                                   {"index_write_units", whole(units.index_write)},
                                   {"table_read_units", whole(units.table_read)},
                                   {"index_read_units", whole(units.index_read)},
                                   {"per_month", estimate.provisioned_cost},
                                   {"per_connection_month", estimate.provisioned_cost / asked.connections}}},
      {"prices", json::object{{"million_write_units", asked.prices.write},
                              {"million_read_units", asked.prices.read},
                              {"write_unit_hour", asked.prices.provisioned_write},
                              {"read_unit_hour", asked.prices.provisioned_read}}}};
  return json::serialize(document) + "\n";
}

std::vector<std::string> cells(const CostLine& line) {
  return {std::string(line.kind),           fixed(line.requests, 3),     fixed(line.table_write_units, 3),
          fixed(line.index_write_units, 3), fixed(line.read_units(), 3), fixed(line.on_demand, 2)};
}

std::string for_people(const CostQuestion& asked, const CostEstimate& estimate) {
  using Align = Table::Align;
  Table table({{"KIND"},
               {"REQUESTS/S", Align::right},
               {"TABLE WRITES/S", Align::right},
               {"INDEX WRITES/S", Align::right},
               {"READS/S", Align::right},
               {"ON-DEMAND/MONTH", Align::right}});
  for (const CostLine& line : estimate.lines) table.add(cells(line));
  table.add(cells(estimate.total));
  const auto money = [&](double all) {
    return fixed(all, 2) + " a month, " + fixed(all / asked.connections, 4) + " for each connection";
  };
  const ProvisionedUnits& units = estimate.provisioned;
  std::string text = table.render() + "\non-demand    " + money(estimate.total.on_demand) + "\nprovisioned  " +
                     money(estimate.provisioned_cost) + "\n             table: " + fixed(units.table_write, 0) +
                     " write and " + fixed(units.table_read, 0) +
                     " read units; index: " + fixed(units.index_write, 0) + " and " + fixed(units.index_read, 0) +
                     "\n";
  text += "prices       " + fixed(asked.prices.write, 4) + " and " + fixed(asked.prices.read, 4) +
          " a million write and read units; " + fixed(asked.prices.provisioned_write, 6) + " and " +
          fixed(asked.prices.provisioned_read, 6) + " a unit and hour\n";
  if (asked.mode == CostMode::session) text += "session mode is arithmetic only: the worker renews each lease\n";
  return text;
}

Result<void> run_cost(const CostSettings& settings) {
  CostQuestion question;
  if (settings.mode == "session") {
    question.mode = CostMode::session;
  } else if (settings.mode != "lease") {
    return fail(Code::usage, "--mode is lease or session, not '" + one_line(settings.mode) + "'");
  }
  question.connections = static_cast<double>(settings.connections);
  question.workers = static_cast<double>(settings.workers);
  question.renew_every = settings.renew;
  question.reconcile_every = settings.reconcile.value_or(settings.renew);
  for (const Duration interval :
       {question.renew_every, question.reconcile_every, settings.checkpoint.value_or(settings.renew)}) {
    if (interval < std::chrono::milliseconds(1)) return fail(Code::usage, "an interval must be 1ms at least");
  }
  question.checkpoint_every = settings.checkpoint.value_or(Duration::zero());
  question.row_bytes = static_cast<double>(settings.row_size);
  question.moves_per_day = settings.moves_per_day;
  question.utilization = settings.utilization / 100;
  question.prices = settings.prices;
  const CostEstimate estimate = estimate_cost(question);
  return print(settings.json ? as_json(question, estimate) : for_people(question, estimate));
}

}  // namespace

void add_cost(Setup setup) {
  constexpr double price_max = 1e6;
  const auto settings = std::make_shared<CostSettings>();
  CLI::App& app = add_command(setup,
                              {.name = "cost",
                               .description = "what a fleet costs on DynamoDB: units per second and money per month",
                               .example = "cost --connections 5000 --workers 10 --renew 5s",
                               .exit_codes = "the output could not be written"},
                              [settings] { return run_cost(*settings); });
  add_number(app, "--connections", settings->connections, 1, 1'000'000'000, "how many are held").required();
  add_number(app, "--workers", settings->workers, 1, 1'000'000, "how many workers hold them");
  add_duration(app, "--renew", settings->renew, "how often each lease is renewed");
  add_duration(app, "--reconcile", settings->reconcile,
               "how often each worker looks for connections that nobody holds", "as often as --renew");
  add_duration(app, "--checkpoint", settings->checkpoint, "how often each connection is checkpointed",
               "on its renewals, which costs nothing more");
  add_text(
      app, "--mode", "MODE", settings->mode,
      "lease: each connection's is renewed; session: each worker's alone (arithmetic only: no worker does that)");
  add_size(app, "--row-size", settings->row_size, 400 * 1024, "of a connection's row");
  add_decimal(app, "--moves-per-day", settings->moves_per_day, 0, 1e6,
              "how often each connection goes to another worker");
  add_decimal(app, "--utilization", settings->utilization, 1, 100,
              "provisioned: per cent of what is paid for that is used");
  add_decimal(app, "--price-write", settings->prices.write, 0, price_max,
              "of a million write units on demand; defaults are US dollars in us-east-1, since November 2024");
  add_decimal(app, "--price-read", settings->prices.read, 0, price_max, "of a million read units on demand");
  add_decimal(app, "--price-write-hour", settings->prices.provisioned_write, 0, price_max,
              "of a provisioned write unit for an hour");
  add_decimal(app, "--price-read-hour", settings->prices.provisioned_read, 0, price_max,
              "of a provisioned read unit for an hour");
  add_switch(app, "--json", settings->json, "print a JSON object");
}

}  // namespace holdfast::cli
