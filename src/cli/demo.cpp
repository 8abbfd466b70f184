#include "cli/options.hpp"
namespace holdfast::cli {
void add_demo(Setup) {}
}  // namespace holdfast::cli
