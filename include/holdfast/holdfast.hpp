#pragma once

/// All that a program needs that embeds a worker of a fleet, or a coordinator.
#include "holdfast/available.hpp"     // IWYU pragma: export
#include "holdfast/coordination.hpp"  // IWYU pragma: export
#include "holdfast/coordinator.hpp"   // IWYU pragma: export
#include "holdfast/error.hpp"         // IWYU pragma: export
#include "holdfast/fleet.hpp"         // IWYU pragma: export
#include "holdfast/lease.hpp"         // IWYU pragma: export
#include "holdfast/loop.hpp"          // IWYU pragma: export
#include "holdfast/provisional.hpp"   // IWYU pragma: export
#include "holdfast/report.hpp"        // IWYU pragma: export
#include "holdfast/resource.hpp"      // IWYU pragma: export
#include "holdfast/row.hpp"           // IWYU pragma: export
#include "holdfast/sink.hpp"          // IWYU pragma: export
#include "holdfast/types.hpp"         // IWYU pragma: export
