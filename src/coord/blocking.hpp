#pragma once
#include <utility>

#include "holdfast/coordination.hpp"
#include "holdfast/coordinator.hpp"
#include "holdfast/error.hpp"

// What the two classes share that callers wait in (holdfast/coordinator.hpp, holdfast/available.hpp).
namespace holdfast::coord {

/// Looks at what both are told, and fills in what is empty.
[[nodiscard]] Result<void> complete(CoordinatorOptions& options);

/// What was asked makes no sense.
[[nodiscard]] inline tl::unexpected<Failure> refuse(Error error) {
  return tl::unexpected(Failure{Failure::Kind::rejected, std::move(error)});
}

}  // namespace holdfast::coord
