#pragma once
#include <cstddef>
#include <set>
#include <string>

#include "core/planner.hpp"
#include "holdfast/error.hpp"
#include "holdfast/types.hpp"
#include "runtime/log.hpp"

namespace holdfast::worker {

/// Rows that the fleet cannot take and that only people can mend: each kind is told when it appears, when it grows
/// and when it is over; never at each look (F20).
class Strays {
 public:
  explicit Strays(runtime::Log& log) : log_(log) {}

  /// Rows that are to run and that no claim can win.
  void unclaimable(const Unclaimable& now);
  /// Leases of others, or of nobody, that end further ahead than any healthy one.
  struct FarAhead {
    std::size_t count = 0;
    bool or_more = false;
    std::string key, owner;  ///< of one of them; empty: nobody's
    Duration ahead{};
  };
  void far_ahead(const FarAhead& now);
  /// A row could not be read; without detail: all could. Each is told once, up to a number of them.
  void unreadable(const Error& error);

 private:
  runtime::Log& log_;
  std::size_t unclaimable_told_ = 0;
  std::size_t far_ahead_told_ = 0;
  std::set<std::string> unreadable_told_;
};

}  // namespace holdfast::worker
