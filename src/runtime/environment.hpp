#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace holdfast::runtime {

/// The variable's value; nothing where it is not set or empty. Read at start-up, before there are threads that
/// could change it.
[[nodiscard]] std::optional<std::string> environment(const std::string& name);
/// Names of all variables that begin with `prefix`, sorted.
[[nodiscard]] std::vector<std::string> environment_names(std::string_view prefix);

/// Whether a descriptor is a terminal on which colours and redrawing are welcome (NO_COLOR and TERM=dumb are not).
struct Terminal {
  bool present = false;
  bool colours = false;
  std::size_t columns = 80;
};
[[nodiscard]] Terminal terminal(int descriptor);

/// The path of the running program's file, for starting it again.
[[nodiscard]] std::string program_path();
/// How to call it again from the current folder: as it was called, if that was by a path; else its name.
[[nodiscard]] std::string program_called();

/// `host-pid`: a name that no other process on these machines has at the moment.
[[nodiscard]] std::string host_and_process();

/// For a program's first lines: a standard stream that the caller has closed is /dev/null from then on. Otherwise the
/// next file that is opened takes its number, and what is printed goes there.
void open_standard_streams();

/// How many files this process has open.
[[nodiscard]] std::size_t open_descriptors();

/// Raises this process's soft limit of open files to its hard limit; gives the limit in force.
std::size_t raise_descriptor_limit();

}  // namespace holdfast::runtime
