#include "core/coord/names.hpp"

#include <algorithm>
#include <string>

#include "core/utf8.hpp"

namespace holdfast::coord {

Result<void> check_name(std::string_view what, std::string_view name) {
  const auto refuse = [what](const std::string& why) { return fail(Code::usage, std::string(what) + why); };
  if (name.empty() || name.size() > name_bytes_most) {
    return refuse(" has 1 to " + std::to_string(name_bytes_most) + " bytes, not " + std::to_string(name.size()) +
                  ".");
  }
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; };
  if (std::ranges::any_of(name, is_control)) return refuse(" has a line break or another control character in it.");
  if (!is_utf8(name)) return refuse(" is no UTF-8.");
  return {};
}

}  // namespace holdfast::coord
