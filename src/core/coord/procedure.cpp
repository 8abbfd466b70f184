#include "core/coord/procedure.hpp"

#include "holdfast/assert.hpp"

namespace holdfast {

std::string_view to_string(Failure::Kind kind) {
  switch (kind) {
    case Failure::Kind::unavailable:
      return "unavailable";
    case Failure::Kind::unknown:
      return "unknown";
    case Failure::Kind::busy:
      return "busy";
    case Failure::Kind::mismatch:
      return "mismatch";
    case Failure::Kind::refused:
      return "refused";
    case Failure::Kind::rejected:
      return "rejected";
  }
  HOLDFAST_ASSERT(false, "every kind has a name");
  return {};
}

Failure not_wanted() {
  return {Failure::Kind::busy, Error(Code::unavailable, "Nobody waits for it any more.")};
}

Failure damaged_row(std::string_view key) {
  return {Failure::Kind::rejected, Error(Code::corrupt, "The row " + std::string(key) + " is damaged.")};
}

}  // namespace holdfast
