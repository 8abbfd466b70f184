// conn start, conn stop, conn rm: three names for one thing, a conditional write of the desired state.
#include <memory>

#include "cli/conn_select.hpp"
#include "cli/connections.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"

namespace holdfast::cli {

namespace {

constexpr std::size_t lines_max = 20;  // more are summed up

struct StateSettings {
  std::string store = "sqlite:holdfast.db";
  std::vector<std::string> patterns;
  std::optional<Duration> forget_after;
};

// What became of one connection, for people.
struct Told {
  std::string words;
  bool repaired = false;
  bool failed = false;  // this one alone: the others go on
};

// Reads the row again and tries again where somebody changed its state in between. An error is one of the table.
Result<Told> bring(StoreSession& store, Row row, Wanted wanted, std::optional<WallTime> forget_at) {
  for (int tries = 0; tries < 5; ++tries) {
    const Step step = step_to(wanted, row, forget_at, store.wall());
    if (step.kind == Step::Kind::refuse) return Told{.words = step.words, .failed = true};
    if (step.kind == Step::Kind::nothing) return Told{.words = step.words};
    auto written = store.update(step.update);
    if (!written) return tl::unexpected<Error>(written.error());
    if (written->applied) return Told{.words = step.words, .repaired = step.repaired};
    if (!written->row) return Told{.words = "is gone: see 'holdfast conn ls'", .failed = true};
    row = std::move(*written->row);
  }
  return Told{.words = "is being changed by others: try again", .failed = true};
}

std::string summary(const std::map<std::string, std::size_t>& counts) {
  std::string text;
  for (const auto& [words, count] : counts) {
    text += (text.empty() ? "" : ", ") + std::to_string(count) + ' ' + words;
  }
  return text + '\n';
}

std::string others(std::size_t count) {
  return count == 1 ? "another one as well: see 'holdfast conn ls'"
                    : std::to_string(count) + " others as well: see 'holdfast conn ls'";
}

Result<void> run_state(const StateSettings& settings, Wanted wanted) {
  const auto session = StoreSession::open(settings.store, StoreSession::Create::never);
  if (!session) return tl::unexpected<Error>(session.error());
  StoreSession& store = **session;
  auto rows = select_connections(store, settings.patterns, Removed::left_out);
  if (!rows) return tl::unexpected<Error>(rows.error());
  std::optional<WallTime> forget_at;
  if (settings.forget_after) {
    forget_at = store.wall() + std::chrono::ceil<std::chrono::milliseconds>(*settings.forget_after);
  }
  std::map<std::string, std::size_t> counts;
  std::vector<std::string> failed;  // each with why
  for (const Row& row : *rows) {
    const std::string id = *id_of(row);
    const auto told = bring(store, row, wanted, forget_at);
    if (!told) return tl::unexpected<Error>(told.error());
    if (told->failed) {
      failed.push_back("connection '" + id + "' " + told->words);
      continue;
    }
    ++counts[told->words];
    std::string line;
    if (rows->size() <= lines_max) line = id + ' ' + told->words;
    if (told->repaired) line = id + ' ' + told->words + ", repaired: workers could not take it";
    if (line.empty()) continue;
    if (auto printed = print(line + '\n'); !printed) return printed;
  }
  if (rows->size() > lines_max && !counts.empty()) {
    if (auto printed = print(summary(counts)); !printed) return printed;
  }
  if (failed.empty()) return {};
  return fail(Code::not_found, failed.front() + (failed.size() == 1 ? "" : "; and " + others(failed.size() - 1)));
}

void add_state_command(Setup setup, const CommandText& text, Wanted wanted) {
  const auto settings = std::make_shared<StateSettings>();
  CLI::App& app = add_command(setup, text, [settings, wanted] { return run_state(*settings, wanted); });
  add_arguments(app, "NAME", settings->patterns, "which: ids, or patterns such as 'btc*'").required();
  add_store(app, settings->store);
  if (wanted == Wanted::removed) {
    add_duration(app, "--forget-after", settings->forget_after,
                 "the table may delete what is left after so long; an id that is then added again starts at epoch 1, "
                 "which readers that compare epochs must not meet",
                 "never");
  }
}

}  // namespace

void add_conn_start(Setup setup) {
  add_state_command(setup,
                    {.name = "start",
                     .description = "have connections held; repairs rows that workers cannot find or claim",
                     .example = "conn start 'btc*'",
                     .exit_codes = "there is no such connection, or the table is not to be had"},
                    Wanted::started);
}

void add_conn_stop(Setup setup) {
  add_state_command(setup,
                    {.name = "stop",
                     .description = "have connections closed, within one renewal, and keep them for later",
                     .example = "conn stop btc eth",
                     .exit_codes = "there is no such connection, or the table is not to be had"},
                    Wanted::stopped);
}

void add_conn_rm(Setup setup) {
  add_state_command(setup,
                    {.name = "rm",
                     .description = "remove connections; only the name and its epoch are kept",
                     .example = "conn rm 'test-*'",
                     .exit_codes = "there is no such connection, or the table is not to be had"},
                    Wanted::removed);
}

}  // namespace holdfast::cli
