#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "cli/program.hpp"
#include "support/places.hpp"

namespace holdfast::cli {
namespace {

TEST(CliReference, docs_cli_md_shows_the_help_of_every_command_as_it_is) {
  std::ifstream input(std::string(test::source_folder) + "/docs/cli.md");
  const std::string page(std::istreambuf_iterator<char>(input), {});
  for (const std::string& path : command_paths()) {
    const std::string block =
        "```\n$ holdfast " + path + (path.empty() ? "" : " ") + "--help\n" + help_of(path) + "```\n";
    EXPECT_NE(page.find(block), std::string::npos)
        << "docs/cli.md does not show 'holdfast " << path << "' as it is: run tools/cli_reference.py";
  }
}

}  // namespace
}  // namespace holdfast::cli
