#include "core/coord/names.hpp"

#include <string>

namespace holdfast::coord {

Result<void> check_name(std::string_view what, std::string_view name) {
  if (!name.empty() && name.size() <= name_bytes_most) return {};
  return fail(Code::usage, std::string(what) + " has 1 to " + std::to_string(name_bytes_most) + " bytes, not " +
                               std::to_string(name.size()) + ".");
}

}  // namespace holdfast::coord
