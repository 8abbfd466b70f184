#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "holdfast/error.hpp"

namespace CLI {
class App;
}

namespace holdfast::cli {

/// The whole program: parses the command line, runs the command that it names, tells a failure in one line on
/// standard error. Gives the exit code: 0 fine, 1 something failed, 2 asked for wrongly. Never throws.
int run(int argc, const char* const* argv);

[[nodiscard]] std::string_view program_version();

/// What a command's action gives back: nothing, or the error that becomes the line and the exit code.
using Action = std::function<Result<void>()>;
/// The same for commands with exit codes of their own.
using CodedAction = std::function<Result<int>()>;

/// Where commands put themselves while the program is set up. `chosen` is the action of the one that was named;
/// `usage_codes` are the exit codes of those that say 2 (asked for wrongly) with another number.
struct Setup {
  CLI::App& parent;
  CodedAction& chosen;
  std::unordered_map<const CLI::App*, int>& usage_codes;
};

// One function per command, each in its own file.
void add_init(Setup setup);
void add_doctor(Setup setup);
void add_conn_add(Setup setup);
void add_conn_ls(Setup setup);
void add_conn_show(Setup setup);
void add_conn_start(Setup setup);
void add_conn_stop(Setup setup);
void add_conn_rm(Setup setup);
void add_conn_release(Setup setup);
void add_conn_import(Setup setup);
void add_worker(Setup setup);
void add_serve(Setup setup);
void add_lambda(Setup setup);
void add_cost(Setup setup);
void add_feed(Setup setup);
void add_demo(Setup setup);
void add_run(Setup setup);
void add_once(Setup setup);
void add_decide(Setup setup);
void add_counter(Setup setup);
void add_stock(Setup setup);
void add_queue(Setup setup);
void add_task(Setup setup);
void add_journal(Setup setup);

/// The paths of all commands ("conn add"), and what each prints for --help; "" is the program itself.
[[nodiscard]] std::vector<std::string> command_paths();
[[nodiscard]] std::string help_of(const std::string& path);

}  // namespace holdfast::cli
