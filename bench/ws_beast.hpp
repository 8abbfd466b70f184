#pragma once
#include <cstdint>
#include <string>

#include "harness.hpp"

namespace holdfast::bench {

/// Beast's websocket::stream over a plain TCP socket as client: one async_read per message, in a file of its own
/// because its templates take long to compile. Counts messages; the clock starts after `skip` of them.
Figures receive_with_beast(const std::string& url, std::uint64_t skip);

}  // namespace holdfast::bench
