#include <unistd.h>

#include <algorithm>
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
constexpr std::size_t bad_lines_told_max = 10;

struct ImportSettings {
  std::string store = "sqlite:holdfast.db", file;
  bool replace = false;
};

struct Parsed {
  std::vector<ImportLine> lines;
  std::vector<std::string> bad;  // "line 3: what is wrong with it"
};

/// As std::getline(), but a line may have no end: of one that is too long its beginning, which makes no sense.
bool next_line(std::istream& input, std::string& line) {
  constexpr std::size_t longest = 1 << 20;
  line.clear();
  for (char c = 0; line.size() < longest && input.get(c) && c != '\n';) line += c;
  if (line.size() == longest) input.setstate(std::ios::eofbit | std::ios::failbit);
  return !line.empty() || input.good();
}

Parsed parse_lines(std::istream& input) {
  Parsed parsed;
  std::set<std::string> ids;
  std::string text;
  for (std::size_t number = 1; next_line(input, text); ++number) {
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    auto line = parse_import_line(text);
    if (line && !ids.insert(line->id).second) line = fail(Code::usage, "'" + line->id + "' is there twice");
    if (line) {
      parsed.lines.push_back(std::move(*line));
      continue;
    }
    parsed.bad.push_back("line " + std::to_string(number) + ": " + line.error().detail);
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

// One bad line fits into the error; of more, each has a line of its own before it.
Error bad_lines(const std::string& file, const Parsed& parsed) {
  if (parsed.bad.size() == 1) return {Code::corrupt, file + ", " + parsed.bad[0] + ": nothing was imported"};
  const std::size_t told = std::min(parsed.bad.size(), bad_lines_told_max);
  for (std::size_t i = 0; i < told; ++i) complain(file + ", " + parsed.bad[i]);
  return {Code::corrupt,
          file + " has " + std::to_string(parsed.bad.size()) + " bad lines" +
              (told < parsed.bad.size() ? ", of which the first " + std::to_string(told) + " are above" : "") +
              ": nothing was imported"};
}

// Writes all; gives those that met a conflict, by their place.
Result<std::vector<std::size_t>> write_all(StoreSession& store, const std::vector<Update>& updates) {
  const bool progress = runtime::terminal(STDERR_FILENO).present && updates.size() > progress_every;
  std::vector<std::size_t> conflicts;
  std::size_t done = 0;
  const auto written = store.update_all(updates, [&](std::size_t index, const StoreSession::Written& each) {
    const bool ours = each.applied || (each.may_be_ours && each.row && says_as_added(*each.row, updates[index]));
    if (!ours) conflicts.push_back(index);
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
  const auto session = StoreSession::open(settings.store, StoreSession::Create::if_embedded);
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
  const bool one = left->size() == 1;
  const auto name = [&](std::size_t index) { return parsed->lines[index].id; };
  return fail(Code::unavailable, std::to_string(left->size()) +
                                     (one ? settings.replace ? " is just being removed: " : " exists already: "
                                      : settings.replace ? " are just being removed: "
                                                         : " exist already: ") +
                                     some_of(*left, name) +
                                     (settings.replace ? ": try again"
                                      : one            ? ": change it with --replace"
                                                       : ": change them with --replace"));
}

}  // namespace

void add_conn_import(Setup setup) {
  const auto settings = std::make_shared<ImportSettings>();
  CLI::App& app = add_command(
      setup,
      {.name = "import",
       .description = "add many connections: one JSON object per line, with id, url, options and stopped",
       .example = "conn import feeds.ndjson",
       .exit_codes = "the file cannot be read or has bad lines, some exist already, or the table is not to be had"},
      [settings] { return run_import(*settings); });
  add_argument(app, "FILE", settings->file,
               "what to read; - for standard input. Nothing is written if a line is bad");
  add_store(app, settings->store);
  add_switch(app, "--replace", settings->replace, "change those that exist");
}

}  // namespace holdfast::cli
