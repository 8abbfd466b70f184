#pragma once
#include <filesystem>
#include <map>
#include <string>

namespace holdfast::store {

/// Where a table is, by what it takes to know it: `table`, and on a server `region` and `endpoint`. What is not known
/// is left out.
using Place = std::map<std::string, std::string>;

/// What a store's URL comes to on this machine at present, with what it leaves to AWS's environment and files: two
/// URLs of one table are one place, and one URL may be two. Empty where it is no place that others could come to
/// (`memory:`), or no URL. Asks no server; waits for the disk. At start-up: it reads the environment.
[[nodiscard]] Place place_of(const std::string& url);

/// Absolute and without links, also where they lead to what is not there at present.
[[nodiscard]] std::filesystem::path without_links(const std::filesystem::path& path);

}  // namespace holdfast::store
