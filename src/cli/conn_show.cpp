#include <memory>

#include "cli/conn_json.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/store_session.hpp"
#include "store/json.hpp"

namespace holdfast::cli {

namespace {

struct ShowSettings {
  std::string store = "sqlite:holdfast.db", id;
  bool json = false;
};

std::string as_lines(const Row& row, WallTime now) {
  const ConnectionView view = view_of(row, now);
  std::string text;
  const auto line = [&text](const std::string& name, const std::string& value) {
    text += name + std::string(name.size() < 10 ? 10 - name.size() : 1, ' ') + one_line(value) + '\n';
  };
  line("id", view.id);
  line("url", view.url.empty() ? "-" : view.url);
  line("state",
       view.desired_state.empty() ? "none: 'holdfast conn start " + view.id + "' repairs it" : view.desired_state);
  std::string status = view.status.empty() ? "-" : view.status;
  if (!view.last_status.empty()) status = "unknown; was " + view.last_status;
  line("status", status + (view.reason.empty() ? "" : ": " + view.reason));
  line("owner", view.owner.empty() ? "-" : view.owner);
  line("epoch", std::to_string(view.epoch));
  line("lease", view.lease_words);
  line("last seq", std::to_string(view.last_seq));
  for (const auto& [name, value] : shown_options(row)) {
    line("option", name + " = " + store::to_json(value));
  }
  if (!view.problem.empty()) line("problem", view.problem);
  if (const std::string problem = options_problem_of(row); !problem.empty()) line("problem", problem);
  return text;
}

Result<void> run_show(const ShowSettings& settings) {
  const auto session = StoreSession::open(settings.store, StoreSession::Create::never);
  if (!session) return tl::unexpected<Error>(session.error());
  const auto row = (*session)->get(key_of(settings.id));
  if (!row) return tl::unexpected<Error>(row.error());
  if (!*row) return fail(Code::not_found, "no connection is called '" + settings.id + "': see 'holdfast conn ls'");
  const WallTime now = (*session)->wall();
  return print(settings.json ? connection_json(**row, now, true) + "\n" : as_lines(**row, now));
}

}  // namespace

void add_conn_show(Setup setup) {
  const auto settings = std::make_shared<ShowSettings>();
  CLI::App& app =
      add_command(setup,
                  {.name = "show",
                   .description = "all about one connection; header values that are not references stay hidden",
                   .example = "conn show btc",
                   .exit_codes = "there is no such connection, or the table is not to be had"},
                  [settings] { return run_show(*settings); });
  add_argument(app, "ID", settings->id, "its name");
  add_store(app, settings->store);
  add_switch(app, "--json", settings->json, "print a JSON object");
}

}  // namespace holdfast::cli
