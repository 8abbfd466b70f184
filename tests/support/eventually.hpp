#pragma once
#include <chrono>
#include <thread>

namespace holdfast::test {

/// Waits for what another thread must bring about; false where it has not after a limit that is generous on
/// purpose.
template <class Predicate>
[[nodiscard]] bool eventually(Predicate predicate, std::chrono::milliseconds limit = std::chrono::seconds(30)) {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!predicate()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace holdfast::test
