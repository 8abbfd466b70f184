#pragma once
#include <functional>
#include <string_view>

#include "cli/feed_streams.hpp"
#include "holdfast/error.hpp"

namespace holdfast::cli {

/// Serves until SIGTERM or SIGINT, then closes its connections (1001) and returns. `listening` is called once,
/// with the address in use, when connections are accepted.
[[nodiscard]] Result<void> serve_feed(const FeedOptions& options,
                                      const std::function<void(std::string_view host_and_port)>& listening);

}  // namespace holdfast::cli
