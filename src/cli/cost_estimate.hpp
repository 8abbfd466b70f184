#pragma once
#include <cstddef>
#include <string_view>
#include <vector>

#include "holdfast/types.hpp"

namespace holdfast::cli {

/// Whose expiry is renewed.
enum class CostMode {
  lease,    ///< each connection's: what the worker does
  session,  ///< the worker's own alone: arithmetic only, the worker has no such mode
};

/// In one currency. The defaults are US dollars: US East (N. Virginia), Standard table class, since 1 November 2024,
/// as others quoted them in July 2025 (airbyte.com/data-engineering-resources/dynamodb-pricing); AWS's own page goes
/// first.
struct Prices {
  double write = 0.625;                ///< of a million write request units, on demand
  double read = 0.125;                 ///< of a million read request units, on demand
  double provisioned_write = 0.00065;  ///< of a write capacity unit, for an hour
  double provisioned_read = 0.00013;   ///< of a read capacity unit, for an hour
};

struct CostQuestion {
  double connections = 100;
  double workers = 1;
  Duration renew_every = std::chrono::seconds(5);
  Duration reconcile_every = std::chrono::seconds(5);
  CostMode mode = CostMode::lease;
  /// Zero: checkpoints ride on renewals; in session mode, where there are none, one comes with each `renew_every`.
  Duration checkpoint_every{};
  double row_bytes = 500;    ///< of a connection's row, its attributes' names included
  double moves_per_day = 1;  ///< how often each connection goes to another worker: released, and claimed
  double utilization = 0.7;  ///< provisioned: how much of what is paid for is used
  Prices prices;
};

/// One kind of request, as docs/report.md names them; or all of them.
struct CostLine {
  std::string_view kind;
  double requests = 0;  ///< all per second
  double table_write_units = 0, index_write_units = 0, table_read_units = 0, index_read_units = 0;
  double on_demand = 0;  ///< money per month

  [[nodiscard]] double write_units() const { return table_write_units + index_write_units; }
  [[nodiscard]] double read_units() const { return table_read_units + index_read_units; }
};

/// Whole units to provision: DynamoDB sells none below one.
struct ProvisionedUnits {
  double table_write = 0, index_write = 0, table_read = 0, index_read = 0;
};

struct CostEstimate {
  std::vector<CostLine> lines;
  CostLine total;
  ProvisionedUnits provisioned;
  double provisioned_cost = 0;  ///< money per month
};

inline constexpr double hours_per_month = 730;

/// What a fleet costs, by the units of docs/capacity.md. Not in it: storage, streams, backups, traffic, claims that
/// somebody else won, and what an outage adds.
[[nodiscard]] CostEstimate estimate_cost(const CostQuestion& question);

}  // namespace holdfast::cli
