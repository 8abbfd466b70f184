// Counts allocations of the whole test program; in use only while a test here asks for it.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "core/keeper.hpp"
#include "support/lease_table.hpp"
#include "support/sanitized.hpp"

// The sanitizers bring their own operator new, which finds more than this counts.
#if !HOLDFAST_SANITIZED

namespace {
thread_local std::uint64_t allocations = 0;
}

// Not inlined: g++ would see free() on what it takes for the standard operator new.
[[gnu::noinline]] void* operator new(std::size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace holdfast {
namespace {

using namespace std::chrono_literals;

TEST(KeeperAtScale, a_renewal_allocates_nothing_in_the_steady_state) {
  constexpr std::size_t leases = 10'000;
  Random random(1);
  Keeper keeper(WorkerId("me"), *make_terms({.lease = 20s}), {leases, 256}, random);
  Now now{Instant(1000s), WallTime(1'700'000'000'000ms)};
  Row row;
  row.key = "CONN#a-key-that-does-not-fit-into-the-string-itself";
  row.attributes = {{std::string(attribute::desired_state), Value(state::started)},
                    {std::string(attribute::owner), Value("me")}};
  for (std::size_t i = 0; i < leases; ++i) {
    Candidate candidate;
    candidate.key = row.key + std::to_string(i);
    ASSERT_TRUE(keeper.claim(candidate, now));
  }
  std::vector<std::pair<Slot, WriteId>> flying;
  flying.reserve(256);
  std::uint64_t renewals = 0;
  std::uint64_t allocated = 0;
  const auto run_until = [&](Instant end) {
    for (; now.instant < end; now.instant += 5ms, now.wall += 5ms) {
      while (const auto action = keeper.poll(now)) {
        if (action->kind == Action::Kind::write) flying.emplace_back(action->slot, action->write_id);
        if (action->kind == Action::Kind::start) keeper.progress(action->slot, 1);
        if (action->kind == Action::Kind::extend)
          keeper.progress(action->slot, static_cast<std::int64_t>(++renewals));
      }
      for (const auto& [slot, id] : flying) {
        // Some are throttled, some get lost: that is a steady state, too.
        const Outcome outcome = id % 10 == 0   ? Outcome::throttled
                                : id % 10 == 1 ? Outcome::unknown
                                               : Outcome::applied;
        keeper.on_write(slot, id, outcome, outcome == Outcome::applied ? &row : nullptr, now);
      }
      flying.clear();
    }
  };
  run_until(now.instant + 12s);  // claims, and two rounds of renewals
  ASSERT_EQ(keeper.held(), leases);
  renewals = 0;
  const std::uint64_t before = allocations;
  run_until(now.instant + 30s);
  allocated = allocations - before;
  EXPECT_EQ(keeper.held(), leases);
  EXPECT_GT(renewals, 5 * leases);
  EXPECT_EQ(allocated, 0U);
}

TEST(KeeperAtScale, the_counter_of_this_test_does_count) {
  const std::uint64_t before = allocations;
  const auto text = std::make_unique<std::string>(100, 'x');
  EXPECT_EQ(text->size(), 100U);
  EXPECT_EQ(allocations - before, 2U);
}

}  // namespace
}  // namespace holdfast

#endif
