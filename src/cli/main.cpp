#include "cli/program.hpp"
#include "runtime/environment.hpp"
#include "runtime/last_words.hpp"

int main(int argc, char** argv) {
  holdfast::runtime::open_standard_streams();
  holdfast::runtime::install_last_words();
  return holdfast::cli::run(argc, argv);
}
