#include "cli/program.hpp"
#include "runtime/last_words.hpp"

int main(int argc, char** argv) {
  holdfast::runtime::install_last_words();
  return holdfast::cli::run(argc, argv);
}
