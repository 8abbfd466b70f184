#pragma once
#include <string>

#include "cli/connections.hpp"

namespace holdfast::cli {

/// One connection as one JSON object, without a line end.
[[nodiscard]] std::string connection_json(const Row& row, WallTime now, bool with_options);

}  // namespace holdfast::cli
