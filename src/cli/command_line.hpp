#pragma once
#include <string>
#include <vector>

#include "holdfast/error.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace holdfast::cli {

/// The name of the argument that is a command of the caller's: it takes all that is left of the line.
inline constexpr const char* command_argument = "CMD";
/// Adds it, required.
CLI::Option& add_command_argument(CLI::App& app, std::vector<std::string>& target);
/// A first word that is empty comes from a variable of a shell that is not set.
[[nodiscard]] Result<void> check_command(const std::vector<std::string>& command);

/// As with env, timeout or flock, our options end where the command begins: a "--" is put in front of its first word,
/// unless there is one already. A line whose options are not known up to there is left as it is, to be refused.
/// `words`: without the program's own name, in their order.
void end_options_at_command(const CLI::App& root, std::vector<std::string>& words);

}  // namespace holdfast::cli
