// holdfast_history FILE: judges a recorded history, and exits 0 only if every check says good.
#include <cstdio>
#include <fstream>
#include <string_view>

#include "sim/history/recorded.hpp"

namespace {

constexpr const char* help =
    "holdfast_history FILE.jsonl\n"
    "\n"
    "Judges a recorded history of a table: whether each row's replies can be explained by updates that happened one\n"
    "after another, whether each epoch had one owner and one believer, and whether what was delivered adds up. The "
    "form\n"
    "of the file: src/sim/history/README.md. One line for each check: good, BAD or UNDECIDED (the search gave up).\n"
    "\n"
    "Exit code: 0 all good, 1 bad or undecided, 2 usage, or a file that cannot be read.\n"
    "Example: holdfast_history run.jsonl\n";

}  // namespace

int main(int argc, char** argv) {
  using namespace holdfast::sim;
  if (argc == 2 && (std::string_view(argv[1]) == "--help" || std::string_view(argv[1]) == "-h")) {
    std::fputs(help, stdout);
    return 0;
  }
  if (argc != 2) {
    std::fputs("holdfast_history takes one file: holdfast_history FILE.jsonl; --help tells more\n", stderr);
    return 2;
  }
  std::ifstream file(argv[1]);
  if (!file) {
    std::fprintf(stderr, "%s cannot be read\n", argv[1]);
    return 2;
  }
  const auto recorded = read_recorded(file);
  if (!recorded) {
    std::fprintf(stderr, "%s, %s\n", argv[1], recorded.error().detail.c_str());
    return 2;
  }
  bool all_good = true;
  for (const auto& [name, verdict, counted] : judge(*recorded)) {
    const char* word = verdict.good() ? "good" : verdict.bad() ? "BAD" : "UNDECIDED";
    std::printf("%-9s  %s (%s)\n", word, name.c_str(), counted.c_str());
    if (!verdict.good()) std::printf("  %s\n", verdict.words.c_str());
    all_good = all_good && verdict.good();
  }
  return all_good ? 0 : 1;
}
