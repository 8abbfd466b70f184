#include "cli/program.hpp"

#include <CLI/App.hpp>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <numeric>
#include <string_view>
#include <utility>

#include "cli/command_line.hpp"
#include "cli/config_file.hpp"
#include "cli/help.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "runtime/environment.hpp"
#include "runtime/shortage.hpp"

#ifndef HOLDFAST_VERSION
#define HOLDFAST_VERSION "0.1.0"
#endif

namespace holdfast::cli {

namespace {

using Filter = std::function<bool(const CLI::App*)>;
const Filter all = [](const CLI::App*) { return true; };

constexpr int coordinators_usage = 64;  // EX_USAGE

/// One of the program's commands. What has a description only holds others.
struct Entry {
  std::string_view name;
  const char* description;
  const char* example;
  std::vector<void (*)(Setup)> add;
};

/// In the order of --help.
std::vector<Entry> entries() {
  const auto one = [](std::string_view name, void (*add)(Setup)) { return Entry{name, nullptr, nullptr, {add}}; };
  return {
      one("init", add_init),
      one("doctor", add_doctor),
      {"conn",
       "add, list, start, stop and remove connections",
       "conn add btc --url wss://example.com/btc --resume-query since --seq-pointer /seq",
       {add_conn_add, add_conn_ls, add_conn_show, add_conn_start, add_conn_stop, add_conn_rm, add_conn_release,
        add_conn_import}},
      one("worker", add_worker),
      one("serve", add_serve),
      one("cost", add_cost),
      one("feed", add_feed),
      one("demo", add_demo),
      one("run", add_run),
      one("once", add_once),
      one("lambda", add_lambda),
      one("decide", add_decide),
      {"counter", "add to a counter, each operation once", "counter add visits 1 --op request-17", {add_counter}},
      {"stock", "set goods aside, confirm, cancel", "stock reserve order-17 shirt=2 hat=1 --ttl 15m", {add_stock}},
      {"queue", "messages in strict order within their groups", "queue send mails user-7 'hello'", {add_queue}},
      {"task", "list, show and release what 'run' and 'once' hold", "task ls", {add_task}},
      {"journal",
       "what was accepted while the store was away",
       "journal reconcile --journal shop.journal",
       {add_journal}},
  };
}

// The program with all of its commands, or with one of them; filled while it parses.
struct Program {
  CLI::App root{
      "Many WebSocket connections, each held by exactly one of many workers;\n"
      "and for jobs and functions: locks, results made once, decisions, counters, stock, queues."};
  CodedAction chosen;
  std::unordered_map<const CLI::App*, int> usage_codes;

