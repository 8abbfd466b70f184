#pragma once
#include <CLI/App.hpp>
#include <CLI/CLI.hpp>
#include <string>

namespace holdfast::cli {

/// How --help looks: name and kind of value to the left, what it does to the right, wrapped, with its default and
/// its variable in brackets.
class HelpFormat final : public CLI::Formatter {
 public:
  HelpFormat();
  [[nodiscard]] std::string make_usage(const CLI::App* app, std::string name) const override;
  [[nodiscard]] std::string make_option(const CLI::Option* option, bool is_positional) const override;
  [[nodiscard]] std::string make_subcommand(const CLI::App* app) const override;
  [[nodiscard]] std::string make_footer(const CLI::App* app) const override;
};

/// `text` in lines of at most `columns`, each but the first after `indent` blanks. Its own line breaks stay.
[[nodiscard]] std::string wrapped(const std::string& text, std::size_t indent, std::size_t columns);

}  // namespace holdfast::cli
