#pragma once
#include <string>
#include <vector>

#include "cli/store_session.hpp"

namespace holdfast::cli {

enum class Removed { left_out, included };

/// The connections that the patterns name (all of them where there is no pattern), each once, sorted. A pattern
/// that names nothing is Code::not_found. A name without wildcards finds its row even where the index does not.
[[nodiscard]] Result<std::vector<Row>> select_connections(StoreSession& store,
                                                          const std::vector<std::string>& patterns, Removed removed);

}  // namespace holdfast::cli
