#include "coord/within.hpp"

#include "runtime/units.hpp"

namespace holdfast::coord {

Result<void> check_within(const std::string& what, Duration value, const Span& span) {
  if (is_within(value, span)) return {};
  return fail(Code::usage, what + " is from " + runtime::write_duration(span.least) + " to " +
                               runtime::write_duration(span.most) + ", not " + runtime::write_duration(value));
}

}  // namespace holdfast::coord
