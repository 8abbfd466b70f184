#pragma once
#include <CLI/App.hpp>
#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/program.hpp"
#include "holdfast/error.hpp"
#include "holdfast/types.hpp"

namespace holdfast::cli {

/// What is said about a command apart from its options.
struct CommandText {
  std::string name;
  std::string description;
  std::string example;     ///< one or more lines, without the prompt
  std::string exit_codes;  ///< what 1 means here; 0 and 2 are the same everywhere
};
CLI::App& add_command(Setup setup, const CommandText& text, Action action);
/// A command with exit codes of its own: `exit_codes` tells all of them, a line each; `usage` is the one for a
/// command line that makes no sense.
CLI::App& add_command(Setup setup, const CommandText& text, int usage, CodedAction action);

/// Options whose value is read by us, so that what is wrong is told in our words. A target's value before the
/// parse is its default, and shown. Each can also be set by HOLDFAST_<NAME> and by a config file.
CLI::Option& add_text(CLI::App& app, const std::string& name, const std::string& type, std::string& target,
                      const std::string& description);
CLI::Option& add_duration(CLI::App& app, const std::string& name, Duration& target, const std::string& description);
/// `otherwise` is what happens without it, for the help.
CLI::Option& add_duration(CLI::App& app, const std::string& name, std::optional<Duration>& target,
                          const std::string& description, const std::string& otherwise);
CLI::Option& add_size(CLI::App& app, const std::string& name, std::size_t& target, std::uint64_t most,
                      const std::string& description);
CLI::Option& add_number(CLI::App& app, const std::string& name, std::int64_t& target, std::int64_t least,
                        std::int64_t most, const std::string& description);
CLI::Option& add_decimal(CLI::App& app, const std::string& name, double& target, double least, double most,
                         const std::string& description);
/// May be given several times, one value each time.
CLI::Option& add_list(CLI::App& app, const std::string& name, const std::string& type,
                      std::vector<std::string>& target, const std::string& description);
CLI::Option& add_switch(CLI::App& app, const std::string& name, bool& target, const std::string& description);
CLI::Option& add_store(CLI::App& app, std::string& target);
/// One value, or any number of them.
CLI::Option& add_argument(CLI::App& app, const std::string& name, std::string& target,
                          const std::string& description);
CLI::Option& add_arguments(CLI::App& app, const std::string& name, std::vector<std::string>& target,
                           const std::string& description);

/// A name that callers choose, as an argument or as an option: such as fits into the key of a row.
CLI::Option& add_name(CLI::App& app, const std::string& name, std::string& target, const std::string& description);

/// `--drain-timeout` → `HOLDFAST_DRAIN_TIMEOUT`.
[[nodiscard]] std::string environment_name(std::string_view option);

[[nodiscard]] Result<std::int64_t> parse_number(std::string_view text, std::int64_t least, std::int64_t most);
[[nodiscard]] Result<double> parse_decimal(std::string_view text, double least, double most);

}  // namespace holdfast::cli
