// Timers: one heap and one timerfd for a whole loop, against an Asio timer object for each.
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <vector>

#include "harness.hpp"
#include "runtime/asio_loop.hpp"

namespace holdfast::bench {
namespace {

using namespace std::chrono_literals;

// What a worker does with the watchdogs of its leases: each is set far ahead, and moved at every renewal.
constexpr int timers_pending = 10'000;

Figures move_with_loop(int moves) {
  runtime::AsioLoop loop(1);
  std::vector<TimerId> timers;
  timers.reserve(timers_pending);
  const Instant start = loop.instant();
  for (int i = 0; i < timers_pending; ++i) timers.push_back(loop.call_at(start + 60s + i * 1us, [] {}));
  return measure(static_cast<std::uint64_t>(moves), [&] {
    for (int i = 0; i < moves; ++i) {
      TimerId& timer = timers[static_cast<std::size_t>(i % timers_pending)];
      loop.cancel(timer);
      timer = loop.call_at(start + 80s + i * 1us, [] {});
    }
  });
}

Figures move_with_asio(int moves) {
  boost::asio::io_context context(1);
  std::vector<std::unique_ptr<boost::asio::steady_timer>> timers;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < timers_pending; ++i) {
    timers.push_back(std::make_unique<boost::asio::steady_timer>(context, start + 60s + i * 1us));
    timers.back()->async_wait([](const boost::system::error_code&) {});
  }
  return measure(static_cast<std::uint64_t>(moves), [&] {
    for (int i = 0; i < moves; ++i) {
      auto& timer = *timers[static_cast<std::size_t>(i % timers_pending)];
      timer.expires_at(start + 80s + i * 1us);
      timer.async_wait([](const boost::system::error_code&) {});
      // The waits that were cut short have handlers to run: part of what a move costs.
      if (i % 100 == 99) context.poll();
    }
    context.poll();
  });
}

void timers(Run& run) {
  const int moves = run.quick() ? 20'000 : 1'000'000;
  run.compare({.name = "moving one of 10,000 timers",
               .subjects = {{"AsioLoop", [=] { return move_with_loop(moves); }},
                            {"asio::steady_timer", [=] { return move_with_asio(moves); }}},
               .ratios = {{.subject = "AsioLoop", .to = "asio::steady_timer", .figure = "per_core_second"}}});
}

const Register registered_timers{"timers", "moving timers: the loop's heap against asio::steady_timer",
                                 "10,000 timers wait, a minute ahead; one after the other is cancelled and set to a "
                                 "later time. Processor time of the process.",
                                 timers};

}  // namespace
}  // namespace holdfast::bench
