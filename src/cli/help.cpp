#include "cli/help.hpp"

#include <sstream>

#include "cli/command_line.hpp"

namespace holdfast::cli {

namespace {

constexpr std::size_t left_width = 31;
constexpr std::size_t page_width = 100;

std::string two_columns(const std::string& left, const std::string& right) {
  std::string text = "  " + left;
  if (text.size() + 2 > left_width) {
    text += '\n' + std::string(left_width, ' ');
  } else {
    text.resize(left_width, ' ');
  }
  return text + wrapped(right, left_width, page_width) + '\n';
}

}  // namespace

std::string wrapped(const std::string& text, std::size_t indent, std::size_t columns) {
  std::string result;
  std::size_t column = indent;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!result.empty()) {
      result += '\n' + std::string(indent, ' ');
      column = indent;
    }
    std::istringstream words(line);
    bool first = true;
    for (std::string word; words >> word; first = false) {
      if (!first && column + 1 + word.size() > columns) {
        result += '\n' + std::string(indent, ' ');
        column = indent;
      } else if (!first) {
        result += ' ';
        ++column;
      }
      result += word;
      column += word.size();
    }
  }
  return result;
}

HelpFormat::HelpFormat() {
  label("Positionals", "Arguments");
}

std::string HelpFormat::make_usage(const CLI::App* app, std::string name) const {
  std::string usage = "Usage: " + name;
  std::string last;  // the caller's command takes all that is left
  for (const CLI::Option* option : app->get_options([](const CLI::Option* each) { return each->get_positional(); })) {
    const bool is_last = option->get_name() == command_argument;
    (is_last ? last : usage) += (is_last ? " [--] " : " ") + make_option_usage(option);
  }
  const auto commands = app->get_subcommands([](const CLI::App*) { return true; });
  return "\n" + usage + (commands.empty() ? "" : " COMMAND") + " [OPTIONS]" + last + "\n";
}

std::string HelpFormat::make_option(const CLI::Option* option, bool is_positional) const {
  std::string left = make_option_name(option, is_positional);
  if (option->get_type_size() != 0 && !option->get_type_name().empty()) left += ' ' + option->get_type_name();
  std::string notes;
  const auto note = [&notes](const std::string& text) { notes += (notes.empty() ? "" : "; ") + text; };
  if (option->get_required() && !is_positional) note("required");
  if (!option->get_required() && !option->get_default_str().empty()) note(option->get_default_str());
  if (!is_positional && option->get_expected_max() > 1) note("may be repeated");
  if (!option->get_envname().empty()) note(option->get_envname());
  return two_columns(left, option->get_description() + (notes.empty() ? "" : " [" + notes + "]"));
}

std::string HelpFormat::make_subcommand(const CLI::App* app) const {
  return two_columns(app->get_name(), app->get_description());
}

std::string HelpFormat::make_footer(const CLI::App* app) const {
  const std::string footer = app->get_footer();
  return footer.empty() ? footer : footer + "\n";
}

}  // namespace holdfast::cli
