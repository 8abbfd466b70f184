#include "coord/blocking.hpp"

#include <algorithm>

#include "coord/within.hpp"
#include "core/coord/limits.hpp"
#include "core/coord/names.hpp"
#include "runtime/environment.hpp"
#include "store/open.hpp"

namespace holdfast::coord {

namespace {

constexpr Duration longest = std::chrono::hours(24);  // multiples must fit into a Duration

}  // namespace

Result<void> complete(CoordinatorOptions& options) {
  if (options.id.empty()) options.id = runtime::host_and_process();
  const bool is_plain =
      std::ranges::none_of(options.id, [](char c) { return c == '#' || static_cast<unsigned char>(c) <= ' '; });
  if (!is_plain || options.id.size() > 200) {
    return fail(Code::usage, "A coordinator's id has 200 bytes at most, and no '#', blanks or control characters.");
  }
  if (options.patience <= Duration::zero() || options.patience > longest) {
    return fail(Code::usage, "The patience with the store must be above zero, and a day at most.");
  }
  if (auto good = check_within("The skew", options.skew, skewed); !good) return good;
  return store::check_store_url(options.store);
}

}  // namespace holdfast::coord
