#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>
#include <set>

#include "cli/connections.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/store_session.hpp"
#include "runtime/environment.hpp"

namespace holdfast::cli {

namespace {

constexpr std::size_t progress_every = 1'000;

struct ImportSettings {
  std::string store = "sqlite:holdfast.db", file;
  bool replace = false;
};

struct Parsed {
  std::vector<ImportLine> lines;
  std::vector<std::size_t> bad;  // their numbers
  std::string first_problem;
};

Parsed parse_lines(std::istream& input) {
  Parsed parsed;
  std::set<std::string> ids;
  std::string text;
  for (std::size_t number = 1; std::getline(input, text); ++number) {
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    auto line = parse_import_line(text);
    if (line && !ids.insert(line->id).second) line = fail(Code::usage, "'" + line->id + "' is there twice");
    if (line) {
      parsed.lines.push_back(std::move(*line));
      continue;
    }
    if (parsed.bad.empty()) parsed.first_problem = "line " + std::to_string(number) + ": " + line.error().detail;
    parsed.bad.push_back(number);
  }
  return parsed;
}

Result<Parsed> read_file(const std::string& file) {
  if (file == "-") return parse_lines(std::cin);
  std::ifstream input(file);
  if (!input) {
    return fail(Code::not_found,
                "cannot read " + file + ": " + std::strerror(errno) + ": name a file, or - for standard input");
  }
  Parsed parsed = parse_lines(input);
  if (input.bad()) return fail(Code::unavailable, "cannot read " + file + ": " + std::strerror(errno));
  return parsed;
}

// "2, 7 and 9", "2, 7, 9 and 14 more".
template <class List, class Show>
std::string some_of(const List& list, const Show& show) {
  constexpr std::size_t shown_max = 10;
  std::string text;
  for (std::size_t i = 0; i < list.size() && i < shown_max; ++i) text += (i == 0 ? "" : ", ") + show(list[i]);
  if (list.size() > shown_max) text += " and " + std::to_string(list.size() - shown_max) + " more";
  return text;
}

Error bad_lines(const std::string& file, const Parsed& parsed) {
  const std::string numbers = some_of(parsed.bad, [](std::size_t number) { return std::to_string(number); });
  return {Code::usage, file + " has " + std::to_string(parsed.bad.size()) + " bad line" +
                           (parsed.bad.size() == 1 ? "" : "s") + " (" + numbers +
                           "), nothing was imported: " + parsed.first_problem};
}

// Writes all; gives those that met a conflict, by their place.
Result<std::vector<std::size_t>> write_all(StoreSession& store, const std::vector<Update>& updates) {
  const bool progress = runtime::terminal(STDERR_FILENO).present && updates.size() > progress_every;
  std::vector<std::size_t> conflicts;
  std::size_t done = 0;
  const auto written = store.update_all(updates, [&](std::size_t index, const StoreSession::Written& each) {
    if (!each.applied) conflicts.push_back(index);
    if (++done % progress_every == 0 && progress) {
      tell(std::to_string(done) + " of " + std::to_string(updates.size()) + " written");
    }
  });
  if (!written) {
    return fail(written.error().code, written.error().detail + ": " + std::to_string(done - conflicts.size()) +
                                          " connections were imported before that; import again with --replace");
  }
  return conflicts;
}

Result<void> run_import(const ImportSettings& settings) {
  const auto parsed = read_file(settings.file);
  if (!parsed) return tl::unexpected<Error>(parsed.error());
  if (!parsed->bad.empty()) return tl::unexpected<Error>(bad_lines(settings.file, *parsed));
  const auto session = StoreSession::open(settings.store, StoreSession::Create::if_sqlite);
  if (!session) return tl::unexpected<Error>(session.error());
  StoreSession& store = **session;

  std::vector<Update> adds;
  for (const ImportLine& line : parsed->lines) {
    adds.push_back(add_connection(line.id, line.stream, line.stopped, store.wall()));
  }
  auto left = write_all(store, adds);
  if (!left) return tl::unexpected<Error>(left.error());
  const std::size_t added = adds.size() - left->size();
  std::string told = std::to_string(added) + " added";
  if (settings.replace && !left->empty()) {
    std::vector<Update> replacements;
    for (const std::size_t index : *left) {
      const ImportLine& line = parsed->lines[index];
      replacements.push_back(replace_connection(line.id, line.stream, line.stopped));
    }
    const auto still = write_all(store, replacements);
    if (!still) return tl::unexpected<Error>(still.error());
    told += ", " + std::to_string(replacements.size() - still->size()) + " changed";
    std::vector<std::size_t> remaining;
    for (const std::size_t place : *still) remaining.push_back((*left)[place]);
    *left = std::move(remaining);
  }
  if (auto printed = print(told + "\n"); !printed) return printed;
  if (left->empty()) return {};
  const auto name = [&](std::size_t index) { return parsed->lines[index].id; };
  return fail(Code::unavailable,
              std::to_string(left->size()) + (settings.replace ? " are just being removed: " : " exist already: ") +
                  some_of(*left, name) + (settings.replace ? ": try again" : ": change them with --replace"));
}

}  // namespace

void add_conn_import(Setup setup) {
  const auto settings = std::make_shared<ImportSettings>();
  CLI::App& app =
      add_command(setup,
                  {.name = "import",
                   .description = "add many connections: one JSON object per line, with id, url, options and stopped",
                   .example = "conn import feeds.ndjson",
                   .exit_codes = "the file cannot be read, some exist already, or the table is not to be had"},
                  [settings] { return run_import(*settings); });
  add_argument(app, "FILE", settings->file,
               "what to read; - for standard input. Nothing is written if a line is bad");
  add_store(app, settings->store);
  add_switch(app, "--replace", settings->replace, "change those that exist");
}

}  // namespace holdfast::cli
