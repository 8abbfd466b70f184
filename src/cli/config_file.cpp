#include "cli/config_file.hpp"

#include <algorithm>

#include "runtime/environment.hpp"

namespace holdfast::cli {

namespace {

// Calls with every command below `app` and the names that lead to it.
template <class Visit>
void for_each_command(const CLI::App& app, const std::vector<std::string>& parents, const Visit& visit) {
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    auto path = parents;
    path.push_back(command->get_name());
    visit(*command, path);
    for_each_command(*command, path, visit);
  }
}

const CLI::App* find_command(const CLI::App& root, const std::vector<std::string>& path) {
  const CLI::App* found = nullptr;
  for_each_command(root, {}, [&](const CLI::App& command, const std::vector<std::string>& at) {
    if (at == path) found = &command;
  });
  return found;
}

bool set_by_environment(const CLI::App* command, const std::string& name) {
  const CLI::Option* option = command == nullptr ? nullptr : command->get_option_no_throw("--" + name);
  return option != nullptr && !option->get_envname().empty() && runtime::environment(option->get_envname());
}

}  // namespace

std::vector<CLI::ConfigItem> ConfigFile::from_config(std::istream& input) const {
  const std::vector<CLI::ConfigItem> read = CLI::ConfigBase::from_config(input);
  std::vector<CLI::ConfigItem> result;
  const auto is_section = [](const CLI::ConfigItem& item) { return item.name == "++" || item.name == "--"; };
  for (const CLI::ConfigItem& item : read) {
    if (item.parents.empty() || is_section(item)) continue;
    if (!set_by_environment(find_command(root_, item.parents), item.name)) result.push_back(item);
  }
  for (const CLI::ConfigItem& item : read) {
    if (!item.parents.empty() || is_section(item)) continue;
    bool known = false;
    for_each_command(root_, {}, [&](const CLI::App& command, const std::vector<std::string>& path) {
      const CLI::Option* option = command.get_option_no_throw("--" + item.name);
      // The demo's --store is for the command line only: what is for all others is not meant for it.
      if (option == nullptr || !option->get_configurable()) return;
      known = true;
      // What is in the command's own section came first and stays: CLI11 takes no second value from a file.
      CLI::ConfigItem copy = item;
      copy.parents = path;
      if (!set_by_environment(&command, item.name)) result.push_back(std::move(copy));
    });
    if (!known) result.push_back(item);  // refused by its name
  }
  return result;
}

}  // namespace holdfast::cli
