#include "holdfast/assert.hpp"

#include <cstdio>
#include <cstdlib>

namespace holdfast {

void assertion_failed(const char* condition, const char* why, const char* file, int line) noexcept {
  std::fprintf(stderr, "holdfast: broken invariant: %s (%s) at %s:%d\n", why, condition, file, line);
  std::abort();
}

}  // namespace holdfast
