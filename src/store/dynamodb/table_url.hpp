#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "holdfast/error.hpp"
#include "store/dynamodb/names.hpp"

namespace holdfast::store::dynamodb {

/// How a table is paid for.
struct Billing {
  bool on_demand = true;
  std::int64_t read_units = 5;  ///< provisioned: per second, of the table and again of its index
  std::int64_t write_units = 5;
};

/// How initialize() makes a table where there is none; where there is one, what differs is told.
struct Making {
  std::optional<Billing> billing;  ///< nothing: a new one on demand, another as it is
  bool stream = false;             ///< turn the table's stream on, also where the table is there
};

/// What `dynamodb://TABLE?…` says.
struct TableOptions {
  std::string url;       ///< as it was given, for advice
  std::string table;     ///< a name or an ARN
  std::string region;    ///< empty: from the environment
  std::string endpoint;  ///< `http://127.0.0.1:8000`; empty: from the environment, or the region's
  Names names;
  std::string index;  ///< by default `<state>-<expires>-index`, with the table's names
  Making making;      ///< not from the URL: that says which table, whoever opens it
};

/// Reads `dynamodb://TABLE[?name=value[&name=value…]]`; values may be percent-encoded. Code::usage with a sentence
/// that says what is wrong and, for a name that is unknown, which there are.
[[nodiscard]] Result<TableOptions> parse_table_url(std::string_view url);
inline constexpr std::string_view table_url_scheme = "dynamodb://";

/// The parameters that parse_table_url() knows, for help: "region, endpoint, key, …".
[[nodiscard]] std::string table_url_parameters();

}  // namespace holdfast::store::dynamodb
