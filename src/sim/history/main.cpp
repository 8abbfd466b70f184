// holdfast_history FILE: judges a recorded history, and exits 0 only if every check says good.
#include <cstdio>
#include <fstream>
#include <string>

#include "sim/history/recorded.hpp"

int main(int argc, char** argv) {
  using namespace holdfast::sim;
  if (argc != 2) {
    std::fputs("usage: holdfast_history FILE.jsonl\nExit code: 0 good, 1 bad or undecided, 2 usage.\n", stderr);
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
