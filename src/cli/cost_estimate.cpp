#include "cli/cost_estimate.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace holdfast::cli {
namespace {

constexpr double bytes_per_write_unit = 1024;
constexpr double bytes_per_read_unit = 4096;
constexpr double seconds_per_day = 86'400;
/// Where the expiry moves, the index deletes an entry and puts another; otherwise it puts one (docs/capacity.md).
constexpr double index_writes_of_moved_expiry = 2;
constexpr double index_writes_of_checkpoint = 1;
/// A worker writes its own row at random intervals, uniform between three quarters of `renew_every` and all of it.
constexpr double session_writes_per_renewal = 8.0 / 7;
/// A query that finds nothing, by AWS's documentation; DynamoDB Local reports none.
constexpr double read_units_of_empty_look = 0.5;
/// Every twelfth look is followed by one for leases that end far in the future.
constexpr double queries_per_look = 13.0 / 12;

double per_second(Duration every) {
  return 1 / std::chrono::duration<double>(every).count();
}

CostLine writes(std::string_view kind, double per_second, double row_bytes, double index_writes) {
  const double units = std::max(1.0, std::ceil(row_bytes / bytes_per_write_unit));
  CostLine line{.kind = kind, .requests = per_second};
  line.table_write_units = per_second * units;
  line.index_write_units = per_second * units * index_writes;
  return line;
}

CostLine looks(const CostQuestion& question, double moves) {
  CostLine line{.kind = "look"};
  line.requests = question.workers * per_second(question.reconcile_every) * queries_per_look;
  // What is free is found by each worker; a query may be stale, so it costs half.
  const double found = moves * question.workers * question.row_bytes / bytes_per_read_unit / 2;
  line.index_read_units = line.requests * read_units_of_empty_look + found;
  return line;
}

CostLine checkpoints(const CostQuestion& question) {
  const bool asked = question.checkpoint_every > Duration::zero();
  if (question.mode == CostMode::session) {
    const Duration every = asked ? question.checkpoint_every : question.renew_every;
    return writes("checkpoint", question.connections * per_second(every), question.row_bytes,
                  index_writes_of_checkpoint);
  }
  // Renewals out of turn; the others keep their phase.
  const double each = asked ? per_second(question.checkpoint_every) : 0;
  return writes("checkpoint", question.connections * each, question.row_bytes, index_writes_of_moved_expiry);
}

double whole_units(double units, double utilization) {
  return std::max(1.0, std::ceil(units / utilization));
}

}  // namespace

CostEstimate estimate_cost(const CostQuestion& question) {
  constexpr double moved = index_writes_of_moved_expiry;
  const double renewals = per_second(question.renew_every);
  const double moves = question.connections * question.moves_per_day / seconds_per_day;
  const double leases = question.mode == CostMode::lease ? question.connections : 0;
  CostEstimate estimate;
  estimate.lines = {writes("renew", leases * renewals, question.row_bytes, moved),
                    checkpoints(question),
                    writes("session", question.workers * renewals * session_writes_per_renewal, 0, moved),
                    looks(question, moves),
                    writes("claim", moves, question.row_bytes, moved),
                    writes("release", moves, question.row_bytes, moved)};
  CostLine& total = estimate.total;
  total.kind = "total";
  constexpr double seconds_per_month = hours_per_month * 3600;
  for (CostLine& line : estimate.lines) {
    line.on_demand = (line.write_units() * question.prices.write + line.read_units() * question.prices.read) *
                     seconds_per_month / 1e6;
    total.requests += line.requests;
    total.table_write_units += line.table_write_units;
    total.index_write_units += line.index_write_units;
    total.table_read_units += line.table_read_units;
    total.index_read_units += line.index_read_units;
    total.on_demand += line.on_demand;
  }
  ProvisionedUnits& units = estimate.provisioned;
  units.table_write = whole_units(total.table_write_units, question.utilization);
  units.index_write = whole_units(total.index_write_units, question.utilization);
  units.table_read = whole_units(total.table_read_units, question.utilization);
  units.index_read = whole_units(total.index_read_units, question.utilization);
  estimate.provisioned_cost = ((units.table_write + units.index_write) * question.prices.provisioned_write +
                               (units.table_read + units.index_read) * question.prices.provisioned_read) *
                              hours_per_month;
  return estimate;
}

}  // namespace holdfast::cli