  /// `only`: the name of the one command that it is to have; all, if it is empty.
  explicit Program(std::string_view only = {});
  void add(const Entry& entry);
};

Program::Program(std::string_view only) {
  root.name("holdfast");
  root.formatter(std::make_shared<HelpFormat>());
  root.set_help_flag("-h,--help", "print this and exit");
  root.set_version_flag("--version", "holdfast " HOLDFAST_VERSION, "print the version and exit");
  root.config_formatter(std::make_shared<ConfigFile>(root));
  root.set_config("--config", "",
                  "settings from a TOML file: `lease = \"20s\"` for all commands, `[worker]` before "
                  "those of one")
      ->type_name("FILE")
      ->envname("HOLDFAST_CONFIG");
  root.allow_config_extras(CLI::config_extras_mode::error);
  root.fallthrough();
  root.require_subcommand(0, 1);  // otherwise an argument that is called like a command would be one
  root.footer(
      "Try it:\n  $ holdfast demo\n\nEvery command has --help with an example. Every option can also be given as an "
      "environment variable\nor in the config file; the command line goes before the environment, and that before "
      "the file.\n\nExit codes:\n  0  fine\n  1  something failed\n  2  the command line, a variable or the config "
      "file makes no sense; of the coordinators' commands: 64\n  64, 69, 75, 76, 79: the coordinators'; their --help "
      "tells which");
  for (const Entry& entry : entries()) {
    if (only.empty() || only == entry.name) add(entry);
  }
}

void Program::add(const Entry& entry) {
  CLI::App* parent = &root;
  if (entry.description != nullptr) {
    parent = root.add_subcommand(std::string(entry.name), entry.description);
    parent->group("Commands");
    parent->footer(std::string("Example:\n  $ holdfast ") + entry.example);
    parent->require_subcommand(0, 1);
    if (entry.name != "conn") usage_codes[parent] = coordinators_usage;
  }
  for (const auto add_command : entry.add) add_command({*parent, chosen, usage_codes});
}

const CLI::App& deepest(const CLI::App& root) {
  const CLI::App* app = &root;
  for (;;) {
    const auto named = app->get_subcommands();
    if (named.empty()) return *app;
    app = named.front();
  }
}

std::string path_of(const CLI::App& app) {
  std::string path = app.get_name();
  for (const CLI::App* up = app.get_parent(); up != nullptr; up = up->get_parent())
    path = up->get_name() + ' ' + path;
  return path;
}

std::size_t edit_distance(std::string_view left, std::string_view right) {
  std::vector<std::size_t> row(right.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < left.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < right.size(); ++j) {
      const std::size_t substituted = diagonal + (left[i] == right[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({substituted, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

/// Words that other programs have for the same, and that no letters lead to.
bool is_known_as(std::string_view typed, std::string_view ours) {
  constexpr std::pair<std::string_view, std::string_view> words[] = {
      {"remove", "rm"},     {"delete", "rm"},      {"del", "rm"},          {"list", "ls"},
      {"get", "show"},      {"create", "add"},     {"new", "add"},         {"incr", "add"},
      {"describe", "show"}, {"lock", "run"},       {"connection", "conn"}, {"connections", "conn"},
      {"rm", "release"},    {"remove", "release"}, {"unlock", "release"},  {"free", "release"},
      {"push", "send"},     {"pop", "receive"}};
  return std::ranges::find(words, std::pair(typed, ours)) != std::end(words);
}

// " (did you mean 'worker'?)", where one of the names is near.
std::string suggestion(const CLI::App& app, std::string_view typed) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(all)) names.push_back(command->get_name());
  for (const CLI::App* at = &app; at != nullptr; at = at->get_parent()) {
    for (const CLI::Option* option : at->get_options()) {
      if (option->nonpositional()) names.push_back(option->get_name());
    }
  }
  std::string best;
  std::size_t distance = std::min<std::size_t>(3, typed.size());  // of two letters one is right, at least
  for (const std::string& name : names) {
    const std::size_t found = is_known_as(typed, name) ? 0 : edit_distance(typed, name);
    if (found < distance) {
      distance = found;
      best = name;
    }
  }
  return best.empty() ? "" : " (did you mean '" + best + "'?)";
}

std::string unexpected(const CLI::App& app, const CLI::App& root) {
  std::string first;
  bool divides = false;  // by a --, which is never what is wrong
  const auto look = [&](const std::vector<std::string>& left) {
    for (const std::string& word : left) {
      if (word == "--") divides = true;
      if (first.empty() && word != "--") first = word;
    }
  };
  for (const CLI::App* at = &app; at != nullptr && first.empty(); at = at->get_parent()) look(at->remaining(false));
  if (first.empty()) look(root.remaining(true));
  first = first.substr(0, first.find('='));
  const bool option = first.starts_with('-');
  if (option && app.get_option_no_throw(first) != nullptr) {
    return "'" + first + "' is an option of '" + path_of(app) + "', and comes after that";
  }
  const bool command = !option && !app.get_subcommands(all).empty();
  const std::string kind = option ? "unknown option '" : command ? "unknown command '" : "unexpected argument '";
  std::string hint = suggestion(app, first);
  if (option && !divides && app.get_option_no_throw(command_argument) != nullptr) {
    hint += "; options of CMD come after its first word";
  }
  return kind + first + "'" + hint;
}

/// Told before anything else: what it was meant to say may be what is missing.
bool has_unknown_option(const CLI::App& app) {
  const auto is_option = [](const std::string& word) { return word.starts_with('-') && word != "-" && word != "--"; };
  for (const CLI::App* at = &app; at != nullptr; at = at->get_parent()) {
    if (std::ranges::any_of(at->remaining(false), is_option)) return true;
  }
  return false;
}

/// Of two arguments that are required, the one that is there was taken for the first.
std::string taken_for(const CLI::App& app) {
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional() || option->get_name() == command_argument || option->count() == 0) continue;
    return ", and '" + option->results().front() + "' was taken for " + option->get_name();
  }
  return "";
}

std::string mismatch(std::string_view what) {
  const std::string name(what.substr(0, what.find(':')));
  if (what.find("At Most") != std::string_view::npos) return name + " is given more than once";
  if (what.find("missing") != std::string_view::npos || what.find("At least") != std::string_view::npos) {
    return name + " needs a value";
  }
  return std::string(what);
}

// CLI11's errors in our words: what is wrong, without its classes.
std::string explain(const CLI::ParseError& error, const CLI::App& app, const CLI::App& root) {
  const std::string what = error.what();
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr || has_unknown_option(app)) {
    return unexpected(app, root);
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) return mismatch(what);
  if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr) {
    constexpr std::string_view converting = "Could not convert: ";  // switches only: everything else is read by us
    const std::size_t at = what.find(converting);
    return (at == 0 ? what.substr(converting.size()) : what) + ": a switch is true or false";
  }
  if (dynamic_cast<const CLI::ConfigError*>(&error) != nullptr) {
    constexpr std::string_view parsing = "INI was not able to parse ";
    const std::size_t at = what.find(parsing);
    if (at != std::string::npos)
      return "the config file has an unknown setting '" + what.substr(at + parsing.size()) + "'";
    return "the config file: " + what;
  }
  if (dynamic_cast<const CLI::FileError*>(&error) != nullptr) return "the config file " + what;
  return what == "CMD is required" ? what + taken_for(app) : what;
}

// The exit code for what was asked for wrongly.
int usage_code(const Program& program, const CLI::App& app) {
  const auto found = program.usage_codes.find(&app);
  return found == program.usage_codes.end() ? 2 : found->second;
}

int finish(const Result<void>& result, int usage = 2) {
  if (result) return 0;
  complain(result.error().detail);
  return result.error().code == Code::usage ? usage : 1;
}

/// To set up all commands takes longer than to run most of them, so only the one that the line begins with is. Empty
/// where others matter: a config file may have settings of any.
std::string_view named_first(const std::vector<std::string>& words) {
  const auto has_config = [](const std::string& word) { return word.starts_with("--config"); };
  if (words.empty() || runtime::environment("HOLDFAST_CONFIG")) return {};
  if (std::any_of(words.begin(), words.end(), has_config)) return {};
  for (const Entry& entry : entries()) {
    if (entry.name == words.front()) return entry.name;
  }
  return {};
}

// CLI11 reads the config file before it reads variables: the one that names the file becomes an argument.
std::vector<std::string> arguments_of(const CLI::App& root, std::vector<std::string> words) {
  end_options_at_command(root, words);
  const auto ours_end = std::find(words.begin(), words.end(), "--");
  const bool given = std::any_of(words.begin(), ours_end, [](const std::string& word) {
    return word == "--config" || word.starts_with("--config=");
  });
  const auto file = runtime::environment("HOLDFAST_CONFIG");
  if (file && !given) words.insert(words.begin(), "--config=" + *file);
  std::reverse(words.begin(), words.end());  // CLI11 takes them from the back
  return words;
}

int parse_and_run(Program& program, std::vector<std::string> words) {
  try {
    program.root.parse(arguments_of(program.root, std::move(words)));
  } catch (const CLI::CallForHelp&) {
    return finish(print(program.root.help()));
  } catch (const CLI::CallForVersion& version) {
    return finish(print(std::string(version.what()) + "\n"));
  } catch (const CLI::ParseError& error) {
    const CLI::App& app = deepest(program.root);
    complain(explain(error, app, program.root) + ": see '" + path_of(app) + " --help'");
    return usage_code(program, app);
  }
  // `holdfast` and `holdfast conn` alone name no command: what there is to choose from is the answer.
  if (!program.chosen) return finish(print(program.root.help()));
  const Result<int> code = program.chosen();
  if (code) return *code;
  return finish(tl::unexpected(code.error()), usage_code(program, deepest(program.root)));
}

void collect(const CLI::App& app, const std::string& prefix, std::vector<std::string>& paths) {
  for (const CLI::App* command : app.get_subcommands(all)) {
    const std::string path = prefix.empty() ? command->get_name() : prefix + ' ' + command->get_name();
    paths.push_back(path);
    collect(*command, path, paths);
  }
}

}  // namespace

int run(int argc, const char* const* argv) {
  try {
    std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
    Program program(named_first(words));
    return parse_and_run(program, std::move(words));
  } catch (const std::exception& error) {
    if (const auto shortage = runtime::shortage(error)) return finish(tl::unexpected(*shortage));
    complain(std::string("unexpected: ") + error.what() + ": this is a fault of holdfast, please report it");
  } catch (...) {
    complain("unexpected: an unknown exception: this is a fault of holdfast, please report it");
  }
  return 1;
}

std::string_view program_version() {
  return HOLDFAST_VERSION;
}

std::vector<std::string> command_paths() {
  const Program program;
  std::vector<std::string> paths{""};
  collect(program.root, "", paths);
  return paths;
}

std::string help_of(const std::string& path) {
  Program program;
  try {
    program.root.parse(path + " --help");
  } catch (const CLI::Success&) {
    return program.root.help();
  }
  return "";
}

}  // namespace holdfast::cli
