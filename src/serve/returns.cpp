#include "serve/returns.hpp"

#include "core/coord/stock.hpp"

namespace holdfast::serve {

namespace {

using namespace std::chrono_literals;

/// Rarely enough to cost little on a table where each look is paid for; spread, since there may be many servers.
constexpr Duration least_pause = 5s;
constexpr Duration most_pause = 15s;
/// What is left over is found at the next look.
constexpr std::size_t at_once = 50;
/// What the clocks of two machines may differ by.
constexpr Duration skew = 1s;

}  // namespace

Returns::~Returns() {
  desk_.loop.cancel(timer_);
}

void Returns::plan() {
  timer_ = desk_.loop.call_after(desk_.loop.random().between(least_pause, most_pause), [this] { look(); });
}

void Returns::look() {
  // Where the store is away, the next look will tell.
  run(desk_, std::make_unique<ReturnExpired>(skew, at_once, desk_.deadline(), desk_.loop.random()),
      [this, alive = std::weak_ptr(alive_)](const Ended<std::size_t>& returned) {
        if (alive.expired()) return;
        looked(returned);
        plan();
      });
}

void Returns::looked(const Ended<std::size_t>& returned) {
  if (std::exchange(is_failing_, !returned) == is_failing_ || !complain_) return;
  complain_(returned ? "reservations that have expired are returned again"
                     : "reservations that have expired are not returned: " + returned.error().error.detail);
}

}  // namespace holdfast::serve
