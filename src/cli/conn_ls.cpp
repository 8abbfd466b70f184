#include <unistd.h>

#include <algorithm>
#include <memory>

#include "cli/conn_json.hpp"
#include "cli/conn_select.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "runtime/environment.hpp"

namespace holdfast::cli {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t columns_of_a_pipe = 160;

struct ListSettings {
  std::string store = "sqlite:holdfast.db";
  std::vector<std::string> patterns;
  bool json = false, watch = false, all = false;
};

std::string as_json(const std::vector<Row>& rows, WallTime now) {
  std::string text = "[";
  for (const Row& row : rows) text += (text.size() > 1 ? ",\n " : "") + connection_json(row, now, false);
  return text + "]\n";
}

// What only people can mend, below the table: a line each.
std::string problems(const std::vector<Row>& rows, WallTime now) {
  constexpr std::size_t told_max = 10;
  std::string text;
  std::size_t count = 0;
  for (const Row& row : rows) {
    const std::string id = id_of(row).value_or(row.key);
    const auto problem = problem_of(row, id, now);
    if (problem && count++ < told_max) text += one_line(id + ": " + problem->words()) + '\n';
  }
  if (count > told_max) text += "... and " + std::to_string(count - told_max) + " more: see 'conn ls --json'\n";
  return text.empty() ? text : '\n' + text;
}

std::string as_table(const std::vector<Row>& rows, WallTime now, std::size_t columns) {
  if (rows.empty()) return "no connections: add one with 'holdfast conn add'\n";
  std::vector<ConnectionView> views;
  views.reserve(rows.size());
  for (const Row& row : rows) views.push_back(view_of(row, now));
  const bool reasons =
      std::any_of(views.begin(), views.end(), [](const ConnectionView& view) { return !view.reason.empty(); });
  std::vector<Table::Column> titles{{"ID"},
                                    {"STATE"},
                                    {"STATUS"},
                                    {"OWNER"},
                                    {"EPOCH", Table::Align::right},
                                    {"LEASE"},
                                    {"LAST SEQ", Table::Align::right}};
  if (reasons) titles.push_back({"REASON"});
  Table table(std::move(titles));
  for (const ConnectionView& view : views) {
    std::vector<std::string> cells{view.id,
                                   view.desired_state,
                                   view.status.empty() ? "-" : view.status,
                                   view.owner.empty() ? "-" : view.owner,
                                   std::to_string(view.epoch),
                                   view.lease_words,
                                   std::to_string(view.last_seq)};
    if (reasons) cells.push_back(view.reason);
    table.add(std::move(cells));
  }
  return (reasons ? table.render(columns) : table.render()) + problems(rows, now);
}

Result<std::string> listing(StoreSession& store, const ListSettings& settings) {
  auto rows = select_connections(store, settings.patterns, settings.all ? Removed::included : Removed::left_out);
  if (!rows) return tl::unexpected<Error>(rows.error());
  if (!settings.all) {
    std::erase_if(*rows, [](const Row& row) { return row.text(attribute::desired_state) == state::removed; });
  }
  if (settings.json) return as_json(*rows, store.wall());
  // A pipe is as wide as a wide terminal: the reason in full is what 'conn show' and --json are for.
  const auto terminal = runtime::terminal(STDOUT_FILENO);
  return as_table(*rows, store.wall(), terminal.present ? terminal.columns : columns_of_a_pipe);
}

// On a terminal the page is drawn anew each second; elsewhere a listing follows when it differs from the last.
Result<void> watch(StoreSession& store, const ListSettings& settings) {
  const bool redraw = runtime::terminal(STDOUT_FILENO).present && !settings.json;
  store.catch_signals();
  std::string last;
  do {
    const auto text = listing(store, settings);
    if (!text) return tl::unexpected<Error>(text.error());
    if (redraw || *text != last) {
      if (auto printed = print((redraw ? "\x1b[H\x1b[2J" : "") + *text); !printed) return printed;
      last = *text;
    }
  } while (store.wait(1s));
  return {};
}

Result<void> run_list(const ListSettings& settings) {
  const auto session = StoreSession::open(settings.store, StoreSession::Create::never);
  if (!session) return tl::unexpected<Error>(session.error());
  if (settings.watch) return watch(**session, settings);
  const auto text = listing(**session, settings);
  if (!text) return tl::unexpected<Error>(text.error());
  return print(*text);
}

}  // namespace

void add_conn_ls(Setup setup) {
  const auto settings = std::make_shared<ListSettings>();
  CLI::App& app = add_command(setup,
                              {.name = "ls",
                               .description = "list connections: who holds them, until when, how far they are",
                               .example = "conn ls 'btc*' --watch",
                               .exit_codes = "there is no such connection, or the table is not to be had"},
                              [settings] { return run_list(*settings); });
  add_arguments(app, "NAME", settings->patterns, "only these: ids, or patterns such as 'btc*'");
  add_store(app, settings->store);
  add_switch(app, "--json", settings->json, "print a JSON array");
  add_switch(app, "--watch", settings->watch, "go on until interrupted");
  add_switch(app, "--all", settings->all, "removed ones too");
}

}  // namespace holdfast::cli
