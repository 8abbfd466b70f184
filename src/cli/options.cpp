#include "cli/options.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>

#include "core/coord/names.hpp"
#include "runtime/units.hpp"

namespace holdfast::cli {

namespace {

// Reads with `read`; a refusal becomes "--name: what is wrong with it".
CLI::Option& add_parsed(CLI::App& app, const std::string& name, const std::string& type,
                        const std::string& description, const std::string& shown_default,
                        std::function<Result<void>(const std::string&)> read) {
  CLI::Option* option = app.add_option_function<std::string>(
      name,
      [&app, name, read = std::move(read)](const std::string& text) {
        // A variable or the config file speaks to each command that has the option. Those that do not run may keep
        // their settings where the one that runs does: it is heard alone.
        if (!app.parsed()) return;
        if (const auto result = read(text); !result) throw CLI::ValidationError(name, result.error().detail);
      },
      description);
  option->type_name(type)->envname(environment_name(name));
  if (!shown_default.empty()) option->default_str(shown_default);
  return *option;
}

template <class T, class Target>
Result<void> take(Result<T> parsed, Target& target) {
  if (!parsed) return tl::unexpected<Error>(parsed.error());
  target = static_cast<Target>(std::move(*parsed));
  return {};
}

std::string short_number(double value) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof text, value, std::chars_format::fixed);
  return error == std::errc{} ? std::string(text, end) : std::to_string(value);
}

}  // namespace

std::string environment_name(std::string_view option) {
  std::string name = "HOLDFAST_";
  for (const char c : option.substr(option.find_first_not_of('-'))) {
    name += c == '-' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  }
  return name;
}

Result<std::int64_t> parse_number(std::string_view text, std::int64_t least, std::int64_t most) {
  std::int64_t value = 0;
  // "+3" is three more, as "-3" is three fewer.
  const std::size_t sign = text.size() > 1 && text[0] == '+' && text[1] != '-' ? 1 : 0;
  const auto [end, error] = std::from_chars(text.data() + sign, text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < least || value > most) {
    return fail(Code::usage, "'" + std::string(text.substr(0, 40)) + "' is no whole number from " +
                                 std::to_string(least) + " to " + std::to_string(most));
  }
  return value;
}

Result<double> parse_decimal(std::string_view text, double least, double most) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !(value >= least && value <= most)) {
    return fail(Code::usage, "'" + std::string(text.substr(0, 40)) + "' is no number from " + short_number(least) +
                                 " to " + short_number(most));
  }
  return value;
}

CLI::Option& add_text(CLI::App& app, const std::string& name, const std::string& type, std::string& target,
                      const std::string& description) {
  return add_parsed(app, name, type, description, target, [&target](const std::string& text) -> Result<void> {
    if (text.empty()) return fail(Code::usage, "has no value");
    target = text;
    return {};
  });
}

CLI::Option& add_duration(CLI::App& app, const std::string& name, Duration& target, const std::string& description) {
  return add_parsed(app, name, "DURATION", description, runtime::write_duration(target),
                    [&target](const std::string& text) { return take(runtime::parse_duration(text), target); });
}

CLI::Option& add_duration(CLI::App& app, const std::string& name, std::optional<Duration>& target,
                          const std::string& description, const std::string& otherwise) {
  return add_parsed(app, name, "DURATION", description, otherwise,
                    [&target](const std::string& text) { return take(runtime::parse_duration(text), target); });
}

CLI::Option& add_size(CLI::App& app, const std::string& name, std::size_t& target, std::uint64_t most,
                      const std::string& description) {
  const auto read = [&target, most](const std::string& text) -> Result<void> {
    const auto size = runtime::parse_size(text);
    if (size && *size > most)
      return fail(Code::usage, "'" + text + "' is too large: at most " + runtime::write_size(most));
    return take(size, target);
  };
  return add_parsed(app, name, "SIZE", description, runtime::write_size(target), read);
}

CLI::Option& add_number(CLI::App& app, const std::string& name, std::int64_t& target, std::int64_t least,
                        std::int64_t most, const std::string& description) {
  return add_parsed(
      app, name, "N", description, std::to_string(target),
      [&target, least, most](const std::string& text) { return take(parse_number(text, least, most), target); });
}

CLI::Option& add_decimal(CLI::App& app, const std::string& name, double& target, double least, double most,
                         const std::string& description) {
  return add_parsed(
      app, name, "N", description, short_number(target),
      [&target, least, most](const std::string& text) { return take(parse_decimal(text, least, most), target); });
}

CLI::Option& add_list(CLI::App& app, const std::string& name, const std::string& type,
                      std::vector<std::string>& target, const std::string& description) {
  // One value per use: `--header a:b ID` must not swallow the ID, and a value in brackets is a value.
  return *app.add_option(name, target, description)->type_name(type)->allow_extra_args(false);
}

CLI::Option& add_switch(CLI::App& app, const std::string& name, bool& target, const std::string& description) {
  // As for other options: of the commands that have it only the one that runs is heard.
  const auto read = [&app, &target, name](const std::string& text) {
    bool value = false;
    if (!CLI::detail::lexical_cast(text, value)) {
      throw CLI::ConversionError("Could not convert: " + name + " = " + text);
    }
    if (app.parsed()) target = value;
  };
  return *app.add_flag(name)->description(description)->each(read)->envname(environment_name(name));
}

CLI::Option& add_store(CLI::App& app, std::string& target) {
  return add_text(app, "--store", "URL", target, "the table: sqlite:PATH, or dynamodb://TABLE?region=REGION");
}

CLI::Option& add_argument(CLI::App& app, const std::string& name, std::string& target,
                          const std::string& description) {
  return *app.add_option(name, target, description)->type_name("")->required()->configurable(false);
}

CLI::Option& add_name(CLI::App& app, const std::string& name, std::string& target, const std::string& description) {
  const bool is_option = name.starts_with('-');
  const auto read = [&target](const std::string& text) -> Result<void> {
    if (const auto good = coord::check_name("it", text); !good) {
      return fail(Code::usage, good.error().detail.substr(0, good.error().detail.find_last_not_of('.') + 1));
    }
    target = text;
    return {};
  };
  CLI::Option& option = add_parsed(app, name, is_option ? "ID" : "", description, target, read);
  if (!is_option) option.envname("")->required()->configurable(false);
  return option;
}

CLI::Option& add_arguments(CLI::App& app, const std::string& name, std::vector<std::string>& target,
                           const std::string& description) {
  return *app.add_option(name, target, description)->type_name("")->configurable(false);
}

CLI::App& add_command(Setup setup, const CommandText& text, Action action) {
  CommandText whole = text;
  whole.exit_codes =
      "  0  fine\n  1  " + text.exit_codes + "\n  2  the command line, a variable or the config file makes no sense";
  return add_command(setup, whole, 2, [action = std::move(action)]() -> Result<int> {
    const Result<void> done = action();
    if (!done) return tl::unexpected<Error>(done.error());
    return 0;
  });
}

CLI::App& add_command(Setup setup, const CommandText& text, int usage, CodedAction action) {
  CLI::App* app = setup.parent.add_subcommand(text.name, text.description);
  app->group("Commands");
  std::string example = "  $ holdfast ";
  for (const char c : text.example) example += c == '\n' ? std::string("\n  $ holdfast ") : std::string(1, c);
  app->footer("Example:\n" + example + "\n\nExit codes:\n" + text.exit_codes);
  app->callback([&chosen = setup.chosen, action = std::move(action)] { chosen = action; });
  if (usage != 2) setup.usage_codes[app] = usage;
  return *app;
}

}  // namespace holdfast::cli
