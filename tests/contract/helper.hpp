#pragma once
#include <string>
#include <vector>

namespace holdfast::test {

/// What this program does as another process, started by a test of several processes: `contract_tests
/// --store-helper WHAT ARGUMENT…`. Prints its result as its last line; 0 where it worked.
[[nodiscard]] int help(const std::vector<std::string>& arguments);

/// The command line for it.
[[nodiscard]] std::vector<std::string> helper_command(std::vector<std::string> arguments);

}  // namespace holdfast::test
