#include "cli/command_line.hpp"

#include <CLI/App.hpp>
#include <algorithm>
#include <cstddef>
#include <optional>

#include "cli/options.hpp"

namespace holdfast::cli {

namespace {

/// As CLI11 has it: "-" and "-7" are values.
bool looks_like_option(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && (word[1] < '0' || word[1] > '9');
}

const CLI::Option* option_of(const CLI::App* app, const std::string& name) {
  for (; app != nullptr; app = app->get_parent()) {
    if (const CLI::Option* option = app->get_option_no_throw(name)) return option;
  }
  return nullptr;
}

const CLI::App* command_of(const CLI::App& app, const std::string& name) {
  const auto all = app.get_subcommands([&](const CLI::App* each) { return each->get_name() == name; });
  return all.empty() ? nullptr : all.front();
}

/// How many arguments come before the caller's command; nothing: it takes none.
std::optional<std::size_t> arguments_before_command(const CLI::App& app) {
  std::size_t before = 0;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional()) continue;
    if (option->get_name() == command_argument) return before;
    ++before;
  }
  return std::nullopt;
}

std::optional<std::size_t> begin_of_command(const CLI::App& root, const std::vector<std::string>& words) {
  const CLI::App* app = &root;
  std::optional<std::size_t> left;  // arguments before the command, of an app that takes one
  for (std::size_t at = 0; at < words.size(); ++at) {
    const std::string& word = words[at];
    if (word == "--") return std::nullopt;
    if (looks_like_option(word)) {
      const std::string name = word.substr(0, word.find('='));
      const CLI::Option* option = option_of(app, name);
      if (option == nullptr) return std::nullopt;
      const bool has_value_here = word.size() > name.size() + 1;  // CLI11 takes "--a=" for "--a"
      if (option->get_items_expected_max() > 0 && !has_value_here) ++at;
    } else if (left) {
      if (*left == 0) return at;
      --*left;
    } else {
      app = command_of(*app, word);
      if (app == nullptr) return std::nullopt;
      left = arguments_before_command(*app);
    }
  }
  return std::nullopt;
}

}  // namespace

CLI::Option& add_command_argument(CLI::App& app, std::vector<std::string>& target) {
  CLI::Option& option = add_arguments(app, command_argument, target,
                                      "the command, and all that follows it, options too: run without a shell");
  return *option.required();
}

Result<void> check_command(const std::vector<std::string>& command) {
  if (!command.front().empty()) return {};
  return fail(Code::usage, std::string(command_argument) + ": its first word, the program, is empty");
}

void end_options_at_command(const CLI::App& root, std::vector<std::string>& words) {
  const auto at = begin_of_command(root, words);
  if (at) words.insert(words.begin() + static_cast<std::ptrdiff_t>(*at), "--");
}

}  // namespace holdfast::cli
