#pragma once
#include <string>
#include <string_view>

#include "holdfast/error.hpp"

namespace holdfast::runtime {

/// Whether a setting is a reference to a secret (`env:NAME`, `file:PATH`) and not the value itself. What is not
/// a reference may be a secret too: show neither.
[[nodiscard]] bool is_secret_reference(std::string_view setting);

/// What a reference stands for now, or the setting itself where it is none. A file's last line ending is cut
/// off; at most 64 KiB. Errors name the variable or the file, never what is in it. Reads a file: may wait on a
/// slow disk. Any thread.
[[nodiscard]] Result<std::string> resolve_secret(std::string_view setting);

}  // namespace holdfast::runtime
