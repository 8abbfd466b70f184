#pragma once

namespace holdfast {

/// Prints where and why to standard error and aborts.
[[noreturn]] void assertion_failed(const char* condition, const char* why, const char* file, int line) noexcept;

}  // namespace holdfast

/// A broken invariant of ours ends the process, in every build: a worker that is wrong about itself must not go
/// on holding leases. Never for what the environment may do (errors of I/O, of input, of other programs).
#define HOLDFAST_ASSERT(condition, why) \
  ((condition) ? void() : ::holdfast::assertion_failed(#condition, why, __FILE__, __LINE__))
