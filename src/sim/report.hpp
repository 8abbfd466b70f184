#pragma once
#include <string>

#include "sim/campaign.hpp"

namespace holdfast::sim {

/// For people: seeds, time, faults by kind, marks; and the broken rule with all that is needed to see it again.
[[nodiscard]] std::string describe(const Sum& sum, double cpu_seconds);
[[nodiscard]] std::string describe_broken(const Sum& sum, const std::string& commit);
/// One JSON document, ending in a newline.
[[nodiscard]] std::string to_json(const Sum& sum, double cpu_seconds, const std::string& commit);

/// Fleet-hours of virtual time per minute of one core.
[[nodiscard]] double speed(const Sum& sum, double cpu_seconds);

}  // namespace holdfast::sim
