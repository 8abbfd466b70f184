#pragma once
#include <CLI/App.hpp>
#include <CLI/CLI.hpp>
#include <istream>
#include <vector>

namespace holdfast::cli {

/// The config file: CLI11's TOML, with two rules of ours. A setting before the first section holds for every
/// command that knows it; and what is set in the environment goes before the file.
class ConfigFile final : public CLI::ConfigBase {
 public:
  explicit ConfigFile(const CLI::App& root) : root_(root) {}
  [[nodiscard]] std::vector<CLI::ConfigItem> from_config(std::istream& input) const override;

 private:
  const CLI::App& root_;
};

}  // namespace holdfast::cli
