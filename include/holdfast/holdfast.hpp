#pragma once

/// All that a program needs that embeds a worker.
#include "holdfast/error.hpp"     // IWYU pragma: export
#include "holdfast/fleet.hpp"     // IWYU pragma: export
#include "holdfast/lease.hpp"     // IWYU pragma: export
#include "holdfast/loop.hpp"      // IWYU pragma: export
#include "holdfast/report.hpp"    // IWYU pragma: export
#include "holdfast/resource.hpp"  // IWYU pragma: export
#include "holdfast/row.hpp"       // IWYU pragma: export
#include "holdfast/sink.hpp"      // IWYU pragma: export
#include "holdfast/types.hpp"     // IWYU pragma: export
