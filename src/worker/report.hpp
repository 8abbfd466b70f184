#pragma once
#include <string>

#include "holdfast/error.hpp"
#include "holdfast/report.hpp"

namespace holdfast::worker {

/// Writes the report as JSON: into a temporary file beside it, then renamed, so that a reader sees all or none.
[[nodiscard]] Result<void> write_report(const Report& report, const std::string& file);

/// Whether write_report() could work now: tried, and nothing left behind. What cannot be written should be told at
/// the start, not after hours.
[[nodiscard]] Result<void> try_report(const std::string& file);

/// What was done by `part` is added to `total`.
void add(Tally& total, const Tally& part);

}  // namespace holdfast::worker
